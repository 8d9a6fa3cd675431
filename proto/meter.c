#include "proto/meter.h"

#include "proto/base/clock.h"

#define FIRST_BUCKET_NS 1000u

static uint64_t meter_get(const _Atomic uint64_t *word) {
        return atomic_load_explicit(word, memory_order_relaxed);
}

static void meter_set(_Atomic uint64_t *word, uint64_t value) {
        atomic_store_explicit(word, value, memory_order_relaxed);
}

/* Not an atomic addition: the client is the only one who writes here. */
static void meter_add(_Atomic uint64_t *word, uint64_t more) {
        meter_set(word, meter_get(word) + more);
}

static uint64_t until(uint64_t begin_ns, uint64_t end_ns) {
        return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

uint32_t dlp_wait_bucket(uint64_t wait_ns) {
        uint64_t us = wait_ns / FIRST_BUCKET_NS;
        uint32_t bucket = us == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(us);

        return bucket < DLP_WAIT_BUCKETS ? bucket : DLP_WAIT_BUCKETS - 1;
}

/* ---- the client's side --------------------------------------------------------------------------------------- */

void dlp_meter_wait(struct dlp_client_page *page, uint64_t now_ns) {
        if (meter_get(&page->waiting_since_ns) == 0)
                meter_set(&page->waiting_since_ns, now_ns);
}

static void end_wait(struct dlp_client_page *page, uint64_t since_ns, uint64_t end_ns) {
        uint64_t wait_ns = until(since_ns, end_ns);

        meter_set(&page->waiting_since_ns, 0);
        if (meter_get(&page->n_batches) == 0) {
                meter_set(&page->first_wait_ns, wait_ns);
                return;
        }
        meter_add(&page->n_waits, 1);
        meter_add(&page->wait_ns, wait_ns);
        meter_add(&page->waits[dlp_wait_bucket(wait_ns)], 1);
}

void dlp_meter_take(struct dlp_client_page *page, uint64_t ready_ns, uint64_t now_ns) {
        uint64_t since_ns = meter_get(&page->waiting_since_ns), empty_ns = meter_get(&page->empty_since_ns);

        if (since_ns != 0)
                end_wait(page, since_ns, now_ns != 0 ? now_ns : ready_ns);
        if (empty_ns != 0) {
                meter_add(&page->empty_ns, until(empty_ns, ready_ns));
                meter_set(&page->empty_since_ns, 0);
        }
        if (meter_get(&page->first_ns) == 0)
                meter_set(&page->first_ns, now_ns != 0 ? now_ns : ready_ns);
        meter_add(&page->n_batches, 1);
}

void dlp_meter_empty(struct dlp_client_page *page, uint64_t now_ns) {
        meter_set(&page->empty_since_ns, now_ns);
}

static bool is_traced(const struct dlp_control *control) {
        return atomic_load_explicit(&control->is_traced, memory_order_relaxed) != 0;
}

void dlp_meter_note_taken(const struct dlp_control *control, struct dlp_client_page *page, uint32_t idx_slot,
                          uint64_t ready_ns, uint64_t now_ns) {
        struct dlp_slot_times *times = &page->times[idx_slot];
        uint64_t since_ns;

        if (!is_traced(control))
                return;
        since_ns = meter_get(&page->waiting_since_ns);
        meter_set(&times->asked_ns, since_ns);
        meter_set(&times->waited_until_ns, since_ns == 0 ? 0 : now_ns != 0 ? now_ns : ready_ns);
        meter_set(&times->taken_ns, now_ns != 0 ? now_ns : clock_now_ns());
}

void dlp_meter_note_released(const struct dlp_control *control, struct dlp_client_page *page, uint32_t idx_slot) {
        if (is_traced(control))
                meter_set(&page->times[idx_slot].released_ns, clock_now_ns());
}

/* Which batch a word is of. As many bits as are left; slots are used again far sooner. */
static uint64_t mark_of(uint64_t sequence) {
        return (sequence + 1) << DLP_SLOT_WAIT_BITS;
}

void dlp_meter_note_wait(struct dlp_client_page *page, uint32_t idx_slot, uint64_t sequence, uint64_t ready_ns,
                         uint64_t now_ns) {
        uint64_t since_ns = meter_get(&page->waiting_since_ns), us;

        if (since_ns == 0 || meter_get(&page->n_batches) == 0)
                return;
        us = until(since_ns, now_ns != 0 ? now_ns : ready_ns) / 1000;
        meter_set(&page->slot_waits[idx_slot],
                  mark_of(sequence) | (us < (1ull << DLP_SLOT_WAIT_BITS) ? us : (1ull << DLP_SLOT_WAIT_BITS) - 1));
}

/* ---- the daemon's side --------------------------------------------------------------------------------------- */

static uint64_t meter_at_most(uint64_t claim, uint64_t limit) {
        return claim < limit ? claim : limit;
}

uint64_t dlp_meter_slot_wait(const struct dlp_client_page *page, uint32_t idx_slot, uint64_t sequence,
                             uint64_t limit_ns) {
        uint64_t word = meter_get(&page->slot_waits[idx_slot]), us = word & ((1ull << DLP_SLOT_WAIT_BITS) - 1);

        if ((word ^ us) != mark_of(sequence))
                return 0;
        return meter_at_most(us * 1000, limit_ns);
}

/* Those that waited where they say, all others in the first bucket. */
static void read_waits(const struct dlp_client_page *page, struct dlp_meter *meter) {
        uint64_t n_left = meter->n_waits;

        for (uint32_t i = 0; i < DLP_WAIT_BUCKETS; i++) {
                meter->waits[i] = meter_at_most(meter_get(&page->waits[i]), n_left);
                n_left -= meter->waits[i];
        }
        if (meter->n_batches > 0)
                meter->waits[0] += meter->n_batches - 1 - (meter->n_waits - n_left);
}

void dlp_meter_read(const struct dlp_client_page *page, const struct dlp_meter_bounds *bounds,
                    struct dlp_meter *ret_meter) {
        struct dlp_meter meter = { 0 };
        uint64_t since_ns = meter_get(&page->waiting_since_ns), first_ns = meter_get(&page->first_ns);
        uint64_t age_ns = until(bounds->made_ns, bounds->now_ns), served_ns;

        meter.n_batches = meter_at_most(meter_get(&page->n_batches), bounds->n_published);
        meter.n_waits = meter_at_most(meter_get(&page->n_waits), meter.n_batches > 0 ? meter.n_batches - 1 : 0);
        meter.waiting_ns = since_ns != 0 ? meter_at_most(until(since_ns, bounds->now_ns), age_ns) : 0;
        if (meter.n_batches == 0) {
                meter.first_wait_ns = meter.waiting_ns;
        } else {
                served_ns = meter_at_most(until(first_ns, bounds->now_ns), age_ns);
                meter.first_wait_ns = meter_at_most(meter_get(&page->first_wait_ns), age_ns - served_ns);
                meter.waiting_ns = meter_at_most(meter.waiting_ns, served_ns);
                meter.wait_ns = meter_at_most(meter_get(&page->wait_ns), served_ns - meter.waiting_ns) +
                                meter.waiting_ns;
                meter.busy_ns = served_ns - meter.wait_ns;
        }
        meter.empty_ns = meter_at_most(meter_get(&page->empty_ns), age_ns);
        read_waits(page, &meter);
        *ret_meter = meter;
}

static uint64_t at_least(uint64_t value, uint64_t kept) {
        return value > kept ? value : kept;
}

/* Time that has passed since is divided between waiting and being busy, so that both together are never more. */
static void keep_times(const struct dlp_meter *kept, struct dlp_meter *meter) {
        uint64_t passed_ns = until(kept->wait_ns + kept->busy_ns, meter->wait_ns + meter->busy_ns);
        uint64_t waited_ns = meter_at_most(until(kept->wait_ns, meter->wait_ns), passed_ns);

        meter->wait_ns = kept->wait_ns + waited_ns;
        meter->busy_ns = kept->busy_ns + passed_ns - waited_ns;
}

/* The same for batches and their buckets. */
static void keep_waits(const struct dlp_meter *kept, struct dlp_meter *meter) {
        uint64_t n_left = at_least(meter->n_batches, 1) - at_least(kept->n_batches, 1);

        for (uint32_t i = 1; i < DLP_WAIT_BUCKETS; i++) {
                uint64_t n = meter_at_most(until(kept->waits[i], meter->waits[i]), n_left);

                meter->waits[i] = kept->waits[i] + n;
                n_left -= n;
        }
        meter->waits[0] = kept->waits[0] + n_left;
}

void dlp_meter_keep(struct dlp_meter *kept, struct dlp_meter *meter) {
        meter->n_batches = at_least(meter->n_batches, kept->n_batches);
        meter->n_waits = at_least(meter->n_waits, kept->n_waits);
        meter->empty_ns = at_least(meter->empty_ns, kept->empty_ns);
        meter->first_wait_ns = at_least(meter->first_wait_ns, kept->first_wait_ns);
        keep_times(kept, meter);
        keep_waits(kept, meter);
        *kept = *meter;
}

void dlp_meter_trace(struct dlp_control *control, bool on) {
        atomic_store_explicit(&control->is_traced, on, memory_order_relaxed);
}

/* What an earlier batch left in these words lies before this one was ready. */
bool dlp_meter_story(const struct dlp_client_page *page, uint32_t idx_slot, const struct dlp_story_bounds *bounds,
                     struct dlp_slot_story *ret_story) {
        const struct dlp_slot_times *times = &page->times[idx_slot];
        struct dlp_slot_story story = { .asked_ns = meter_get(&times->asked_ns),
                                        .waited_until_ns = meter_get(&times->waited_until_ns),
                                        .taken_ns = meter_get(&times->taken_ns),
                                        .released_ns = meter_get(&times->released_ns) };

        if (story.taken_ns < bounds->ready_ns || story.taken_ns > bounds->now_ns)
                return false;
        if (!bounds->is_back || story.released_ns < story.taken_ns || story.released_ns > bounds->now_ns)
                story.released_ns = bounds->now_ns;
        if (story.asked_ns < bounds->made_ns || story.asked_ns > story.waited_until_ns ||
            story.waited_until_ns > story.taken_ns)
                story.asked_ns = story.waited_until_ns = 0;
        *ret_story = story;
        return true;
}
