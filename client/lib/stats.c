/* What a loader has counted, and what is in its ring now. */

#include <errno.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/loader.h"
#include "proto/base/shown/shorten.h"
#include "proto/ring.h"

/* Batches that dlc_next() would hand out without waiting; leftovers from before a seek do not count. */
static uint32_t count_ready(const struct dlc_loader *loader) {
        const struct dli_ring *ring = dli_ring_of(loader);
        uint32_t n_ready = 0;

        if (loader->state == DLI_AWAY)
                return 0;
        for (uint64_t sequence = ring->sequence; sequence < ring->sequence + ring->n_slots; sequence++) {
                uint32_t idx_slot;

                if (!dlp_ring_ready(ring->control, sequence))
                        break;
                idx_slot = dlp_ring_slot(ring->control, sequence);
                if (idx_slot < ring->n_slots && dlp_slot_record(ring->control, idx_slot)->stream == ring->stream)
                        n_ready++;
        }
        return n_ready;
}

static uint32_t count_held(const struct dlc_loader *loader) {
        uint32_t n_held = 0;

        for (const struct dli_ring *ring = dli_ring_of(loader); ring; ring = ring->older)
                for (uint32_t i = 0; i < ring->n_slots; i++)
                        n_held += atomic_load_explicit(&ring->leases[i].held, memory_order_relaxed);
        return n_held;
}

int dlc_get_stats(struct dlc_loader *loader, struct dlc_stats *ret_stats, size_t size) {
        struct dlc_stats stats = { 0 };
        const struct dli_counts *counts;
        int r = dli_loader_enter(loader, "dlc_get_stats", true);

        if (r < 0)
                return r;
        if (!ret_stats)
                return dli_report(&loader->reason,
                                  why_set(&loader->reason, -EINVAL, "dlc_get_stats: ret_stats must not be NULL"));
        counts = &loader->counts;
        stats.n_batches = counts->n_batches;
        stats.n_samples = counts->n_samples;
        stats.n_substituted = counts->n_substituted;
        stats.n_skipped = counts->n_skipped;
        stats.n_waits = counts->n_waits;
        stats.waited_ns = counts->waited_ns;
        stats.restart_ns = counts->restart_ns;
        stats.opened_ns = counts->opened_ns;
        stats.read_ns = counts->read_ns;
        stats.queued_ns = counts->queued_ns;
        stats.decode_ns = counts->decode_ns;
        stats.n_ready = count_ready(loader);
        stats.n_held = count_held(loader);
        stats.n_slots = loader->info.n_slots;
        stats.n_restarts = loader->info.n_restarts;
        stats.hold_ns = counts->hold_ns;

        if (size > sizeof(stats)) /* a newer program: the fields that we do not know stay 0 */
                memset((uint8_t *)ret_stats + sizeof(stats), 0, size - sizeof(stats));
        memcpy(ret_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
        return 0;
}

const char *dli_hold(struct dlc_loader *loader) {
        char sentence[DLP_TEXT_MAX];
        struct dlp_wait wait;

        if (!dlp_ring_waits(dli_ring_of(loader)->control, &wait))
                return NULL;
        shorten(loader->hold, sizeof(loader->hold), "on hold: %s",
                dlp_wait_sentence(&wait, loader->options.dataset, clock_now_ns(), sentence));
        return loader->hold;
}

const char *dlc_hold(struct dlc_loader *loader) {
        if (dli_loader_enter(loader, "dlc_hold", true) < 0 || loader->state != DLI_ATTACHED)
                return NULL;
        return dli_hold(loader);
}
