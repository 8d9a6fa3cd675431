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
        bool is_in_next; /* it has seen all of this epoch, and looks at the next one */
        uint64_t k;      /* the sample that is looked at next */
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

static void look_at_sample(struct feed *feed, uint64_t sample) {
        struct foresight *foresight = feed->foresight;
        struct source_read reads[DLP_TENSORS_MAX];
        char path[SOURCE_NAME_SIZE];
        uint32_t n = lookahead_reads(feed, sample, reads);

        for (uint32_t i = 0; i < n; i++)
                cached_uses_add(foresight->uses, foresight->is_in_next, feed->dataset->remote->folder,
                                lookahead_path(&reads[i], path), reads[i].begin, reads[i].end - reads[i].begin,
                                (uint32_t)foresight->k);
}

static bool foresight_look_on(struct feed *feed) {
        struct foresight *foresight = feed->foresight;
        struct dlp_epoch_plan plan = feed->plan;
        struct order_table *order = feed->order_epoch == feed->epoch ? feed->order : NULL;
        uint64_t index;

        if (!foresight->is_in_next && foresight->k >= plan.n_samples) {
                foresight->is_in_next = true;
                foresight->k = 0;
        }
        if (foresight->is_in_next) {
                plan = dlp_epoch_plan_make(&plan.terms, feed->rank, 0);
                order = order ? feed->next_order : NULL;
        }
        if (!order)
                return false;
        for (uint32_t i = 0; i < TURN_SAMPLES && foresight->k < plan.n_samples; i++) {
                if (order_table_at(order, dlp_epoch_plan_position(&plan, foresight->k), &index) != 0)
                        return false;
                look_at_sample(feed, index);
                foresight->k++;
        }
        return foresight->k < plan.n_samples || !foresight->is_in_next;
}

/* What was the next epoch is this one. False: it went elsewhere, or so far that nothing of what was seen is of use. */
static bool foresight_follow(struct feed *feed) {
        struct foresight *foresight = feed->foresight;

        if (foresight->epoch == feed->epoch)
                return foresight->base == feed->plan.base;
        if (foresight->epoch + 1 != feed->epoch || !foresight->is_in_next || feed->plan.base != 0)
                return false;
        cached_uses_turn(foresight->uses);
        foresight->epoch++;
        foresight->base = 0;
        foresight->is_in_next = false;
        return true;
}

static bool foresight_of(struct planner *planner, struct feed *feed) {
        bool is_of_use = !feed->is_ended && feed->dataset->remote && feed->plan.n_batches != DLP_UNKNOWN &&
                         !feed->job->terms.is_made && feed->plan.n_samples < UINT32_MAX && is_shared(planner, feed);

        if (feed->foresight && (!is_of_use || !foresight_follow(feed))) {
                foresight_free(planner, feed->foresight);
                feed->foresight = NULL;
        }
        if (is_of_use && !feed->foresight)
                foresight_begin(planner, feed);
        if (!feed->foresight)
                return false;
        cached_uses_at(feed->foresight->uses,
                       &(struct dlp_uses_place){ .k = (uint32_t)foresight_place(feed),
                                                 .n_samples = (uint32_t)feed->plan.n_samples,
                                                 .sample_ns = lookahead_batch_ns(planner, feed) / feed->batch_samples,
                                                 .is_last_epoch = feed->epoch + 1 >= feed->end_epoch });
        return foresight_look_on(feed);
}

bool foresight_go_on(struct planner *planner) {
        struct feed *feed;
        bool has_more = false;

        TAILQ_FOREACH(feed, &planner->feeds, entry)
                has_more |= foresight_of(planner, feed);
        return has_more;
}
