#include "daemon/store/cache/cached_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/plan/lookup.h"
#include "proto/base/cleanup.h"

#define LISTING_MAX (4ull << 30) /* bytes: some twenty million files */

static void cached_folder_path(const struct cached *cached, const char *name, char ret_path[PATH_MAX]) {
        snprintf(ret_path, PATH_MAX, "%s/%s", cached->folder, name);
}

uint64_t *cached_folder_number(const struct plan *plan) {
        uint64_t n_files = plan_n_files(plan), *first = calloc(n_files + 1, sizeof(*first));

        for (uint64_t i = 0; first && i < n_files; i++)
                first[i + 1] = first[i] + (plan_file(plan, i)->n_bytes + CACHE_CHUNK_BYTES - 1) / CACHE_CHUNK_BYTES;
        return first;
}

/* ---- the listing ------------------------------------------------------------------------------------------------- */

int cached_folder_listing(const struct cached *cached, struct plan **ret_plan, struct why *why) {
        char path[PATH_MAX];
        _cleanup_(closep) int fd = -1;
        _cleanup_(freep) char *text = NULL;
        struct stat status;
        int r;

        cached_folder_path(cached, "listing", path);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || fstat(fd, &status) < 0)
                return why_errno(why, -errno, "%s", path);
        if ((uint64_t)status.st_size > LISTING_MAX)
                return why_errno(why, -EFBIG, "%s", path);
        text = malloc((size_t)status.st_size + 1);
        r = text ? disk_read_at(fd, text, (size_t)status.st_size, 0) : -ENOMEM;
        if (r < 0)
                return why_errno(why, r, "%s", path);
        text[status.st_size] = '\0';
        return plan_parse(text, (size_t)status.st_size, path, NULL, false, ret_plan, why);
}

static int save_listing(struct cached *cached, struct why *why) {
        _cleanup_(freep) char *text = NULL;
        char path[PATH_MAX];
        size_t n_bytes;
        int r = plan_write(cached->plan, &text, &n_bytes);

        cached_folder_path(cached, "listing", path);
        return r < 0 ? why_errno(why, r, "%s", path) : disk_replace(path, text, n_bytes, why);
}

/* The same bytes, as far as the origin says. */
static bool is_same(const struct plan_file *one, const struct plan_file *other) {
        if (one->n_bytes != other->n_bytes)
                return false;
        if (one->sha256 && other->sha256)
                return memcmp(one->sha256, other->sha256, 32) == 0;
        if (one->etag && other->etag)
                return strcmp(one->etag, other->etag) == 0;
        return one->modified && other->modified && strcmp(one->modified, other->modified) == 0;
}

/* ---- what an earlier listing has left ------------------------------------------------------------------------------
 */

/* Chunks that are here, by the numbers of a listing. */
struct remains {
        uint8_t *states;
        uint64_t *digests;
        uint32_t *n_bytes;
        uint64_t n_chunks;
};

static void cached_folder_take(void *userdata, const struct journal_record *record, bool is_of_boot) {
        struct remains *remains = userdata;
        uint64_t chunk = record->chunk;

        if (chunk >= remains->n_chunks)
                return;
        remains->digests[chunk] = record->digest;
        remains->n_bytes[chunk] = (uint32_t)record->n_bytes;
        if (record->kind == JOURNAL_GONE)
                remains->states[chunk] = CHUNK_ABSENT;
        else
                remains->states[chunk] = is_of_boot ? CHUNK_THERE : CHUNK_DOUBTFUL;
}

static int remains_new(uint64_t n_chunks, struct remains *ret_remains) {
        ret_remains->n_chunks = n_chunks;
        ret_remains->states = calloc(n_chunks + 1, 1);
        ret_remains->digests = calloc(n_chunks + 1, sizeof(uint64_t));
        ret_remains->n_bytes = calloc(n_chunks + 1, sizeof(uint32_t));
        return ret_remains->states && ret_remains->digests && ret_remains->n_bytes ? 0 : -ENOMEM;
}

static void remains_fini(struct remains *remains) {
        free(remains->states);
        free(remains->digests);
        free(remains->n_bytes);
}

/* Nothing of this file is here any more: which is noted before it is so. */
static int remains_drop(struct cache_journal *journal, struct remains *remains, const uint64_t *first,
                        uint64_t idx_file) {
        int r = 0;

        for (uint64_t chunk = first[idx_file]; chunk < first[idx_file + 1] && r == 0; chunk++) {
                struct journal_record record = { .chunk = chunk,
                                                 .n_bytes = remains->n_bytes[chunk],
                                                 .kind = JOURNAL_GONE };

                if (remains->states[chunk] != CHUNK_ABSENT)
                        r = cache_journal_add(journal, &record);
                remains->states[chunk] = CHUNK_ABSENT;
        }
        return r;
}

