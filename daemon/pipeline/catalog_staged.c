/* Datasets with an origin: what their stamps say, and what their stagings are doing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/pipeline/catalog_private.h"

/* A staging writes its progress once a second; a shared file system may show it some seconds later. Who has written
 * nothing for so long is dead. By our own clock: those of other nodes may differ. */
#define SILENT_NS 20000000000ull

void staged_free(struct catalog_staged *staged) {
        if (!staged)
                return;
        catalog_dataset_unref(staged->previous);
        progress_fini(&staged->progress);
        free(staged->origin);
        free(staged);
}

/* An origin's query may hold a signature: it is nobody's business. */
static size_t shown_length(const char *origin) {
        return strcspn(origin, "?#");
}

int staged_new(const struct catalog_wish *wish, struct catalog_staged **ret_staged, struct why *why) {
        struct catalog_staged *staged = calloc(1, sizeof(*staged));
        int r;

        if (staged)
                staged->origin = strndup(wish->origin, shown_length(wish->origin));
        if (!staged || !staged->origin) {
                staged_free(staged);
                return why_errno(why, -ENOMEM, "dataset %s", wish->name);
        }
        r = place_init(&staged->place, wish->path, why);
        if (r < 0) {
                staged_free(staged);
                return r;
        }
        *ret_staged = staged;
        return 0;
}

bool staged_matches(const struct catalog_staged *staged, const char *origin) {
        bool has_origin = origin && *origin;

        if (!staged || !has_origin)
                return !staged && !has_origin;
        return strlen(staged->origin) == shown_length(origin) &&
               memcmp(staged->origin, origin, shown_length(origin)) == 0;
}

/* ---- versions ------------------------------------------------------------------------------------------------ */

int staged_aim(const struct catalog_entry *entry, char ret_path[PATH_MAX], char ret_index[PATH_MAX],
               char ret_digest[INDEX_DIGEST_SIZE], char ret_format[32]) {
        const struct catalog_staged *staged = entry->staged;
        const struct stamp *stamp = &staged->next;
        int r;

        r = place_file(&staged->place, stamp->version, "", ret_path);
        if (r == 0 && stamp->index[0])
                r = place_file(&staged->place, stamp->version, ".index", ret_index);
        if (r < 0)
                return r;
        snprintf(ret_digest, INDEX_DIGEST_SIZE, "%s", stamp->index);
        snprintf(ret_format, 32, "%s", stamp->format[0] ? stamp->format : entry->format);
        return 0;
}

/* What was served until now is for those alone who have it. */
static void retire(struct catalog_entry *entry) {
        struct catalog_staged *staged = entry->staged;

        if (!entry->open)
                return;
        catalog_dataset_unref(staged->previous); /* two versions back: its jobs keep it, their late ranks do not */
        staged->previous = TAKE_PTR(entry->open);
}

/* Nobody has it any more but we. */
static void drop_previous(struct catalog_staged *staged) {
        if (staged->previous && atomic_load_explicit(&staged->previous->refs, memory_order_acquire) == 1)
                catalog_dataset_unref(TAKE_PTR(staged->previous));
}

void staged_take(struct catalog_entry *entry, const struct catalog_dataset *open) {
        struct catalog_staged *staged = entry->staged;

        if (entry->open)
                log_info("dataset", "%s: version %s takes the place of %s for whoever attaches from now on",
                         entry->name, staged->next.version, staged->stamp.version);
        retire(entry);
        drop_previous(staged);
        staged->stamp = staged->next;
        staged->told.text[0] = '\0';
}

bool staged_has_previous(const struct catalog_staged *staged, const char *digest) {
        return staged->previous && strcmp(index_digest(dataset_index(staged->previous->dataset)), digest) == 0;
}

void staged_look_again(struct catalog_entry *entry) {
        entry->staged->is_looked_at = false;
        entry->state = CATALOG_CLOSED;
        catalog_look(entry->catalog);
}

/* ---- a look -------------------------------------------------------------------------------------------------- */

/* A copy, so that the entry may go meanwhile. */
struct look {
        struct catalog *catalog;
        char name[DLP_NAME_MAX];
        struct place place;
        uint64_t mark; /* known; then found */
        bool must_read;

        int stamp_result; /* counts if must_read */
        struct stamp stamp;
        struct why why;
        bool has_progress;
        struct progress progress;
        uint64_t progress_mark;
};

static void look_work(void *userdata) {
        struct look *look = userdata;
        uint64_t mark = stamp_mark(&look->place);
        struct why why; /* a progress that cannot be read is none: nothing depends on it */

        look->must_read |= mark != look->mark;
        look->mark = mark;
        if (look->must_read)
                look->stamp_result = stamp_read(&look->place, &look->stamp, &look->why);
        look->has_progress = progress_read(&look->place, &look->progress, &look->progress_mark, &why) == 0;
}

