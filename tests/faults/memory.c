/* Allocations: malloc() and its kin as the program's own functions, so that those of libraries come by as well. Behind
 * them stand the sanitizer's. */
#include <errno.h>
#include <stdlib.h>

#include "tests/faults/points.h"

void *__interceptor_malloc(size_t n_bytes);
void *__interceptor_calloc(size_t n, size_t n_bytes);
void *__interceptor_realloc(void *old, size_t n_bytes);
void *__interceptor_reallocarray(void *old, size_t n, size_t n_bytes);
void *__interceptor_aligned_alloc(size_t alignment, size_t n_bytes);
int __interceptor_posix_memalign(void **ret_memory, size_t alignment, size_t n_bytes);

static const int NO_MEMORY[] = { ENOMEM };

/* What the dynamic linker keeps of its own; the leak finder would know it by the caller, which is now malloc() below.
 */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
        return "leak:_dl_map_object\nleak:_dl_open\nleak:dl_open_worker\n";
}

__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void) {
        return "print_suppressions=0";
}

/* Libraries that are not counted get what they ask for. */
#define FAILS(call)                                                                                                    \
        (points && points_library((uintptr_t)__builtin_return_address(0)) &&                                           \
         fault_point(call, NO_MEMORY, 1, __builtin_return_address(0), __builtin_frame_address(0)) && (errno = ENOMEM))

__attribute__((visibility("default"))) void *malloc(size_t n_bytes) {
        return FAILS("malloc") ? NULL : __interceptor_malloc(n_bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t n_bytes) {
        return FAILS("calloc") ? NULL : __interceptor_calloc(n, n_bytes);
}

__attribute__((visibility("default"))) void *realloc(void *old, size_t n_bytes) {
        return n_bytes && FAILS("realloc") ? NULL : __interceptor_realloc(old, n_bytes);
}

__attribute__((visibility("default"))) void *reallocarray(void *old, size_t n, size_t n_bytes) {
        return n && n_bytes && FAILS("reallocarray") ? NULL : __interceptor_reallocarray(old, n, n_bytes);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t n_bytes) {
        return FAILS("aligned_alloc") ? NULL : __interceptor_aligned_alloc(alignment, n_bytes);
}

__attribute__((visibility("default"))) int posix_memalign(void **ret_memory, size_t alignment, size_t n_bytes) {
        return FAILS("posix_memalign") ? ENOMEM : __interceptor_posix_memalign(ret_memory, alignment, n_bytes);
}
