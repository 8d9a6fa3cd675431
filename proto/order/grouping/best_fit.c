/* Best fit decreasing: pieces from the longest to the shortest, of equal length in the order's sequence; each goes into
 * the fullest pack that has room for it, of equally full ones into that which got so full first, else into a new one.
 * Packs come by their age. This is what TRL does with 1,000 samples at a time ("Fewer Truncations Improve Language
 * Modeling" of Ding and others, 2024, describes the idea).
 *
 * A piece has one of `size` lengths, and a pack one of `size` free spaces. So sorting is counting, and open packs wait
 * in a queue for each free space. If a piece has found its pack, those of the same length that follow go into it as
 * well, as long as they fit: no other pack with room for them is fuller. */
#include <errno.h>

#include "proto/order/grouping/grouping_packing.h"

struct best_fit {
        struct dlp_making *making;
        const struct dlp_packing *packing;
        const struct dlp_order *order;
        struct dlp_grouping grouping;

        void *tables;
        uint64_t n_table_bytes;
        uint32_t *places;              /* for each length: its pieces; then where the next one of them is sorted to */
        struct dlp_number_set lengths; /* that occur */
        struct dlp_number_set spaces;  /* free spaces that open packs have */
        uint32_t *first, *last;        /* for each free space: the queue of packs that have it */

        /* Of open packs, by their number among those that the rows at hand have opened: */
        uint64_t n_open_room;
        uint32_t *next;    /* in the queue */
        uint32_t *n_taken; /* pieces; NULL: they may be any number */
};

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static uint64_t n_together(const struct dlp_packing *packing, uint64_t n) {
        return packing->rows > 0 && packing->rows < n ? packing->rows : n;
}

static uint64_t best_fit_table_bytes(uint32_t size) {
        struct dlp_number_set set;

        return 2 * dlp_number_set_plan(&set, size + 1ull) * sizeof(uint64_t) + 3 * (size + 1ull) * sizeof(uint32_t);
}

uint64_t dlp_pack_best_fit_bytes(const struct dlp_packing *packing, const struct dlp_making_terms *terms, uint64_t n,
                                 uint64_t n_pieces) {
        uint64_t n_bytes = dlp_grouping_bytes(terms, n_pieces, packing->on_long == DLP_LONG_SPLIT), open;

        if (__builtin_mul_overflow(n_together(packing, n), (packing->max_samples > 0 ? 2 : 1) * sizeof(uint32_t),
                                   &open) ||
            __builtin_add_overflow(n_bytes, open, &n_bytes) ||
            __builtin_add_overflow(n_bytes, best_fit_table_bytes(packing->size) + 4 * 4096, &n_bytes))
                return UINT64_MAX;
        return n_bytes;
}

static int best_fit_init(struct best_fit *fit, uint64_t n_pieces) {
        uint64_t n_numbers = fit->packing->size + 1ull;
        uint64_t *words;
        int r = dlp_grouping_init(fit->making, fit->packing->lengths.step, n_pieces,
                                  fit->packing->on_long == DLP_LONG_SPLIT, &fit->grouping);

        if (r < 0)
                return r;
        r = dlp_making_allocate(fit->making, 1, best_fit_table_bytes(fit->packing->size), &fit->tables);
        if (r < 0)
                return r;
        fit->n_table_bytes = best_fit_table_bytes(fit->packing->size);
        words = fit->tables;
        dlp_number_set_init(&fit->lengths, n_numbers, words);
        words += dlp_number_set_plan(&fit->lengths, n_numbers);
        dlp_number_set_init(&fit->spaces, n_numbers, words);
        words += dlp_number_set_plan(&fit->spaces, n_numbers);
        fit->places = (uint32_t *)words;
        fit->first = fit->places + n_numbers;
        fit->last = fit->first + n_numbers;
        fit->n_open_room = n_together(fit->packing, fit->order->n_positions);
        r = dlp_making_allocate(fit->making, fit->n_open_room, sizeof(*fit->next), &fit->next);
        if (r == 0 && fit->packing->max_samples > 0)
                r = dlp_making_allocate(fit->making, fit->n_open_room, sizeof(*fit->n_taken), &fit->n_taken);
        return r;
}

static void best_fit_free_tables(struct best_fit *fit) {
        fit->making->release(fit->making, fit->tables, fit->n_table_bytes);
        fit->making->release(fit->making, fit->next, fit->n_open_room * sizeof(*fit->next));
        fit->making->release(fit->making, fit->n_taken, fit->n_open_room * sizeof(*fit->n_taken));
}

