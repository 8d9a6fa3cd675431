/* Taking batches and giving them back: what a training loop does all day.
 *
 * A batch that is ready is taken without a system call. Otherwise the client says how it wants to be woken, looks once
 * more (memory orders: proto/ring.h) and sleeps on the ring's futex; or, if it is asked not to block, leaves the caller
 * to poll the socket, where wake-ups, the daemon's end and its last words arrive. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/clock.h"
#include "client/lib/loader.h"
#include "proto/ring.h"

#define SLICE_NS    100000000u /* how late a sleeper may learn of the daemon's death */
#define PASSED_OVER 1          /* the batch was left over from before a seek */

static int damaged(struct dlc_loader *loader, const char *what) {
        dli_reason_set(&loader->reason, -EPROTO, "the ring of the daemon at %s is damaged: %s of batch %llu",
                       loader->connection.path, what, (unsigned long long)loader->sequence);
        return dli_loader_fail(loader, -EPROTO);
}

static void give_back(struct dlc_loader *loader, uint64_t sequence, uint32_t idx_slot) {
        uint64_t one = 1;

        if (!dlp_ring_release(loader->control, loader->page, sequence, idx_slot))
                return;
        /* Fails only if it is full (then the daemon has been told often enough) or broken (then the socket tells). */
        if (write(loader->release_event, &one, sizeof(one)) < 0)
                return;
}

/* ---- waiting ------------------------------------------------------------------------------------------------- */

/* A batch that was published before the daemon died is still there; only then does its death count. */
static int unless_ready(struct dlc_loader *loader, int error) {
        if (dlp_ring_ready(loader->control, loader->sequence))
                return 0;
        return error == -ECONNRESET ? dli_loader_fail(loader, error) : error;
}

/* Sleeps in slices: the futex does not tell of the daemon's death, the socket does. */
static int sleep_until_ready(struct dlc_loader *loader, int timeout_ms, uint64_t deadline_ns) {
        for (;;) {
                uint64_t now = deadline_ns == DLI_NEVER ? 0 : dli_now_ns();
                uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
                int r = dlp_ring_sleep(loader->control, loader->page, loader->sequence,
                                       left < SLICE_NS ? left : SLICE_NS);

                if (r > 0)
                        return 0;
                if (r < 0)
                        return dli_reason_set(&loader->reason, r, "interrupted while waiting for a batch");
                r = dli_connection_drain(&loader->connection, &loader->reason);
                if (r < 0)
                        return unless_ready(loader, r);
                if (left <= SLICE_NS && deadline_ns != DLI_NEVER && dli_now_ns() >= deadline_ns)
                        return dli_reason_set(&loader->reason, -ETIMEDOUT, "no batch within %d ms", timeout_ms);
        }
}

static int wait_for_batch(struct dlc_loader *loader, int timeout_ms, uint64_t *deadline_ns) {
        uint32_t n_slots = loader->info.n_slots;
        int r;

        if (atomic_load_explicit(&loader->n_held, memory_order_acquire) >= n_slots)
                return dli_reason_set(
                        &loader->reason, -ENOBUFS,
                        "all %u slots are held by the caller: release a batch first, or open with more n_slots",
                        n_slots);
        /* Old wake-ups go first, or a caller who polls would be woken by them for ever. */
        r = dli_connection_drain(&loader->connection, &loader->reason);
        if (r < 0)
                return unless_ready(loader, r);
        if (timeout_ms == 0) /* the flag stays up: the caller polls the socket */
                return dlp_ring_wait_begin(loader->control, loader->page, loader->sequence) ? -EAGAIN : 0;
        if (*deadline_ns == 0)
                *deadline_ns = dli_deadline(timeout_ms);
        return sleep_until_ready(loader, timeout_ms, *deadline_ns);
}

/* ---- taking -------------------------------------------------------------------------------------------------- */

/* The job's end. Its text is the daemon's, bounded by its field. */
static int job_failed(struct dlc_loader *loader, const struct dlp_slot_record *record) {
        dli_reason_set(&loader->reason, -EBADMSG, "%.*s", (int)strnlen(record->text, sizeof(record->text)),
                       record->text);
        return dli_loader_fail(loader, -EBADMSG);
}

/* Fetches the description of the batch after this one, if it is there, while the caller works on this one: it was
 * written by another core, and reading it line by line would be most of the next call's time. Only a hint: nothing is
 * believed. */
static void look_ahead(const struct dlc_loader *loader) {
        const uint8_t *record, *lease;
        uint32_t idx_slot;

        if (!dlp_ring_ready(loader->control, loader->sequence))
                return;
        idx_slot = dlp_ring_slot(loader->control, loader->sequence);
        if (idx_slot >= loader->info.n_slots)
                return;
        record = (const uint8_t *)dlp_slot_record(loader->control, idx_slot);
        for (size_t i = 0; i < offsetof(struct dlp_slot_record, tensors[2]); i += DLP_CACHE_LINE)
                __builtin_prefetch(record + i);
        lease = (const uint8_t *)&loader->leases[idx_slot];
        for (size_t i = 0; i < offsetof(struct dli_lease, tensors[2]); i += DLP_CACHE_LINE)
                __builtin_prefetch(lease + i, 1);
}

