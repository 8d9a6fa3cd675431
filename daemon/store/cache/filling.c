/* Fills the folder of plain files.
 *
 * A thread takes a file and goes on with it: to its end, or, where files are served as they arrive, until so much more
 * of it is there that it is worth an index; then whoever needs something decides which file is next. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/threads/thread.h"
#include "daemon/base/work/crew.h"
#include "daemon/store/cache/cache_folders.h"
#include "daemon/store/cache/unpack_file.h"
#include "daemon/store/cache/unpacked_private.h"
#include "daemon/store/plan/lookup.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/amounts.h"

#define TICK_NS      200000000ull
#define WINDOW_BYTES (1u << 20)

/* Of a file that is served as it arrives, so much is there before it is indexed first, and each time so many times as
 * much: all indices of it together cost a third more than the last one. */
#define FIRST_BYTES (1ull << 20)
#define TIMES       4u

/* Of a file that nobody needs yet, before somebody else may need one; far away it takes a hundred times as long. */
#define SLICE_BYTES     (64ull << 20)
#define FAR_SLICE_BYTES (1ull << 20)

/* A file that is being unpacked. */
struct filling {
        struct unpacked *unpacked;
        const struct compressed_file *file;
        struct unpack_stream *stream; /* NULL: it is copied as it is */
        int fd, into_fd;
        uint64_t n_told;
        uint64_t n_copied;
        uint64_t n_whole; /* of the records that have come out */
        uint64_t n_due;   /* bytes with which it is indexed next */
};

/* ---- a file ------------------------------------------------------------------------------------------------------ */

static bool filling_is_over(const struct unpacked *unpacked) {
        return atomic_load(&unpacked->is_over) ||
               (unpacked->cancel && atomic_load_explicit(unpacked->cancel, memory_order_relaxed));
}

/* Waits for an origin that does not answer, where files are served as they arrive. */
static int read_far(struct filling *file, void *into, size_t n, uint64_t offset) {
        struct unpacked *unpacked = file->unpacked;
        const struct unpacked_arrival *arrival = &unpacked->arrival;
        size_t idx = (size_t)(file->file - unpacked->files.list);
        uint32_t n_failed = 0;
        struct why why;
        int r;

        do
                r = cached_read(unpacked->cached, file->fd, into, n, offset, arrival->next != NULL,
                                unpacked->cancel ? unpacked->cancel : &unpacked->is_over, &why);
        while (r < 0 && arrival->waits && arrival->waits(arrival->userdata, idx, r, ++n_failed));
        if (r >= 0 && n_failed > 0)
                arrival->waits(arrival->userdata, idx, 0, 0);
        return r;
}

static ssize_t filling_on_read(void *userdata, void *into, size_t n, uint64_t offset) {
        struct filling *file = userdata;
        uint64_t n_left = file->file->stamp.n_bytes - offset;
        ssize_t n_read;
        int r;

        if (!file->unpacked->cached) {
                n_read = pread(file->fd, into, n, (off_t)offset);
                return n_read < 0 ? -errno : n_read;
        }
        n = n_left < n ? (size_t)n_left : n;
        r = n > 0 ? read_far(file, into, n, offset) : 0;
        return r < 0 ? r : (ssize_t)n;
}

static bool filling_on_progress(void *userdata, uint64_t n_read) {
        struct filling *file = userdata;

        atomic_fetch_add(&file->unpacked->n_read, n_read - file->n_told);
        file->n_told = n_read;
        return filling_is_over(file->unpacked);
}