/* ---- sorting --------------------------------------------------------------------------------------------------- */

static void count_some(struct best_fit *fit, uint32_t length, uint32_t n) {
        if (n > 0 && fit->places[length] == 0)
                dlp_number_set_add(&fit->lengths, length);
        fit->places[length] += n;
}

static void count_pieces(struct best_fit *fit, const uint32_t *lengths, uint64_t n) {
        for (uint64_t i = 0; i < n; i++) {
                struct dlp_pieces pieces = dlp_packing_cut(fit->packing, lengths[i]);

                count_some(fit, fit->packing->size, pieces.n_whole);
                count_some(fit, pieces.rest, pieces.rest > 0);
        }
}

/* Counted lengths become places, from the longest down. Returns where the last piece ends. */
static uint64_t find_places(struct best_fit *fit) {
        uint64_t at = fit->grouping.kept.n_positions;

        for (uint32_t length = dlp_number_set_at_most(&fit->lengths, fit->packing->size); length != DLP_NUMBER_NONE;
             length = length > 1 ? dlp_number_set_at_most(&fit->lengths, length - 1) : DLP_NUMBER_NONE) {
                uint32_t n = fit->places[length];

                fit->places[length] = (uint32_t)at;
                at += n;
        }
        return at;
}

static void sort_piece(struct best_fit *fit, uint64_t sample, uint32_t length, uint32_t begin) {
        uint32_t place = fit->places[length]++;

        dlp_order_set_sample(&fit->grouping.kept, place, sample);
        if (fit->grouping.begins)
                fit->grouping.begins[place] = begin;
}

static void sort_pieces(struct best_fit *fit, const uint32_t *lengths, uint64_t first, uint64_t n) {
        uint32_t size = fit->packing->size;

        for (uint64_t i = 0; i < n; i++) {
                struct dlp_pieces pieces = dlp_packing_cut(fit->packing, lengths[i]);
                uint64_t sample = dlp_order_sample(fit->order, first + i);

                for (uint32_t k = 0; k < pieces.n_whole; k++)
                        sort_piece(fit, sample, size, k * size);
                if (pieces.rest > 0)
                        sort_piece(fit, sample, pieces.rest, pieces.n_whole * size);
        }
}

/* Goes over the positions twice: to count, and to sort. The lengths are looked up twice, which is cheaper than room for
 * all of them. Returns where the sorted pieces end. */
static int best_fit_sort(struct best_fit *fit, uint64_t first, uint64_t n, uint64_t *ret_end) {
        struct dlp_making *making = fit->making;
        uint32_t lengths[DLP_LENGTHS_CHUNK];
        int r;

        for (int pass = 0; pass < 2; pass++) {
                for (uint64_t i = 0; i < n; i += DLP_LENGTHS_CHUNK) {
                        uint64_t n_some = n - i < DLP_LENGTHS_CHUNK ? n - i : DLP_LENGTHS_CHUNK;

                        r = dlp_packing_take(making, fit->packing, fit->order, first + i, n_some, lengths);
                        if (r < 0)
                                return r;
                        if (pass == 0)
                                count_pieces(fit, lengths, n_some);
                        else
                                sort_pieces(fit, lengths, first + i, n_some);
                        if (!making->go_on(making, first + (i + n) / 2, fit->order->n_positions))
                                return -ECANCELED;
                }
                if (pass == 0)
                        *ret_end = find_places(fit);
        }
        return 0;
}

/* ---- packing --------------------------------------------------------------------------------------------------- */

static void best_fit_queue(struct best_fit *fit, uint32_t space, uint32_t open) {
        if (dlp_number_set_has(&fit->spaces, space)) {
                fit->next[fit->last[space]] = open;
        } else {
                dlp_number_set_add(&fit->spaces, space);
                fit->first[space] = open;
        }
        fit->last[space] = open;
}

static uint32_t unqueue(struct best_fit *fit, uint32_t space) {
        uint32_t open = fit->first[space];

        if (open == fit->last[space])
                dlp_number_set_remove(&fit->spaces, space);
        else
                fit->first[space] = fit->next[open];
        return open;
}

/* Puts as many of n sorted pieces of a length as fit into the pack that is best for them. `first_open` is the number of
 * the first open pack. Returns how many. */
