/* Giving batches back, from any thread; and lookups by a batch's address. */

#include <errno.h>
#include <string.h>

#include "client/lib/loader.h"

/* All rings, the newest first. Acquire pairs with the release store, so that each ring is seen completely. */
static struct dli_ring *rings(const struct dlc_loader *loader) {
        return atomic_load_explicit(&loader->ring, memory_order_acquire);
}

int dlc_release(struct dlc_loader *loader, const struct dlc_batch *batch) {
        struct dli_lease *lease;
        struct dli_ring *ring;

        /* Nothing here uses the loader's reason: another thread may be using it. */
        if (!loader || !batch)
                return dli_refuse(-EINVAL, "dlc_release: loader and batch must not be NULL");
        if (dli_loader_check(loader) < 0)
                return dli_loader_in_child();
        lease = dli_rings_find(rings(loader), batch, &ring);
        if (!lease)
                return dli_refuse(-EINVAL, "dlc_release: this batch is not of this loader");

        /* The thread that takes the flag releases the batch. Acquire: the batch's number belongs to the lease that ends
         * here. */
        if (!atomic_exchange_explicit(&lease->held, 0, memory_order_acq_rel))
                return dli_refuse(-EINVAL, "dlc_release: this batch was released before");
        dli_ring_give_back(ring, atomic_load_explicit(&lease->sequence, memory_order_relaxed),
                           (uint32_t)(lease - ring->leases));
        dli_ring_leave(ring); /* last: the memory may be freed now */
        return 0;
}

int dlc_hold_memory(struct dlc_loader *loader, void **ret_base, uint64_t *ret_bytes) {
        int r = dli_loader_enter(loader, "dlc_hold_memory", false);

        if (r < 0)
                return r;
        if (!ret_base || !ret_bytes)
                return dli_refuse(-EINVAL, "dlc_hold_memory: ret_base and ret_bytes must not be NULL");
        if (loader->state == DLI_AWAY)
                return dli_refuse(-ECONNRESET, "dlc_hold_memory: the daemon is away, and its memory with it");
        r = dli_ring_hold(dli_ring_of(loader));
        if (r < 0)
                return dli_refuse(r, "dlc_hold_memory: it is held %u times already", DLI_HOLDS);
        *ret_base = loader->info.memory_base;
        *ret_bytes = loader->info.memory_bytes;
        return 0;
}

int dlc_let_memory(struct dlc_loader *loader, const void *base) {
        if (!loader || !base)
                return dli_refuse(-EINVAL, "dlc_let_memory: loader and base must not be NULL");
        if (dli_loader_check(loader) < 0)
                return dli_loader_in_child();
        if (dli_rings_let(rings(loader), base) < 0)
                return dli_refuse(-EINVAL, "dlc_let_memory: this memory is not held");
        return 0;
}

const char *dlc_sample_error(struct dlc_loader *loader, const struct dlc_batch *batch, uint32_t idx_sample) {
        struct dlp_columns columns;
        struct dli_lease *lease;
        struct dli_ring *ring;
        const char *text;
        int32_t idx_error;

        if (!loader || dli_loader_check(loader) < 0)
                return NULL;
        lease = dli_rings_find(rings(loader), batch, &ring);
        if (!lease || !atomic_load_explicit(&lease->held, memory_order_acquire) || !lease->batch.substitutes ||
            idx_sample >= lease->batch.n_samples)
                return NULL;
        columns = dlp_columns(ring->control, lease->batch.idx_slot);
        idx_error = columns.idx_errors[idx_sample];
        if (columns.substitutes[idx_sample] < 0 || idx_error < 0 || idx_error >= (int32_t)DLP_SLOT_ERRORS_MAX)
                return NULL;
        text = dlp_error_text(ring->control, lease->batch.idx_slot, (uint32_t)idx_error);
        return memchr(text, '\0', DLP_SLOT_ERROR_BYTES) ? text : NULL;
}