static void take_progress(struct catalog_staged *staged, struct look *look) {
        progress_fini(&staged->progress);
        if (!look->has_progress) {
                staged->progress_mark = 0;
                return;
        }
        staged->progress = look->progress;
        look->progress.nodes = NULL;
        if (staged->progress_mark != look->progress_mark)
                staged->progress_changed_ns = clock_now_ns();
        staged->progress_mark = look->progress_mark;
}

static bool is_same_version(const struct stamp *one, const struct stamp *other) {
        return strcmp(one->version, other->version) == 0 && strcmp(one->index, other->index) == 0 &&
               strcmp(one->format, other->format) == 0;
}

/* The word that it is whole is gone, or no word any more. */
static void lose_stamp(struct catalog_entry *entry, const struct look *look) {
        bool was_open = entry->open;

        retire(entry);
        if (look->stamp_result < 0) {
                entry_fail(entry, look->stamp_result, &look->why);
                return;
        }
        entry->state = CATALOG_STAGING;
        entry->text.text[0] = '\0';
        if (was_open)
                log_error("dataset",
                          "%s: its stamp is gone from %s; those who are served from it stay so, others wait until it "
                          "is staged again",
                          entry->name, entry->staged->place.folder);
}

static void take_stamp(struct catalog_entry *entry, const struct look *look) {
        struct catalog_staged *staged = entry->staged;

        staged->is_looked_at = true;
        staged->mark = look->mark;
        if (look->stamp_result != 0) {
                lose_stamp(entry, look);
        } else if (entry->open && is_same_version(&look->stamp, &staged->stamp)) {
                staged->stamp = look->stamp; /* staged again, to the same end */
        } else {
                staged->next = look->stamp;
                entry_open(entry);
        }
}

static void look_done(void *userdata) {
        struct look *look = userdata;
        struct catalog_entry *entry = entry_find(look->catalog, look->name);

        /* A reload may have made it another dataset. While a version is being opened its stamp stays unread: the next
         * look finds it again. */
        if (entry && entry->staged && strcmp(entry->staged->place.folder, look->place.folder) == 0 &&
            !look->catalog->is_ending) {
                entry->staged->is_looking = false;
                drop_previous(entry->staged);
                take_progress(entry->staged, look);
                if (look->must_read && !entry->is_opening)
                        take_stamp(entry, look);
        }
        progress_fini(&look->progress);
        free(look);
}

static void entry_look(struct catalog_entry *entry) {
        struct catalog_staged *staged = entry->staged;
        struct look *look = calloc(1, sizeof(*look));

        if (!look)
                return; /* in a second again */
        look->catalog = entry->catalog;
        snprintf(look->name, sizeof(look->name), "%s", entry->name);
        look->place = staged->place;
        look->mark = staged->mark;
        look->must_read = !staged->is_looked_at;
        staged->is_looking = background_run(entry->catalog->background, look_work, look_done, look) == 0;
        if (!staged->is_looking)
                free(look);
}

void catalog_look(struct catalog *catalog) {
        struct catalog_entry *entry;

        TAILQ_FOREACH(entry, &catalog->entries, entry)
                if (entry->staged && !entry->staged->is_looking && !catalog->is_ending)
                        entry_look(entry);
}

/* ---- what is told ------------------------------------------------------------------------------------------- */

bool catalog_is_being_staged(const struct catalog_entry *entry) {
        const struct catalog_staged *staged = entry->staged;

        return staged && staged->progress_mark != 0 && !staged->progress.result[0] &&
               clock_now_ns() - staged->progress_changed_ns < SILENT_NS;
}

const char *catalog_staging_text(const struct catalog_entry *entry, char buffer[DLP_TEXT_MAX]) {
        const struct catalog_staged *staged = entry->staged;
        char sentence[DLP_TEXT_MAX];

        if (!staged->is_looked_at)
                snprintf(buffer, DLP_TEXT_MAX, "its stamp is being looked for");
        else if (catalog_is_being_staged(entry))
                snprintf(buffer, DLP_TEXT_MAX, "it is being staged: %.400s",
                         progress_sentence(&staged->progress, sentence));
        else if (staged->progress_mark && staged->progress.result[0])
                snprintf(buffer, DLP_TEXT_MAX, "its staging %s: %.300s; once that is mended: dlctl stage %s",
                         staged->progress.result, staged->progress.text, entry->name);
        else if (staged->progress_mark)
                snprintf(buffer, DLP_TEXT_MAX,
                         "its staging has ended without a word (%.200s); go on with: dlctl stage %s",
                         progress_sentence(&staged->progress, sentence), entry->name);
        else
                snprintf(buffer, DLP_TEXT_MAX,
                         "it is not staged yet; begin with: dlctl stage %s (or systemctl start dataloaderd-stage@%s)",
                         entry->name, entry->name);
        return buffer;
}
