#include "daemon/data/index/index_stamp.h"

#include <errno.h>
#include <time.h>

#define SETTLE_NS       20000000   /* two ticks of the coarsest clock for times of directories (100 Hz) */
#define SETTLE_TOTAL_NS 1000000000 /* a folder that never stops changing is read anyway */

int index_settle(int fd, int64_t *settled_ns, struct stat *ret_status) {
        for (;;) {
                struct timespec now, pause = { 0 };
                int64_t age;

                if (fstat(fd, ret_status) < 0)
                        return -errno;
                clock_gettime(CLOCK_REALTIME, &now);
                age = (int64_t)((uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec -
                                (uint64_t)index_mtime_ns(ret_status));
                if (age < 0 || age >= SETTLE_NS || *settled_ns >= SETTLE_TOTAL_NS)
                        return 0;
                pause.tv_nsec = SETTLE_NS - age;
                *settled_ns += pause.tv_nsec;
                nanosleep(&pause, NULL);
        }
}
