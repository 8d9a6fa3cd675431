/* Datasets with an origin: what their stamps say, and what their stagings do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/pipeline/catalog/catalog_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/shown/shorten.h"

/* A staging writes its progress once a second, and a shared file system may show it some seconds later. A run that has
 * written nothing for this time is dead. It is measured with our own clock: those of other nodes may differ. */
#define SILENT_NS 20000000000ull

#define LEASES_MAX 32u /* renewed in one look: versions of one dataset that jobs are served from */

void staged_free(struct catalog_staged *staged) {
        if (!staged)
                return;
        versions_fini(staged);
        progress_fini(&staged->progress);
        free(staged->origin);
        free(staged);
}

/* The query of an origin may hold a signature, so it is never shown. */
static size_t catalog_staged_shown_length(const char *origin) {
        return strcspn(origin, "?#");
}

int staged_new(const struct catalog_wish *wish, struct catalog_staged **ret_staged, struct why *why) {
        struct catalog_staged *staged = calloc(1, sizeof(*staged));
        int r;

        if (staged)
                TAILQ_INIT(&staged->older);
        if (staged)
                staged->origin = strndup(wish->origin, catalog_staged_shown_length(wish->origin));
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
        return strlen(staged->origin) == catalog_staged_shown_length(origin) &&
               memcmp(staged->origin, origin, catalog_staged_shown_length(origin)) == 0;
}

/* ---- versions ------------------------------------------------------------------------------------------------ */

int staged_aim(const struct catalog_entry *entry, struct opening *opening) {
        const struct catalog_staged *staged = entry->staged;
        const struct stamp *stamp = &staged->next;
        int r;

        r = place_file(&staged->place, stamp->version, "", opening->path);
        if (r == 0 && stamp->index[0])
                r = place_file(&staged->place, stamp->version, ".index", opening->index);
        if (r < 0)
                return r;
        opening->place = staged->place;
        snprintf(opening->version, sizeof(opening->version), "%s", stamp->version);
        snprintf(opening->digest, sizeof(opening->digest), "%s", stamp->index);
        snprintf(opening->format, sizeof(opening->format), "%s", stamp->format[0] ? stamp->format : entry->format);
        return 0;
}

/* From now on, what was served is only for the jobs that have it already. */
static void retire(struct catalog_entry *entry) {
        if (entry->open)
                versions_retire(entry->staged, TAKE_PTR(entry->open));
}

void staged_take(struct catalog_entry *entry, const struct catalog_dataset *open) {
        struct catalog_staged *staged = entry->staged;

        if (entry->open)
                log_info("dataset", "%s: version %s replaces %s for ranks that attach from now on", entry->name,
                         staged->next.version, staged->stamp.version);
        retire(entry);
        versions_drop_unused(staged);
        staged->stamp = staged->next;
        staged->told.text[0] = '\0';
}

void staged_look_again(struct catalog_entry *entry) {
        entry->staged->is_looked_at = false;
        entry->state = CATALOG_CLOSED;
        catalog_look(entry->catalog);
}

/* ---- looking at the folder ----------------------------------------------------------------------------------- */

/* A copy, because the entry may be removed while the look is running. */
struct look {
        struct catalog *catalog;
        char name[DLP_NAME_MAX];
        struct place place;
        uint64_t mark; /* before: as known; after: as found */
        bool must_read;

        int stamp_result; /* valid if must_read */
        struct stamp stamp;
        struct why why;
        bool has_progress;
        struct progress progress;
        uint64_t progress_mark;

        struct catalog_dataset *leased[LEASES_MAX]; /* references to those whose leases are due */
        uint32_t n_leased;
};

static void look_free(struct look *look) {
        for (uint32_t i = 0; i < look->n_leased; i++)
                catalog_dataset_unref(look->leased[i]);
        free(look);
}

static void catalog_staged_look_work(void *userdata) {
        struct look *look = userdata;
        uint64_t mark = stamp_mark(&look->place);
        struct why why; /* dropped: nothing depends on progress that cannot be read */

        for (uint32_t i = 0; i < look->n_leased; i++)
                version_lock_renew(look->leased[i]->lock);
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

/* The stamp, which says that the version is complete, is gone or cannot be read any more. */
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
                staged->stamp = look->stamp; /* staged again, with the same result */
        } else {
                staged->next = look->stamp;
                entry_open(entry);
        }
}

