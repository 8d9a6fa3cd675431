/* Where the loader is: an epoch, the global position at which it begins for us, and a step behind it. The daemon makes
 * epochs in sequence, so moving on costs nothing; anything else is a seek: the daemon numbers its batches' streams, and
 * what it had made for the old place is passed over by its number. While the daemon is away a seek only moves the
 * cursor, and the loader attaches there again. */

#include <errno.h>

#include "client/lib/loader.h"

/* ---- arithmetic ---------------------------------------------------------------------------------------------- */

static uint64_t steps_of(const struct dlc_loader *loader, uint32_t rank, uint64_t position) {
        const struct dlc_info *info = &loader->info;
        uint64_t n_samples = dlp_order_rank_samples(info->dataset_samples - position, info->world_size, rank,
                                                    loader->partition);

        return dlp_order_rank_batches(n_samples, info->batch_size, loader->options.drop_last);
}

void dli_cursor_set(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        loader->epoch = epoch;
        loader->base = position;
        loader->step = 0;
        loader->ended = false;
        loader->n_batches = steps_of(loader, loader->info.rank, position);
        loader->most_steps = steps_of(loader, 0, position); /* nobody has more than the first rank */
}

/* Behind the last step of all ranks nothing is left, whatever drop_last or the partition left out. A rank that has one
 * batch less than another is not there yet: its position is the others'. Sums stay below 2^63 (proto/limits.h). */
uint64_t dli_cursor_position(const struct dlc_loader *loader, uint64_t step) {
        uint64_t position = loader->base + step * loader->step_samples;

        if (step > 0 && step >= loader->most_steps)
                return loader->n_samples;
        return position < loader->n_samples ? position : loader->n_samples;
}

/* ---- asking -------------------------------------------------------------------------------------------------- */

static int ask(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        Dlp__Seek body = DLP__SEEK__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        body.epoch = epoch;
        body.position = position;
        request.body_case = DLP__REQUEST__BODY_SEEK;
        request.seek = &body;
        r = dli_connection_call(&loader->connection, &request, DLI_ANSWER_TIMEOUT_MS, &loader->reason, &reply, NULL, 0);
        if (r == DLI_ASK_AGAIN)
                return -EREMOTEIO; /* nobody waits in the middle of a run; the text says for what */
        if (r == -ECONNRESET)
                return dli_restart_lost(loader, r);
        if (r == -ETIMEDOUT || r == -EPROTO)
                return dli_loader_fail(loader, r); /* where the daemon goes on now is not known */
        if (r < 0)
                return r;
        if (reply->body_case == DLP__REPLY__BODY_SOUGHT)
                dli_ring_of(loader)->stream = reply->sought->stream;
        else
                r = dli_reason_set(&loader->reason, -EPROTO, "the daemon at %s answered another question",
                                   loader->connection.path);
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

static int seek(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        int r = 0;

        /* A rank that never has samples has nothing to be sought. */
        if (loader->state == DLI_ATTACHED && loader->info.epoch_batches > 0)
                r = ask(loader, epoch, position);
        if (r < 0)
                return r;
        if (loader->state != DLI_ATTACHED) /* what the old daemon left behind belongs to the old place */
                dli_restart_leave(loader);
        dli_cursor_set(loader, epoch, position);
        return 0;
}

/* ---- moving -------------------------------------------------------------------------------------------------- */

int dli_cursor_advance(struct dlc_loader *loader) {
        if (loader->epoch >= DLP_EPOCH_MAX)
                return dli_reason_set(&loader->reason, -EINVAL, "epoch: %llu was the last one", DLP_EPOCH_MAX);
        if (loader->epoch + 1 >= loader->prepared_until)
                return seek(loader, loader->epoch + 1, 0);
        dli_cursor_set(loader, loader->epoch + 1, 0); /* the daemon gets there by itself */
        return 0;
}

static int go_to(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        int r;

        if (epoch > DLP_EPOCH_MAX)
                return dli_reason_set(&loader->reason, -EINVAL, "epoch: %llu; 0 to %llu are allowed",
                                      (unsigned long long)epoch, DLP_EPOCH_MAX);
        if (position > loader->info.dataset_samples)
                return dli_reason_set(&loader->reason, -EINVAL,
                                      "position: %llu; 0 to %llu, the samples of %s, are allowed",
                                      (unsigned long long)position, (unsigned long long)loader->info.dataset_samples,
                                      loader->options.dataset);
        if (epoch == loader->epoch && position == loader->base && loader->step == 0 && !loader->ended)
                return 0;
        if (epoch == loader->epoch + 1 && position == 0 && loader->step == loader->n_batches)
                return dli_cursor_advance(loader);
        r = seek(loader, epoch, position);
        if (r == 0)
                loader->turn++;
        return r;
}

int dlc_set_epoch(struct dlc_loader *loader, uint64_t epoch) {
        int r = dli_loader_enter(loader, "dlc_set_epoch", false);

        if (r < 0)
                return r;
        r = go_to(loader, epoch, 0);
        return r < 0 ? dli_report(&loader->reason, r) : 0;
}

int dlc_seek(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        int r = dli_loader_enter(loader, "dlc_seek", false);

        if (r < 0)
                return r;
        r = go_to(loader, epoch, position);
        return r < 0 ? dli_report(&loader->reason, r) : 0;
}

/* ---- telling ------------------------------------------------------------------------------------------------- */

/* The first of the batches that are held, of this turn. Only this thread hands out, so that a lease's fields stand
 * still; whether it is held may change under us, which is as if we had been asked a moment earlier. */
static const struct dli_lease *first_held(const struct dlc_loader *loader) {
        const struct dli_lease *first = NULL;

        for (const struct dli_ring *ring = dli_ring_of(loader); ring; ring = ring->older)
                for (uint32_t i = 0; i < ring->n_slots; i++) {
                        const struct dli_lease *lease = &ring->leases[i];

                        if (atomic_load_explicit(&lease->held, memory_order_acquire) && lease->turn == loader->turn &&
                            (!first || lease->batch.sequence < first->batch.sequence))
                                first = lease;
                }
        return first;
}

int dlc_get_cursor(struct dlc_loader *loader, uint64_t *ret_epoch, uint64_t *ret_position) {
        const struct dli_lease *held;
        int r = dli_loader_enter(loader, "dlc_get_cursor", true);

        if (r < 0)
                return r;
        if (!ret_epoch || !ret_position)
                return dli_report(&loader->reason,
                                  dli_reason_set(&loader->reason, -EINVAL,
                                                 "dlc_get_cursor: ret_epoch and ret_position must not be NULL"));
        held = first_held(loader);
        *ret_epoch = held ? held->batch.epoch : loader->epoch + (loader->ended ? 1 : 0);
        *ret_position = held ? held->position : loader->ended ? 0 : dli_cursor_position(loader, loader->step);
        return 0;
}
