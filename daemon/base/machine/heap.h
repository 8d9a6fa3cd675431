/* base/machine/heap.h: how much free memory the C library's heap keeps. */
#pragma once

#include <stdint.h>

/* What threads allocate and free again and again stays in the heap, about this much a thread; larger blocks and what is
 * free beyond it go back to the kernel. Any thread. */
void heap_keep(uint64_t n_bytes_a_thread);
