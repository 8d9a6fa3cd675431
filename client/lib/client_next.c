/* Taking batches: the call that a training loop makes all day.
 *
 * A batch that is ready is taken without a system call. Otherwise the client says how it wants to be woken, looks once
 * more (memory orders: proto/ring.h) and sleeps on the ring's futex. If the caller does not want to block, it polls
 * instead; wake-ups, the daemon's end and its reason for closing arrive on the polled descriptor. */

#include <errno.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/loader.h"
#include "proto/meter.h"
#include "proto/ring.h"

#define SLICE_NS     100000000u /* at most this late does a sleeping client learn of the daemon's death */
#define HOLD_TELL_NS 1000000000u
#define PASSED_OVER  1 /* the batch is not for the caller: left over from before a seek, or without samples */

static int client_next_damaged(struct dlc_loader *loader, const char *what) {
        why_set(&loader->reason, -EPROTO, "the ring of the daemon at %s is damaged: %s of batch %llu",
                loader->connection.path, what, (unsigned long long)dli_ring_of(loader)->sequence);
        return dli_loader_fail(loader, -EPROTO);
}

static bool client_next_is_ready(const struct dli_ring *ring) {
        return dlp_ring_ready(ring->control, ring->sequence);
}

/* ---- waiting ------------------------------------------------------------------------------------------------- */

/* One call of dlc_next(); the clock is read only if the call has to wait. */
struct wait {
        int timeout_ms;
        uint64_t began_ns; /* 0: not yet */
        uint64_t deadline_ns;
};

/* The socket has ended. A batch that was published before the daemon died is still there; only after it does the
 * daemon's death count. */
static int at_the_end(struct dlc_loader *loader, int error) {
        if (!client_next_is_ready(dli_ring_of(loader)))
                return dli_restart_lost(loader, error);
        why_set(&loader->reason, 0, "%s", "");
        return 0;
}

/* The daemon waits for the dataset: adds the time to the statistics, and reports it once a second. */
static void look_at_hold(struct dlc_loader *loader, uint64_t slept_ns) {
        const struct dlc_options *options = &loader->options;
        uint64_t now;

        if (!dli_hold(loader))
                return;
        loader->counts.hold_ns += slept_ns;
        now = clock_now_ns();
        if (!options->on_progress || (loader->hold_told_ns != 0 && now - loader->hold_told_ns < HOLD_TELL_NS))
                return;
        loader->hold_told_ns = now;
        options->on_progress(options->userdata, loader->hold);
}

/* Has the daemon said how long the stream is, which the loader did not know when it began to wait? */
static bool has_news_of_end(const struct dlc_loader *loader) {
        return !loader->is_made && loader->plan.n_batches == DLP_UNKNOWN &&
               dlp_ring_length(dli_ring_of(loader)->control) != DLP_UNKNOWN;
}

/* Sleeps in slices: the daemon's death does not wake the futex, only the socket shows it. */
static int sleep_until_ready(struct dlc_loader *loader, const struct wait *wait) {
        struct dli_ring *ring = dli_ring_of(loader);

        for (;;) {
                uint64_t now = wait->deadline_ns == DLI_NEVER ? 0 : clock_now_ns();
                uint64_t left = wait->deadline_ns > now ? wait->deadline_ns - now : 0;
                int r = dlp_ring_sleep(ring->control, ring->page, ring->sequence, left < SLICE_NS ? left : SLICE_NS);

                if (r > 0)
                        return 0;
                if (r < 0)
                        return why_set(&loader->reason, r, "interrupted while waiting for a batch");
                if (has_news_of_end(loader))
                        return 0;
                look_at_hold(loader, left < SLICE_NS ? left : SLICE_NS);
                r = dli_connection_drain(&loader->connection, &loader->reason);
                if (r < 0)
                        return at_the_end(loader, r);
                dli_progress_look(loader);
                if (left <= SLICE_NS && wait->deadline_ns != DLI_NEVER && clock_now_ns() >= wait->deadline_ns)
                        return why_set(&loader->reason, -ETIMEDOUT, "no batch within %d ms", wait->timeout_ms);
        }
}

