#include "daemon/data/index/index_stamp.h"

#include <errno.h>
#include <time.h>

#include "daemon/base/machine/disk.h"
#include "daemon/base/machine/file_stamp.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/index/indexing.h"

#define SETTLE_NS       20000000   /* two ticks of the coarsest clock for times of directories (100 Hz) */
#define SETTLE_TOTAL_NS 1000000000 /* a folder that never stops changing is read anyway */

#define MARK_PIECE_BYTES 4096u

static int64_t index_stamp_age_of(const struct timespec *then, const struct timespec *now) {
        return (int64_t)((uint64_t)file_stamp_ns(now) - (uint64_t)file_stamp_ns(then));
}

/* Since the last change of anything: what was given an old time a moment ago may be given it again. A time in the
 * future says nothing. */
static int64_t rested_ns(const struct stat *status) {
        int64_t since_bytes, since_any;
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        since_bytes = index_stamp_age_of(&status->st_mtim, &now);
        since_any = index_stamp_age_of(&status->st_ctim, &now);
        return since_bytes < 0 || (since_any >= 0 && since_any < since_bytes) ? since_any : since_bytes;
}

int index_settle(int fd, int64_t *settled_ns, struct stat *ret_status) {
        if (indexing_origin()) /* the times are those of our own writes */
                return fstat(fd, ret_status) < 0 ? -errno : 0;
        for (;;) {
                struct timespec pause = { 0 };
                int64_t age;

                if (fstat(fd, ret_status) < 0)
                        return -errno;
                age = rested_ns(ret_status);
                if (age < 0 || age >= SETTLE_NS || *settled_ns >= SETTLE_TOTAL_NS)
                        return 0;
                pause.tv_nsec = SETTLE_NS - age;
                *settled_ns += pause.tv_nsec;
                nanosleep(&pause, NULL);
        }
}

bool index_is_unchanged(const struct stat *was, const struct stat *is) {
        return indexing_origin() ? was->st_ino == is->st_ino && was->st_size == is->st_size : file_is_same(was, is);
}

int index_mark(int fd, uint64_t begin, uint64_t n_bytes, uint64_t n_pieces, uint64_t *ret_mark) {
        bool is_small = n_bytes <= n_pieces * MARK_PIECE_BYTES;
        uint64_t words[MARK_PIECE_BYTES / 8];
        const struct indexing_origin *origin = indexing_origin();
        struct index_sum sum;

        if (origin && origin->mark(origin->userdata, fd, ret_mark))
                return 0;
        index_sum_begin(&sum);
        index_sum_add(&sum, &n_bytes, sizeof(n_bytes));
        for (uint64_t i = 0; i < n_pieces; i++) {
                uint64_t step = is_small ? MARK_PIECE_BYTES : (n_bytes - MARK_PIECE_BYTES) / (n_pieces - 1), n;
                uint64_t at = is_small || i < n_pieces - 1 ? i * step : n_bytes - MARK_PIECE_BYTES;
                int r;

                if (at >= n_bytes)
                        break;
                n = n_bytes - at < MARK_PIECE_BYTES ? n_bytes - at : MARK_PIECE_BYTES;
                words[(n - 1) / 8] = 0;
                r = disk_read_at(fd, words, n, begin + at);
                if (r < 0)
                        return r;
                index_sum_add(&sum, words, (n + 7) / 8 * 8);
        }
        *ret_mark = index_sum_end(&sum);
        return 0;
}
