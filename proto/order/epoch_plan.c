#include "proto/order/epoch_plan.h"

/* The number of batches that n_samples of a rank make. */
static uint64_t batches_of(const struct dlp_epoch_terms *terms, uint64_t n_samples) {
        if (n_samples == DLP_UNKNOWN || terms->batch_size == 0)
                return n_samples == DLP_UNKNOWN ? DLP_UNKNOWN : 0;
        return n_samples / terms->batch_size + (!terms->drop_last && n_samples % terms->batch_size > 0);
}

static uint32_t epoch_plan_block_of(const struct dlp_epoch_terms *terms) {
        return dlp_dealing_block(terms->dealing, terms->batch_size);
}

static uint64_t epoch_plan_samples_of(const struct dlp_epoch_terms *terms, uint32_t rank, uint64_t base) {
        if (terms->n_positions == DLP_UNKNOWN)
                return DLP_UNKNOWN;
        return dlp_dealing_count(base < terms->n_positions ? terms->n_positions - base : 0, terms->world, rank,
                                 epoch_plan_block_of(terms), terms->partition);
}

struct dlp_epoch_plan dlp_epoch_plan_make(const struct dlp_epoch_terms *terms, uint32_t rank, uint64_t base) {
        struct dlp_epoch_plan plan = {
                .terms = *terms,
                .base = base,
                .rank = rank,
                .block = epoch_plan_block_of(terms),
        };

        plan.n_samples = epoch_plan_samples_of(terms, rank, base);
        plan.n_batches = batches_of(terms, plan.n_samples);
        plan.n_steps = batches_of(terms,
                                  epoch_plan_samples_of(terms, 0, base)); /* no rank has more than the first one */
        return plan;
}

uint64_t dlp_epoch_plan_needs(const struct dlp_epoch_plan *plan, uint64_t step) {
        return plan->base + dlp_dealing_after((step + 1) * plan->terms.batch_size, plan->terms.world);
}

bool dlp_epoch_may_repeat(const struct dlp_epoch_terms *terms) {
        return terms->partition == DLP_PARTITION_PAD && epoch_plan_block_of(terms) > 1 &&
               (terms->n_positions == DLP_UNKNOWN || terms->n_positions < terms->batch_size);
}

bool dlp_epoch_is_end(const struct dlp_epoch_terms *terms, uint64_t position) {
        return terms->n_positions != DLP_UNKNOWN && position >= terms->n_positions;
}

bool dlp_epoch_is_dealt_alike(const struct dlp_epoch_terms *terms, uint64_t a, uint64_t b) {
        return dlp_dealing_is_alike(a, b, terms->world, epoch_plan_block_of(terms));
}

void dlp_epoch_advance(const struct dlp_epoch_terms *terms, uint64_t epoch, uint64_t position, uint64_t n_steps,
                       uint64_t *ret_epoch, uint64_t *ret_position) {
        struct dlp_epoch_plan plan = dlp_epoch_plan_make(terms, 0, position);
        uint64_t n_epoch_steps;

        if (!dlp_epoch_is_end(terms, position) && (n_steps == 0 || n_steps < plan.n_steps)) {
                *ret_epoch = epoch;
                *ret_position = dlp_epoch_plan_position_after(&plan, n_steps);
                return;
        }
        if (position > 0) { /* the first epoch has only the rest; the others are whole */
                n_steps -= plan.n_steps;
                epoch++;
        }
        plan = dlp_epoch_plan_make(terms, 0, 0);
        n_epoch_steps = plan.n_steps > 0 ? plan.n_steps : 1;
        *ret_epoch = epoch + n_steps / n_epoch_steps;
        *ret_position = dlp_epoch_plan_position_after(&plan, n_steps % n_epoch_steps);
}