static int wait_attached(struct dlc_loader *loader, const struct wait *wait) {
        struct dli_ring *ring = dli_ring_of(loader);
        int r;

        /* Take in old wake-ups first, otherwise they would wake a polling caller for ever. */
        r = dli_connection_drain(&loader->connection, &loader->reason);
        if (r < 0)
                return at_the_end(loader, r);
        if (atomic_load_explicit(&ring->n_users, memory_order_acquire) % DLI_HOLD >
            ring->n_slots) /* the loader is one */
                return why_set(&loader->reason, -ENOBUFS,
                               "all %u slots are held by the caller: release a batch first, or open with more n_slots",
                               ring->n_slots);
        if (wait->timeout_ms == 0) /* the flag stays set: the caller polls */
                return dlp_ring_wait_begin(ring->control, ring->page, ring->sequence) && !has_news_of_end(loader)
                               ? -EAGAIN
                               : 0;
        return sleep_until_ready(loader, wait);
}

/* There is no batch. Returns 0 when it is worth looking again. */
static int wait_for_batch(struct dlc_loader *loader, struct wait *wait) {
        if (wait->began_ns == 0) {
                wait->began_ns = clock_now_ns();
                wait->deadline_ns = dli_deadline(wait->timeout_ms);
        }
        loader->counts.n_waits += !loader->is_wait_counted; /* once a batch, in however many calls it is waited for */
        loader->is_wait_counted = true;
        if (loader->state == DLI_ATTACHED)
                dlp_meter_wait(dli_ring_of(loader)->page, wait->began_ns);
        return loader->state == DLI_ATTACHED ? wait_attached(loader, wait)
                                             : dli_restart_wait(loader, wait->timeout_ms, wait->deadline_ns);
}

/* ---- taking a batch ------------------------------------------------------------------------------------------ */

/* The job has failed. The text is the daemon's, bounded by its field. */
static int job_failed(struct dlc_loader *loader, const struct dlp_slot_record *record) {
        int error = record->code == EINVAL || record->code == ENOTRECOVERABLE ? -(int)record->code : -EBADMSG;

        why_set(&loader->reason, error, "%.*s", (int)strnlen(record->text, sizeof(record->text)), record->text);
        return dli_loader_fail(loader, error);
}

/* Prefetches the description of the batch after this one, if it is there, while the caller works on this one: another
 * core wrote it, and reading it line by line would be most of the next call's time. Only a hint: nothing that is read
 * here is used. If it is not there, the ring is empty from now on. */
static void client_next_look_ahead(const struct dli_ring *ring) {
        const uint8_t *record, *lease;
        uint32_t idx_slot;

        if (!client_next_is_ready(ring)) {
                dlp_meter_empty(ring->page, clock_now_ns());
                return;
        }
        idx_slot = dlp_ring_slot(ring->control, ring->sequence);
        if (idx_slot >= ring->n_slots)
                return;
        record = (const uint8_t *)dlp_slot_record(ring->control, idx_slot);
        for (size_t i = 0; i < offsetof(struct dlp_slot_record, tensors[2]); i += DLP_CACHE_LINE)
                __builtin_prefetch(record + i);
        lease = (const uint8_t *)&ring->leases[idx_slot];
        for (size_t i = 0; i < offsetof(struct dli_lease, tensors[2]); i += DLP_CACHE_LINE)
                __builtin_prefetch(lease + i, 1);
}

static int client_next_pass_over(struct dli_ring *ring, uint32_t idx_slot) {
        dlp_ring_take(ring->page, ring->sequence);
        dli_ring_give_back(ring, ring->sequence++, idx_slot);
        return PASSED_OVER;
}

