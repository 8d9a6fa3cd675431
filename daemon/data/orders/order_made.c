#include "daemon/data/orders/order_made.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define RESERVE_MORE (1u << 20) /* rounding of pages, a sampler's state */

static struct order_made *made_of(struct dlp_making *making) {
        return (struct order_made *)making->userdata;
}

/* ---- what a step asks for --------------------------------------------------------------------------------------- */

static uint64_t page_aligned(uint64_t n_bytes) {
        return (n_bytes + 4095) / 4096 * 4096;
}

static void *allocate(struct dlp_making *making, uint64_t n_bytes) {
        struct order_made *made = made_of(making);
        void *memory;

        if (n_bytes > made->quota_bytes - made->used_bytes ||
            page_aligned(n_bytes) > made->quota_bytes - made->used_bytes) {
                why_set(making->why, -ENOMEM, "sampler: its order takes more than the %llu bytes that were planned",
                        (unsigned long long)made->quota_bytes);
                return NULL;
        }
        memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
                why_errno(making->why, -errno, "sampler: %llu bytes", (unsigned long long)n_bytes);
                return NULL;
        }
        made->used_bytes += page_aligned(n_bytes);
        return memory;
}

static void release(struct dlp_making *making, void *memory, uint64_t n_bytes) {
        if (!memory)
                return;
        munmap(memory, n_bytes);
        made_of(making)->used_bytes -= page_aligned(n_bytes);
}

static bool go_on(struct dlp_making *making, uint64_t n_done, uint64_t n_total) {
        struct order_made *made = made_of(making);

        made->told(made, n_done, n_total);
        return !atomic_load_explicit(&made->is_unwanted, memory_order_relaxed);
}

/* The tables stay where they are until the order is whole, so readers may use them from now on. */
static void publish(struct dlp_making *making, const struct dlp_order *order, uint64_t n_final) {
        struct order_made *made = made_of(making);

        if (!making->is_last || n_final == 0 || n_final == order->n_positions)
                return; /* what is whole is published when the step has returned */
        if (made->order.n_positions == 0)
                made->order = *order;
        made->publish(made, order->n_positions, order->n_units, n_final);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static struct dlp_making_terms order_made_terms_of(const struct sampling *sampling,
                                                   const struct dlp_sampler_terms *base, uint32_t batch_size) {
        return (struct dlp_making_terms){
                .base = *base,
                .batch_size = batch_size,
                .columns = sampling->columns,
                .n_columns = sampling->n_columns,
                .parts = sampling->parts,
                .n_parts = sampling->n_parts,
        };
}

uint64_t order_made_bytes(struct sampling *sampling, const struct dlp_sampler_terms *base, uint32_t batch_size) {
        struct dlp_making_terms terms = order_made_terms_of(sampling, base, batch_size);
        uint64_t whole = dlp_order_bytes_max(&sampling->text, &terms);
        uint64_t more = dlp_order_scratch_max(&sampling->text, &terms), sum;

        if (__builtin_add_overflow(whole, more, &sum) || __builtin_add_overflow(sum, RESERVE_MORE, &sum))
                return UINT64_MAX;
        return page_aligned(sum);
}

void order_made_init(struct order_made *made, struct sampling *sampling, const struct dlp_sampler_terms *base,
                     uint32_t batch_size) {
        made->sampling = sampling_ref(sampling);
        made->terms = order_made_terms_of(sampling, base, batch_size);
        made->quota_bytes = order_made_bytes(sampling, base, batch_size);
        made->making = (struct dlp_making){ .terms = &made->terms,
                                            .allocate = allocate,
                                            .release = release,
                                            .go_on = go_on,
                                            .publish = publish,
                                            .why = &made->failure,
                                            .userdata = made };
}

void order_made_run(struct order_made *made) {
        struct dlp_order order;

        if (atomic_load_explicit(&made->is_unwanted, memory_order_relaxed) ||
            dlp_order_make(&made->sampling->text, &made->making, &order) < 0) {
                atomic_store_explicit(&made->has_failed, true, memory_order_release);
                return;
        }
        if (made->order.n_positions == 0)
                made->order = order;
        made->publish(made, order.n_positions, order.n_units, order.n_positions);
}

/* A failed one has given back everything itself. */
void order_made_fini(struct order_made *made) {
        if (!atomic_load_explicit(&made->has_failed, memory_order_acquire))
                dlp_making_free(&made->making, &made->order);
        sampling_unref(made->sampling);
}
