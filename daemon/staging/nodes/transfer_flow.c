#include <assert.h>
#include <errno.h>

#include <stdio.h>
#include <string.h>

#include "daemon/base/threads/thread.h"
#include "daemon/staging/nodes/transfer_private.h"
#include "proto/base/clock.h"

#define UNREADY_MAX 2u          /* chunks that each of several nodes fetches side by side */
#define LOOK_NS     50000000ull /* between two looks at the cluster */
#define WAIT_SPREAD_NS                                                                                                 \
        600000ull /* MPI has nothing to sleep on: where CPUs are short, a third of it costs 8 % of the rate */
#define WAIT_NS 20000000ull

/* One move on this node. All of it belongs to the calling thread; the transfer's lock is held but for waiting. */
struct flow {
        struct transfer *transfer;
        const struct move *move;
        struct cluster_group *group;
        uint64_t next_own;      /* the first route that this node may have to bring */
        uint64_t next_spread;   /* the first route that is not on its way between nodes */
        uint64_t end;           /* n_routes, or where a source said stop */
        struct parcels brought; /* by this node, in the order of routes; some are not ready yet */
        struct parcels spreading;
        uint32_t n_spreading;
        uint64_t next_look_ns;
};

static bool is_mine(const struct flow *flow, uint64_t idx) {
        return flow->move->routes[idx].source == flow->transfer->me;
}

static uint32_t count_unready(const struct flow *flow) {
        const struct parcel *parcel;
        uint32_t n = 0;

        TAILQ_FOREACH(parcel, &flow->brought, entry)
                n += !parcel->is_ready;
        return n;
}

/* Sources bring ahead of their turn, as far as their parcels go; but few chunks at a time, since those that are fetched
 * side by side share the origin's line, and all would come late while the others wait for the first. Measured with four
 * nodes on lines of 500 Mbit/s: size / line is exceeded by 25 % with two, by half with six. */
static void bring(struct flow *flow) {
        struct transfer *transfer = flow->transfer;
        uint32_t n_nodes = cluster_n_nodes(transfer->options->cluster);
        uint32_t n_most = n_nodes == 1 ? TRANSFER_PARCELS : UNREADY_MAX;
        struct parcel *parcel;

        while (!transfer->is_stopping) {
                while (flow->next_own < flow->end && !is_mine(flow, flow->next_own))
                        flow->next_own++;
                parcel = TAILQ_FIRST(&transfer->free_source);
                if (flow->next_own >= flow->end || !parcel || count_unready(flow) >= n_most)
                        return;
                TAILQ_REMOVE(&transfer->free_source, parcel, entry);
                TAILQ_INSERT_TAIL(&flow->brought, parcel, entry);
                parcel->idx_route = flow->next_own++;
                parcel_bring(transfer, parcel, &flow->move->routes[parcel->idx_route]);
        }
}

/* The parcel for the next route: brought by this node, or empty to receive. NULL: not yet. */
static struct parcel *next_parcel(struct flow *flow) {
        struct transfer *transfer = flow->transfer;
        const struct route *route = &flow->move->routes[flow->next_spread];
        struct parcel *parcel = TAILQ_FIRST(&flow->brought);

        if (is_mine(flow, flow->next_spread) && parcel && parcel->idx_route == flow->next_spread && parcel->is_ready) {
                TAILQ_REMOVE(&flow->brought, parcel, entry);
                return parcel;
        }
        if (is_mine(flow, flow->next_spread) && !transfer->is_stopping)
                return NULL;
        parcel = TAILQ_FIRST(&transfer->free_receive);
        if (!parcel)
                return NULL;
        TAILQ_REMOVE(&transfer->free_receive, parcel, entry);
        parcel->place = chunks_get(transfer->options->chunks, route->chunk);
        parcel->idx_route = flow->next_spread;
        *parcel->head = (struct parcel_head){ .status = PARCEL_STOP, .chunk = route->chunk };
        return parcel;
}

static int start_spreads(struct flow *flow, struct why *why) {
        while (flow->n_spreading < TRANSFER_SPREADS && flow->next_spread < flow->end) {
                struct parcel *parcel = next_parcel(flow);
                int r;

                if (!parcel)
                        return 0;
                r = spread_start(flow->group, flow->move->routes[flow->next_spread].source, parcel->head,
                                 parcel_message_bytes(parcel->place.n_bytes), &parcel->spread, why);
                if (r < 0)
                        return r;
                TAILQ_INSERT_TAIL(&flow->spreading, parcel, entry);
                flow->n_spreading++;
                flow->next_spread++;
        }
        return 0;
}

