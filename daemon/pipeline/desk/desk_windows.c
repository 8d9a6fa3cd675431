/* pipeline/desk/desk_windows.c: how many samples a process has at a time, and how many of them are one order. Where functions
 * take microseconds, the way there and back would cost more than they do; where they take milliseconds, a sample that
 * waits at a process that is at work is late. */
#include "daemon/pipeline/desk/desk_private.h"

#include "proto/base/clock.h"

#define LONG_NS   2000000ull /* a function that takes longer gets one order at a time: the way is short beside it */
#define QUICK_NS  200000ull  /* one that takes less gets MORE, */
#define TINY_NS   100000ull  /* one that takes even less as many as there may be, */
#define SOME      4u         /* and all others this many */
#define MORE      16u
#define RUN_NS    500000ull  /* that a run should take */
#define AHEAD_NS  8000000ull /* of runs that a process has: the daemon may wait that long for a CPU */
#define RUNS      4u         /* for each process that a ring has room for: else the others wait for the last one */
#define AHEAD_MAX 1024u      /* samples */
#define OUTLIER   4u
#define MANY      8u /* steps: with more, fewer samples fit into a packet */

uint32_t desk_run(const struct desk *desk) {
        return atomic_load_explicit(&desk->n_run, memory_order_relaxed);
}

uint32_t desk_orders_max(const struct desk *desk) {
        return desk->n_steps > MANY ? MORE : DLP_ORDERS_MAX;
}

/* And one run more: they fit into a packet, with a seed for each step. */
uint32_t desk_packet_max(const struct desk *desk) {
        return desk->n_steps > MANY ? 2 * MORE : 2 * DLP_RUN_MAX;
}

/* Where a function is quick, the next orders are with the process before it asks: of runs, the next one. */
static uint32_t window_of(const struct seat *seat) {
        uint32_t n_run = desk_run(seat->desk);
        uint64_t n_ahead;

        if (seat->supervises)
                return 0;
        if (seat->usual_ns == 0 || seat->usual_ns > LONG_NS)
                return 1;
        if (seat->usual_ns > TINY_NS)
                return seat->usual_ns > QUICK_NS ? SOME : MORE;
        if (n_run == 1)
                return desk_orders_max(seat->desk);
        n_ahead = AHEAD_NS / seat->usual_ns;
        return n_ahead < 2 * n_run ? 2 * n_run : n_ahead < AHEAD_MAX ? (uint32_t)n_ahead : AHEAD_MAX;
}

uint32_t desk_room_of(const struct seat *seat) {
        uint32_t window = window_of(seat);

        return seat->n_dealt < desk_orders_max(seat->desk) && seat->n_samples < window ? window - seat->n_samples : 0;
}

/* The slowest process counts. */
uint32_t desk_choose_run(const struct desk *desk) {
        uint64_t ring = (uint64_t)desk->feed->ring->n_slots * desk->feed->batch_samples, slowest_ns = 0, n;
        const struct seat *seat;
        uint32_t n_workers = 0;

        TAILQ_FOREACH(seat, &desk->seats, entry) {
                if (seat->supervises)
                        continue;
                if (!seat->takes_runs)
                        return 1;
                n_workers++;
                if (seat->usual_ns > slowest_ns)
                        slowest_ns = seat->usual_ns;
        }
        if (slowest_ns == 0 || slowest_ns > TINY_NS)
                return 1;
        n = RUN_NS / slowest_ns;
        if (n > ring / (RUNS * n_workers))
                n = ring / (RUNS * n_workers);
        if (n > (desk->n_steps > MANY ? MORE : DLP_RUN_MAX))
                n = desk->n_steps > MANY ? MORE : DLP_RUN_MAX;
        return n > 0 ? (uint32_t)n : 1;
}

/* A process knows best: between its answers it may have waited for a CPU. One that was interrupted while it measured
 * counts no more than OUTLIER times the usual. */
void desk_note_time(struct seat *seat, uint32_t n, uint64_t took_ns) {
        uint64_t now_ns = clock_now_ns();

        took_ns = (took_ns > 0 ? took_ns : now_ns - seat->begun_ns) / n + 1;
        if (seat->usual_ns > 0 && took_ns > OUTLIER * seat->usual_ns)
                took_ns = OUTLIER * seat->usual_ns;
        seat->usual_ns = seat->usual_ns == 0 ? took_ns : (3 * seat->usual_ns + took_ns) / 4;
        seat->begun_ns = now_ns;
}
