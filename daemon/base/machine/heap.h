/* base/machine/heap.h: how much free memory the C library's heap keeps. */
#pragma once

#include <stdint.h>

/* Memory that threads allocate and free again and again stays in the heap, about this much for each thread; larger
 * blocks, and free memory beyond it, go back to the kernel. Any thread. */
void heap_keep(uint64_t n_bytes_a_thread);