/* Takes the published batch `loader->sequence`. 0 with the batch, PASSED_OVER, or a final error. */
static int take(struct dlc_loader *loader, const struct dlc_batch **ret_batch) {
        uint32_t idx_slot = dlp_ring_slot(loader->control, loader->sequence);
        const struct dlp_slot_record *record;
        struct dli_lease *lease;

        if (idx_slot >= loader->info.n_slots)
                return damaged(loader, "the slot");
        lease = &loader->leases[idx_slot];
        record = dlp_slot_record(loader->control, idx_slot);
        if (record->sequence != loader->sequence || atomic_load_explicit(&lease->held, memory_order_relaxed))
                return damaged(loader, "the sequence");

        /* First, for the daemon ends what it had begun before a seek as failed. */
        if (record->stream != loader->stream) {
                dlp_ring_take(loader->page, loader->sequence);
                give_back(loader, loader->sequence++, idx_slot);
                return PASSED_OVER;
        }
        if (record->status == DLP_BATCH_FAILED)
                return job_failed(loader, record);
        if (record->epoch != loader->epoch || record->step != loader->step)
                return damaged(loader, "the place in the epoch");
        if (dli_batch_fill(loader, idx_slot, record) < 0)
                return damaged(loader, "the description");

        dlp_ring_take(loader->page, loader->sequence);
        lease->sequence = loader->sequence++;
        loader->step++;
        atomic_fetch_add_explicit(&loader->n_held, 1, memory_order_relaxed);
        atomic_store_explicit(&lease->held, 1, memory_order_release); /* pairs with the exchange in dlc_release() */
        *ret_batch = &lease->batch;
        look_ahead(loader);
        return 0;
}

/* At an epoch's end: told once, then the next one begins. */
static int pass_end(struct dlc_loader *loader) {
        int r;

        if (loader->ended) {
                r = dli_epoch_advance(loader);
                if (r < 0)
                        return r;
        }
        if (loader->step < loader->n_batches)
                return 0;
        loader->ended = true;
        return DLC_END_OF_EPOCH;
}

static int next(struct dlc_loader *loader, int timeout_ms, const struct dlc_batch **ret_batch) {
        uint64_t deadline_ns = 0; /* the clock is read only if there is something to wait for */
        int r;

        if (loader->failed < 0) {
                loader->reason = loader->failure;
                return loader->failed;
        }
        if (loader->step >= loader->n_batches) {
                r = pass_end(loader);
                if (r != 0)
                        return r;
        }
        do {
                if (!dlp_ring_ready(loader->control, loader->sequence)) {
                        r = wait_for_batch(loader, timeout_ms, &deadline_ns);
                        if (r < 0)
                                return r;
                }
                r = take(loader, ret_batch);
        } while (r == PASSED_OVER);
        return r;
}

int dlc_next(struct dlc_loader *loader, int timeout_ms, const struct dlc_batch **ret_batch) {
        struct dli_reason reason;
        int r;

        if (!loader || !ret_batch)
                return dli_report(&reason,
                                  dli_reason_set(&reason, -EINVAL, "dlc_next: loader and ret_batch must not be NULL"));
        if (dli_loader_check(loader) < 0)
                return dli_report(&loader->reason, dli_loader_in_child(&loader->reason));

        r = next(loader, timeout_ms, ret_batch);
        return r < 0 && r != -EAGAIN ? dli_report(&loader->reason, r) : r;
}

/* ---- giving back --------------------------------------------------------------------------------------------- */

/* The lease behind a batch that the caller shows us, or NULL: an address is believed only if it is one of ours. */
static struct dli_lease *find_lease(struct dlc_loader *loader, const struct dlc_batch *batch) {
        uintptr_t first = (uintptr_t)loader->leases, address = (uintptr_t)batch;
        uint64_t distance = address - first; /* wraps to something large below the first */

        if (distance % sizeof(struct dli_lease) != 0 || distance / sizeof(struct dli_lease) >= loader->info.n_slots)
                return NULL;
        return &loader->leases[distance / sizeof(struct dli_lease)];
}

int dlc_release(struct dlc_loader *loader, const struct dlc_batch *batch) {
        struct dli_reason reason; /* not the loader's: another thread may be using that */
        struct dli_lease *lease;
        uint64_t sequence;

        if (!loader || !batch)
                return dli_report(&reason,
                                  dli_reason_set(&reason, -EINVAL, "dlc_release: loader and batch must not be NULL"));
        if (dli_loader_check(loader) < 0)
                return dli_report(&reason, dli_loader_in_child(&reason));
        lease = find_lease(loader, batch);
        if (!lease)
                return dli_report(&reason,
                                  dli_reason_set(&reason, -EINVAL, "dlc_release: this batch is not of this loader"));

        /* Whoever takes the flag releases. Acquire: the batch's number belongs to the lease that we end. */
        if (!atomic_exchange_explicit(&lease->held, 0, memory_order_acq_rel))
                return dli_report(&reason,
                                  dli_reason_set(&reason, -EINVAL, "dlc_release: this batch was released before"));
        sequence = lease->sequence; /* the slot cannot come back before it is given back below */
        atomic_fetch_sub_explicit(&loader->n_held, 1, memory_order_release);
        give_back(loader, sequence, lease->batch.idx_slot);
        return 0;
}

const char *dlc_sample_error(struct dlc_loader *loader, const struct dlc_batch *batch, uint32_t idx_sample) {
        struct dli_lease *lease = loader && dli_loader_check(loader) == 0 ? find_lease(loader, batch) : NULL;
        struct dlp_columns columns;
        const char *text;
        int32_t idx_error;

        if (!lease || !atomic_load_explicit(&lease->held, memory_order_acquire) || !lease->batch.substitutes ||
            idx_sample >= lease->batch.n_samples)
                return NULL;
        columns = dlp_columns(loader->control, lease->batch.idx_slot);
        idx_error = columns.idx_errors[idx_sample];
        if (columns.substitutes[idx_sample] < 0 || idx_error < 0 || idx_error >= (int32_t)DLP_SLOT_ERRORS_MAX)
                return NULL;
        text = dlp_error_text(loader->control, lease->batch.idx_slot, (uint32_t)idx_error);
        return memchr(text, '\0', DLP_SLOT_ERROR_BYTES) ? text : NULL;
}