/* A file that is not compressed is copied as it is. */
static int filling_copy(struct filling *file, struct why *why) {
        _cleanup_(freep) uint8_t *window = malloc(WINDOW_BYTES);
        ssize_t n = window ? 1 : -ENOMEM;

        for (; n > 0; file->n_copied += n > 0 ? (uint64_t)n : 0) {
                int r;

                n = filling_on_progress(file, file->n_copied)
                            ? -ECANCELED
                            : filling_on_read(file, window, WINDOW_BYTES, file->n_copied);
                if (n > 0 && file->n_copied + (uint64_t)n > file->unpacked->n_room)
                        return why_set(why, -EFBIG, "%s does not fit into cache_limit", file->file->path);
                r = n > 0 ? disk_write_at(file->into_fd, window, (size_t)n, file->n_copied) : 0;
                n = r < 0 ? r : n;
        }
        return n < 0 ? why_errno(why, (int)n, "%s", file->file->path) : UNPACK_END;
}

static void filling_free(struct filling *file) {
        if (!file)
                return;
        unpack_end(file->stream);
        closep(&file->fd);
        closep(&file->into_fd);
        free(file);
}

/* What an older dataset may still be served from stays with it: the file is a new one. */
static int filling_open_plain(struct filling *file, struct why *why) {
        struct lookup lookup = LOOKUP_OF(file->unpacked->files_fd);
        char plain[PATH_MAX];
        const char *name;
        int dir_fd;

        compressed_plain_path(file->file, plain);
        dir_fd = lookup_folder_of(&lookup, plain, true, &name);
        if (dir_fd >= 0) {
                unlinkat(dir_fd, name, 0);
                file->into_fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
                dir_fd = file->into_fd < 0 ? -errno : 0;
        }
        lookup_fini(&lookup);
        return dir_fd < 0 ? why_errno(why, dir_fd, "cache_dir: %s", plain) : 0;
}

static int filling_open(struct filling *file, struct why *why) {
        struct unpacked *unpacked = file->unpacked;
        struct unpack_file plain = { .name = file->file->path,
                                     .limit_bytes = unpacked->n_room,
                                     .read = filling_on_read,
                                     .progress = filling_on_progress,
                                     .userdata = file };
        int r;

        file->fd = beneath_open(unpacked->root_fd, file->file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file->fd < 0)
                return why_errno(why, -errno, "%s", file->file->path);
        r = filling_open_plain(file, why);
        plain.into_fd = file->into_fd;
        return r == 0 && file->file->n_plain > 0 ? unpack_begin(&plain, &file->stream, why) : r;
}

static int filling_begin(struct unpacked *unpacked, const struct compressed_file *file, struct filling **ret_file,
                         struct why *why) {
        struct filling *begun = calloc(1, sizeof(*begun));
        int r;

        if (!begun)
                return why_errno(why, -ENOMEM, "%s", file->path);
        *begun = (struct filling){ .unpacked = unpacked, .file = file, .fd = -1, .into_fd = -1, .n_due = FIRST_BYTES };
        r = filling_open(begun, why);
        if (r < 0)
                filling_free(begun);
        else
                *ret_file = begun;
        return r;
}

static uint64_t filling_n_bytes(const struct filling *file) {
        return file->stream ? unpack_n_bytes(file->stream) : file->n_copied;
}

static int filling_go_on(struct filling *file, uint64_t n_bytes, struct why *why) {
        return file->stream ? unpack_go_on(file->stream, n_bytes, why) : filling_copy(file, why);
}

/* It is complete. */
static int filling_note(struct unpacked *unpacked, size_t idx, uint64_t n_bytes) {
        struct compressed_file *file = &unpacked->files.list[idx];
        struct journal_record record = { .chunk = file->number, .n_bytes = n_bytes, .digest = file->state };
        struct cache *cache = unpacked->cache;
        int r;

        pthread_mutex_lock(&unpacked->lock);
        r = cache_journal_add(&unpacked->journal, &record);
        file->is_there = true;
        file->n_bytes = n_bytes;
        unpacked->n_over++;
        unpacked->n_bytes += n_bytes;
        unpacked->n_room -= n_bytes < unpacked->n_room ? n_bytes : unpacked->n_room;
        pthread_mutex_unlock(&unpacked->lock);
        pthread_mutex_lock(&cache->lock);
        cache->n_bytes += n_bytes;
        pthread_mutex_unlock(&cache->lock);
        return r;
}

