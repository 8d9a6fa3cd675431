/* Which shard comes next: what the roll says, then the names of the pattern, or what the folder has. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/beneath.h"
#include "daemon/data/files/shards.h"
#include "daemon/data/files/splits.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/intake/intake_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define END_MARK      "_SUCCESS" /* as Spark, Hadoop and others leave it in a folder that is complete */
#define LATE_TOLD_MAX 100u       /* shards that came too late are named one by one in the log up to this number */

/* ---- files of other formats ------------------------------------------------------------------------------------ */

/* There is no archive in the folder, or the file is named otherwise. If it is plain that it has data of another format,
 * an archive will never come: -EINVAL. */
static int intake_shards_refuse_others(const struct intake *intake, const char *const *names, size_t n_names,
                                       struct why *why) {
        const struct files files = { .root = intake->root, .names = names, .n_names = n_names };
        const struct format *format;
        struct why what;
        int r = format_tell(FORMAT_AUTO, intake->root_fd, &files, NULL, &format, &what);

        if (r == 0 && strcmp(format->name, intake->source.format) != 0)
                return why_set(why, -EINVAL,
                               "%s%s%s: a stream is made of tar archives, and this has the format %s: leave out stream "
                               "and write format = \"%s\", or keep the archives in a folder of their own",
                               intake->root, n_names > 0 ? "/" : "", n_names > 0 ? names[0] : "", format->name,
                               format->name);
        if (r == -ENOTSUP && n_names == 0)
                return why_set(why, -EINVAL,
                               "a stream is made of tar archives (.tar, .tar.gz, .tar.zst), and there are none: %s, "
                               "without stream",
                               what.text);
        return 0;
}

/* ---- what people are shown ------------------------------------------------------------------------------------- */

void intake_wait_for(struct intake *intake, const char *format, ...) {
        struct growth_report *report = growth_report_begin(intake->growth);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(report->waiting.text, sizeof(report->waiting.text), format, arguments);
        va_end(arguments);
        growth_report_end(intake->growth);
}

void intake_trouble(struct intake *intake, const struct why *why) {
        struct growth_report *report = growth_report_begin(intake->growth);

        report->trouble = *why;
        report->n_late = intake->n_late;
        growth_report_end(intake->growth);
        log_error("stream", "%s: %s", intake->root, why->text);
}

/* ---- a folder -------------------------------------------------------------------------------------------------- */

/* Those that cannot be unpacked here are taken, too, and are damage that says so: without them it would be another
 * dataset. */
static bool intake_shards_is_shard(const char *name) {
        static const char *const ENDINGS[] = { ".tar",     ".tar.gz", ".tgz", ".tar.zst", ".tzst",
                                               ".tar.bz2", ".tar.xz", ".txz", ".tar.lz4" };

        for (size_t i = 0; i < ARRAY_SIZE(ENDINGS) && name[0] != '.' && !strchr(name, '\n'); i++)
                if (text_ends_with(name, ENDINGS[i]))
                        return true;
        return false;
}

static bool intake_shards_is_among(const struct growing *names, const char *name) {
        for (size_t at = 0; at < names->n_bytes; at += strlen((const char *)names->bytes + at) + 1)
                if (strcmp((const char *)names->bytes + at, name) == 0)
                        return true;
        return false;
}

