/* data/index/indexing_sort.h: sorting what an index is made of, which may be so much that it takes a minute.
 *
 * As all that making an index does, it is paid for, and ends once the index is not wanted any more (indexing.h). */
#pragma once

#include <stddef.h>

/* As qsort_r(), and what is equal keeps its order. Returns 0; or -ECANCELED or -ENOMEM, and the items are all there, in
 * no order. */
int indexing_sort(void *items, size_t n, size_t item_bytes, int (*compare)(const void *, const void *, void *),
                  void *userdata);