/* Goes on with a file until n_bytes are there; UNPACK_END once it is complete. */
static int unpack_some_of(struct unpacked *unpacked, size_t idx, uint64_t n_bytes, struct why *why) {
        struct filling **file = &unpacked->begun[idx];
        int r = *file ? 0 : filling_begin(unpacked, &unpacked->files.list[idx], file, why);

        if (r == 0)
                r = filling_go_on(*file, n_bytes, why);
        if (r == UNPACK_END && filling_note(unpacked, idx, filling_n_bytes(*file)) < 0)
                r = why_set(why, -EIO, "cache_dir: the journal of %s cannot be written", unpacked->opened.folder);
        if (r == UNPACK_END)
                filling_free(TAKE_PTR(*file));
        return r;
}

/* ---- all at once ------------------------------------------------------------------------------------------------- */

static void filling_fail(struct unpacked *unpacked, int error, const struct why *why) {
        pthread_mutex_lock(&unpacked->lock);
        if (unpacked->result == 0) {
                unpacked->result = error;
                unpacked->why = *why;
        }
        pthread_mutex_unlock(&unpacked->lock);
}

static void unpack_some(void *userdata) {
        struct unpacked *unpacked = userdata;

        while (!filling_is_over(unpacked)) {
                struct why why;
                size_t idx;
                int r;

                pthread_mutex_lock(&unpacked->lock);
                idx = unpacked->next++;
                pthread_mutex_unlock(&unpacked->lock);
                if (idx >= unpacked->files.n)
                        return;
                r = unpacked->files.list[idx].is_there ? 0 : unpack_some_of(unpacked, idx, UINT64_MAX, &why);
                if (r >= 0)
                        continue;
                filling_fail(unpacked, r, &why);
                atomic_store(&unpacked->is_over, true);
        }
}

struct watched {
        struct unpacked *unpacked;
        const struct unpacked_terms *terms;
};

static void watched_unpack(void *userdata) {
        unpack_some(((struct watched *)userdata)->unpacked);
}

static void watched_tick(void *userdata) {
        const struct watched *watched = userdata;
        const struct unpacked_terms *terms = watched->terms;

        if (terms->part)
                terms->part(terms->userdata, atomic_load(&watched->unpacked->n_read), watched->unpacked->files.n_bytes,
                            "B");
}

static uint32_t n_threads_of(const struct unpacked_terms *terms) {
        return terms->n_threads > CREW_MAX ? CREW_MAX : terms->n_threads > 0 ? terms->n_threads : 1;
}

void filling_prepare(struct unpacked *unpacked, const struct unpacked_terms *terms) {
        struct cache *cache = unpacked->cache;

        room_clear(cache, unpacked->files.n_bytes);
        cache_folders_ask(cache);
        pthread_mutex_lock(&cache->lock);
        unpacked->n_room = cache->limit > cache->n_bytes ? cache->limit - cache->n_bytes : 0;
        pthread_mutex_unlock(&cache->lock);
        unpacked->cached = terms->cached;
        unpacked->n_wanted = n_threads_of(terms);
        if (terms->arrival)
                unpacked->arrival = *terms->arrival;
        else
                unpacked->cancel = terms->cancel; /* what it points to ends with the opening */
        for (size_t i = 0; i < unpacked->files.n; i++)
                unpacked->n_over += unpacked->files.list[i].is_there;
}

