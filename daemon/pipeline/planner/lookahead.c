#include "daemon/pipeline/planner/lookahead.h"

#include <errno.h>
#include <limits.h>

#include "daemon/base/number_rows.h"
#include "daemon/pipeline/catalog/catalog_remote.h"
#include "proto/base/clock.h"

#define TURN_SAMPLES 256u /* looked at in a turn of the planner's: less than a millisecond */
#define PIECES_MAX   16u  /* of a gathered field */

/* Where a look has come to, and the order and plan there. */
struct ahead_place {
        struct feed *feed;
        struct dlp_epoch_plan plan;
        struct order_table *order;
        struct dlp_plan_batch batch;
};

uint64_t lookahead_batch_ns(const struct planner *planner, const struct feed *feed) {
        return feed->ring->consume_ns > planner->making_ns ? feed->ring->consume_ns : planner->making_ns;
}

/* From the batch that is planned next: in batches. Across an epoch's end, what is left of it counts. */
static uint64_t batches_ahead(const struct feed *feed) {
        if (feed->ahead.epoch == feed->epoch)
                return feed->ahead.step - feed->step;
        return feed->plan.n_batches - feed->step + feed->ahead.step;
}

static bool is_behind(const struct feed *feed) {
        return feed->ahead.epoch < feed->epoch || (feed->ahead.epoch == feed->epoch && feed->ahead.step < feed->step);
}

/* How long the next epoch is of an order that a sampler makes is known when it is made. */
static bool may_enter(const struct feed *feed, uint64_t epoch) {
        return epoch < feed->end_epoch && feed->length != DLP_UNKNOWN && !feed->job->terms.is_made;
}

/* Returns false if nothing is known of it yet. */
static bool lookahead_place(struct feed *feed, struct ahead_place *ret_place) {
        struct feed_ahead *ahead = &feed->ahead;

        if (is_behind(feed))
                *ahead =
                        (struct feed_ahead){ .epoch = feed->epoch, .step = feed->step, .idx_sample = feed->idx_sample };
        if (ahead->epoch == feed->epoch && feed->plan.n_batches != DLP_UNKNOWN &&
            dlp_epoch_plan_is_over(&feed->plan, ahead->step) && may_enter(feed, feed->epoch + 1))
                *ahead = (struct feed_ahead){ .epoch = feed->epoch + 1 };
        *ret_place = (struct ahead_place){ .feed = feed, .plan = feed->plan, .order = feed->order };
        if (ahead->epoch != feed->epoch) {
                ret_place->plan = dlp_epoch_plan_make(&feed->plan.terms, feed->rank, 0);
                ret_place->order = feed->next_order;
        }
        if (!ret_place->order || ret_place->plan.n_batches == DLP_UNKNOWN ||
            dlp_epoch_plan_is_over(&ret_place->plan, ahead->step))
                return false;
        ret_place->batch = dlp_epoch_plan_batch(&ret_place->plan, ahead->step);
        return true;
}

/* ---- a sample ---------------------------------------------------------------------------------------------------- */

const char *lookahead_path(const struct source_read *read, char ret_path[SOURCE_NAME_SIZE]) {
        if (read->first.shard)
                return read->first.shard;
        extent_path(&read->first, ret_path);
        return ret_path;
}

static void lookahead_ask(const struct remote *remote, const struct source_read *read, uint64_t due_ns) {
        char path[SOURCE_NAME_SIZE];

        cached_ahead(remote->cached, remote->folder, lookahead_path(read, path), read->begin, read->end - read->begin,
                     due_ns);
}

static void ask_for_pieces(const struct remote *remote, const struct source *source, uint64_t sample, uint32_t field,
                           uint64_t due_ns) {
        struct source_piece piece = { 0 };
        struct source_read read = { 0 };

        source_locate(source, sample, field, &read.first);
        for (uint32_t i = 0; i < PIECES_MAX && source_next_piece(source, sample, field, &piece); i++) {
                read.begin = piece.offset;
                read.end = piece.offset + piece.n_bytes;
                lookahead_ask(remote, &read, due_ns);
        }
}

uint32_t lookahead_reads(const struct feed *feed, uint64_t sample, struct source_read reads[DLP_TENSORS_MAX]) {
        const struct source *source = dataset_source(feed->dataset->dataset);
        const struct source *part = dataset_source(dataset_with(feed->dataset->dataset, sample));
        const struct program *program = programs_with(feed->programs, sample);
        struct extent extent;
        uint32_t n = 0;

        for (uint32_t i = 0; i < program_n_fields(program); i++) {
                const struct codec *codec = program_codec(program, program_serving(program, i));

                if (!codec_is_stored(codec) || codec_is_gathered(codec))
                        continue;
                source_locate(source, sample, codec_field(codec), &extent);
                if (!(extent.flags & (EXTENT_ABSENT | EXTENT_NOT_REGULAR)))
                        source_add_to_reads(part, &extent, reads, &n);
        }
        return n;
}

