#include "proto/order/grouping/grouping.h"

#include <errno.h>

int dlp_grouping_init(struct dlp_making *making, const char *step, uint64_t n, bool has_begins,
                      struct dlp_grouping *ret_grouping) {
        struct dlp_grouping grouping = { 0 };
        int r;

        if (n > DLP_GROUPING_MAX)
                return why_set(making->why, -EINVAL, "%s: the epoch has %llu positions; at most %u can be grouped",
                               step, (unsigned long long)n, DLP_GROUPING_MAX);
        r = dlp_making_samples(making, n, &grouping.kept);
        if (r == 0)
                r = dlp_making_allocate(making, n, sizeof(*grouping.unit_of), &grouping.unit_of);
        if (r == 0 && has_begins)
                r = dlp_making_allocate(making, n, sizeof(*grouping.begins), &grouping.begins);
        grouping.kept.n_positions = 0;
        if (r < 0)
                dlp_grouping_free(making, &grouping);
        else
                *ret_grouping = grouping;
        return r;
}

int dlp_grouping_sequence(struct dlp_making *making, uint64_t n, struct dlp_grouping *grouping) {
        int r = dlp_making_allocate(making, n, sizeof(*grouping->sequence), &grouping->sequence);

        if (r == 0)
                grouping->n_sequence_room = n;
        return r;
}

void dlp_grouping_free(struct dlp_making *making, struct dlp_grouping *grouping) {
        making->release(making, grouping->unit_of, grouping->kept.n_room * sizeof(*grouping->unit_of));
        making->release(making, grouping->begins, grouping->kept.n_room * sizeof(*grouping->begins));
        making->release(making, grouping->sequence, grouping->n_sequence_room * sizeof(*grouping->sequence));
        dlp_making_free(making, &grouping->kept);
        *grouping = (struct dlp_grouping){ 0 };
}

/* A permutation of n units, with or without shuffling of the samples. */
static int grouping_permute(const struct dlp_making *making, uint64_t n, struct dlp_order *ret_order) {
        struct dlp_making_terms terms = *making->terms;
        struct dlp_making own = *making;

        terms.base.n_samples = n;
        terms.base.shuffle = true;
        own.terms = &terms;
        own.is_last = false;
        return dlp_making_permute(&own, n, false, ret_order);
}

/* The unit that comes at a place. */
static uint32_t unit_at(const struct dlp_grouping *grouping, const struct dlp_order *permutation, uint64_t place) {
        if (permutation->samples)
                place = dlp_order_sample(permutation, place);
        return grouping->sequence ? grouping->sequence[place] : (uint32_t)place;
}

/* Turns the numbers of positions into the place where each unit begins. */
static void place_units(const struct dlp_grouping *grouping, const struct dlp_order *permutation,
                        const struct dlp_order *order, uint32_t *places) {
        uint64_t at = 0;

        for (uint64_t place = 0; place < order->n_units; place++) {
                uint32_t unit = unit_at(grouping, permutation, place);

                order->starts[place] = at;
                at += places[unit];
                places[unit] = (uint32_t)order->starts[place];
        }
        order->starts[order->n_units] = at;
}

/* Counts the positions of each unit. Returns how many positions come. */
static uint64_t grouping_count(const struct dlp_grouping *grouping, uint32_t *places) {
        uint64_t n = grouping->kept.n_positions;

        for (uint64_t i = 0; i < grouping->kept.n_positions; i++)
                places[grouping->unit_of[i]]++;
        if (!grouping->sequence)
                return n;
        n = 0;
        for (uint64_t i = 0; i < grouping->n_sequence; i++)
                n += places[grouping->sequence[i]];
        return n;
}

/* Marks the units that do not come with UINT32_MAX. */
static int drop_others(struct dlp_making *making, const struct dlp_grouping *grouping, uint32_t **places) {
        uint32_t *kept;
        int r;

        if (!grouping->sequence || grouping->n_sequence == grouping->n_units)
                return 0;
        r = dlp_making_allocate(making, grouping->n_units, sizeof(*kept), &kept);
        if (r < 0)
                return r;
        for (uint64_t i = 0; i < grouping->n_units; i++)
                kept[i] = UINT32_MAX;
        for (uint64_t i = 0; i < grouping->n_sequence; i++)
                kept[grouping->sequence[i]] = (*places)[grouping->sequence[i]];
        making->release(making, *places, grouping->n_units * sizeof(*kept));
        *places = kept;
        return 0;
}

static int scatter(struct dlp_making *making, const struct dlp_grouping *grouping, uint32_t *places,
                   const struct dlp_order *order) {
        uint64_t n = grouping->kept.n_positions;

        for (uint64_t i = 0; i < n; i++) {
                uint32_t *place = &places[grouping->unit_of[i]];

                if (i % 65536 == 65535 && !making->go_on(making, i, n))
                        return -ECANCELED;
                if (*place == UINT32_MAX)
                        continue;
                if (grouping->begins)
                        order->pieces[*place].begin = grouping->begins[i];
                dlp_order_set_sample(order, (*place)++, dlp_order_sample(&grouping->kept, i));
        }
        return 0;
}

static int grouping_arrange(struct dlp_making *making, const struct dlp_grouping *grouping,
                            const struct dlp_order *permutation, uint32_t **places, struct dlp_order *order) {
        int r;

        r = dlp_making_samples(making, grouping_count(grouping, *places), order);
        if (r < 0)
                return r;
        order->n_units = grouping->sequence ? grouping->n_sequence : grouping->n_units;
        r = dlp_making_starts(making, order->n_units, order);
        if (r == 0 && grouping->has_pieces)
                r = dlp_making_pieces(making, order);
        if (r == 0)
                r = drop_others(making, grouping, places);
        if (r < 0)
                return r;
        place_units(grouping, permutation, order, *places);
        return scatter(making, grouping, *places, order);
}

int dlp_grouping_finish(struct dlp_making *making, struct dlp_grouping *grouping, bool is_shuffled,
                        struct dlp_order *ret_order) {
        struct dlp_order permutation = { 0 }, order = { 0 };
        uint64_t n_come = grouping->sequence ? grouping->n_sequence : grouping->n_units;
        uint32_t *places = NULL;
        int r = dlp_making_allocate(making, grouping->n_units, sizeof(*places), &places);

        if (r == 0 && is_shuffled && n_come > 0)
                r = grouping_permute(making, n_come, &permutation);
        if (r == 0)
                r = grouping_arrange(making, grouping, &permutation, &places, &order);
        dlp_making_free(making, &permutation);
        making->release(making, places, grouping->n_units * sizeof(*places));
        dlp_grouping_free(making, grouping);
        if (r < 0)
                dlp_making_free(making, &order);
        else
                *ret_order = order;
        return r;
}

/* A unit has a position at least. Its place (twice where some are dropped), sequence, permutation and the table of that
 * are counted as if each had only one. */
uint64_t dlp_grouping_bytes(const struct dlp_making_terms *terms, uint64_t n, bool has_begins) {
        uint64_t each = dlp_shuffle_element_bytes(terms->base.n_samples) + sizeof(uint32_t) * (has_begins ? 7 : 6),
                 n_bytes;

        return __builtin_mul_overflow(n, each, &n_bytes) ||
                               __builtin_add_overflow(n_bytes, sizeof(struct dlp_sampler) + 65536, &n_bytes)
                       ? UINT64_MAX
                       : n_bytes;
}