int filling_run(struct unpacked *unpacked, const struct unpacked_terms *terms, struct why *why) {
        struct watched watched = { unpacked, terms };
        int r;

        r = crew_run("unpack", unpacked->n_wanted, watched_unpack, TICK_NS, watched_tick, &watched);
        for (size_t i = 0; i < unpacked->files.n; i++)
                filling_free(TAKE_PTR(unpacked->begun[i]));
        if (r < 0)
                return why_errno(why, r, "%s: cannot start a thread", terms->root);
        if (unpacked->result == -EFBIG) {
                char text[BYTES_TEXT_MAX];
                uint64_t limit;

                pthread_mutex_lock(&unpacked->cache->lock);
                limit = unpacked->cache->limit; /* other daemons may have a part of it */
                pthread_mutex_unlock(&unpacked->cache->lock);
                return why_set(why, -EFBIG, "%s; it is %s: raise it, or give cache_dir a larger disk",
                               unpacked->why.text, format_bytes(text, limit));
        }
        if (unpacked->result < 0)
                return why_set(why, unpacked->result, "%s/%s", terms->root, unpacked->why.text);
        if (terms->cancel && atomic_load(terms->cancel))
                return why_set(why, -ECANCELED, "%s: unpacking was cancelled", terms->root);
        return 0;
}

/* ---- as they are needed ------------------------------------------------------------------------------------------ */

/* A file that nobody else is at. */
static bool filling_take(struct unpacked *unpacked, size_t idx) {
        uint64_t bit = UINT64_C(1) << idx % 64;

        return !(atomic_fetch_or(&unpacked->taken[idx / 64], bit) & bit);
}

/* What is needed; else the next one that is not complete. */
static bool find_work(struct unpacked *unpacked, size_t *ret_idx, bool *ret_is_needed) {
        const struct unpacked_arrival *arrival = &unpacked->arrival;
        bool is_found = false;

        do
                *ret_is_needed = arrival->next(arrival->userdata, unpacked->taken, ret_idx);
        while (*ret_is_needed && !filling_take(unpacked, *ret_idx));
        if (*ret_is_needed)
                return true;
        pthread_mutex_lock(&unpacked->lock);
        for (size_t i = 0; i < unpacked->files.n && !is_found; i++) {
                *ret_idx = i;
                is_found = !unpacked->files.list[i].is_there && !unpacked->files.list[i].has_failed &&
                           filling_take(unpacked, i);
        }
        pthread_mutex_unlock(&unpacked->lock);
        return is_found;
}

/* Records that are not whole yet are taken away for as long as the file is looked at, and put back: nobody else reads
 * there. */
static int show_whole(struct filling *file, size_t idx, struct why *why) {
        const struct unpacked_arrival *arrival = &file->unpacked->arrival;
        uint64_t n_bytes = filling_n_bytes(file), whole = file->n_whole, n_rest;
        _cleanup_(freep) uint8_t *rest = NULL;
        uint32_t n_zeros;
        int r = 0;

        n_zeros = arrival->cut(arrival->userdata, idx, file->into_fd, n_bytes, &whole);
        file->n_due = n_bytes * TIMES;
        if (whole == file->n_whole)
                return 0;
        file->n_whole = whole;
        n_rest = n_bytes - whole;
        rest = malloc(n_rest > 0 ? n_rest : 1);
        if (!rest)
                return why_errno(why, -ENOMEM, "%s", file->file->path);
        r = n_rest > 0 ? disk_read_at(file->into_fd, rest, n_rest, whole) : 0;
        if (r == 0 &&
            (ftruncate(file->into_fd, (off_t)whole) < 0 || ftruncate(file->into_fd, (off_t)(whole + n_zeros)) < 0))
                r = -errno;
        if (r == 0)
                arrival->grown(arrival->userdata, idx, false);
        if (r == 0 && n_rest > 0)
                r = disk_write_at(file->into_fd, rest, n_rest, whole);
        if (r == 0 && n_rest < n_zeros && ftruncate(file->into_fd, (off_t)n_bytes) < 0)
                r = -errno;
        return r < 0 ? why_errno(why, r, "cache_dir: %s", file->file->path) : 0;
}

