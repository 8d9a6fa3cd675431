/* Groups, and bytes that go round them.
 *
 * Along a chain in the order of the members' numbers, round from the source: each line carries each byte once each way,
 * whoever it is from. MPI_Ibcast() has such a chain too, but exchanges the source with the first member instead of
 * turning the ring, so that with many sources the same few nodes pass on everything. */
#include "daemon/staging/nodes/cluster_mpi.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define PIECE_BYTES      (4u << 20)   /* of what is shared: with these ... */
#define PIECES_UNDER_WAY 8u           /* ... and so many a line of 1 Gbit/s is full */
#define SEGMENT_BYTES    (256u << 10) /* is passed on whole; above 64 KiB nothing is sent that nobody asked for yet */
#define SENDS_MAX        2u           /* segments of one spread on their way to the next node */
#define ADVANCE_NS       20000ull     /* between two looks at what is to be passed on */
#define TAGS             32768u       /* as many as MPI promises */

void mpi_group_free(struct cluster_group *base) {
        struct mpi_group *group = (struct mpi_group *)base;

        free(group->nodes);
        free(group);
}

/* A group is no communicator: making one has no nonblocking form, and nothing here needs it. All nodes go through their
 * groups in the same order and end each before the next, so messages of one tag between two nodes never overtake. */
int mpi_group_new(struct cluster *cluster, const uint8_t *members, struct cluster_group **ret_group, struct why *why) {
        struct mpi_group *group;

        if (members && !cluster_is_member(members, cluster->node)) {
                *ret_group = NULL;
                return 0;
        }
        group = calloc(1, sizeof(*group));
        if (group)
                group->nodes = calloc(cluster->n_nodes, sizeof(*group->nodes));
        if (!group || !group->nodes) {
                free(group);
                return why_set(why, -ENOMEM, "no memory for a group of nodes");
        }
        group->base.cluster = cluster;
        for (uint32_t i = 0; i < cluster->n_nodes; i++) {
                if (i == cluster->node)
                        group->mine = group->n_nodes;
                if (!members || cluster_is_member(members, i))
                        group->nodes[group->n_nodes++] = (int)i;
        }
        *ret_group = &group->base;
        return 0;
}

/* ---- spreading --------------------------------------------------------------------------------------------------- */

static uint32_t segment_bytes(const struct mpi_spread *spread, uint32_t idx) {
        uint32_t left = spread->n_bytes - idx * SEGMENT_BYTES;

        return left < SEGMENT_BYTES ? left : SEGMENT_BYTES;
}

static MPI_Comm comm_of(const struct mpi_spread *spread) {
        return ((const struct mpi *)spread->base.group->cluster)->world;
}

static int send_segment(struct mpi_spread *spread, uint32_t idx) {
        return MPI_Isend(spread->bytes + (size_t)idx * SEGMENT_BYTES, (int)segment_bytes(spread, idx), MPI_BYTE,
                         spread->to, spread->tag, comm_of(spread), &spread->requests[spread->n_segments + idx]);
}

static int receive_segment(struct mpi_spread *spread, uint32_t idx, int from) {
        return MPI_Irecv(spread->bytes + (size_t)idx * SEGMENT_BYTES, (int)segment_bytes(spread, idx), MPI_BYTE, from,
                         spread->tag, comm_of(spread), &spread->requests[idx]);
}

static bool has_come_through(const struct mpi_spread *spread) {
        return spread->n_passed_on == spread->n_segments;
}

/* Segments come in their order, since they were sent so. */
static int receive_some(struct mpi_spread *spread) {
        int is_there = 1, r = MPI_SUCCESS;

        while (r == MPI_SUCCESS && is_there && spread->n_there < spread->n_segments) {
                r = MPI_Test(&spread->requests[spread->n_there], &is_there, MPI_STATUS_IGNORE);
                spread->n_there += r == MPI_SUCCESS && is_there;
        }
        return r;
}

/* A few at a time: MPI sends all that it has at once, side by side, so that the first would arrive when the last does,
 * and each node of the chain would begin to send when the one before it has ended. A spread waits for no other here, or
 * nodes that are at different ones could wait for each other. */
static int send_some(struct mpi_spread *spread) {
        int is_away = 1, r = MPI_SUCCESS;

        while (r == MPI_SUCCESS && is_away && spread->n_passed_on < spread->n_there) {
                while (r == MPI_SUCCESS && spread->n_sent < spread->n_there &&
                       spread->n_sent - spread->n_passed_on < SENDS_MAX)
                        r = send_segment(spread, spread->n_sent++);
                if (r == MPI_SUCCESS)
                        r = MPI_Test(&spread->requests[spread->n_segments + spread->n_passed_on], &is_away,
                                     MPI_STATUS_IGNORE);
                spread->n_passed_on += r == MPI_SUCCESS && is_away;
        }
        return r;
}

static int cluster_mpi_spread_advance(struct mpi_spread *spread) {
        int r = receive_some(spread);

        return r == MPI_SUCCESS ? send_some(spread) : r;
}

