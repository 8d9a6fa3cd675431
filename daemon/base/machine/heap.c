#include "daemon/base/machine/heap.h"

#include <malloc.h>
#include <sys/sysinfo.h>

#define MAPPED_FROM_MIN (128u << 10) /* bytes: malloc's own default */
#define ARENAS_MORE     2            /* beside one for each CPU */

/* libjpeg allocates and frees its tables for each picture, which must not cost page faults. But free memory in the heap
 * is charged to no budget, so a large picture's blocks must not stay there. Several threads share an arena of the
 * heap. As many arenas as CPUs are enough for them; malloc would make eight times as many, and each keeps what it once
 * had: threads come and go, and the daemon would grow for an hour. */
void heap_keep(uint64_t n_bytes_a_thread) {
        uint64_t from = n_bytes_a_thread / 4;

        mallopt(M_MMAP_THRESHOLD, from < MAPPED_FROM_MIN ? (int)MAPPED_FROM_MIN : (int)from);
        mallopt(M_ARENA_MAX, get_nprocs() + ARENAS_MORE); /* the first time counts */
        mallopt(M_TRIM_THRESHOLD, 4 * (int)n_bytes_a_thread);
}
