#include "tests/support/maker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_now; /* the text, for messages */

static void must(bool holds, const char *what) {
        if (holds)
                return;
        fprintf(stderr, "maker: %s: %s\n", text_now ? text_now : "", what);
        abort();
}

static void *allocate(struct dlp_making *making, uint64_t n_bytes) {
        struct maker *maker = making->userdata;
        void *memory = NULL;

        if (maker->n_allocations_left > 0 && n_bytes <= maker->n_bytes_max - maker->n_bytes)
                memory = calloc(1, n_bytes);
        if (!memory) {
                why_set(making->why, -ENOMEM, "no memory");
                return NULL;
        }
        maker->n_allocations_left--;
        maker->n_bytes += n_bytes;
        if (maker->n_bytes > maker->n_bytes_peak)
                maker->n_bytes_peak = maker->n_bytes;
        return memory;
}

static void release(struct dlp_making *making, void *memory, uint64_t n_bytes) {
        struct maker *maker = making->userdata;

        if (!memory)
                return;
        must(maker->n_bytes >= n_bytes, "more memory given back than taken");
        maker->n_bytes -= n_bytes;
        free(memory);
}

static bool go_on(struct dlp_making *making, uint64_t n_done, uint64_t n_total) {
        struct maker *maker = making->userdata;

        must(n_done <= n_total, "further than the end");
        if (maker->n_looks_left == 0)
                return false;
        maker->n_looks_left--;
        return true;
}

static uint64_t hash_of(uint64_t hash, const struct dlp_order *order, uint64_t begin, uint64_t end) {
        for (uint64_t i = begin; i < end; i++)
                hash = (hash ^ dlp_order_sample(order, i)) * 0x100000001b3ull;
        return hash;
}

static void publish(struct dlp_making *making, const struct dlp_order *order, uint64_t n_final) {
        struct maker *maker = making->userdata;

        if (!making->is_last)
                return;
        must(n_final >= maker->n_published && n_final <= order->n_positions && !order->starts, "published what is not");
        maker->published_hash = hash_of(maker->published_hash, order, maker->n_published, n_final);
        maker->n_published = n_final;
}

void maker_init(struct maker *maker, uint64_t n_samples) {
        memset(maker, 0, sizeof(*maker));
        maker->terms = (struct dlp_making_terms){ .base = { .n_samples = n_samples, .shuffle = true },
                                                  .batch_size = 4,
                                                  .columns = maker->columns,
                                                  .parts = maker->parts };
        maker->making = (struct dlp_making){ .terms = &maker->terms,
                                             .allocate = allocate,
                                             .release = release,
                                             .go_on = go_on,
                                             .publish = publish,
                                             .why = &maker->why,
                                             .userdata = maker };
        maker->n_bytes_max = 1ull << 36;
        maker->n_allocations_left = maker->n_looks_left = UINT64_MAX;
}

void maker_column(struct maker *maker, const char *name, enum dlp_dtype dtype, const void *values, uint64_t n_values) {
        must(maker->terms.n_columns < MAKER_COLUMNS_MAX, "too many columns");
        maker->columns[maker->terms.n_columns++] = (struct dlp_column){
                .name = name, .dtype = dtype, .values = values, .n_values = n_values, .n_samples = n_values
        };
}

void maker_lists(struct maker *maker, const char *name, const int64_t *values, const uint64_t *ends) {
        uint64_t n_samples = maker->terms.base.n_samples;

        maker_column(maker, name, DLP_DTYPE_INT64, values, n_samples > 0 ? ends[n_samples - 1] : 0);
        maker->columns[maker->terms.n_columns - 1].ends = ends;
        maker->columns[maker->terms.n_columns - 1].n_samples = n_samples;
}

void maker_part(struct maker *maker, const char *name, uint64_t n_samples) {
        uint32_t n = maker->terms.n_parts++;

        must(n < MAKER_PARTS_MAX, "too many parts");
        maker->parts[n] = (struct dlp_part){ .name = name, .n_samples = n_samples };
        if (n > 0)
                maker->parts[n].first = maker->parts[n - 1].first + maker->parts[n - 1].n_samples;
}

static void check(struct maker *maker) {
        const struct dlp_order *order = &maker->order;
        uint64_t n_max = dlp_order_n_positions_max(&maker->text, &maker->terms), scratch, bytes;

        must(order->n_positions > 0 && order->n_positions <= n_max, "more positions than were promised");
        must(order->n_positions <= order->n_room, "more positions than there is room for");
        must(order->starts || order->n_units == order->n_positions, "units that are not positions");
        for (uint64_t i = 0; i < order->n_positions; i++)
                must(dlp_order_sample(order, i) < maker->terms.base.n_samples, "a sample outside the dataset");
        for (uint64_t i = 0; order->starts && i < order->n_units; i++)
                must(order->starts[i] < order->starts[i + 1], "a unit without positions");
        must(!order->starts || (order->starts[0] == 0 && order->starts[order->n_units] == order->n_positions),
             "units that are not all positions");
        must(hash_of(0, order, 0, maker->n_published) == maker->published_hash, "published positions changed");
        scratch = dlp_order_scratch_max(&maker->text, &maker->terms);
        bytes = dlp_order_bytes_max(&maker->text, &maker->terms);
        must(scratch > UINT64_MAX - bytes || maker->n_bytes_peak <= bytes + scratch, "more memory than was promised");
}

int maker_order(struct maker *maker, const char *text) {
        int r;

        maker_fini(maker);
        text_now = text;
        maker->n_bytes_peak = maker->n_published = maker->published_hash = 0;
        r = dlp_order_text_parse(text, &maker->text, &maker->why);
        if (r == 0)
                r = dlp_order_make(&maker->text, &maker->making, &maker->order);
        if (r == 0)
                check(maker);
        else
                must(maker->n_bytes == 0, "memory that was not given back");
        return r;
}

void maker_fini(struct maker *maker) {
        dlp_making_free(&maker->making, &maker->order);
        must(maker->n_bytes == 0, "memory that was not given back with the order");
}

uint32_t *maker_counts(const struct maker *maker) {
        uint32_t *counts = calloc(maker->terms.base.n_samples + 1, sizeof(*counts));

        must(counts, "out of memory");
        for (uint64_t i = 0; i < maker->order.n_positions; i++)
                counts[dlp_order_sample(&maker->order, i)]++;
        return counts;
}
