#include "daemon/data/files/ahead.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/growing.h"

struct ahead {
        struct windows *windows;
        size_t n_files;
        size_t current;   /* file */
        bool has_begun;   /* with the first one */
        uint64_t n_bytes; /* of the current file */
        uint64_t first;   /* its first window */
        uint64_t end;     /* before it all bytes of the current file were asked for */
        struct growing copied;
        uint64_t copied_at; /* in the current file */
};

int ahead_new(uint32_t n_threads, struct ahead **ret_ahead) {
        struct ahead *ahead = calloc(1, sizeof(*ahead));
        int r = ahead ? windows_new(n_threads, &ahead->windows) : -ENOMEM;

        if (r < 0) {
                free(ahead);
                return r;
        }
        *ret_ahead = ahead;
        return 0;
}

void ahead_free(struct ahead *ahead) {
        if (!ahead)
                return;
        windows_free(ahead->windows);
        growing_fini(&ahead->copied);
        free(ahead);
}

void ahead_begin(struct ahead *ahead, const struct windows_files *files) {
        windows_begin(ahead->windows, files);
        ahead->n_files = files->n;
        ahead->has_begun = false;
        ahead->n_bytes = ahead->first = ahead->end = 0;
        ahead->current = ahead->copied.n_bytes = 0;
}

int ahead_next_file(struct ahead *ahead, struct stat *ret_status, struct why *why) {
        uint64_t next = ahead->first + (ahead->n_bytes + WINDOWS_BYTES - 1) / WINDOWS_BYTES;
        size_t idx = ahead->current + ahead->has_begun;
        int r;

        assert(ahead->end == ahead->n_bytes);
        windows_give_up(ahead->windows, next);
        growing_clear(&ahead->copied);
        if (idx == ahead->n_files)
                return AHEAD_END;
        r = windows_file(ahead->windows, idx, ret_status, why);
        if (r < 0)
                return r;
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
                uint64_t from = at + ahead->copied.n_bytes, window = ahead->first + from / WINDOWS_BYTES;
                size_t n_left = n - ahead->copied.n_bytes, n_here = WINDOWS_BYTES - (size_t)(from % WINDOWS_BYTES);

                windows_give_up(ahead->windows, window);
                r = windows_know(ahead->windows, window);
                if (r < 0)
                        return r;
                n_here = n_here < n_left ? n_here : n_left;
                memcpy(ahead->copied.bytes + ahead->copied.n_bytes,
                       windows_bytes(ahead->windows, window) + from % WINDOWS_BYTES, n_here);
                ahead->copied.n_bytes += n_here;
        }
        return 0;
}

int ahead_bytes(struct ahead *ahead, uint64_t at, size_t n, const uint8_t **ret_bytes) {
        uint64_t first = ahead->first + at / WINDOWS_BYTES, last = ahead->first + (at + n - 1) / WINDOWS_BYTES;
        uint64_t copied_end = ahead->copied_at + ahead->copied.n_bytes;
        size_t kept = ahead->copied.n_bytes > 0 && at < copied_end ? (size_t)(copied_end - at) : 0;
        int r;

        assert(n > 0 && at <= ahead->end && at <= ahead->n_bytes && n <= ahead->n_bytes - at);
        ahead->end = at + n > ahead->end ? at + n : ahead->end;
        if (kept == 0)
                windows_give_up(ahead->windows, first);
        if (kept > 0 || last - first >= WINDOWS_RING || last % WINDOWS_RING < first % WINDOWS_RING) {
                r = kept >= n ? 0 : copy(ahead, at, n, kept);
                if (r == 0)
                        *ret_bytes = ahead->copied.bytes + (at - ahead->copied_at);
                return r;
        }
        growing_clear(&ahead->copied);
        r = windows_know(ahead->windows, last);
        if (r == 0)
                *ret_bytes = windows_bytes(ahead->windows, first) + at % WINDOWS_BYTES;
        return r;
}
