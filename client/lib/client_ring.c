#include "client/lib/client_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"
#include "proto/meter.h"
#include "proto/ring.h"

/* ---- mapping ------------------------------------------------------------------------------------------------- */

/* Maps a whole file that must have at least n_bytes and that cannot shrink afterwards. */
static int client_ring_map(int fd, uint64_t n_bytes, int protection, const char *what, struct why *reason,
                           struct dli_mapping *ret_mapping) {
        int seals = fcntl(fd, F_GET_SEALS);
        struct stat status;
        void *base;

        if (fstat(fd, &status) < 0)
                return why_errno(reason, -errno, "the daemon's %s memory", what);
        if (seals < 0 || !(seals & F_SEAL_SHRINK) || status.st_size <= 0 || (uint64_t)status.st_size < n_bytes ||
            (uint64_t)status.st_size > 2 * DLP_PAYLOAD_MAX)
                return why_set(reason, -EPROTO,
                               "the daemon's %s memory has %lld bytes where %llu were promised, or could shrink", what,
                               (long long)status.st_size, (unsigned long long)n_bytes);

        base = mmap(NULL, (size_t)status.st_size, protection, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
                return why_errno(reason, -errno, "cannot map the daemon's %s memory of %lld bytes", what,
                                 (long long)status.st_size);
        /* A forked child must not have the mapping: it could overwrite its parent's batches. If the kernel cannot do
         * that, the child's calls are refused anyway. */
        (void)madvise(base, (size_t)status.st_size, MADV_DONTFORK);
        *ret_mapping = (struct dli_mapping){ .base = base, .bytes = (uint64_t)status.st_size };
        return 0;
}

void dli_unmap(struct dli_mapping *mapping) {
        if (mapping->base)
                munmap(mapping->base, mapping->bytes);
        *mapping = (struct dli_mapping){ 0 };
}

static int client_ring_map_ring(struct dli_ring *ring, const struct dli_offer *offer, struct why *reason,
                                uint32_t *ret_layout_version) {
        const struct dlp_control *control;
        int r;

        if (offer->control_bytes < sizeof(*control) || offer->payload_bytes < DLP_CLIENT_PAGE_BYTES)
                return why_set(reason, -EPROTO, "the daemon offers a ring of no size");
        r = client_ring_map(offer->control_fd, offer->control_bytes, PROT_READ, "control", reason,
                            &ring->control_mapping);
        if (r < 0)
                return r;
        r = client_ring_map(offer->payload_fd, offer->payload_bytes, PROT_READ | PROT_WRITE, "payload", reason,
                            &ring->payload_mapping);
        if (r < 0)
                return r;

        control = ring->control_mapping.base;
        r = dlp_layout_check(control, ring->control_mapping.bytes, ring->payload_mapping.bytes);
        if (r == -EPROTONOSUPPORT) {
                *ret_layout_version = control->layout_version;
                return r;
        }
        if (r < 0 || (offer->batch_size > 0 && control->batch_size != offer->batch_size) ||
            control->n_slots != offer->n_slots)
                return why_set(reason, -EPROTO, "the daemon's ring is damaged");
        ring->control = control;
        ring->page = ring->payload_mapping.base;
        ring->slots = (uint8_t *)ring->payload_mapping.base + control->slots_offset;
        ring->n_slots = control->n_slots;
        return 0;
}

/* ---- reference counting -------------------------------------------------------------------------------------- */

static void client_ring_let_go(struct dli_ring *ring) {
        dli_unmap(&ring->payload_mapping);
        dli_unmap(&ring->control_mapping);
        closep(&ring->release_event);
        ring->release_event = -1;
}

/* Each lease begins on a cache line of its own, so that a batch writes as few lines as possible. */
static struct dli_lease *leases_new(uint32_t n_slots) {
        size_t n_bytes = n_slots * sizeof(struct dli_lease);
        struct dli_lease *leases = aligned_alloc(DLP_CACHE_LINE, n_bytes);

        return leases ? memset(leases, 0, n_bytes) : NULL;
}

int dli_ring_new(const struct dli_offer *offer, struct why *reason, struct dli_ring **ret_ring,
                 uint32_t *ret_layout_version) {
        struct dli_ring *ring = aligned_alloc(DLP_CACHE_LINE, sizeof(*ring));
        int r;

        if (!ring)
                return why_set(reason, -ENOMEM, "no memory for a loader");
        memset(ring, 0, sizeof(*ring));
        ring->release_event = -1;
        atomic_store_explicit(&ring->n_users, 1, memory_order_relaxed);

        r = client_ring_map_ring(ring, offer, reason, ret_layout_version);
        if (r == 0) {
                ring->memory = strdup(offer->memory);
                ring->leases = leases_new(ring->n_slots);
                /* Zeroed pages take no memory until they are written, and most never are: damaged samples are rare. */
                ring->served = calloc((size_t)ring->n_slots * ring->control->batch_size, sizeof(*ring->served));
                if (!ring->memory || !ring->leases || !ring->served)
                        r = why_set(reason, -ENOMEM, "no memory for a loader");
        }
        if (r < 0) {
                dli_rings_free(ring, true);
                return r;
        }
        ring->release_event = take_fd(offer->release_event);
        *ret_ring = ring;
        return 0;
}

void dli_ring_leave(struct dli_ring *ring) {
        /* acq_rel: everything that other threads did with the memory happens before it is unmapped. */
        if (atomic_fetch_sub_explicit(&ring->n_users, 1, memory_order_acq_rel) == 1)
                client_ring_let_go(ring);
}

int dli_ring_hold(struct dli_ring *ring) {
        if (atomic_load_explicit(&ring->n_users, memory_order_relaxed) / DLI_HOLD >= DLI_HOLDS)
                return -EMFILE;
        atomic_fetch_add_explicit(&ring->n_users, DLI_HOLD, memory_order_relaxed);
        return 0;
}

int dli_rings_let(struct dli_ring *ring, const void *slots) {
        for (; ring; ring = ring->older) {
                uint32_t n_users = atomic_load_explicit(&ring->n_users, memory_order_relaxed);

                if (ring->slots != slots || n_users < DLI_HOLD)
                        continue;
                if (atomic_fetch_sub_explicit(&ring->n_users, DLI_HOLD, memory_order_acq_rel) == DLI_HOLD)
                        client_ring_let_go(ring);
                return 0;
        }
        return -EINVAL;
}

void dli_rings_free(struct dli_ring *ring, bool is_here) {
        while (ring) {
                struct dli_ring *older = ring->older;

                if (!is_here)
                        ring->control_mapping = ring->payload_mapping = (struct dli_mapping){ 0 };
                client_ring_let_go(ring);
                free(ring->memory);
                free(ring->leases);
                free(ring->served);
                free(ring);
                ring = older;
        }
}

/* ---- leases -------------------------------------------------------------------------------------------------- */

struct dli_lease *dli_rings_find(struct dli_ring *ring, const struct dlc_batch *batch, struct dli_ring **ret_ring) {
        for (; ring; ring = ring->older) {
                uint64_t distance = (uintptr_t)batch - (uintptr_t)ring->leases; /* wraps if before the first lease */

                if (distance % sizeof(struct dli_lease) != 0 || distance / sizeof(struct dli_lease) >= ring->n_slots)
                        continue;
                *ret_ring = ring;
                return &ring->leases[distance / sizeof(struct dli_lease)];
        }
        return NULL;
}

void dli_ring_give_back(struct dli_ring *ring, uint64_t sequence, uint32_t idx_slot) {
        uint64_t one = 1;

        dlp_meter_note_released(ring->control, ring->page, idx_slot);
        if (!dlp_ring_release(ring->control, ring->page, sequence, idx_slot))
                return;
        /* Fails only if the counter is full (then the daemon has been told often enough) or the event is broken (then
         * the socket shows the end). */
        if (write(ring->release_event, &one, sizeof(one)) < 0)
                return;
}