/* What another node could not bring is news here. */
static void transfer_flow_hear(struct flow *flow, const struct parcel *parcel) {
        struct transfer *transfer = flow->transfer;

        if (parcel->head->status == PARCEL_WHOLE)
                return;
        /* Nobody has begun any route after these, so all members end at the same place. */
        if (parcel->head->status == PARCEL_STOP && flow->end > parcel->idx_route + TRANSFER_SPREADS)
                flow->end = parcel->idx_route + TRANSFER_SPREADS;
        if (flow->move->routes[parcel->idx_route].source == transfer->me)
                return; /* told already */
        parcel->head->text[sizeof(parcel->head->text) - 1] = '\0';
        if (parcel->head->text[0])
                transfer_heard(transfer, -EIO, parcel->head->is_hopeful, parcel->head->text);
}

/* Takes in what is through, in order. Returns how many, or an errno. */
static int finish_spreads(struct flow *flow, struct why *why) {
        struct parcel *parcel;
        int n = 0;

        while ((parcel = TAILQ_FIRST(&flow->spreading))) {
                int r = spread_test(parcel->spread, why);

                if (r == CLUSTER_UNDER_WAY)
                        break;
                if (r < 0)
                        return r;
                TAILQ_REMOVE(&flow->spreading, parcel, entry);
                flow->n_spreading--;
                n++;
                if (parcel->head->chunk != flow->move->routes[parcel->idx_route].chunk)
                        return why_set(
                                why, -EPROTO,
                                "chunk %llu came instead of %llu: the nodes run different versions of dataloaderd-stage",
                                (unsigned long long)parcel->head->chunk,
                                (unsigned long long)flow->move->routes[parcel->idx_route].chunk);
                transfer_flow_hear(flow, parcel);
                parcel_deliver(flow->transfer, parcel);
        }
        return n;
}

static void wait_ns(struct transfer *transfer, uint64_t ns) {
        thread_wait_until(&transfer->changed, &transfer->lock, clock_now_ns() + ns);
}

static bool is_origin_asked(const struct flow *flow) {
        const struct parcel *parcel;

        TAILQ_FOREACH(parcel, &flow->brought, entry)
                if (parcel->is_fetched && !parcel->is_ready)
                        return true;
        return false;
}

/* The cluster's word, now and then, with the lock open. */
static int transfer_flow_look(struct flow *flow, struct why *why) {
        struct transfer *transfer = flow->transfer;
        uint64_t now_ns = clock_now_ns();
        int r;

        if (transfer->options->cancel && *transfer->options->cancel)
                transfer->is_stopping = true;
        if (transfer->n_failed > TRANSFER_FAILURES_MAX)
                transfer->is_stopping = true;
        if (now_ns < flow->next_look_ns)
                return 0;
        flow->next_look_ns = now_ns + LOOK_NS;
        transfer_count(transfer, is_origin_asked(flow));
        pthread_mutex_unlock(&transfer->lock);
        r = transfer->options->look(transfer->options->userdata, why);
        pthread_mutex_lock(&transfer->lock);
        return r;
}

/* What was brought for routes after an early end is still good for this node. */
static bool put_away_brought(struct flow *flow) {
        struct parcel *parcel, *next;

        TAILQ_FOREACH_SAFE(parcel, &flow->brought, entry, next) {
                if (!parcel->is_ready)
                        continue;
                TAILQ_REMOVE(&flow->brought, parcel, entry);
                parcel_deliver(flow->transfer, parcel);
        }
        return TAILQ_EMPTY(&flow->brought);
}

static int carry(struct flow *flow, struct why *why) {
        struct transfer *transfer = flow->transfer;
        int r;

        while (flow->next_spread < flow->end || flow->n_spreading > 0) {
                r = transfer_flow_look(flow, why);
                if (r < 0)
                        return r;
                bring(flow);
                r = start_spreads(flow, why);
                if (r < 0)
                        return r;
                r = finish_spreads(flow, why);
                if (r < 0)
                        return r;
                if (r == 0)
                        wait_ns(transfer, flow->n_spreading > 0 ? WAIT_SPREAD_NS : WAIT_NS);
        }
        /* The writer may still be at it; and what is still being fetched lies in our memory. */
        while (!put_away_brought(flow) || transfer->n_writing > 0) {
                r = transfer_flow_look(flow, why);
                if (r < 0)
                        return r;
                if (transfer->is_stopping && transfer->fetcher && !TAILQ_EMPTY(&flow->brought)) {
                        struct fetcher *fetcher = transfer->fetcher;

                        transfer->fetcher = NULL; /* its answers need the lock */
                        pthread_mutex_unlock(&transfer->lock);
                        fetcher_stop(fetcher);
                        pthread_mutex_lock(&transfer->lock);
                        continue;
                }
                wait_ns(transfer, WAIT_NS);
        }
        return 0;
}

int flow_run(struct transfer *transfer, const struct move *move, struct cluster_group *group, struct why *why) {
        struct flow flow = { .transfer = transfer, .move = move, .group = group, .end = move->n_routes };
        int r;

        TAILQ_INIT(&flow.brought);
        TAILQ_INIT(&flow.spreading);
        pthread_mutex_lock(&transfer->lock);
        r = carry(&flow, why);
        pthread_mutex_unlock(&transfer->lock);
        return r;
}
