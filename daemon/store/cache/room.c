/* What stays in the cache, and what goes when it is full. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/store/cache/cache_folders.h"
#include "daemon/store/cache/cache_private.h"
#include "daemon/store/cache/uses_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define LOOKS_AT_ONCE 4096u          /* chunks that are looked at for one that may go */
#define IDLE_NS       60000000000ull /* an origin that nobody has wanted anything of for so long makes room */

bool chunk_is_there(uint8_t state) {
        return state == CHUNK_THERE || state == CHUNK_PASSING;
}

/* A file system that cannot do this for a part of a file can do it for all of it. */
void room_punch(struct cached *cached, const struct plan_file *file, uint64_t begin, uint64_t end) {
        _cleanup_(closep) int fd = openat(cached->files_fd, file->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0)
                return;
        if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)(end - begin)) == 0)
                return;
        if (begin == 0 && end == file->n_bytes && ftruncate(fd, 0) == 0 && ftruncate(fd, (off_t)file->n_bytes) < 0)
                return; /* who reads it finds it shorter than it should be */
}

void room_drop(struct cached *cached, uint64_t chunk) {
        struct chunk_place place = cached_place(cached, chunk);
        struct journal_record record = { .chunk = chunk, .n_bytes = place.n_bytes, .kind = JOURNAL_GONE };

        cached->cache->n_passing_bytes -= cached->states[chunk] == CHUNK_PASSING ? place.n_bytes : 0;
        cached->states[chunk] = CHUNK_ABSENT;
        cached->n_bytes -= place.n_bytes;
        cached->cache->n_bytes -= place.n_bytes;
        cached->cache->counts.n_evicted += place.n_bytes;
        if (cache_journal_add(&cached->journal, &record) < 0) /* before its bytes are gone */
                cache_journal_forget(&cached->journal);
        flights_forget_pieces(cached, chunk);
        room_punch(cached, place.file, place.offset, place.offset + place.n_bytes);
}

void room_drop_piece(struct cached *cached, uint64_t chunk, uint64_t offset, uint32_t n_bytes) {
        room_punch(cached, cached_place(cached, chunk).file, offset, offset + n_bytes);
}

/* ---- what is needed next ----------------------------------------------------------------------------------------- */

#define LATE_S 20u /* a mark that is so late is of a job that has left, or went elsewhere */

static uint32_t room_now_s(void) {
        return (uint32_t)(clock_now_ns() / 1000000000ull);
}

void room_mark(struct cached *cached, uint64_t chunk, uint32_t n_bytes, uint32_t due_s) {
        cached->marked[chunk] += n_bytes;
        cached->cache->n_ahead_bytes += n_bytes;
        if (cached->due_s[chunk] < due_s)
                cached->due_s[chunk] = due_s;
}

void room_unmark(struct cached *cached, uint64_t chunk, uint32_t n_bytes) {
        if (n_bytes > cached->marked[chunk])
                n_bytes = (uint32_t)cached->marked[chunk];
        cached->marked[chunk] -= n_bytes;
        cached->cache->n_ahead_bytes -= n_bytes;
}

static void forget_marks(struct cached *cached, uint64_t chunk) {
        cached->cache->n_ahead_bytes -= cached->marked[chunk];
        cached->marked[chunk] = 0;
}

void room_forget_marks(struct cached *cached) {
        for (uint64_t chunk = 0; chunk < cached->n_chunks; chunk++)
                forget_marks(cached, chunk);
}

bool room_is_full(const struct cache *cache, uint64_t n_bytes) {
        return cache->n_bytes - cache->n_passing_bytes + n_bytes +
                       (room_is_short(cache) ? cache->n_reserved_bytes : 0) >
               cache->limit;
}

void room_pass(struct cached *cached, uint64_t chunk) {
        uint32_t n_bytes;

        if (cached->states[chunk] != CHUNK_PASSING || cached->pins[chunk] > 0 || cached->marked[chunk] > 0)
                return;
        n_bytes = cached_place(cached, chunk).n_bytes;
        while (room_is_full(cached->cache, n_bytes))
                if (!uses_make_room(cached, uses_next(cached, chunk))) {
                        room_drop(cached, chunk);
                        return;
                }
        cached->states[chunk] = CHUNK_THERE;
        cached->cache->n_passing_bytes -= n_bytes;
}

bool room_is_short(const struct cache *cache) {
        return cache->n_origin_bytes > cache->limit;
}