static bool is_whole(const struct cached *cached, const struct plan_file *file) {
        struct stat status;

        return fstatat(cached->files_fd, file->path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
               (uint64_t)status.st_size == file->n_bytes;
}

/* Of the files that are the same in both listings; the others are removed. */
static int carry_over(struct cached *cached, const struct plan *before, const uint64_t *first, struct remains *old,
                      struct remains *remains) {
        for (uint64_t i = 0; i < plan_n_files(before); i++) {
                const struct plan_file *file = plan_file(before, i);
                int64_t now = plan_find(cached->plan, file->path);

                if (now < 0 || !is_whole(cached, file) || !is_same(file, plan_file(cached->plan, (uint64_t)now))) {
                        int r = remains_drop(&cached->journal, old, first, i);

                        if (r < 0)
                                return r;
                        unlinkat(cached->files_fd, file->path, 0);
                        continue;
                }
                for (uint64_t k = 0; k < first[i + 1] - first[i]; k++) {
                        remains->states[cached->first[now] + k] = old->states[first[i] + k];
                        remains->digests[cached->first[now] + k] = old->digests[first[i] + k];
                        remains->n_bytes[cached->first[now] + k] = old->n_bytes[first[i] + k];
                }
        }
        return 0;
}

static int cached_folder_journal(struct cached *cached, const struct plan *listing, struct remains *remains,
                                 struct why *why) {
        char path[PATH_MAX];

        cached_folder_path(cached, "journal", path);
        return cache_journal_open(&cached->journal, path, plan_digest(listing), cached_folder_take, remains, why);
}

/* Positive outcome of make_file(): there was none of this length, so nothing of it is here. */
#define FILE_IS_NEW 1

static int make_file(struct lookup *lookup, const struct plan_file *file) {
        const char *name;
        int dir_fd = lookup_folder_of(lookup, file->path, true, &name);
        _cleanup_(closep) int fd = -1;
        struct stat status;

        if (dir_fd < 0)
                return dir_fd;
        if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
            (uint64_t)status.st_size == file->n_bytes)
                return 0;
        fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        return fd < 0 || ftruncate(fd, (off_t)file->n_bytes) < 0 ? -errno : FILE_IS_NEW;
}

/* What others have removed here, or cut, is made again, and is fetched again: disks for scratch are tidied by age.
 * `remains` may be NULL: there are none of what is made. */
static int make_files(struct cached *cached, struct remains *remains, const atomic_bool *cancel, struct why *why) {
        struct lookup lookup = LOOKUP_OF(cached->files_fd);
        int r = 0;

        for (uint64_t i = 0; i < plan_n_files(cached->plan) && r == 0; i++) {
                const struct plan_file *file = plan_file(cached->plan, i);

                r = cancel && atomic_load_explicit(cancel, memory_order_relaxed) ? -ECANCELED
                                                                                 : make_file(&lookup, file);
                if (r == FILE_IS_NEW)
                        r = remains ? remains_drop(&cached->journal, remains, cached->first, i) : 0;
                if (r < 0)
                        why_errno(why, r, "%s/files/%s", cached->folder, file->path);
        }
        lookup_fini(&lookup);
        return r;
}

/* Notes all chunks that are in doubt, or all that are not. */
static int remains_note(struct cache_journal *journal, const struct remains *remains, uint8_t state) {
        int r = 0;

        for (uint64_t chunk = 0; chunk < remains->n_chunks && r == 0; chunk++) {
                struct journal_record record = { .chunk = chunk,
                                                 .n_bytes = remains->n_bytes[chunk],
                                                 .digest = remains->digests[chunk] };

                if (remains->states[chunk] == state)
                        r = cache_journal_add(journal, &record);
        }
        return r;
}

/* All that is here, in a journal that is begun. What is in doubt is so again after the next start: it stands before a
 * mark of this boot. */
static int remains_note_all(struct cache_journal *journal, const struct remains *remains) {
        int r = remains_note(journal, remains, CHUNK_DOUBTFUL);

        if (r == 0)
                r = cache_journal_mark(journal);
        return r == 0 ? remains_note(journal, remains, CHUNK_THERE) : r;
}

/* The journal is begun anew, with what is carried over from the one of the listing before. */
static int move_on(struct cached *cached, const struct plan *before, struct remains *remains, const atomic_bool *cancel,
                   struct why *why) {
        _cleanup_(freep) uint64_t *first = cached_folder_number(before);
        struct remains old = { 0 };
        int r = first ? remains_new(first[plan_n_files(before)], &old) : -ENOMEM;

        if (r == 0)
                r = cached_folder_journal(cached, before, &old, why);
        if (r == 0)
                r = carry_over(cached, before, first, &old, remains);
        remains_fini(&old);
        if (r == 0)
                r = make_files(cached, NULL, cancel, why); /* what is missing was not carried over */
        cache_journal_close(&cached->journal);
        if (r == 0)
                r = cached_folder_journal(cached, cached->plan, &(struct remains){ 0 }, why);
        return r == 0 ? remains_note_all(&cached->journal, remains) : r;
}