/* All that is under way, whichever of it the caller asks for: others down the chain wait for it. */
int mpi_advance(struct mpi *mpi, struct why *why) {
        struct mpi_spread **place = &mpi->active;

        if (clock_now_ns() - mpi->advanced_ns < ADVANCE_NS)
                return 0;
        while (*place) {
                int r = cluster_mpi_spread_advance(*place);

                if (r != MPI_SUCCESS)
                        return mpi_failed(r, "spreading", why);
                if (has_come_through(*place))
                        *place = (*place)->next;
                else
                        place = &(*place)->next;
        }
        mpi->advanced_ns = clock_now_ns();
        return 0;
}

/* The source has all, the others ask for all. */
static int begin_spread(struct mpi_spread *spread, const struct mpi_group *group, int source) {
        uint32_t n = group->n_nodes;
        int from = group->nodes[(group->mine + n - 1) % n], r = MPI_SUCCESS;

        spread->to = group->nodes[(group->mine + 1) % n];
        if (spread->to == source)
                spread->to = MPI_PROC_NULL;
        if (group->nodes[group->mine] == source) {
                spread->n_there = spread->n_segments;
                return send_some(spread);
        }
        for (uint32_t i = 0; r == MPI_SUCCESS && i < spread->n_segments; i++)
                r = receive_segment(spread, i, from);
        return r;
}

int mpi_spread_start(struct cluster_group *base, uint32_t from_node, void *bytes, uint32_t n_bytes,
                     struct cluster_spread **ret_spread, struct why *why) {
        struct mpi_group *group = (struct mpi_group *)base;
        struct mpi *mpi = mpi_of(base->cluster);
        uint32_t n_segments = n_bytes / SEGMENT_BYTES + (n_bytes % SEGMENT_BYTES > 0);
        struct mpi_spread *spread, **place = &mpi->active;
        int r;

        assert(from_node < base->cluster->n_nodes);
        spread = calloc(1, sizeof(*spread) + 2 * (size_t)n_segments * sizeof(spread->requests[0]));
        if (!spread)
                return why_set(why, -ENOMEM, "no memory for a message to the other nodes");
        spread->base.group = base;
        spread->bytes = bytes;
        spread->n_bytes = n_bytes;
        spread->n_segments = n_segments;
        spread->tag = (int)(group->n_spreads++ % TAGS);
        r = begin_spread(spread, group, (int)from_node);
        if (r != MPI_SUCCESS)
                return mpi_failed(r, "spreading", why); /* what was begun of it stays, as after any failure */
        while (*place)
                place = &(*place)->next;
        if (!has_come_through(spread)) /* a small one from here may be away already */
                *place = spread;
        *ret_spread = &spread->base;
        return 0;
}

int mpi_spread_test(struct cluster_spread *base, struct why *why) {
        struct mpi_spread *spread = (struct mpi_spread *)base;
        struct mpi *mpi = mpi_of(base->group->cluster);
        int r;

        r = mpi_advance(mpi, why);
        if (r < 0)
                return r;
        if (!has_come_through(spread))
                return CLUSTER_UNDER_WAY;
        mpi->n_steps++;
        free(spread); /* no longer active */
        return 0;
}

static int wait_for_spread(struct mpi *mpi, struct cluster_spread *spread, struct why *why) {
        uint64_t begin_ns = clock_now_ns();
        int r;

        mpi->n_waiting++;
        do {
                r = spread_test(spread, why);
                if (r == CLUSTER_UNDER_WAY) {
                        int passed = mpi_pass_time(mpi, begin_ns, why);

                        r = passed < 0 ? passed : r;
                }
        } while (r == CLUSTER_UNDER_WAY);
        mpi->n_waiting--;
        return r;
}

int mpi_share(struct cluster *cluster, uint32_t from, void *bytes, uint64_t n_bytes, struct why *why) {
        struct mpi *mpi = mpi_of(cluster);
        struct cluster_spread *spreads[PIECES_UNDER_WAY];
        uint64_t n_pieces = n_bytes / PIECE_BYTES + (n_bytes % PIECE_BYTES > 0);
        int r = 0;

        for (uint64_t i = 0; r == 0 && i < n_pieces + PIECES_UNDER_WAY; i++) {
                struct cluster_spread **spread = &spreads[i % PIECES_UNDER_WAY];
                uint64_t offset = i * PIECE_BYTES;

                if (i >= PIECES_UNDER_WAY && i - PIECES_UNDER_WAY < n_pieces)
                        r = wait_for_spread(mpi, *spread, why);
                if (r == 0 && i < n_pieces)
                        r = mpi_spread_start(mpi->everyone, from, (uint8_t *)bytes + offset,
                                             n_bytes - offset < PIECE_BYTES ? (uint32_t)(n_bytes - offset)
                                                                            : PIECE_BYTES,
                                             spread, why);
        }
        return r;
}