/* A chunk of the origin that may go now: of one that is idle, or that nobody has come for. */
static bool find_victim(struct cached *cached, bool is_idle, uint64_t *ret_chunk) {
        uint32_t now_s = room_now_s();

        for (uint64_t i = 0; i < cached->n_chunks && i < LOOKS_AT_ONCE; i++) {
                uint64_t chunk = cached->next_victim++ % cached->n_chunks;
                uint8_t state = cached->states[chunk];

                if (cached->marked[chunk] > 0 && cached->due_s[chunk] + LATE_S < now_s)
                        forget_marks(cached, chunk);
                if ((state == CHUNK_PASSING || (is_idle && state != CHUNK_ABSENT)) && cached->pins[chunk] == 0 &&
                    cached->marked[chunk] == 0) {
                        *ret_chunk = chunk;
                        return true;
                }
        }
        return false;
}

/* ---- origins that no dataset has open ---------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk) {
        (void)status;
        (void)flag;
        (void)walk;
        return remove(path);
}

static bool room_is_open(struct cache *cache, const char *folder) {
        struct cache_opened *opened;
        struct cached *cached;

        LIST_FOREACH(cached, &cache->origins, entry)
                if (strcmp(cached->folder, folder) == 0)
                        return true;
        LIST_FOREACH(opened, &cache->opened, entry)
                if (strcmp(opened->folder, folder) == 0)
                        return true;
        return false;
}

/* Calls take() for each folder of an origin. */
static void for_each_folder(const char *path, void (*take)(const char *folder, void *userdata), void *userdata) {
        DIR *dir = opendir(path);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                char folder[PATH_MAX], mark[PATH_MAX + 16];

                snprintf(folder, sizeof(folder), "%s/%s", path, entry->d_name);
                snprintf(mark, sizeof(mark), "%s/journal", folder);
                if (entry->d_name[0] != '.' && cache_journal_is_one(mark))
                        take(folder, userdata);
        }
        if (dir)
                closedir(dir);
}

struct oldest {
        struct cache *cache;
        char folder[PATH_MAX];
        uint64_t n_bytes;
        time_t used;
};

static void see_age(const char *folder, void *userdata) {
        struct oldest *oldest = userdata;
        char mark[PATH_MAX + 16];
        struct stat status;

        snprintf(mark, sizeof(mark), "%s/journal", folder);
        if (room_is_open(oldest->cache, folder) || stat(mark, &status) < 0 ||
            (oldest->folder[0] && status.st_mtime >= oldest->used))
                return;
        oldest->used = status.st_mtime;
        oldest->n_bytes = cache_journal_bytes(mark);
        snprintf(oldest->folder, sizeof(oldest->folder), "%s", folder);
}