static void client_next_count(struct dli_counts *counts, const struct dlp_slot_record *record) {
        counts->n_samples += record->n_samples;
        counts->n_substituted += record->n_errors;
        counts->n_skipped += record->n_skipped;
        counts->read_ns += record->read_ns;
        counts->queued_ns += record->queued_ns;
        counts->decode_ns += record->decode_ns;
}

/* Takes the published batch `ring->sequence`. 0 with the batch, PASSED_OVER, or a final error. */
static int client_next_take(struct dlc_loader *loader, const struct wait *wait, const struct dlc_batch **ret_batch) {
        struct dli_ring *ring = dli_ring_of(loader);
        uint32_t idx_slot = dlp_ring_slot(ring->control, ring->sequence);
        const struct dlp_slot_record *record;
        struct dli_lease *lease;
        bool is_replay; /* an earlier batch once more: the cursor stays where it is */
        uint64_t now_ns;

        if (idx_slot >= ring->n_slots)
                return client_next_damaged(loader, "the slot");
        lease = &ring->leases[idx_slot];
        record = dlp_slot_record(ring->control, idx_slot);
        if (record->sequence != ring->sequence || atomic_load_explicit(&lease->held, memory_order_relaxed))
                return client_next_damaged(loader, "the sequence");

        /* First, because the daemon ends as failed what it had begun before a seek. */
        if (record->stream != ring->stream)
                return client_next_pass_over(ring, idx_slot);
        if (record->status == DLP_BATCH_FAILED)
                return job_failed(loader, record);
        is_replay = record->status == DLP_BATCH_REPLAY;
        if (record->epoch != loader->epoch || record->step != loader->step)
                return client_next_damaged(loader, "the place in the epoch");
        if (loader->is_made && loader->plan.n_batches == DLP_UNKNOWN) {
                if (!dli_cursor_learn_units(loader, record->epoch_units))
                        return client_next_damaged(loader, "the length of the epoch");
                if (record->n_planned == 0 && dlp_epoch_plan_is_over(&loader->plan, loader->step))
                        return client_next_pass_over(ring, idx_slot); /* that was all that it had to say */
        }
        if (record->n_samples == 0 && record->n_skipped > 0 && record->n_skipped <= ring->control->batch_size) {
                client_next_count(&loader->counts, record);
                loader->step++;
                return client_next_pass_over(ring, idx_slot);
        }
        if (dli_batch_fill(loader, ring, idx_slot, record) < 0)
                return client_next_damaged(loader, "the description");
        if (!dli_forms_fit(&loader->forms, record,
                           (const uint8_t *)ring->page + dlp_slot_offset(ring->control, idx_slot),
                           ring->control->slot_bytes))
                return client_next_damaged(loader, "what is left to the device");

        dlp_ring_take(ring->page, ring->sequence);
        now_ns = wait->began_ns != 0 ? clock_now_ns() : 0;
        dlp_meter_note_taken(ring->control, ring->page, idx_slot, record->ready_ns, now_ns);
        if (!is_replay)
                dlp_meter_note_wait(ring->page, idx_slot, ring->sequence, record->ready_ns, now_ns);
        dlp_meter_take(ring->page, record->ready_ns, now_ns);
        atomic_store_explicit(&lease->sequence, ring->sequence++, memory_order_relaxed);
        lease->turn = loader->turn;
        if (!is_replay) {
                loader->step++;
                loader->counts.n_batches++;
                client_next_count(&loader->counts, record);
        }
        atomic_fetch_add_explicit(&ring->n_users, 1, memory_order_relaxed);
        atomic_store_explicit(&lease->held, 1, memory_order_release); /* pairs with the exchange in dlc_release() */
        *ret_batch = &lease->batch;
        client_next_look_ahead(ring);
        return 0;
}