static uint64_t fill_one(struct best_fit *fit, uint64_t at, uint64_t n, uint32_t length, uint64_t first_open) {
        uint32_t space = dlp_number_set_at_least(&fit->spaces, length), n_fit, open;
        uint32_t max = fit->packing->max_samples;

        if (space == DLP_NUMBER_NONE) {
                space = fit->packing->size;
                open = (uint32_t)(fit->grouping.n_units++ - first_open);
                if (fit->n_taken)
                        fit->n_taken[open] = 0;
        } else {
                open = unqueue(fit, space);
        }
        n_fit = space / length;
        if (fit->n_taken && n_fit > max - fit->n_taken[open])
                n_fit = max - fit->n_taken[open];
        if (n_fit > n)
                n_fit = (uint32_t)n;
        for (uint32_t i = 0; i < n_fit; i++)
                fit->grouping.unit_of[at + i] = (uint32_t)first_open + open;
        if (fit->n_taken)
                fit->n_taken[open] += n_fit;
        space -= n_fit * length;
        if (space > 0 && (!fit->n_taken || fit->n_taken[open] < max))
                best_fit_queue(fit, space, open);
        return n_fit;
}

/* The pieces that fill a pack alone. */
static uint64_t best_fit_fill_whole(struct best_fit *fit, uint64_t at) {
        uint32_t size = fit->packing->size;

        if (dlp_number_set_has(&fit->lengths, size))
                for (; at < fit->places[size]; at++)
                        fit->grouping.unit_of[at] = (uint32_t)fit->grouping.n_units++;
        return at;
}

/* Leaves all tables as they were found: empty. */
static void best_fit_clear(struct best_fit *fit) {
        for (uint32_t length = dlp_number_set_at_least(&fit->lengths, 0); length != DLP_NUMBER_NONE;
             length = dlp_number_set_at_least(&fit->lengths, length)) {
                fit->places[length] = 0;
                dlp_number_set_remove(&fit->lengths, length);
        }
        for (uint32_t space = dlp_number_set_at_least(&fit->spaces, 0); space != DLP_NUMBER_NONE;
             space = dlp_number_set_at_least(&fit->spaces, space))
                dlp_number_set_remove(&fit->spaces, space);
}

static int best_fit_fill(struct best_fit *fit, uint64_t end) {
        uint64_t at = best_fit_fill_whole(fit, fit->grouping.kept.n_positions), first_open = fit->grouping.n_units;
        uint64_t n_since = 0;

        while (at < end) {
                uint32_t length = dlp_number_set_at_most(&fit->lengths, fit->packing->size - 1);

                while (at < fit->places[length]) {
                        uint64_t n = fill_one(fit, at, fit->places[length] - at, length, first_open);

                        at += n;
                        n_since += n;
                        if (n_since < 65536)
                                continue;
                        n_since = 0;
                        if (!fit->making->go_on(fit->making, at, end))
                                return -ECANCELED;
                }
                fit->places[length] = 0;
                dlp_number_set_remove(&fit->lengths, length);
        }
        fit->grouping.kept.n_positions = end;
        best_fit_clear(fit);
        return 0;
}

static int best_fit_pack(struct best_fit *fit) {
        uint64_t n_positions = fit->order->n_positions, n_rows = n_together(fit->packing, n_positions);
        int r = 0;

        for (uint64_t i = 0; r == 0 && i < n_positions; i += n_rows) {
                uint64_t n = n_positions - i < n_rows ? n_positions - i : n_rows, end = 0;

                r = best_fit_sort(fit, i, n, &end);
                if (r == 0)
                        r = best_fit_fill(fit, end);
        }
        return r;
}

int dlp_pack_best_fit(struct dlp_making *making, const struct dlp_packing *packing, struct dlp_order *order) {
        struct best_fit fit = { .making = making, .packing = packing, .order = order };
        uint64_t n_pieces = order->n_positions;
        int r = 0;

        if (packing->on_long == DLP_LONG_SPLIT)
                r = dlp_packing_count(making, packing, order, &n_pieces);
        if (r == 0)
                r = best_fit_init(&fit, n_pieces);
        if (r == 0)
                r = best_fit_pack(&fit);
        best_fit_free_tables(&fit);
        if (r < 0) {
                dlp_grouping_free(making, &fit.grouping);
                return r;
        }
        dlp_making_free(making, order);
        return dlp_packing_finish(making, packing, &fit.grouping, order);
}
