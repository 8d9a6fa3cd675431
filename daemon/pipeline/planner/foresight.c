#include "daemon/pipeline/planner/foresight.h"

#include <stdlib.h>

#include "daemon/pipeline/catalog/catalog_remote.h"
#include "daemon/pipeline/planner/lookahead.h"
#include "daemon/store/cache/uses.h"

#define TURN_SAMPLES 512u /* looked at for a feed in a turn of the planner's: about a millisecond */

struct foresight {
        struct cached_uses *uses;
        uint64_t n_bytes; /* that are reserved */
        uint64_t epoch, base;
        uint64_t k; /* the sample that is looked at next */
};

static uint64_t foresight_place(const struct feed *feed) {
        return dlp_epoch_plan_batch(&feed->plan, feed->step).first + feed->idx_sample;
}

void foresight_free(struct planner *planner, struct foresight *foresight) {
        if (!foresight)
                return;
        cached_uses_free(foresight->uses);
        budget_release(planner->options.budget, foresight->n_bytes);
        free(foresight);
}

static void foresight_begin(struct planner *planner, struct feed *feed) {
        struct foresight *foresight;
        uint64_t n_bytes;

        if (!cached_wants_uses(feed->dataset->remote->cached, &n_bytes) ||
            budget_reserve(planner->options.budget, n_bytes, "what is needed in an epoch", NULL) < 0)
                return;
        foresight = calloc(1, sizeof(*foresight));
        if (foresight)
                foresight->uses = cached_uses_new(feed->dataset->remote->cached);
        if (!foresight || !foresight->uses) {
                budget_release(planner->options.budget, n_bytes);
                free(foresight);
                return;
        }
        foresight->n_bytes = n_bytes;
        foresight->epoch = feed->epoch;
        foresight->base = feed->plan.base;
        foresight->k = foresight_place(feed);
        feed->foresight = foresight;
}

/* Does another job need the same origin? */
static bool is_shared(const struct planner *planner, const struct feed *feed) {
        const struct feed *other;

        TAILQ_FOREACH(other, &planner->feeds, entry)
                if (other->job != feed->job && !other->is_ended && other->dataset->remote &&
                    other->dataset->remote->cached == feed->dataset->remote->cached)
                        return true;
        return false;
}

static bool foresight_look_on(struct feed *feed) {
        struct foresight *foresight = feed->foresight;
        const struct remote *remote = feed->dataset->remote;

        for (uint32_t i = 0; i < TURN_SAMPLES && foresight->k < feed->plan.n_samples; i++) {
                struct source_read reads[DLP_TENSORS_MAX];
                char path[SOURCE_NAME_SIZE];
                uint64_t index;
                uint32_t n;

                if (order_table_at(feed->order, dlp_epoch_plan_position(&feed->plan, foresight->k), &index) != 0)
                        return false;
                n = lookahead_reads(feed, index, reads);
                for (uint32_t k = 0; k < n; k++)
                        cached_uses_add(foresight->uses, remote->folder, lookahead_path(&reads[k], path),
                                        reads[k].begin, reads[k].end - reads[k].begin, (uint32_t)foresight->k);
                foresight->k++;
        }
        return foresight->k < feed->plan.n_samples;
}

static bool foresight_of(struct planner *planner, struct feed *feed) {
        bool is_of_use = !feed->is_ended && feed->dataset->remote && feed->order && feed->order_epoch == feed->epoch &&
                         feed->plan.n_batches != DLP_UNKNOWN && !feed->job->terms.is_made &&
                         feed->plan.n_samples < UINT32_MAX && is_shared(planner, feed);

        if (feed->foresight &&
            (!is_of_use || feed->foresight->epoch != feed->epoch || feed->foresight->base != feed->plan.base)) {
                foresight_free(planner, feed->foresight);
                feed->foresight = NULL;
        }
        if (is_of_use && !feed->foresight)
                foresight_begin(planner, feed);
        if (!feed->foresight)
                return false;
        cached_uses_at(feed->foresight->uses, (uint32_t)foresight_place(feed), (uint32_t)feed->plan.n_samples,
                       lookahead_batch_ns(planner, feed) / feed->batch_samples);
        return foresight_look_on(feed);
}

bool foresight_go_on(struct planner *planner) {
        struct feed *feed;
        bool has_more = false;

        TAILQ_FOREACH(feed, &planner->feeds, entry)
                has_more |= foresight_of(planner, feed);
        return has_more;
}