#define SUPERSEDED_LEAST 1024u /* records: a journal of 32 KiB is no burden */

/* A journal of which more than half is superseded is written anew, and takes the old one's place once it is complete:
 * whatever ends us meanwhile, one of the two is there. If it cannot be written, the old one goes on. */
static void compact(struct cached *cached, const struct remains *remains) {
        struct cache_journal fresh = { .fd = -1 };
        char path[PATH_MAX], journal[PATH_MAX];
        uint64_t n_live = 0;

        cached_folder_path(cached, "journal.new", path);
        unlink(path); /* of one that was killed */
        for (uint64_t chunk = 0; chunk < remains->n_chunks; chunk++)
                n_live += remains->states[chunk] != CHUNK_ABSENT;
        if (cache_journal_records(&cached->journal) < 2 * n_live + SUPERSEDED_LEAST ||
            cache_journal_open(&fresh, path, plan_digest(cached->plan), cached_folder_take, &(struct remains){ 0 },
                               NULL) < 0)
                return;
        cached_folder_path(cached, "journal", journal);
        if (remains_note_all(&fresh, remains) == 0 && fsync(fresh.fd) == 0 && rename(path, journal) == 0) {
                cache_journal_close(&cached->journal);
                cached->journal = fresh;
                return;
        }
        cache_journal_close(&fresh);
        unlink(path);
}

/* Bytes that are in no chunk which is here: of pieces, and of chunks that were on their way when a daemon was killed.
 * They would count nowhere. */
static void give_back_unknown(struct cached *cached, uint64_t idx_file, const struct remains *remains) {
        const struct plan_file *file = plan_file(cached->plan, idx_file);
        uint64_t chunk = cached->first[idx_file], end = cached->first[idx_file + 1], n_known = 0, begin;
        struct stat status;

        for (uint64_t i = chunk; i < end; i++)
                n_known += remains->states[i] != CHUNK_ABSENT;
        if (n_known == end - chunk || fstatat(cached->files_fd, file->path, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            status.st_blocks == 0)
                return;
        while (chunk < end) {
                for (begin = chunk; chunk < end && remains->states[chunk] == CHUNK_ABSENT; chunk++)
                        ;
                if (chunk > begin)
                        room_punch(cached, file, (begin - cached->first[idx_file]) * CACHE_CHUNK_BYTES,
                                   chunk == end ? file->n_bytes
                                                : (chunk - cached->first[idx_file]) * CACHE_CHUNK_BYTES);
                chunk += chunk < end;
        }
}

static void take_remains(struct cached *cached, const struct remains *remains) {
        for (uint64_t chunk = 0; chunk < cached->n_chunks; chunk++) {
                cached->states[chunk] = remains->states[chunk];
                cached->digests[chunk] = remains->digests[chunk];
                if (remains->states[chunk] != CHUNK_ABSENT)
                        cached->n_bytes += cached_place(cached, chunk).n_bytes;
        }
}

uint64_t cached_folder_bytes(const struct cached *cached) {
        char path[PATH_MAX];

        cached_folder_path(cached, "journal", path);
        return cache_journal_bytes(path);
}

int cached_folder_open(struct cached *cached, const atomic_bool *cancel, struct why *why) {
        _cleanup_(plan_freep) struct plan *before = NULL;
        struct remains remains = { 0 };
        bool is_new, has_changed;
        int r = remains_new(cached->n_chunks, &remains);

        is_new = cached_folder_listing(cached, &before, NULL) < 0;
        has_changed = !is_new && strcmp(plan_digest(before), plan_digest(cached->plan)) != 0;
        if (r == 0 && has_changed)
                r = move_on(cached, before, &remains, cancel, why);
        else if (r == 0)
                r = cached_folder_journal(cached, cached->plan, &remains, why);
        if (r == 0 && !has_changed)
                r = make_files(cached, &remains, cancel, why);
        if (r == 0 && (is_new || has_changed))
                r = save_listing(cached, why);
        if (r == 0 && !has_changed)
                compact(cached, &remains);
        for (uint64_t i = 0; i < plan_n_files(cached->plan) && r == 0 && !is_new; i++)
                give_back_unknown(cached, i, &remains);
        if (r == 0)
                take_remains(cached, &remains);
        remains_fini(&remains);
        return r;
}
