#include "daemon/base/machine/heap.h"

#include <malloc.h>

#define MAPPED_FROM_MIN (128u << 10) /* bytes: malloc's own default */

/* libjpeg allocates and frees its tables for each picture, which must not cost page faults. But free memory in the heap
 * is charged to no budget, so a large picture's blocks must not stay there. Several threads share an arena of the
 * heap. */
void heap_keep(uint64_t n_bytes_a_thread) {
        uint64_t from = n_bytes_a_thread / 4;

        mallopt(M_MMAP_THRESHOLD, from < MAPPED_FROM_MIN ? (int)MAPPED_FROM_MIN : (int)from);
        mallopt(M_TRIM_THRESHOLD, 4 * (int)n_bytes_a_thread);
}
