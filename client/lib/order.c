/* What an epoch holds, for those who ask before they take its batches: the samples of this rank in their order, and how
 * many batches are left from a place on. Computed here; the daemon is not asked. */

#include <errno.h>
#include <stdlib.h>

#include "client/lib/loader.h"
#include "proto/order/sampler.h"

#define STEPS_AT_ONCE 65536u

static int refuse_unknown(struct dlc_loader *loader, const char *function) {
        const struct dlc_info *info = &loader->info;

        if (loader->is_made)
                return why_set(&loader->reason, -EOPNOTSUPP,
                               "%s: the daemon makes the order of a sampler, and only its batches show it: take "
                               "batch->indices, or look with dlctl order",
                               function);
        if (info->dataset_samples == DLP_UNKNOWN)
                return why_set(&loader->reason, -EOPNOTSUPP, "%s: %s is a stream that has not ended", function,
                               loader->options.dataset);
        return 0;
}

static struct dlp_sampler_terms terms_of(const struct dlc_loader *loader, uint64_t epoch) {
        const struct dlc_options *options = &loader->options;
        struct dlp_sampler_terms terms = { .n_samples = loader->info.dataset_samples,
                                           .seed = options->seed,
                                           .epoch = epoch,
                                           .shuffle = options->shuffle,
                                           .shuffle_buffer = (uint32_t)options->shuffle_buffer };

        dlp_order_kind_from_name(options->order, &terms.kind);
        return terms;
}

int dlc_epoch_order(struct dlc_loader *loader, uint64_t epoch, int64_t *ret_samples, uint64_t n) {
        struct dlp_sampler_terms terms;
        struct dlp_epoch_terms epoch_terms;
        struct dlp_epoch_plan plan;
        struct dlp_sampler sampler;
        uint64_t n_bytes;
        void *table;
        int r = dli_loader_enter(loader, "dlc_epoch_order", false);

        if (r < 0)
                return r;
        r = refuse_unknown(loader, "dlc_epoch_order");
        if (r < 0)
                return dli_report(&loader->reason, r);
        epoch_terms = dli_epoch_terms(loader);
        plan = dlp_epoch_plan_make(&epoch_terms, loader->info.rank, 0);
        if (n != plan.n_samples || (n > 0 && !ret_samples))
                return dli_report(&loader->reason,
                                  why_set(&loader->reason, -EINVAL,
                                          "dlc_epoch_order: room for %llu samples; an epoch of this rank has %llu",
                                          (unsigned long long)n, (unsigned long long)plan.n_samples));
        if (n == 0)
                return 0;
        terms = terms_of(loader, epoch);
        n_bytes = dlp_sampler_table_bytes(&terms);
        table = calloc(1, n_bytes + 1); /* + 1: never an allocation of 0 bytes */
        if (!table)
                return dli_report(&loader->reason, why_set(&loader->reason, -ENOMEM, "no memory for an order of %llu",
                                                           (unsigned long long)terms.n_samples));
        dlp_sampler_init(&sampler, &terms, n_bytes > 0 ? table : NULL);
        while (dlp_sampler_advance(&sampler, STEPS_AT_ONCE) < sampler.n_positions)
                ;
        for (uint64_t k = 0; k < n; k++)
                ret_samples[k] = (int64_t)dlp_sampler_at(&sampler, dlp_epoch_plan_position(&plan, k));
        free(table);
        return 0;
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
