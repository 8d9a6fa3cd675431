#include "daemon/data/files/ahead.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/growing.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

struct ahead {
        struct cuts *cuts; /* NULL: nothing was begun */
        uint32_t n_threads;
        size_t n_files;
        uint8_t *ring;
        int errors[AHEAD_RING]; /* of the windows */
        uint64_t n_known;       /* windows that were read, without an error */
        size_t current;         /* file */
        bool has_begun;         /* with the first one */
        uint64_t n_bytes;       /* of the current file */
        uint64_t first;         /* its first window */
        uint64_t end;           /* before it all bytes of the current file were asked for */
        struct growing copied;
        uint64_t copied_at; /* in the current file */
};

int ahead_new(uint32_t n_threads, struct ahead **ret_ahead) {
        struct ahead *ahead = calloc(1, sizeof(*ahead));

        assert(n_threads >= 1 && n_threads <= AHEAD_THREADS);
        if (ahead)
                ahead->ring = malloc((size_t)AHEAD_RING * AHEAD_WINDOW);
        if (!ahead || !ahead->ring) {
                free(ahead);
                return -ENOMEM;
        }
        ahead->n_threads = n_threads;
        *ret_ahead = ahead;
        return 0;
}

void ahead_free(struct ahead *ahead) {
        if (!ahead)
                return;
        cuts_free(ahead->cuts);
        growing_fini(&ahead->copied);
        free(ahead->ring);
        free(ahead);
}

static uint8_t *ahead_window(const struct ahead *ahead, uint64_t window) {
        return ahead->ring + window % AHEAD_RING * AHEAD_WINDOW;
}

static void ahead_read(void *userdata, struct cuts *cuts, const struct cut *cut) {
        struct ahead *ahead = userdata;

        (void)cuts;
        ahead->errors[cut->idx_slot] = indexing_read_at(cut->fd, ahead_window(ahead, cut->number),
                                                        (size_t)(cut->end - cut->begin), cut->begin);
}

int ahead_begin(struct ahead *ahead, const struct cuts_files *files) {
        const struct cuts_work work = { .files = *files,
                                        .look = ahead_read,
                                        .userdata = ahead,
                                        .cut_bytes = AHEAD_WINDOW,
                                        .n_slots = AHEAD_RING,
                                        .n_threads = ahead->n_threads,
                                        .n_alone = 4,
                                        .n_together = AHEAD_RING / 2,
                                        .is_reading = true };

        cuts_free(TAKE_PTR(ahead->cuts));
        ahead->n_files = files->n;
        ahead->has_begun = false;
        ahead->n_bytes = ahead->first = ahead->end = ahead->n_known = 0;
        ahead->current = ahead->copied.n_bytes = 0;
        return cuts_new(&work, &ahead->cuts);
}

/* Waits until all windows up to this one are read. */
static int ahead_know(struct ahead *ahead, uint64_t window) {
        for (; ahead->n_known <= window; ahead->n_known++) {
                cuts_know(ahead->cuts, ahead->n_known);
                if (ahead->errors[ahead->n_known % AHEAD_RING] < 0)
                        return ahead->errors[ahead->n_known % AHEAD_RING];
        }
        return 0;
}

int ahead_next_file(struct ahead *ahead, struct stat *ret_status, struct why *why) {
        uint64_t next = ahead->first + (ahead->n_bytes + AHEAD_WINDOW - 1) / AHEAD_WINDOW;
        size_t idx = ahead->current + ahead->has_begun;
        int r, fd;

        assert(ahead->end == ahead->n_bytes);
        cuts_take(ahead->cuts, next);
        growing_clear(&ahead->copied);
        if (idx == ahead->n_files)
                return AHEAD_END;
        r = cuts_file(ahead->cuts, idx, &fd, ret_status, why);
        if (r < 0)
                return r;
        if (!ahead->has_begun)
                cuts_start(ahead->cuts, 0);
        ahead->current = idx;
        ahead->has_begun = true;
        ahead->first = next;
        ahead->n_bytes = (uint64_t)ret_status->st_size;
        ahead->end = 0;
        return 0;
}

/* Room for n bytes; the last `kept` of those that are there become the first. */
static int ahead_make_room(struct ahead *ahead, size_t n, size_t kept) {
        struct growing *copied = &ahead->copied;

        if (kept > 0)
                memmove(copied->bytes, copied->bytes + copied->n_bytes - kept, kept);
        ahead->copied_at += copied->n_bytes - kept;
        copied->n_bytes = kept;
        if (kept == 0 && n > copied->capacity)
                growing_fini(copied);
        return growing_reserve(copied, n);
}

/* Copies what does not lie together. Its windows are given up one by one, so it may be longer than the ring. */
static int copy(struct ahead *ahead, uint64_t at, size_t n, size_t kept) {
        int r = ahead_make_room(ahead, n, kept);

        if (r < 0)
                return r;
        ahead->copied_at = at;
        while (ahead->copied.n_bytes < n) {
                uint64_t from = at + ahead->copied.n_bytes, window = ahead->first + from / AHEAD_WINDOW;
                size_t n_left = n - ahead->copied.n_bytes, n_here = AHEAD_WINDOW - (size_t)(from % AHEAD_WINDOW);

                cuts_take(ahead->cuts, window);
                r = ahead_know(ahead, window);
                if (r < 0)
                        return r;
                n_here = n_here < n_left ? n_here : n_left;
                memcpy(ahead->copied.bytes + ahead->copied.n_bytes, ahead_window(ahead, window) + from % AHEAD_WINDOW,
                       n_here);
                ahead->copied.n_bytes += n_here;
        }
        return 0;
}

int ahead_bytes(struct ahead *ahead, uint64_t at, size_t n, const uint8_t **ret_bytes) {
        uint64_t first = ahead->first + at / AHEAD_WINDOW, last = ahead->first + (at + n - 1) / AHEAD_WINDOW;
        uint64_t copied_end = ahead->copied_at + ahead->copied.n_bytes;
        size_t kept = ahead->copied.n_bytes > 0 && at < copied_end ? (size_t)(copied_end - at) : 0;
        int r;

        assert(n > 0 && at <= ahead->end && at <= ahead->n_bytes && n <= ahead->n_bytes - at);
        ahead->end = at + n > ahead->end ? at + n : ahead->end;
        if (kept == 0)
                cuts_take(ahead->cuts, first);
        if (kept > 0 || last - first >= AHEAD_RING || last % AHEAD_RING < first % AHEAD_RING) {
                r = kept >= n ? 0 : copy(ahead, at, n, kept);
                if (r == 0)
                        *ret_bytes = ahead->copied.bytes + (at - ahead->copied_at);
                return r;
        }
        growing_clear(&ahead->copied);
        r = ahead_know(ahead, last);
        if (r == 0)
                *ret_bytes = ahead_window(ahead, first) + at % AHEAD_WINDOW;
        return r;
}