uint64_t room_remove_oldest(struct cache *cache, const char *dir) {
        struct oldest oldest = { .cache = cache };

        for_each_folder(dir, see_age, &oldest);
        if (!oldest.folder[0])
                return 0;
        if (nftw(oldest.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0) {
                log_warning("cache", "%s: cannot be removed to make room; remove it by hand", oldest.folder);
                return 0;
        }
        log_info("cache", "%s: removed, to make room; no dataset has it open", oldest.folder);
        return oldest.n_bytes > 0 ? oldest.n_bytes : 1;
}

bool room_may_clear(const struct cache *cache, uint64_t n_bytes) {
        return room_is_full(cache, n_bytes) && !cache->has_no_closed;
}

void room_clear(struct cache *cache, uint64_t n_bytes) {
        bool is_full = true;

        while (is_full) {
                uint64_t n_elsewhere, n_removed;

                pthread_mutex_lock(&cache->lock);
                is_full = room_may_clear(cache, n_bytes);
                pthread_mutex_unlock(&cache->lock);
                if (!is_full || pthread_mutex_trylock(&cache->opening) != 0)
                        return; /* one is being opened: who comes next tries again */
                n_elsewhere = cache_folders_make_room(cache);
                n_removed = n_elsewhere > 0 ? 0 : room_remove_oldest(cache, cache->dir);
                pthread_mutex_unlock(&cache->opening);
                pthread_mutex_lock(&cache->lock);
                cache->n_bytes -= n_removed < cache->n_bytes ? n_removed : cache->n_bytes;
                cache->counts.n_evicted += n_elsewhere + n_removed;
                cache->has_no_closed = n_elsewhere + n_removed == 0;
                pthread_mutex_unlock(&cache->lock);
        }
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

static bool remove_one_chunk(struct cached *asker) {
        struct cache *cache = asker->cache;
        uint64_t now_ns = clock_now_ns(), chunk;
        struct cached *cached;

        LIST_FOREACH(cached, &cache->origins, entry) {
                bool is_idle = cached != asker && now_ns - cached->used_ns > IDLE_NS;

                if (find_victim(cached, is_idle, &chunk)) {
                        room_drop(cached, chunk);
                        return true;
                }
        }
        return false;
}

bool room_make(struct cached *cached, uint64_t n_bytes) {
        struct cache *cache = cached->cache;

        while (room_is_full(cache, n_bytes))
                if (!remove_one_chunk(cached))
                        return false;
        return true;
}

static bool remove_what_stays(struct cached *asker) {
        uint64_t chunk;

        if (remove_one_chunk(asker) || uses_make_room(asker, 0))
                return true;
        if (!find_victim(asker, true, &chunk))
                return false;
        room_drop(asker, chunk);
        return true;
}

void room_reserve_more(struct cached *cached) {
        struct cache *cache = cached->cache;
        uint64_t n_bytes = dlp_reserve(cache->limit, cache->n_passing_bytes > cache->n_ahead_bytes
                                                             ? cache->n_passing_bytes
                                                             : cache->n_ahead_bytes);

        if (n_bytes <= cache->n_reserved_bytes)
                return;
        cache->n_reserved_bytes = n_bytes;
        while (room_is_full(cache, 0) && remove_what_stays(cached))
                ;
}

/* What is here and nobody has pinned goes, until n_bytes are left. */
static void room_drop_until(struct cache *cache, uint64_t n_bytes) {
        struct cached *cached;

        LIST_FOREACH(cached, &cache->origins, entry)
                for (uint64_t i = 0; i < cached->n_chunks && cache->n_bytes > n_bytes; i++) {
                        uint64_t chunk = cached->next_victim++ % cached->n_chunks;

                        if (cached->states[chunk] == CHUNK_ABSENT || cached->pins[chunk] > 0)
                                continue;
                        forget_marks(cached, chunk); /* it will be fetched again */
                        room_drop(cached, chunk);
                }
}

bool room_shrink(struct cached *asker) {
        struct cache *cache = asker->cache;
        uint64_t n_coming = cache->n_coming_bytes, limit = cache->n_bytes - n_coming;

        cache->full_bytes = cache->n_bytes + 1;
        room_drop_until(cache, n_coming + limit - limit / DLP_AHEAD_SHARE);
        if (cache->n_bytes - n_coming == limit)
                return false;
        cache->limit = cache->disk_limit = limit;
        return true;
}

bool room_look_at_disk(struct cache *cache) {
        uint64_t n_bytes;
        struct statvfs space;
        bool is_over;

        pthread_mutex_lock(&cache->lock);
        is_over = cache->full_bytes > 0;
        pthread_mutex_unlock(&cache->lock);
        if (!is_over || statvfs(cache->dir, &space) < 0)
                return false;
        pthread_mutex_lock(&cache->lock);
        n_bytes = cache->n_bytes - cache->n_coming_bytes + (uint64_t)space.f_bavail * space.f_frsize;
        is_over = n_bytes > cache->full_bytes + cache->full_bytes / 8 + CACHE_CHUNK_BYTES;
        if (is_over) {
                cache->full_bytes = 0;
                cache->disk_limit = UINT64_MAX;
                cache->flying_max = DLP_FLYING_BYTES;
        }
        pthread_mutex_unlock(&cache->lock);
        return is_over;
}

void room_fit(struct cache *cache) {
        room_clear(cache, 0);
        pthread_mutex_lock(&cache->lock);
        if (cache->n_bytes - cache->n_coming_bytes > cache->limit)
                room_drop_until(cache, cache->limit + cache->n_coming_bytes);
        pthread_mutex_unlock(&cache->lock);
}

static void add_bytes(const char *folder, void *userdata) {
        uint64_t *n_bytes = userdata;
        char mark[PATH_MAX + 16];

        snprintf(mark, sizeof(mark), "%s/journal", folder);
        *n_bytes += cache_journal_bytes(mark);
}

uint64_t room_bytes_in(const char *dir) {
        uint64_t n_bytes = 0;

        for_each_folder(dir, add_bytes, &n_bytes);
        return n_bytes;
}

int room_measure(struct cache *cache, struct why *why) {
        struct statvfs space;

        cache->n_bytes = room_bytes_in(cache->dir);
        cache->whole_limit = cache->options.limit;
        cache->disk_limit = UINT64_MAX;
        if (cache->whole_limit == 0) {
                if (statvfs(cache->dir, &space) < 0)
                        return why_errno(why, -errno, "cache_dir: %s", cache->dir);
                cache->whole_limit = ((uint64_t)space.f_bavail * space.f_frsize + cache->n_bytes +
                                      cache_folders_elsewhere(cache)) /
                                     5 * 4;
        }
        cache_folders_look(cache);
        return 0;
}