static int intake_shards_by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* Shards are taken by name, so they are sorted. */
static bool was_taken(const struct intake *intake, const char *name) {
        uint64_t low = 0, high = intake->shards.n;

        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                const struct taken_shard *shard = pieces_at(&intake->shards, middle);
                int difference = strcmp(shard->name, name);

                if (difference == 0)
                        return true;
                if (difference < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return false;
}

/* It is of another split, or it would have had to be taken before others: their samples have the numbers that it would
 * need. */
static void intake_shards_leave_out(struct intake *intake, const char *name, const struct why *why) {
        if (intake_shards_is_among(&intake->late, name) || growing_append(&intake->late, name, strlen(name) + 1) < 0)
                return;
        if (++intake->n_late <= LATE_TOLD_MAX)
                intake_trouble(intake, why);
}

/* Does the split of the configuration, if any, take this shard? In a folder that is called as the split, it takes all.
 */
static bool is_chosen(const struct intake *intake, const char *name) {
        const char *slash = strrchr(name, '/');
        size_t n = intake->split ? strlen(intake->split) : 0, n_folder = slash ? (size_t)(slash - name) : 0;

        return n == 0 || splits_has(name, intake->split) ||
               (n_folder >= n && strncmp(slash - n, intake->split, n) == 0 &&
                (n_folder == n || slash[-(ptrdiff_t)n - 1] == '/'));
}

/* Without the name of a split in that of the first shard, all are of one. */
static bool is_of_other_split(const struct intake *intake, const char *name) {
        const struct taken_shard *first = intake->shards.n > 0 ? pieces_at(&intake->shards, 0) : NULL;
        const char *names[] = { first ? first->name : name, name };
        size_t n = ARRAY_SIZE(names);

        if (intake->split && splits_has(name, intake->split))
                return false;
        return splits_choose(intake->root, NULL, false, names, &n, NULL) < 0;
}

static int intake_shards_take_name(struct intake *intake, const char *name) {
        struct why why;

        if (!is_chosen(intake, name))
                return 0;
        if (is_of_other_split(intake, name)) {
                why_set(&why, 0, "the shard %s is of another split than those that were taken, and is left out", name);
                intake_shards_leave_out(intake, name, &why);
        } else if (!intake->last || strcmp(name, intake->last) > 0) {
                intake->n_sorted++;
                return growing_append(&intake->listed, name, strlen(name) + 1);
        } else if (!was_taken(intake, name)) {
                why_set(&why, 0,
                        "the shard %s came too late and is left out: %s, which is after it by name, has been taken",
                        name, intake->last);
                intake_shards_leave_out(intake, name, &why);
        }
        return 0;
}

static int list_names(struct intake *intake) {
        const char *part = intake->part;
        int fd = beneath_open(intake->root_fd, part[0] ? part : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;
        int r = 0;

        if (!dir) {
                r = -errno;
                closep(&fd);
                return r;
        }
        growing_clear(&intake->listed);
        intake->n_sorted = intake->sorted_at = 0;
        while (r >= 0 && (errno = 0, entry = readdir(dir))) {
                char name[PATH_MAX];

                if (entry->d_type != DT_DIR && intake_shards_is_shard(entry->d_name) &&
                    snprintf(name, sizeof(name), "%s%s%s", part, part[0] ? "/" : "", entry->d_name) < (int)sizeof(name))
                        r = intake_shards_take_name(intake, name);
        }
        if (r >= 0)
                r = -errno;
        closedir(dir);
        return r;
}

static int sort_names(struct intake *intake) {
        const char *name = (const char *)intake->listed.bytes;

        free(intake->sorted);
        intake->sorted = calloc(intake->n_sorted + 1, sizeof(*intake->sorted));
        if (!intake->sorted)
                return -ENOMEM;
        for (size_t i = 0; i < intake->n_sorted; i++, name += strlen(name) + 1)
                intake->sorted[i] = name;
        qsort(intake->sorted, intake->n_sorted, sizeof(*intake->sorted), intake_shards_by_name);
        return 0;
}

static bool intake_shards_is_there(const struct intake *intake, const char *name) {
        struct stat status;

        return beneath_stat(intake->root_fd, name, &status) == 0;
}

static const struct shards_kind SHARDS = {
        .what = "tar archive",
        .pattern = "*.tar",
        .path = "a folder of .tar files",
        .is_taken = intake_shards_is_shard,
};

/* Which folder has the shards: that of the first one. -EINVAL with `why` if there are several splits, or folders. */
static int intake_shards_find_part(struct intake *intake, struct why *why) {
        const char *slash = intake->last ? strrchr(intake->last, '/') : NULL;
        const struct files files = { .root = intake->root };
        _cleanup_(listed_fini) struct listed listed = { 0 };
        int64_t settled_ns = INT64_MAX; /* whether they are whole is seen when they are taken */
        int r = intake->last ? 0
                             : shards_find(&listed, intake->root_fd, &files, &SHARDS, intake->split, &settled_ns, why);

        if (r == 0 && intake->last)
                snprintf(intake->part, sizeof(intake->part), "%.*s", slash ? (int)(slash - intake->last) : 0,
                         intake->last);
        else if (r == 0)
                strcpy(intake->part, listed.part);
        return r == -ENOENT ? 0 : r;
}

/* The mark is looked for first: what the folder then has is all there will be. */
static int intake_shards_look_at_folder(struct intake *intake, struct why *why) {
        bool is_complete = intake_shards_is_there(intake, END_MARK);
        char mark[PATH_MAX];
        int r = intake_shards_find_part(intake, why);

        if (r == 0 && intake->part[0] && snprintf(mark, sizeof(mark), "%s/" END_MARK, intake->part) < (int)sizeof(mark))
                is_complete = is_complete || intake_shards_is_there(intake, mark);
        if (r == 0)
                r = list_names(intake);
        if (r == 0)
                r = sort_names(intake);
        if (r == 0)
                intake->is_complete = is_complete;
        else
                intake->n_sorted = intake->sorted_at = 0; /* what there is is not whole, or not sorted */
        return r;
}

static int next_of_folder(struct intake *intake, struct why *why) {
        const char *name;
        int r = 0;

        if (intake->sorted_at == intake->n_sorted || intake->has_waited)
                r = intake_shards_look_at_folder(intake, why);
        intake->has_waited = false;
        if (r == -EINVAL && !intake->last)
                return r;
        if (r < 0) {
                intake_wait_for(intake, "waits for the folder %s, which cannot be read: %s", intake->root, why_text(r));
                return INTAKE_WAITS;
        }
        if (intake->n_sorted == intake->sorted_at) {
                r = intake->last ? 0 : intake_shards_refuse_others(intake, NULL, 0, why);
                if (r < 0)
                        return r;
                if (intake->is_complete)
                        return INTAKE_OVER;
                intake_wait_for(intake, "waits for a shard%s%s%s%s, or for the file " END_MARK ", in %s",
                                intake->split ? " of the split " : "", intake->split ? intake->split : "",
                                intake->last ? " after " : "", intake->last ? intake->last : "", intake->root);
                return INTAKE_WAITS;
        }
        name = intake->sorted[intake->sorted_at];
        r = intake_take(intake, name, intake->is_complete, why);
        intake->sorted_at += r == INTAKE_TAKEN;
        intake->has_waited = r == INTAKE_WAITS;
        return r;
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

/* The shard that the roll says comes next: it was taken before a restart. If the first one is gone, or of another split
 * than is chosen now, this is another stream. */
static const char *intake_shards_noted(const struct intake *intake) {
        const char *name;

        if (intake->shards.n >= roll_n(&intake->roll))
                return NULL;
        roll_at(&intake->roll, intake->shards.n, &name);
        return intake->shards.n > 0 || (is_chosen(intake, name) && intake_shards_is_there(intake, name)) ? name : NULL;
}

static int next_of_names(struct intake *intake, struct why *why) {
        uint64_t n = intake->shards.n;
        int r = 0;

        if (n == intake->n_names)
                return INTAKE_OVER;
        if (n == 0 && !intake_shards_is_shard(intake->names[0]))
                r = intake_shards_refuse_others(intake, (const char *const *)intake->names, 1, why);
        return r < 0 ? r : intake_take(intake, intake->names[n], n < roll_n(&intake->roll), why);
}

int intake_next(struct intake *intake, struct why *why) {
        const char *name = intake->names ? NULL : intake_shards_noted(intake);
        int r;

        if (intake->is_pipe)
                r = intake_pipe_next(intake, why);
        else if (intake->names)
                r = next_of_names(intake, why);
        else if (name)
                r = intake_take(intake, name, true, why);
        else if (intake->roll.has_end && intake->shards.n > 0)
                r = INTAKE_OVER;
        else
                r = next_of_folder(intake, why);
        if (r == INTAKE_TAKEN) {
                const struct taken_shard *shard = pieces_at(&intake->shards, intake->shards.n - 1);

                intake->last = shard->name;
                intake->tried = (struct stat){ 0 };
        }
        return r;
}