/* Without the lock, and alone at this file. */
static void bring_on(struct unpacked *unpacked, size_t idx, bool is_needed) {
        const struct unpacked_arrival *arrival = &unpacked->arrival;
        struct filling *begun = unpacked->begun[idx];
        uint64_t until = begun ? begun->n_due : FIRST_BYTES;
        struct why why;
        int r = UNPACK_END;

        if (!is_needed)
                until = (begun ? filling_n_bytes(begun) : 0) + (unpacked->cached ? FAR_SLICE_BYTES : SLICE_BYTES);
        if (!unpacked->files.list[idx].is_there) /* which only who has taken it changes */
                r = unpack_some_of(unpacked, idx, until, &why);
        if (r == 0 && is_needed)
                r = show_whole(unpacked->begun[idx], idx, &why);
        else if (r == UNPACK_END && is_needed)
                arrival->grown(arrival->userdata, idx, true);
        if (r >= 0 || r == -ECANCELED)
                return;
        if (unpacked->begun[idx] && unpacked->begun[idx]->into_fd >= 0) { /* what came before the damage is good */
                struct why other;

                show_whole(unpacked->begun[idx], idx, &other);
        }
        filling_free(TAKE_PTR(unpacked->begun[idx]));
        pthread_mutex_lock(&unpacked->lock);
        unpacked->files.list[idx].has_failed = true;
        unpacked->n_over++;
        pthread_mutex_unlock(&unpacked->lock);
        arrival->failed(arrival->userdata, idx, &why);
}

/* Somebody may find work now. Returns whether all files are over. */
static bool tell_change(struct unpacked *unpacked) {
        bool are_over;

        pthread_mutex_lock(&unpacked->lock);
        unpacked->n_changes++;
        are_over = unpacked->n_over == unpacked->files.n;
        pthread_cond_broadcast(&unpacked->changed);
        pthread_mutex_unlock(&unpacked->lock);
        return are_over;
}

static uint64_t changes_of(struct unpacked *unpacked) {
        uint64_t n;

        pthread_mutex_lock(&unpacked->lock);
        n = unpacked->n_changes;
        pthread_mutex_unlock(&unpacked->lock);
        return n;
}

static void wait_for_change(struct unpacked *unpacked, uint64_t n_seen) {
        pthread_mutex_lock(&unpacked->lock);
        while (unpacked->n_changes == n_seen)
                pthread_cond_wait(&unpacked->changed, &unpacked->lock);
        pthread_mutex_unlock(&unpacked->lock);
}

static void *arrive(void *userdata) {
        struct unpacked *unpacked = userdata;

        while (!filling_is_over(unpacked)) {
                uint64_t n_seen = changes_of(unpacked); /* before the look */
                bool is_needed;
                size_t idx;

                if (!find_work(unpacked, &idx, &is_needed)) {
                        wait_for_change(unpacked, n_seen);
                        continue;
                }
                bring_on(unpacked, idx, is_needed);
                atomic_fetch_and(&unpacked->taken[idx / 64], ~(UINT64_C(1) << idx % 64));
                if (tell_change(unpacked))
                        cache_opened_ready(unpacked->cache, &unpacked->opened);
        }
        return NULL;
}

int filling_start(struct unpacked *unpacked, struct why *why) {
        int r = 0;

        if (unpacked->n_over == unpacked->files.n)
                cache_opened_ready(unpacked->cache, &unpacked->opened);
        while (unpacked->n_threads < unpacked->n_wanted && r == 0) {
                r = thread_start(&unpacked->threads[unpacked->n_threads], "unpack", arrive, unpacked);
                unpacked->n_threads += r == 0;
        }
        return unpacked->n_threads > 0 ? 0 : why_errno(why, r, "%s: cannot start a thread", unpacked->root);
}

void unpacked_hurry(struct unpacked *unpacked) {
        tell_change(unpacked);
}

void filling_stop(struct unpacked *unpacked) {
        atomic_store(&unpacked->is_over, true);
        unpacked_hurry(unpacked);
        for (; unpacked->n_threads > 0; unpacked->n_threads--)
                thread_join(unpacked->threads[unpacked->n_threads - 1]);
        for (size_t i = 0; unpacked->begun && i < unpacked->files.n; i++)
                filling_free(TAKE_PTR(unpacked->begun[i]));
}
