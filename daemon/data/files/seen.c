#include "daemon/data/files/seen.h"

void seen_begin(struct seen *seen, uint64_t n_files) {
        seen->n_files = n_files;
        atomic_store_explicit(&seen->n_begun, 0, memory_order_relaxed);
        atomic_store_explicit(&seen->n_known, 0, memory_order_relaxed);
        atomic_store_explicit(&seen->n_bytes, 0, memory_order_relaxed);
}

void seen_file(struct seen *seen, uint64_t n_bytes) {
        atomic_fetch_add_explicit(&seen->n_known, n_bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&seen->n_begun, 1, memory_order_relaxed);
}

void seen_add(struct seen *seen, uint64_t n_bytes) {
        atomic_fetch_add_explicit(&seen->n_bytes, n_bytes, memory_order_relaxed);
}

void seen_at(struct seen *seen, uint64_t n_bytes, uint64_t at) {
        uint64_t n_known = atomic_load_explicit(&seen->n_known, memory_order_relaxed);
        uint64_t n_before = n_known > n_bytes ? n_known - n_bytes : 0;

        atomic_store_explicit(&seen->n_bytes, n_before + (at < n_bytes ? at : n_bytes), memory_order_relaxed);
}

void seen_tell(const struct seen *seen, const struct index_watch *watch) {
        uint64_t n_known = atomic_load_explicit(&seen->n_known, memory_order_relaxed);
        uint64_t n_begun = atomic_load_explicit(&seen->n_begun, memory_order_relaxed);
        uint64_t n_bytes = atomic_load_explicit(&seen->n_bytes, memory_order_relaxed);
        double total = (double)n_known;

        if (!watch || !watch->part || n_begun == 0 || n_known == 0)
                return;
        if (n_begun < seen->n_files)
                total = total / (double)n_begun * (double)seen->n_files;
        watch->part(watch->userdata, n_bytes, total < 1e18 ? (uint64_t)total : 0, "B");
}