static void ask_for_sample(struct feed *feed, uint64_t sample, uint64_t due_ns) {
        const struct program *program = programs_with(feed->programs, sample);
        struct source_read reads[DLP_TENSORS_MAX];
        uint64_t of_part = sample;
        const struct remote *remote = catalog_dataset_with(feed->dataset, &of_part)->remote;
        uint32_t n = remote ? lookahead_reads(feed, sample, reads) : 0;

        for (uint32_t i = 0; i < n; i++)
                lookahead_ask(remote, &reads[i], due_ns);
        for (uint32_t i = 0; remote && i < program_n_fields(program); i++)
                if (codec_is_stored(program_codec(program, i)) && codec_is_gathered(program_codec(program, i)))
                        ask_for_pieces(remote, dataset_source(feed->dataset->dataset), sample,
                                       codec_field(program_codec(program, i)), due_ns);
}

/* ---- a feed ------------------------------------------------------------------------------------------------------ */

/* In ns: that of the part which needs the longest one; 0: nothing of it lies elsewhere. */
static uint64_t horizon_of(const struct catalog_dataset *dataset) {
        uint64_t longest_ns = dataset->remote ? cached_horizon_ns(dataset->remote->cached) : 0;

        for (uint32_t k = 0; k < dataset->n_parts; k++) {
                uint64_t ns = horizon_of(dataset->parts[k]);

                longest_ns = ns > longest_ns ? ns : longest_ns;
        }
        return longest_ns;
}

static uint64_t ahead_ns_of(const struct planner *planner, const struct feed *feed) {
        return is_behind(feed) ? 0 : batches_ahead(feed) * lookahead_batch_ns(planner, feed);
}

static bool is_far_enough(const struct planner *planner, const struct feed *feed) {
        uint64_t n_batches = batches_ahead(feed);

        return n_batches * feed->batch_samples >= DLP_AHEAD_SAMPLES ||
               n_batches > feed->ring->n_slots + feed->horizon_ns / lookahead_batch_ns(planner, feed);
}

/* Is there a part of it of which not enough is on its way? */
static bool has_use(const struct catalog_dataset *dataset) {
        bool has = dataset->remote && cached_has_use_ahead(dataset->remote->cached);

        for (uint32_t k = 0; k < dataset->n_parts; k++)
                has = has || has_use(dataset->parts[k]);
        return has;
}

/* To the end of the batch that it has come to, n_max samples at most. Returns how many; 0: it cannot go on now. */
static uint32_t look_on(struct planner *planner, struct feed *feed, uint32_t n_max) {
        struct ahead_place place;
        uint64_t due_ns, index;
        uint32_t n = 0;

        if (!lookahead_place(feed, &place) || is_far_enough(planner, feed))
                return 0;
        due_ns = ahead_ns_of(planner, feed);
        for (; n < n_max && feed->ahead.idx_sample < place.batch.n_samples && has_use(feed->dataset); n++) {
                if (order_table_at(place.order,
                                   dlp_epoch_plan_position(&place.plan, place.batch.first + feed->ahead.idx_sample),
                                   &index) != 0)
                        return n;
                ask_for_sample(feed, index, due_ns);
                feed->ahead.idx_sample++;
        }
        if (feed->ahead.idx_sample >= place.batch.n_samples)
                feed->ahead = (struct feed_ahead){ .epoch = feed->ahead.epoch, .step = feed->ahead.step + 1 };
        return n;
}

/* A position of its order is a sample, and not several. */
static bool has_positions(const struct feed *feed) {
        return !feed->job->terms.has_units && !feed->job->terms.deals_batches;
}

/* The one that needs what it looks at next before the others do. */
static struct feed *nearest(const struct planner *planner) {
        struct feed *feed, *best = NULL;

        TAILQ_FOREACH(feed, &planner->feeds, entry)
                if (feed->horizon_ns > 0 && (!best || ahead_ns_of(planner, feed) < ahead_ns_of(planner, best)))
                        best = feed;
        return best;
}

bool lookahead_go_on(struct planner *planner) {
        uint32_t n_looked = 0, n;
        struct feed *feed;

        TAILQ_FOREACH(feed, &planner->feeds, entry) {
                feed->horizon_ns = feed->is_ended || !has_positions(feed) ? 0 : horizon_of(feed->dataset);
                if (feed->horizon_ns == 0)
                        atomic_store_explicit(&feed->ahead_ns, NUMBER_UNKNOWN, memory_order_relaxed);
        }
        while (n_looked < TURN_SAMPLES && (feed = nearest(planner))) {
                n = look_on(planner, feed, TURN_SAMPLES - n_looked);
                atomic_store_explicit(&feed->ahead_ns, ahead_ns_of(planner, feed), memory_order_relaxed);
                if (n == 0)
                        feed->horizon_ns = 0; /* for this turn */
                n_looked += n;
        }
        return n_looked == TURN_SAMPLES;
}
