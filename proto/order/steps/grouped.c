/* grouped(column=aspect, k=3): batches of pictures of about the same shape, as the detection references of torchvision
 * have them.
 *
 * The groups are the intervals between the edges; with k these are 2^-1 to 2^1 in 2k equal steps of the exponent, with
 * k=0 it is 1. A value that is an edge belongs above it. Samples go, in the order's sequence, into the batch of their
 * group, which comes when it has batch_size. There are n div batch_size batches in all, so some of what is left comes
 * at the end: the fullest first, each filled with samples from the beginning of its group; of equally full ones that
 * whose last batch came first, or, if none came, whose first sample did. */
#include <errno.h>
#include <math.h>

#include "proto/order/grouping/grouping.h"
#include "proto/order/steps/sampler_step.h"

#define GROUPS_MAX (KIND_LIST_MAX + 1)
#define CHUNK      65536u

enum {
        COLUMN,
        K,
        EDGES,
};

struct group {
        uint64_t n_samples;  /* of the batch at hand */
        uint64_t n_seen;     /* in all, counted up to a batch */
        uint64_t since;      /* what its place among equally full ones is by */
        uint32_t unit;       /* of the batch at hand */
        uint32_t *positions; /* of the first that were seen, at most a batch */
};

struct groups {
        uint32_t n_edges, n_groups, batch_size;
        double edges[KIND_LIST_MAX];
        struct group groups[GROUPS_MAX];
        uint32_t *positions;
        uint64_t n_each; /* of `positions` for each group */
        uint64_t n_events;
        struct dlp_grouping grouping;
};

static int check(const struct dlp_step *step, struct why *why) {
        const struct value *edges = &step->values[EDGES];

        if (step->values[K].is_set == edges->is_set)
                return why_set(why, -EINVAL, "choose one of k and edges");
        for (uint32_t i = 1; i < edges->n_list; i++)
                if (edges->list[i] <= edges->list[i - 1])
                        return why_set(why, -EINVAL, "edges: %g is not above %g; they must grow", edges->list[i],
                                       edges->list[i - 1]);
        return 0;
}

/* numpy's 2 ** linspace(-1, 1, 2k + 1). */
static void set_edges(const struct dlp_step *step, struct groups *groups) {
        uint32_t k = (uint32_t)step->values[K].whole;

        groups->n_edges = step->values[EDGES].is_set ? step->values[EDGES].n_list : 2 * k + 1;
        for (uint32_t i = 0; i < groups->n_edges; i++)
                if (step->values[EDGES].is_set)
                        groups->edges[i] = step->values[EDGES].list[i];
                else
                        groups->edges[i] = k == 0 ? 1.0 : i == 2 * k ? 2.0 : pow(2.0, i * (2.0 / (2 * k)) - 1.0);
        groups->n_groups = groups->n_edges + 1;
}

static uint32_t batch_size(const struct dlp_making_terms *terms) {
        return terms->batch_size > 0 ? terms->batch_size : 1;
}

static uint64_t n_unit_max(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        (void)step;
        return batch_size(terms);
}

/* What is left in all groups is less than a batch each, and that is how much is repeated at most. */
static uint64_t n_kept_max(uint32_t n_groups, uint32_t n_batch, uint64_t n) {
        uint64_t n_more = (uint64_t)n_groups * n_batch;

        return n + (n_more < n ? n_more : n);
}

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        uint64_t n_batch = batch_size(terms) < n ? batch_size(terms) : n;

        (void)step;
        return dlp_grouping_bytes(terms, n_kept_max(GROUPS_MAX, batch_size(terms), n), false) +
               GROUPS_MAX * n_batch * sizeof(uint32_t) + 4096;
}

/* ---------------------------------------------------------------------------------------------------------------- */

static uint32_t grouped_group_of(const struct groups *groups, double value) {
        uint32_t idx = 0;

        while (idx < groups->n_edges && value >= groups->edges[idx])
                idx++;
        return idx;
}

static void grouped_end_batch(struct groups *groups, struct group *group) {
        groups->grouping.sequence[groups->grouping.n_sequence++] = group->unit;
        group->n_samples = 0;
        group->since = ++groups->n_events;
}

static void grouped_add(struct groups *groups, struct group *group, uint64_t position, uint64_t sample) {
        if (group->n_seen == 0)
                group->since = ++groups->n_events;
        if (group->n_seen < groups->n_each)
                group->positions[group->n_seen++] = (uint32_t)position;
        if (group->n_samples == 0)
                group->unit = (uint32_t)groups->grouping.n_units++;
        dlp_grouping_keep(&groups->grouping, sample, group->unit);
        if (++group->n_samples == groups->batch_size)
                grouped_end_batch(groups, group);
}

