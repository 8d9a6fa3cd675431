#include "daemon/pipeline/stream.h"

#include <errno.h>
#include <sys/socket.h>

#include "proto/frame.h"

struct order_spec stream_order_spec(const struct stream *stream, uint64_t epoch) {
        return (struct order_spec){ .terms = job_sampler_terms(&stream->job->terms, stream->n_samples, epoch),
                                    .payer = stream->job,
                                    .growth = dataset_source(stream->dataset->dataset)->growth,
                                    .budget = stream->budget,
                                    .sampling = stream->job->sampling,
                                    .batch_size = stream->job->terms.batch_size };
}

static void stream_begin_at(struct stream *stream, uint64_t epoch, uint64_t position) {
        struct dlp_epoch_terms terms = job_epoch_terms(&stream->job->terms, stream->length);

        stream->epoch = epoch;
        stream->step = 0;
        stream->plan = dlp_epoch_plan_make(&terms, stream->rank, position);
}

void stream_next_epoch(struct stream *stream) {
        stream_begin_at(stream, stream->epoch + 1, 0);
        if (stream->epoch >= stream->end_epoch || dlp_epoch_plan_is_over(&stream->plan, 0))
                stream_end(stream);
}

void stream_go_to(struct stream *stream, const struct cursor *cursor) {
        stream_begin_at(stream, cursor->epoch, cursor->position);
        stream->step = cursor->step;
        stream->is_ended = false;
        if (stream->end_epoch <= cursor->epoch)
                stream->end_epoch = cursor->epoch + 1;
        if (dlp_epoch_plan_is_over(&stream->plan, stream->step))
                stream_next_epoch(stream);
}

/* A place that was remembered from a longer stream must not pass for the end of this one. */
static bool stream_is_beyond(const struct stream *stream, uint64_t n_samples) {
        struct why why;

        if (stream->plan.base <= n_samples)
                return false;
        why_set(&why, 0,
                "position: the run was to continue epoch %llu of %s at %llu, but the stream has ended with %llu samples",
                (unsigned long long)stream->epoch, stream->dataset->name, (unsigned long long)stream->plan.base,
                (unsigned long long)n_samples);
        job_fail(stream->job, EBADMSG, why.text);
        return true;
}

void stream_learn_length(struct stream *stream, uint64_t n_samples) {
        struct dlp_epoch_terms terms = job_epoch_terms(&stream->job->terms, n_samples);

        if (stream_is_beyond(stream, n_samples))
                return;
        stream->length = n_samples;
        stream->plan = dlp_epoch_plan_make(&terms, stream->rank, stream->plan.base);
        if (ring_set_length(stream->ring, n_samples))
                stream_wake(stream);
        if (!stream->is_ended && dlp_epoch_plan_is_over(&stream->plan, stream->step))
                stream_next_epoch(stream);
}

int stream_learn_units(struct stream *stream, uint64_t n_units, struct why *why) {
        struct dlp_epoch_terms terms = stream->plan.terms;

        if (stream->plan.base > n_units)
                return why_set(why, -EINVAL,
                               "position: the run was to continue epoch %llu of %s at %llu, but its sampler gives %llu "
                               "positions in that epoch",
                               (unsigned long long)stream->epoch, stream->dataset->name,
                               (unsigned long long)stream->plan.base, (unsigned long long)n_units);
        terms.n_positions = n_units;
        stream->plan = dlp_epoch_plan_make(&terms, stream->rank, stream->plan.base);
        return 0;
}

void stream_end(struct stream *stream) {
        stream->is_ended = true;
        stream->stopped_by = DLP_WAIT_NOTHING;
        order_table_put(stream->order);
        order_table_put(stream->next_order);
        stream->order = stream->next_order = NULL;
}

void stream_wake(struct stream *stream) {
        static const uint8_t wake = DLP_WAKE_BYTE;

        dlp_frame_send(stream->wake_socket, &wake, 1, NULL, 0, MSG_DONTWAIT);
}
