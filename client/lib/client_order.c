/* What an epoch holds, for those who ask before they take its batches: the samples of this rank in their order, and how
 * many batches are left from a place on. Computed here; the daemon is asked for the columns of a sampler and for the
 * dataset's blocks alone. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/loader.h"
#include "proto/order/sampler.h"

#define STEPS_AT_ONCE 65536u

static int refuse_unknown(struct dlc_loader *loader, const char *function) {
        if (loader->info.dataset_samples == DLP_UNKNOWN)
                return why_set(&loader->reason, -EOPNOTSUPP, "%s: %s is a stream that has not ended", function,
                               loader->options.dataset);
        return 0;
}

struct dlp_order_choice dli_order_choice(const struct dlc_options *options) {
        struct dlp_order_choice choice = { .kind = DLP_ORDER_TORCH };
        struct why refused;

        dlp_order_choice_read(options->order, &choice, &refused);
        return choice;
}

struct dlp_sampler_terms dli_sampler_terms(const struct dlc_loader *loader, uint64_t epoch) {
        const struct dlc_options *options = &loader->options;
        struct dlp_sampler_terms terms = { .n_samples = loader->info.dataset_samples,
                                           .seed = options->seed,
                                           .epoch = epoch,
                                           .shuffle = options->shuffle,
                                           .shuffle_buffer = (uint32_t)options->shuffle_buffer };
        struct dlp_order_choice choice = dli_order_choice(options);

        terms.kind = choice.kind;
        terms.window = choice.window;
        terms.blocks = &loader->blocks;
        return terms;
}

/* Of an epoch that steps make; kept until it has been handed out. */
static int client_order_make(struct dlc_loader *loader, uint64_t epoch) {
        struct dli_made made;
        int r;

        if (loader->made.samples && loader->made.epoch == epoch)
                return 0;
        r = dli_made_make(loader, epoch, &made);
        if (r < 0)
                return r;
        free(loader->made.samples);
        loader->made = made;
        return 0;
}

static struct dlp_epoch_plan plan_of(const struct dlc_loader *loader, uint32_t rank) {
        struct dlp_epoch_terms terms = dli_epoch_terms(loader);

        return dlp_epoch_plan_make(&terms, rank, 0);
}

/* Of the orders that are known by their arithmetic. */
static uint64_t count_all(const struct dlc_loader *loader) {
        uint64_t n = 0;

        for (uint32_t rank = 0; rank < (uint32_t)loader->options.world_size; rank++)
                n += plan_of(loader, rank).n_samples;
        return n;
}

static int client_order_begin(struct dlc_loader *loader, const char *function, uint64_t epoch) {
        int r = dli_loader_enter(loader, function, false);

        if (r < 0)
                return r;
        r = refuse_unknown(loader, function);
        if (r == 0 && epoch > DLP_EPOCH_MAX)
                r = why_set(&loader->reason, -EINVAL, "%s: epoch %llu is out of range", function,
                            (unsigned long long)epoch);
        if (r == 0 && loader->is_made)
                r = client_order_make(loader, epoch);
        return r < 0 ? dli_report(&loader->reason, r) : 0;
}

int dlc_epoch_length(struct dlc_loader *loader, uint64_t epoch, uint64_t *ret_n, uint64_t *ret_n_all) {
        int r = client_order_begin(loader, "dlc_epoch_length", epoch);

        if (r < 0)
                return r;
        if (!ret_n || !ret_n_all)
                return dli_report(&loader->reason,
                                  why_set(&loader->reason, -EINVAL, "dlc_epoch_length: no argument may be NULL"));
        *ret_n = loader->is_made ? loader->made.n : plan_of(loader, loader->info.rank).n_samples;
        *ret_n_all = loader->is_made ? loader->made.n_all : count_all(loader);
        return 0;
}

static int client_order_shuffle(struct dlc_loader *loader, uint64_t epoch, const struct dlp_epoch_plan *plan,
                                int64_t *ret_samples) {
        struct dlp_sampler_terms terms = dli_sampler_terms(loader, epoch);
        struct dlp_sampler sampler;
        uint64_t n_bytes;
        void *table;
        int r = dli_samples_blocks(loader);

        if (r < 0)
                return r;
        n_bytes = dlp_sampler_table_bytes(&terms);
        table = calloc(1, n_bytes + 1); /* + 1: never an allocation of 0 bytes */
        if (!table)
                return why_set(&loader->reason, -ENOMEM, "no memory for an order of %llu",
                               (unsigned long long)terms.n_samples);
        dlp_sampler_init(&sampler, &terms, n_bytes > 0 ? table : NULL);
        while (dlp_sampler_advance(&sampler, STEPS_AT_ONCE) < sampler.n_positions)
                ;
        for (uint64_t k = 0; k < plan->n_samples; k++)
                ret_samples[k] = (int64_t)dlp_sampler_at(&sampler, dlp_epoch_plan_position(plan, k));
        free(table);
        return 0;
}

int dlc_epoch_order(struct dlc_loader *loader, uint64_t epoch, int64_t *ret_samples, uint64_t n) {
        struct dlp_epoch_plan plan;
        uint64_t n_there;
        int r = client_order_begin(loader, "dlc_epoch_order", epoch);

        if (r < 0)
                return r;
        plan = plan_of(loader, loader->info.rank);
        n_there = loader->is_made ? loader->made.n : plan.n_samples;
        if (n != n_there || (n > 0 && !ret_samples))
                return dli_report(&loader->reason,
                                  why_set(&loader->reason, -EINVAL,
                                          "dlc_epoch_order: room for %llu samples; an epoch of this rank has %llu",
                                          (unsigned long long)n, (unsigned long long)n_there));
        if (loader->is_made) {
                if (n > 0)
                        memcpy(ret_samples, loader->made.samples, n * sizeof(*ret_samples));
                free(loader->made.samples);
                loader->made.samples = NULL;
                return 0;
        }
        r = n > 0 ? client_order_shuffle(loader, epoch, &plan, ret_samples) : 0;
        return r < 0 ? dli_report(&loader->reason, r) : 0;
}

int dlc_batches_from(struct dlc_loader *loader, uint64_t position, uint64_t *ret_n) {
        struct dlp_epoch_terms terms;
        int r = dli_loader_enter(loader, "dlc_batches_from", false);

        if (r < 0)
                return r;
        if (!ret_n)
                return dli_report(&loader->reason,
                                  why_set(&loader->reason, -EINVAL, "dlc_batches_from: ret_n must not be NULL"));
        terms = dli_epoch_terms(loader);
        if (loader->is_made)
                terms.n_positions = loader->info.epoch_units;
        *ret_n = dlp_epoch_plan_make(&terms, loader->info.rank, position).n_batches;
        return 0;
}
