/* Where the loader is: an epoch, the global position at which the epoch begins for this loader, and a step from there.
 * The daemon makes epochs in sequence, so the next epoch needs no request. Any other move is a seek: the daemon gives
 * the batches after a seek a new stream number, and the client skips batches that have an old number. While the daemon
 * is away a seek only moves the cursor, and the loader later attaches there. The epoch plan says where batches begin
 * and end. */

#include <errno.h>
#include <stdlib.h>

#include "client/lib/loader.h"
#include "proto/order/making/order_text.h"
#include "proto/ring.h"

/* ---- the plan ------------------------------------------------------------------------------------------------ */

static struct dlp_epoch_terms cursor_terms_of(const struct dlc_options *options, uint64_t n_samples) {
        struct dlp_sampler_terms sampler = { .n_samples = n_samples,
                                             .seed = options->seed,
                                             .shuffle = options->shuffle,
                                             .shuffle_buffer = (uint32_t)options->shuffle_buffer };
        struct dlp_epoch_terms terms = { .world = (uint32_t)options->world_size,
                                         .batch_size = (uint32_t)options->batch_size,
                                         .drop_last = options->drop_last };

        sampler.kind = dli_order_choice(options).kind;
        dlp_dealing_from_name(options->dealing, &terms.dealing);
        dlp_partition_from_name(options->partition, &terms.partition);
        terms.n_positions = dlp_sampler_n_positions(&sampler);
        return terms;
}

struct dlp_epoch_terms dli_epoch_terms(const struct dlc_loader *loader) {
        struct dlp_epoch_terms terms = cursor_terms_of(&loader->options, loader->info.dataset_samples);

        if (loader->is_made)
                terms.n_positions = DLP_UNKNOWN;
        if (loader->deals_batches)
                terms.batch_size = 1;
        return terms;
}

void dli_cursor_set(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        struct dlp_epoch_terms terms = dli_epoch_terms(loader);

        loader->epoch = epoch;
        loader->step = 0;
        loader->ended = false;
        loader->plan = dlp_epoch_plan_make(&terms, loader->info.rank, position);
}

bool dli_cursor_learn(struct dlc_loader *loader) {
        uint64_t n_samples = dlp_ring_length(dli_ring_of(loader)->control);
        struct dlc_info *info = &loader->info;
        struct dlp_epoch_terms terms;
        struct dlp_epoch_plan whole;

        if (n_samples > DLP_SAMPLES_MAX || n_samples < loader->plan.base) /* the daemon ends such a run */
                return false;
        terms = cursor_terms_of(&loader->options, n_samples);
        loader->plan = dlp_epoch_plan_make(&terms, info->rank, loader->plan.base);
        whole = dlp_epoch_plan_make(&terms, info->rank, 0);
        info->dataset_samples = n_samples;
        info->epoch_samples = whole.n_samples;
        info->epoch_batches = whole.n_batches;
        return true;
}

/* Samples of units that have several are not counted: only the daemon knows them. */
static void say_length(struct dlc_loader *loader, const struct dlp_epoch_terms *terms) {
        struct dlp_epoch_plan whole = dlp_epoch_plan_make(terms, loader->info.rank, 0);

        loader->info.epoch_units = terms->n_positions;
        loader->info.epoch_samples = loader->has_units ? DLP_UNKNOWN : whole.n_samples;
        loader->info.epoch_batches = whole.n_batches;
}

bool dli_cursor_learn_units(struct dlc_loader *loader, uint64_t n_units) {
        struct dlp_epoch_terms terms = dli_epoch_terms(loader);

        if (n_units > DLP_SAMPLES_MAX || n_units < loader->plan.base)
                return false;
        terms.n_positions = n_units;
        loader->plan = dlp_epoch_plan_make(&terms, loader->info.rank, loader->plan.base);
        say_length(loader, &terms);
        return true;
}

/* ---- requesting a seek --------------------------------------------------------------------------------------- */