static struct group *fullest(struct groups *groups) {
        struct group *best = NULL;

        for (uint32_t i = 0; i < groups->n_groups; i++) {
                struct group *group = &groups->groups[i];

                if (group->n_samples > 0 && (!best || group->n_samples > best->n_samples ||
                                             (group->n_samples == best->n_samples && group->since < best->since)))
                        best = group;
        }
        return best;
}

static void add_rest(struct groups *groups, const struct dlp_order *order) {
        uint64_t n_batches = order->n_positions / groups->batch_size;

        while (groups->grouping.n_sequence < n_batches) {
                struct group *group = fullest(groups);
                uint64_t n_lacking = groups->batch_size - group->n_samples;

                for (uint64_t i = 0; i < n_lacking; i++)
                        dlp_grouping_keep(&groups->grouping,
                                          dlp_order_sample(order, group->positions[i % group->n_seen]), group->unit);
                grouped_end_batch(groups, group);
        }
}

static int grouped_fill(struct dlp_making *making, struct groups *groups, const struct dlp_column *column,
                        const struct dlp_order *order) {
        for (uint64_t i = 0; i < order->n_positions; i++) {
                uint64_t sample = dlp_order_sample(order, i);
                double value = dlp_column_real(column, sample);

                if (isnan(value))
                        return why_set(making->why, -EINVAL, "grouped: sample %llu has no number in \"%s\", but NaN",
                                       (unsigned long long)sample, column->name);
                grouped_add(groups, &groups->groups[grouped_group_of(groups, value)], i, sample);
                if (i % CHUNK == CHUNK - 1 && !making->go_on(making, i, order->n_positions))
                        return -ECANCELED;
        }
        add_rest(groups, order);
        return 0;
}

static int grouped_init(struct dlp_making *making, struct groups *groups, uint64_t n) {
        int r = dlp_grouping_init(making, "grouped", n_kept_max(groups->n_groups, groups->batch_size, n), false,
                                  &groups->grouping);

        if (r == 0)
                r = dlp_grouping_sequence(making, n / groups->batch_size, &groups->grouping);
        if (r == 0)
                r = dlp_making_allocate(making, groups->n_groups * groups->n_each, sizeof(uint32_t),
                                        &groups->positions);
        for (uint32_t i = 0; r == 0 && i < groups->n_groups; i++)
                groups->groups[i].positions = groups->positions + i * groups->n_each;
        return r;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        struct groups groups = { .batch_size = batch_size(making->terms) };
        const struct dlp_column *column;
        int r = dlp_making_column(making, "grouped", step->values[COLUMN].text, &column);

        if (r < 0)
                return r;
        if (order->n_positions < groups.batch_size)
                return why_set(making->why, -EINVAL, "grouped: %llu samples do not make one batch of %u",
                               (unsigned long long)order->n_positions, groups.batch_size);
        set_edges(step, &groups);
        groups.n_each = groups.batch_size;
        r = grouped_init(making, &groups, order->n_positions);
        if (r == 0)
                r = grouped_fill(making, &groups, column, order);
        making->release(making, groups.positions, groups.n_groups * groups.n_each * sizeof(uint32_t));
        if (r < 0) {
                dlp_grouping_free(making, &groups.grouping);
                return r;
        }
        dlp_making_free(making, order);
        return dlp_grouping_finish(making, &groups.grouping, false, order);
}

const struct dlp_step_type dlp_step_grouped = {
        .kind = { .name = "grouped",
                  .doc = "Batches of the loader's size from samples of about the same aspect ratio, as the "
                         "GroupedBatchSampler and create_aspect_ratio_groups of torchvision's detection references, "
                         "bit for bit: groups are the intervals between `edges` or, with `k`, between 2^-1 and 2^1 in "
                         "2k equal steps of the exponent (k=0: above and below 1). An epoch has as many whole batches "
                         "as its samples make; the last ones are what is left in the fullest groups, completed with "
                         "samples from the beginning of the same group, so some samples come twice and some not at "
                         "all.",
                  .like = "torchvision's references/detection/group_by_aspect_ratio.py",
                  .example = "grouped(column=aspect, k=3)",
                  .arguments = ARGUMENTS(
                          { ARGUMENT_COLUMN, "column", .form = "aspect ratios" },
                          { ARGUMENT_WHOLE, "k", .maximum = 31, .is_optional = true },
                          { ARGUMENT_LIST, "edges", .minimum = -1e300, .maximum = 1e300, .is_optional = true }) },
        .role = DLP_GROUPER,
        .check = check,
        .n_unit_max = n_unit_max,
        .is_batch = true,
        .make = make,
        .scratch_bytes = scratch_bytes,
};