static void catalog_staged_look_done(void *userdata) {
        struct look *look = userdata;
        struct catalog_entry *entry = entry_find(look->catalog, look->name);

        /* A reload may have made it a different dataset. While a version is being opened its stamp is not taken: the
         * next look finds it again. */
        if (entry && entry->staged && strcmp(entry->staged->place.folder, look->place.folder) == 0 &&
            !look->catalog->is_ending) {
                entry->staged->is_looking = false;
                versions_drop_unused(entry->staged);
                take_progress(entry->staged, look);
                if (look->must_read && !entry->is_opening)
                        take_stamp(entry, look);
        }
        progress_fini(&look->progress);
        look_free(look);
}

static void look_add_lease(struct look *look, struct catalog_dataset *dataset) {
        if (dataset && dataset->lock && version_lock_is_lease(dataset->lock) && look->n_leased < LEASES_MAX)
                look->leased[look->n_leased++] = catalog_dataset_ref(dataset);
}

/* For folders where leases protect versions instead of locks. */
static void look_add_leases(struct look *look, struct catalog_entry *entry) {
        struct catalog_staged *staged = entry->staged;
        struct catalog_dataset *dataset;

        if (staged->renewed_ns != 0 && clock_now_ns() - staged->renewed_ns < VERSION_LEASE_RENEW_S * 1000000000ull)
                return;
        staged->renewed_ns = clock_now_ns();
        look_add_lease(look, entry->open);
        TAILQ_FOREACH(dataset, &staged->older, older)
                look_add_lease(look, dataset);
}

static void entry_look(struct catalog_entry *entry) {
        struct catalog_staged *staged = entry->staged;
        struct look *look = calloc(1, sizeof(*look));

        if (!look)
                return; /* they are renewed with the next look, in a second */
        look->catalog = entry->catalog;
        snprintf(look->name, sizeof(look->name), "%s", entry->name);
        look->place = staged->place;
        look->mark = staged->mark;
        look->must_read = !staged->is_looked_at;
        look_add_leases(look, entry);
        staged->is_looking = background_run(entry->catalog->background, catalog_staged_look_work,
                                            catalog_staged_look_done, look) == 0;
        if (!staged->is_looking)
                look_free(look);
}

void catalog_look(struct catalog *catalog) {
        struct catalog_entry *entry;

        joined_drop_unused(catalog);
        paths_drop_unused(catalog);
        catalog_wake_late(catalog);
        TAILQ_FOREACH(entry, &catalog->entries, entry)
                if (entry->staged && !entry->staged->is_looking && !catalog->is_ending)
                        entry_look(entry);
}

/* ---- what is reported --------------------------------------------------------------------------------------- */

bool catalog_is_being_staged(const struct catalog_entry *entry) {
        const struct catalog_staged *staged = entry->staged;

        return staged && staged->progress_mark != 0 && !staged->progress.result[0] &&
               clock_now_ns() - staged->progress_changed_ns < SILENT_NS;
}

const char *catalog_staging_text(const struct catalog_entry *entry, char buffer[DLP_TEXT_MAX]) {
        const struct catalog_staged *staged = entry->staged;
        char sentence[DLP_TEXT_MAX];

        if (!staged->is_looked_at)
                snprintf(buffer, DLP_TEXT_MAX, "its stamp is being searched for");
        else if (catalog_is_being_staged(entry))
                shorten(buffer, DLP_TEXT_MAX, "it is being staged: %s", progress_sentence(&staged->progress, sentence));
        else if (staged->progress_mark && staged->progress.result[0])
                shorten(buffer, DLP_TEXT_MAX,
                        "its staging %s: %s; who reads it waits for one that succeeds: repair this, then run: "
                        "dlctl stage %s",
                        staged->progress.result, staged->progress.text, entry->name);
        else if (staged->progress_mark)
                shorten(buffer, DLP_TEXT_MAX,
                        "its staging has ended without a result (%s); continue with: dlctl stage %s",
                        progress_sentence(&staged->progress, sentence), entry->name);
        else
                shorten(buffer, DLP_TEXT_MAX,
                        "it is not staged yet; begin with: dlctl stage %s (or systemctl start dataloaderd-stage@%s)",
                        entry->name, entry->name);
        return buffer;
}