static int cursor_ask(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
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
                return -EREMOTEIO; /* a seek does not wait; the text says what is not ready */
        if (r == -ECONNRESET)
                return dli_restart_lost(loader, r);
        if (r == -ETIMEDOUT || r == -EPROTO)
                return dli_loader_fail(loader, r); /* the daemon's position is unknown now */
        if (r < 0)
                return r;
        if (reply->body_case == DLP__REPLY__BODY_SOUGHT)
                dli_ring_of(loader)->stream = reply->sought->stream;
        else
                r = why_set(&loader->reason, -EPROTO, "the daemon at %s answered another question",
                            loader->connection.path);
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

static int seek(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        int r = 0;

        /* A rank that never has samples has no batches to seek. */
        if (loader->state == DLI_ATTACHED && (loader->info.epoch_batches > 0 || loader->is_made))
                r = cursor_ask(loader, epoch, position);
        if (r < 0)
                return r;
        if (loader->state != DLI_ATTACHED) /* the batches that the old daemon left belong to the old position */
                dli_restart_move(loader);
        dli_cursor_set(loader, epoch, position);
        return 0;
}

/* ---- moving the cursor --------------------------------------------------------------------------------------- */

int dli_cursor_advance(struct dlc_loader *loader) {
        if (loader->epoch >= DLP_EPOCH_MAX)
                return why_set(&loader->reason, -EINVAL, "epoch: %llu was the last one", DLP_EPOCH_MAX);
        if (loader->epoch + 1 >= loader->prepared_until)
                return seek(loader, loader->epoch + 1, 0);
        dli_cursor_set(loader, loader->epoch + 1, 0); /* the daemon continues with the next epoch without a request */
        return 0;
}

static int cursor_go_to(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        int r;

        if (epoch > DLP_EPOCH_MAX)
                return why_set(&loader->reason, -EINVAL, "epoch: %llu; 0 to %llu are allowed",
                               (unsigned long long)epoch, DLP_EPOCH_MAX);
        if (position > (loader->is_made ? DLP_SAMPLES_MAX : loader->info.dataset_samples))
                return why_set(&loader->reason, -EINVAL, "position: %llu; 0 to %llu, the samples of %s, are allowed",
                               (unsigned long long)position, (unsigned long long)loader->info.dataset_samples,
                               loader->options.dataset);
        if (epoch == loader->epoch && position == loader->plan.base && loader->step == 0 && !loader->ended)
                return 0;
        if (epoch == loader->epoch + 1 && position == 0 && dlp_epoch_plan_is_over(&loader->plan, loader->step))
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
        r = cursor_go_to(loader, epoch, 0);
        return r < 0 ? dli_report(&loader->reason, r) : 0;
}

int dlc_seek(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        int r = dli_loader_enter(loader, "dlc_seek", false);

        if (r < 0)
                return r;
        r = cursor_go_to(loader, epoch, position);
        return r < 0 ? dli_report(&loader->reason, r) : 0;
}

/* ---- the cursor for the caller ------------------------------------------------------------------------------- */

/* The first of the batches that are held since the last seek. Only this thread hands out batches, so the fields of a
 * lease do not change meanwhile. Another thread may release the batch during the search; the answer is then as of a
 * moment earlier. */
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
                                  why_set(&loader->reason, -EINVAL,
                                          "dlc_get_cursor: ret_epoch and ret_position must not be NULL"));
        held = first_held(loader);
        *ret_epoch = held ? held->batch.epoch : loader->epoch + (loader->ended ? 1 : 0);
        *ret_position = held            ? held->position
                        : loader->ended ? 0
                                        : dlp_epoch_plan_position_after(&loader->plan, loader->step);
        return 0;
}

/* ---- computing a cursor without a daemon --------------------------------------------------------------------- */

/* With a sampler n_samples is the number of positions, which its steps have made. */
static int cursor_terms(const struct dlc_options *options, uint64_t n_samples, struct why *reason,
                        struct dlp_epoch_terms *ret_terms) {
        struct dlp_order_text *text;
        int r;

        *ret_terms = cursor_terms_of(options, n_samples);
        if (!options->sampler || !*options->sampler)
                return 0;
        text = malloc(sizeof(*text));
        if (!text)
                return why_errno(reason, -ENOMEM, "sampler");
        r = dlp_order_text_parse(options->sampler, text, reason);
        if (r == 0) {
                const struct dlp_step *grouper = dlp_order_text_grouper(text);

                ret_terms->n_positions = n_samples;
                if (grouper && grouper->type->is_batch)
                        ret_terms->batch_size = 1;
        }
        free(text);
        return r;
}

static int cursor_after(const struct dlc_options *options, uint64_t n_samples, struct why *reason, uint64_t n_batches,
                        uint64_t *epoch, uint64_t *position) {
        uint64_t end_epoch, end_position;
        struct dlc_options resolved;
        struct dlp_epoch_terms terms;
        struct dli_launch launch;
        int r;

        r = dli_options_resolve(options, reason, &resolved, &launch);
        if (r < 0)
                return r;
        if (n_samples > DLP_SAMPLES_MAX && n_samples != DLP_UNKNOWN)
                return why_set(reason, -EINVAL, "n_samples: %llu; 0 to %llu are allowed", (unsigned long long)n_samples,
                               DLP_SAMPLES_MAX);
        r = cursor_terms(&resolved, n_samples, reason, &terms);
        if (r < 0)
                return r;
        if (*position > terms.n_positions)
                return why_set(reason, -EINVAL, "position: %llu; 0 to %llu, the samples of %s, are allowed",
                               (unsigned long long)*position, (unsigned long long)terms.n_positions, resolved.dataset);
        dlp_epoch_advance(&terms, *epoch, *position, n_batches, &end_epoch, &end_position);
        if (*epoch > DLP_EPOCH_MAX || end_epoch > DLP_EPOCH_MAX + 1)
                return why_set(reason, -EINVAL, "epoch: %llu; 0 to %llu are allowed",
                               (unsigned long long)(*epoch > DLP_EPOCH_MAX ? *epoch : end_epoch), DLP_EPOCH_MAX);
        *epoch = end_epoch;
        *position = end_position;
        return 0;
}

int dlc_cursor_after(const struct dlc_options *options, uint64_t n_samples, uint64_t epoch, uint64_t position,
                     uint64_t n_batches, uint64_t *ret_epoch, uint64_t *ret_position) {
        struct why reason = { "" };
        int r;

        if (!options || !ret_epoch || !ret_position)
                return dli_refuse(-EINVAL, "dlc_cursor_after: options, ret_epoch and ret_position must not be NULL");
        r = cursor_after(options, n_samples, &reason, n_batches, &epoch, &position);
        if (r < 0)
                return dli_report(&reason, r);
        *ret_epoch = epoch;
        *ret_position = position;
        return 0;
}
