#include "daemon/pipeline/feed.h"

#include <errno.h>
#include <sys/socket.h>

#include "proto/frame.h"

struct order_spec feed_order_spec(const struct feed *feed, uint64_t epoch) {
        struct dlp_sampler_terms terms = job_sampler_terms(&feed->job->terms, feed->n_samples, epoch);
        struct sampling *sampling = feed->job->sampling;

        struct growth *growth = dataset_source(feed->dataset->dataset)->growth;

        if (sampling && sampling->wants_blocks)
                terms.blocks = &sampling->blocks;
        else if (growth)
                terms.blocks = growth_blocks(growth);
        return (struct order_spec){ .terms = terms,
                                    .payer = feed->job,
                                    .growth = growth,
                                    .budget = feed->budget,
                                    .sampling = feed->job->terms.is_made ? sampling : NULL,
                                    .batch_size = feed->job->terms.batch_size };
}

static void feed_begin_at(struct feed *feed, uint64_t epoch, uint64_t position) {
        struct dlp_epoch_terms terms = job_epoch_terms(&feed->job->terms, feed->length);

        feed->epoch = epoch;
        feed->step = 0;
        feed->plan = dlp_epoch_plan_make(&terms, feed->rank, position);
}

void feed_next_epoch(struct feed *feed) {
        feed_begin_at(feed, feed->epoch + 1, 0);
        if (feed->epoch >= feed->end_epoch || dlp_epoch_plan_is_over(&feed->plan, 0))
                feed_end(feed);
}

void feed_go_to(struct feed *feed, const struct cursor *cursor) {
        feed_begin_at(feed, cursor->epoch, cursor->position);
        feed->step = cursor->step;
        feed->ahead = (struct feed_ahead){ 0 };
        feed->is_ended = false;
        if (feed->end_epoch <= cursor->epoch)
                feed->end_epoch = cursor->epoch + 1;
        if (dlp_epoch_plan_is_over(&feed->plan, feed->step))
                feed_next_epoch(feed);
}

/* A place that was remembered from a longer stream must not pass for the end of this one. */
static bool feed_is_beyond(const struct feed *feed, uint64_t n_samples) {
        struct why why;

        if (feed->plan.base <= n_samples)
                return false;
        why_set(&why, 0,
                "position: the run was to continue epoch %llu of %s at %llu, but the stream has ended with %llu samples",
                (unsigned long long)feed->epoch, feed->dataset->name, (unsigned long long)feed->plan.base,
                (unsigned long long)n_samples);
        job_fail(feed->job, EBADMSG, why.text);
        return true;
}

void feed_learn_length(struct feed *feed, uint64_t n_samples) {
        struct dlp_epoch_terms terms = job_epoch_terms(&feed->job->terms, n_samples);

        if (feed_is_beyond(feed, n_samples))
                return;
        feed->length = n_samples;
        feed->plan = dlp_epoch_plan_make(&terms, feed->rank, feed->plan.base);
        if (ring_set_length(feed->ring, n_samples))
                feed_wake(feed);
        if (!feed->is_ended && dlp_epoch_plan_is_over(&feed->plan, feed->step))
                feed_next_epoch(feed);
}

int feed_learn_units(struct feed *feed, uint64_t n_units, struct why *why) {
        struct dlp_epoch_terms terms = feed->plan.terms;

        if (feed->plan.base > n_units)
                return why_set(why, -EINVAL,
                               "position: the run was to continue epoch %llu of %s at %llu, but its sampler gives %llu "
                               "positions in that epoch",
                               (unsigned long long)feed->epoch, feed->dataset->name,
                               (unsigned long long)feed->plan.base, (unsigned long long)n_units);
        terms.n_positions = n_units;
        feed->plan = dlp_epoch_plan_make(&terms, feed->rank, feed->plan.base);
        return 0;
}

void feed_end(struct feed *feed) {
        feed->is_ended = true;
        feed->stopped_by = DLP_WAIT_NOTHING;
        order_table_put(feed->order);
        order_table_put(feed->next_order);
        feed->order = feed->next_order = NULL;
}

void feed_wake(struct feed *feed) {
        static const uint8_t wake = DLP_WAKE_BYTE;

        dlp_frame_send(feed->wake_socket, &wake, 1, NULL, 0, MSG_DONTWAIT);
}