/* At an epoch's end: reports it once, then begins the next epoch. */
static int pass_end(struct dlc_loader *loader) {
        int r;

        if (loader->ended) {
                r = dli_cursor_advance(loader);
                if (r < 0)
                        return r;
        }
        if (!dlp_epoch_plan_is_over(&loader->plan, loader->step))
                return 0;
        loader->ended = loader->has_ended = true;
        return DLC_END_OF_EPOCH;
}

static int client_next_next(struct dlc_loader *loader, struct wait *wait, const struct dlc_batch **ret_batch) {
        int r;

        for (;;) {
                bool ready = loader->state != DLI_AWAY && client_next_is_ready(dli_ring_of(loader));

                /* After the look for a batch: if it is of the next epoch, the end of this one was told before it. */
                if (!loader->is_made && loader->plan.n_batches == DLP_UNKNOWN && loader->state != DLI_AWAY)
                        dli_cursor_learn(loader);
                if (dlp_epoch_plan_is_over(&loader->plan, loader->step)) {
                        r = pass_end(loader);
                        if (r != 0)
                                return r;
                }
                if (ready) {
                        r = client_next_take(loader, wait, ret_batch);
                        if (r != PASSED_OVER)
                                return r;
                } else {
                        r = wait_for_batch(loader, wait);
                        if (r < 0)
                                return r;
                }
        }
}

int dlc_next(struct dlc_loader *loader, int timeout_ms, const struct dlc_batch **ret_batch) {
        struct wait wait = { .timeout_ms = timeout_ms };
        int r;

        if (!loader || !ret_batch)
                return dli_refuse(-EINVAL, "dlc_next: loader and ret_batch must not be NULL");
        r = dli_loader_enter(loader, "dlc_next", false);
        if (r < 0)
                return r;
        r = client_next_next(loader, &wait, ret_batch);
        if (r >= 0)
                loader->is_wait_counted = false;
        if (wait.began_ns)
                loader->counts.waited_ns += clock_now_ns() - wait.began_ns;
        return r < 0 && r != -EAGAIN ? dli_report(&loader->reason, r) : r;
}

/* ---- the length of an epoch ------------------------------------------------------------------------------------ */

/* Looks at the next batch without taking it. Returns 0 when the length is known; PASSED_OVER if the batch is of another
 * place; or a final error. */
static int look_at_length(struct dlc_loader *loader) {
        struct dli_ring *ring = dli_ring_of(loader);
        uint32_t idx_slot = dlp_ring_slot(ring->control, ring->sequence);
        const struct dlp_slot_record *record;

        if (idx_slot >= ring->n_slots)
                return client_next_damaged(loader, "the slot");
        record = dlp_slot_record(ring->control, idx_slot);
        if (record->sequence != ring->sequence)
                return client_next_damaged(loader, "the sequence");
        if (record->stream != ring->stream)
                return client_next_pass_over(ring, idx_slot);
        if (record->status == DLP_BATCH_FAILED)
                return job_failed(loader, record);
        if (record->epoch != loader->epoch || !dli_cursor_learn_units(loader, record->epoch_units))
                return client_next_damaged(loader, "the length of the epoch");
        return 0;
}

static int await_length(struct dlc_loader *loader, struct wait *wait) {
        int r = 0;

        while (loader->is_made && loader->plan.n_batches == DLP_UNKNOWN) {
                bool ready = loader->state != DLI_AWAY && client_next_is_ready(dli_ring_of(loader));

                r = ready ? look_at_length(loader) : wait_for_batch(loader, wait);
                if (r < 0)
                        return r;
        }
        return 0;
}

int dlc_await_length(struct dlc_loader *loader, int timeout_ms) {
        struct wait wait = { .timeout_ms = timeout_ms };
        int r = dli_loader_enter(loader, "dlc_await_length", false);

        if (r < 0)
                return r;
        if (loader->ended) /* of the epoch that has ended */
                return 0;
        r = await_length(loader, &wait);
        return r < 0 && r != -EAGAIN ? dli_report(&loader->reason, r) : r;
}
