/* Several nodes, with Open MPI.
 *
 * MPI itself waits for ever: for a node that was stopped, whose disk hangs, whose cable is out. So every call that
 * waits is a nonblocking one that is tested until it is through, and meanwhile each node tells the first, twice a
 * second, that it is there and how far it is, and the first answers (cluster_watch.h judges what comes of it). The few
 * calls that have no nonblocking form run under a guard.
 *
 * Bytes are spread along a chain in the order of the members' numbers, round from the source: each line carries each
 * byte once each way, whoever it is from. MPI_Ibcast() has such a chain too, but exchanges the source with the first
 * member instead of turning the ring, so that with many sources the same few nodes pass on everything.
 *
 * After a failure requests may be under way that cannot be called back, on memory that then must stay: what is left to
 * do is cluster_abort(). */
#include "daemon/stage/cluster_private.h"

#include <assert.h>
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/stage/cluster_guard.h"
#include "daemon/stage/cluster_watch.h"

#define PIECE_BYTES      (4u << 20) /* measured: the chain is at 95 % of the line with these ... */
#define PIECES_UNDER_WAY 4u         /* ... and so many */
#define SEGMENT_BYTES                                                                                                  \
        (256u << 10)                /* passed on when it is there; above 64 KiB nobody sends what is not asked for yet \
                                     */
#define ADVANCE_NS      20000ull    /* between two looks at what is to be passed on */
#define TAGS            32768u      /* as many as MPI promises */
#define GATHER_BYTES    (16u << 20) /* what gathering takes in memory besides */
#define BEAT_NS         500000000ull  /* between two words of a node */
#define IDLE_NS         50000000ull   /* between two calls of options.idle() */
#define POLL_US         200u          /* measured: 5-8 % of a CPU while bytes move */
#define PATIENCE_NS     1000000000ull /* a wait that took so long is no matter of microseconds: */
#define PATIENT_POLL_US 2000u
#define BEATS_A_LOOK    64u /* news taken a call: bounds it */
#define ABORT_S         5u  /* for MPI_Abort(), which asks mpirun */
#define TAG_BEAT        1
#define TAG_ANSWER      2

/* Open MPI's settings that a run by hand needs as well, unless somebody chose otherwise. What only mpirun itself reads
 * is in stager/launch.c. */
static const struct {
        const char *name, *value;
} SETTINGS[] = {
        { "OMPI_MCA_mpi_yield_when_idle", "1" },
        { "OMPI_MCA_pml", "ob1" }, /* what the deadlines were measured with */
        { "OMPI_MCA_btl", "tcp,self" },
};

struct beat {
        struct cluster_news news;
        uint64_t n_steps;
        uint64_t is_waiting;
};

struct mpi {
        struct cluster base;
        pthread_t thread; /* the one that joined: MPI_THREAD_FUNNELED */
        MPI_Comm world;   /* of our own, so that nothing that strays in is taken for ours */
        MPI_Comm beats;
        struct watch *watch;
        struct beat told;           /* last given to cluster_tell() */
        struct beat sent;           /* on its way; others than the first */
        struct beat heard;          /* the first: being received into */
        char answer;                /* its bytes say nothing */
        MPI_Request sending;        /* of `sent` */
        MPI_Request receiving;      /* of `heard`, or of the answer */
        bool is_answered;           /* the first has answered what was sent last */
        uint64_t beaten_ns;         /* when it was sent */
        uint64_t idled_ns;          /* when options.idle() was called last */
        uint64_t n_steps;           /* messages that came through: progress, too */
        struct mpi_group *everyone; /* on `world` */
        struct mpi_spread *active;  /* what is under way, in the order in which it was started */
        uint64_t advanced_ns;
        uint32_t n_waiting; /* > 0: in a call that needs the others */
};

struct mpi_group {
        struct cluster_group base;
        MPI_Comm comm;
        int *ranks; /* in comm, of each node; MPI_UNDEFINED for those that are no members */
        int rank, n_members;
        uint32_t n_spreads; /* started: their tags */
};

struct mpi_spread {
        struct cluster_spread base;
        struct mpi_spread *next; /* in mpi.active */
        uint8_t *bytes;
        uint32_t n_bytes;
        int to; /* MPI_PROC_NULL: the chain ends here */
        int tag;
        uint32_t n_segments;
        uint32_t n_there;       /* received and on their way to the next */
        uint32_t n_passed_on;   /* and away */
        MPI_Request requests[]; /* a receive for each segment, then a send for each */
};

static struct mpi *of(const struct cluster *cluster) {
        struct mpi *mpi = (struct mpi *)cluster;

        assert(pthread_equal(mpi->thread, pthread_self()));
        return mpi;
}

static int failed(int code, const char *what, struct why *why) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = 0, class = MPI_ERR_OTHER;

        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
        return why_set(why, class == MPI_ERR_NO_MEM ? -ENOMEM : -EIO, "%s with the other nodes: MPI says: %s", what,
                       text);
}

static int advance_all(struct mpi *mpi, uint64_t now_ns, struct why *why);

/* ---- words ------------------------------------------------------------------------------------------------------- */

static int listen_to_all(struct mpi *mpi, uint64_t now_ns) {
        int r = MPI_SUCCESS;

        for (uint32_t i = 0; i < BEATS_A_LOOK && r == MPI_SUCCESS; i++) {
                static char answer;
                MPI_Request request;
                MPI_Status status;
                int is_through = 0;

                r = MPI_Test(&mpi->receiving, &is_through, &status);
                if (r != MPI_SUCCESS || !is_through)
                        return r;
                watch_hear(mpi->watch, (uint32_t)status.MPI_SOURCE, &mpi->heard.news, mpi->heard.n_steps,
                           mpi->heard.is_waiting, now_ns);
                /* At most one a node is under way, since a node speaks again when it was answered. */
                r = MPI_Isend(&answer, 1, MPI_BYTE, status.MPI_SOURCE, TAG_ANSWER, mpi->beats, &request);
                if (r == MPI_SUCCESS)
                        r = MPI_Request_free(&request);
                if (r == MPI_SUCCESS)
                        r = MPI_Irecv(&mpi->heard, sizeof(mpi->heard), MPI_BYTE, MPI_ANY_SOURCE, TAG_BEAT, mpi->beats,
                                      &mpi->receiving);
        }
        return r;
}

static int speak_to_first(struct mpi *mpi, uint64_t now_ns) {
        int is_through = 0, r;

        r = MPI_Test(&mpi->receiving, &is_through, MPI_STATUS_IGNORE);
        if (r == MPI_SUCCESS && is_through) {
                mpi->is_answered = true;
                watch_hear_answer(mpi->watch, now_ns);
                r = MPI_Irecv(&mpi->answer, 1, MPI_BYTE, 0, TAG_ANSWER, mpi->beats, &mpi->receiving);
        }
        if (r == MPI_SUCCESS)
                r = MPI_Test(&mpi->sending, &is_through, MPI_STATUS_IGNORE);
        if (r != MPI_SUCCESS || !is_through || !mpi->is_answered || now_ns - mpi->beaten_ns < BEAT_NS)
                return r;
        mpi->sent = mpi->told;
        mpi->sent.n_steps = mpi->n_steps;
        mpi->sent.is_waiting = mpi->n_waiting > 0;
        mpi->beaten_ns = now_ns;
        mpi->is_answered = false;
        return MPI_Isend(&mpi->sent, sizeof(mpi->sent), MPI_BYTE, 0, TAG_BEAT, mpi->beats, &mpi->sending);
}

/* Says and hears what is due, and judges. Never blocks. */
static int look(struct mpi *mpi, struct why *why) {
        uint64_t now_ns = clock_now_ns();
        int r;

        r = advance_all(mpi, now_ns, why);
        if (r < 0)
                return r;
        if (mpi->base.node == 0) {
                watch_hear(mpi->watch, 0, &mpi->told.news, mpi->n_steps, mpi->n_waiting > 0, now_ns);
                r = listen_to_all(mpi, now_ns);
        } else {
                r = speak_to_first(mpi, now_ns);
        }
        if (r != MPI_SUCCESS)
                return failed(r, "talking", why);
        return watch_judge(mpi->watch, now_ns, why);
}

static int mpi_tell(struct cluster *cluster, const struct cluster_news *news, struct why *why) {
        struct mpi *mpi = of(cluster);

        mpi->told.news = *news;
        memcpy(mpi->told.news.node, cluster->names[cluster->node], CLUSTER_NAME_SIZE);
        if (cluster->node != 0) /* for cluster_news() of itself */
                watch_hear(mpi->watch, cluster->node, &mpi->told.news, mpi->n_steps, false, clock_now_ns());
        return look(mpi, why);
}

static const struct cluster_news *mpi_news(const struct cluster *cluster, uint32_t node) {
        return watch_news(of(cluster)->watch, node);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Between two looks at what is waited for: words, the caller's idle(), a short sleep. */
static int pass_time(struct mpi *mpi, uint64_t begin_ns, struct why *why) {
        uint64_t now_ns;
        int r;

        r = look(mpi, why);
        if (r < 0)
                return r;
        now_ns = clock_now_ns();
        if (mpi->base.options.idle && now_ns - mpi->idled_ns >= IDLE_NS) {
                mpi->idled_ns = now_ns;
                mpi->base.options.idle(mpi->base.options.userdata);
        }
        usleep(now_ns - begin_ns < PATIENCE_NS ? POLL_US : PATIENT_POLL_US);
        return 0;
}

static int wait_for(struct mpi *mpi, MPI_Request *request, const char *what, struct why *why) {
        uint64_t begin_ns = clock_now_ns();
        int is_through = 0, r = 0;

        mpi->n_waiting++;
        while (r == 0) {
                r = MPI_Test(request, &is_through, MPI_STATUS_IGNORE);
                if (r != MPI_SUCCESS)
                        r = failed(r, what, why);
                else if (is_through)
                        break;
                else
                        r = pass_time(mpi, begin_ns, why);
        }
        mpi->n_waiting--;
        mpi->n_steps += r == 0;
        return r;
}

static int mpi_barrier(struct cluster *cluster, struct why *why) {
        struct mpi *mpi = of(cluster);
        MPI_Request request;
        int r;

        r = MPI_Ibarrier(mpi->world, &request);
        if (r != MPI_SUCCESS)
                return failed(r, "a barrier", why);
        return wait_for(mpi, &request, "a barrier", why);
}

static int gather_piece(struct mpi *mpi, const void *mine, uint32_t n_bytes, void *all, struct why *why) {
        MPI_Request request;
        int r;

        r = MPI_Iallgather(mine, (int)n_bytes, MPI_BYTE, all, (int)n_bytes, MPI_BYTE, mpi->world, &request);
        if (r != MPI_SUCCESS)
                return failed(r, "gathering", why);
        return wait_for(mpi, &request, "gathering", why);
}

/* In pieces, since MPI counts in int and gathers the nodes' pieces beside each other, not the nodes' bytes. */
static int mpi_gather(struct cluster *cluster, const void *mine, uint64_t n_bytes, void *all, struct why *why) {
        struct mpi *mpi = of(cluster);
        uint32_t n_nodes = cluster->n_nodes, piece_bytes = GATHER_BYTES / n_nodes + 1;
        _cleanup_(freep) uint8_t *pieces = NULL;
        int r;

        if (n_bytes <= piece_bytes)
                return gather_piece(mpi, mine, (uint32_t)n_bytes, all, why);
        pieces = malloc((size_t)piece_bytes * n_nodes);
        if (!pieces)
                return why_set(why, -ENOMEM, "no memory to gather what %u nodes say", n_nodes);
        for (uint64_t offset = 0; offset < n_bytes; offset += piece_bytes) {
                uint32_t n = n_bytes - offset < piece_bytes ? (uint32_t)(n_bytes - offset) : piece_bytes;

                r = gather_piece(mpi, (const uint8_t *)mine + offset, n, pieces, why);
                if (r < 0) {
                        TAKE_PTR(pieces); /* it may be written to still */
                        return r;
                }
                for (uint32_t i = 0; i < n_nodes; i++)
                        memcpy((uint8_t *)all + i * n_bytes + offset, pieces + (size_t)i * n, n);
        }
        return 0;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static void mpi_group_free(struct cluster_group *base) {
        struct mpi_group *group = (struct mpi_group *)base;

        if (group->comm != MPI_COMM_NULL && group->comm != ((struct mpi *)base->cluster)->world)
                MPI_Comm_free(&group->comm);
        free(group->ranks);
        free(group);
}

/* Which rank of the group each node is. */
static int rank_members(struct mpi_group *group, uint32_t n_nodes, MPI_Group all, MPI_Group some) {
        _cleanup_(freep) int *nodes = calloc(n_nodes, sizeof(*nodes));

        group->ranks = calloc(n_nodes, sizeof(*group->ranks));
        if (!nodes || !group->ranks)
                return MPI_ERR_NO_MEM;
        for (uint32_t i = 0; i < n_nodes; i++)
                nodes[i] = (int)i;
        return MPI_Group_translate_ranks(all, (int)n_nodes, nodes, some, group->ranks);
}

static int make_group(struct mpi *mpi, const uint8_t *members, struct mpi_group *group) {
        uint32_t n_nodes = mpi->base.n_nodes;
        _cleanup_(freep) int *ranks = calloc(n_nodes, sizeof(*ranks));
        MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
        struct guard guard;
        int n_members = 0, r;

        if (!ranks)
                return MPI_ERR_NO_MEM;
        for (uint32_t i = 0; i < n_nodes; i++)
                if (cluster_is_member(members, i))
                        ranks[n_members++] = (int)i;
        r = MPI_Comm_group(mpi->world, &all);
        if (r == MPI_SUCCESS)
                r = MPI_Group_incl(all, n_members, ranks, &some);
        if (r == MPI_SUCCESS)
                r = rank_members(group, n_nodes, all, some);
        if (r == MPI_SUCCESS) {
                guard_begin(&guard, mpi->base.options.stall_s, EX_OSERR, "making a group of nodes");
                r = MPI_Comm_create_group(mpi->world, some, 0, &group->comm);
                guard_end(&guard);
                group->n_members = n_members;
                group->rank = group->ranks[mpi->base.node];
        }
        if (some != MPI_GROUP_NULL)
                MPI_Group_free(&some);
        if (all != MPI_GROUP_NULL)
                MPI_Group_free(&all);
        return r;
}

/* Making a communicator has no nonblocking form. All nodes come here together, so that those which do it are known to
 * be there, and then the guard is for what happens between two barriers. */
static int mpi_group_new(struct cluster *cluster, const uint8_t *members, struct cluster_group **ret_group,
                         struct why *why) {
        struct mpi *mpi = of(cluster);
        struct mpi_group *group = NULL;
        int r;

        r = mpi_barrier(cluster, why);
        if (r < 0)
                return r;
        if (cluster_is_member(members, cluster->node)) {
                group = calloc(1, sizeof(*group));
                if (!group)
                        return why_set(why, -ENOMEM, "no memory for a group of nodes");
                group->base.cluster = cluster;
                group->comm = MPI_COMM_NULL;
                r = make_group(mpi, members, group);
                if (r != MPI_SUCCESS) {
                        mpi_group_free(&group->base);
                        return failed(r, "making a group", why);
                }
        }
        *ret_group = group ? &group->base : NULL;
        return mpi_barrier(cluster, why);
}

/* All nodes, without another communicator. */
static int make_everyone(struct mpi *mpi) {
        struct mpi_group *group = calloc(1, sizeof(*group));
        uint32_t n_nodes = mpi->base.n_nodes;

        if (!group)
                return -ENOMEM;
        group->base.cluster = &mpi->base;
        group->comm = mpi->world;
        group->ranks = calloc(n_nodes, sizeof(*group->ranks));
        group->rank = (int)mpi->base.node;
        group->n_members = (int)n_nodes;
        mpi->everyone = group;
        for (uint32_t i = 0; group->ranks && i < n_nodes; i++)
                group->ranks[i] = (int)i;
        return group->ranks ? 0 : -ENOMEM;
}

/* ---- spreading --------------------------------------------------------------------------------------------------- */

static uint32_t segment_bytes(const struct mpi_spread *spread, uint32_t idx) {
        uint32_t left = spread->n_bytes - idx * SEGMENT_BYTES;

        return left < SEGMENT_BYTES ? left : SEGMENT_BYTES;
}

static MPI_Comm comm_of(const struct mpi_spread *spread) {
        return ((const struct mpi_group *)spread->base.group)->comm;
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

/* Passes on what has come. Segments come in their order, since they were sent so. */
static int advance(struct mpi_spread *spread) {
        int is_there = 1, r = MPI_SUCCESS;

        while (r == MPI_SUCCESS && spread->n_there < spread->n_segments) {
                r = MPI_Test(&spread->requests[spread->n_there], &is_there, MPI_STATUS_IGNORE);
                if (r != MPI_SUCCESS || !is_there)
                        break;
                r = send_segment(spread, spread->n_there++);
        }
        while (r == MPI_SUCCESS && spread->n_passed_on < spread->n_there) {
                r = MPI_Test(&spread->requests[spread->n_segments + spread->n_passed_on], &is_there, MPI_STATUS_IGNORE);
                if (r != MPI_SUCCESS || !is_there)
                        break;
                spread->n_passed_on++;
        }
        return r;
}

/* All that is under way, whichever of it the caller asks for: others down the chain wait for it. */
static int advance_all(struct mpi *mpi, uint64_t now_ns, struct why *why) {
        struct mpi_spread **place = &mpi->active;

        if (now_ns - mpi->advanced_ns < ADVANCE_NS)
                return 0;
        while (*place) {
                int r = advance(*place);

                if (r != MPI_SUCCESS)
                        return failed(r, "spreading", why);
                if (has_come_through(*place))
                        *place = (*place)->next;
                else
                        place = &(*place)->next;
        }
        mpi->advanced_ns = clock_now_ns();
        return 0;
}

/* The source sends all, the others ask for all. */
static int begin_spread(struct mpi_spread *spread, const struct mpi_group *group, int source) {
        int from = (group->rank + group->n_members - 1) % group->n_members, r = MPI_SUCCESS;

        spread->to = (group->rank + 1) % group->n_members;
        if (spread->to == source)
                spread->to = MPI_PROC_NULL;
        for (uint32_t i = 0; r == MPI_SUCCESS && i < spread->n_segments; i++)
                r = group->rank == source ? send_segment(spread, i) : receive_segment(spread, i, from);
        if (group->rank == source)
                spread->n_there = spread->n_segments;
        return r;
}

static int mpi_spread_start(struct cluster_group *base, uint32_t from_node, void *bytes, uint32_t n_bytes,
                            struct cluster_spread **ret_spread, struct why *why) {
        struct mpi_group *group = (struct mpi_group *)base;
        struct mpi *mpi = of(base->cluster);
        uint32_t n_segments = n_bytes / SEGMENT_BYTES + (n_bytes % SEGMENT_BYTES > 0);
        struct mpi_spread *spread, **place = &mpi->active;
        int r;

        assert(from_node < base->cluster->n_nodes && group->ranks[from_node] != MPI_UNDEFINED);
        spread = calloc(1, sizeof(*spread) + 2 * (size_t)n_segments * sizeof(spread->requests[0]));
        if (!spread)
                return why_set(why, -ENOMEM, "no memory for a message to the other nodes");
        spread->base.group = base;
        spread->bytes = bytes;
        spread->n_bytes = n_bytes;
        spread->n_segments = n_segments;
        spread->tag = (int)(group->n_spreads++ % TAGS);
        r = begin_spread(spread, group, group->ranks[from_node]);
        if (r != MPI_SUCCESS)
                return failed(r, "spreading", why); /* what was begun of it stays, as after any failure */
        while (*place)
                place = &(*place)->next;
        if (n_segments > 0)
                *place = spread;
        *ret_spread = &spread->base;
        return 0;
}

static int mpi_spread_test(struct cluster_spread *base, struct why *why) {
        struct mpi_spread *spread = (struct mpi_spread *)base;
        struct mpi *mpi = of(base->group->cluster);
        int r;

        r = advance_all(mpi, clock_now_ns(), why);
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
                        int passed = pass_time(mpi, begin_ns, why);

                        r = passed < 0 ? passed : r;
                }
        } while (r == CLUSTER_UNDER_WAY);
        mpi->n_waiting--;
        return r;
}

static int mpi_share(struct cluster *cluster, uint32_t from, void *bytes, uint64_t n_bytes, struct why *why) {
        struct mpi *mpi = of(cluster);
        struct cluster_spread *spreads[PIECES_UNDER_WAY];
        uint64_t n_pieces = n_bytes / PIECE_BYTES + (n_bytes % PIECE_BYTES > 0);
        int r = 0;

        for (uint64_t i = 0; r == 0 && i < n_pieces + PIECES_UNDER_WAY; i++) {
                struct cluster_spread **spread = &spreads[i % PIECES_UNDER_WAY];
                uint64_t offset = i * PIECE_BYTES;

                if (i >= PIECES_UNDER_WAY && i - PIECES_UNDER_WAY < n_pieces)
                        r = wait_for_spread(mpi, *spread, why);
                if (r == 0 && i < n_pieces)
                        r = mpi_spread_start(&mpi->everyone->base, from, (uint8_t *)bytes + offset,
                                             n_bytes - offset < PIECE_BYTES ? (uint32_t)(n_bytes - offset)
                                                                            : PIECE_BYTES,
                                             spread, why);
        }
        return r;
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static void mpi_free(struct mpi *mpi) {
        watch_free(mpi->watch);
        free(mpi->base.names);
        free(mpi);
}

/* Takes back what is waited for and leaves MPI. */
static void finalize(struct mpi *mpi) {
        struct guard guard;

        guard_begin(&guard, mpi->base.options.stall_s, EX_OSERR, "leaving the other nodes");
        if (mpi->receiving != MPI_REQUEST_NULL) {
                MPI_Cancel(&mpi->receiving);
                MPI_Wait(&mpi->receiving, MPI_STATUS_IGNORE);
        }
        if (mpi->sending != MPI_REQUEST_NULL)
                MPI_Wait(&mpi->sending, MPI_STATUS_IGNORE);
        if (mpi->everyone)
                mpi_group_free(&mpi->everyone->base);
        if (mpi->beats != MPI_COMM_NULL)
                MPI_Comm_free(&mpi->beats);
        if (mpi->world != MPI_COMM_NULL)
                MPI_Comm_free(&mpi->world);
        MPI_Finalize();
        guard_end(&guard);
}

static void mpi_abort(struct cluster *cluster, int status) {
        struct guard guard;

        guard_begin(&guard, ABORT_S, status, NULL); /* mpirun may be as dead as what we end for */
        MPI_Abort(MPI_COMM_WORLD, status);
}

static void mpi_leave(struct cluster *cluster) {
        struct mpi *mpi = of(cluster);
        struct why why;

        /* With a deadline and names, which MPI_Finalize() has not. */
        if (mpi_barrier(cluster, &why) < 0) {
                log_error("cluster", "%s; ending the run", why.text);
                cluster_abort(cluster, EX_OSERR);
        }
        finalize(mpi);
        mpi_free(mpi);
}

static const struct cluster_type MPI = {
        .leave = mpi_leave,
        .abort = mpi_abort,
        .gather = mpi_gather,
        .share = mpi_share,
        .barrier = mpi_barrier,
        .group_new = mpi_group_new,
        .group_free = mpi_group_free,
        .spread_start = mpi_spread_start,
        .spread_test = mpi_spread_test,
        .tell = mpi_tell,
        .news = mpi_news,
};

/* MPI and two communicators of our own. */
static int begin(struct mpi *mpi, struct why *why) {
        int n_nodes = 0, node = 0, provided = MPI_THREAD_SINGLE, r;
        uint32_t n_launched = cluster_n_launched();
        struct guard guard;

        for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++)
                setenv(SETTINGS[i].name, SETTINGS[i].value, 0);
        guard_begin(&guard, mpi->base.options.stall_s, EX_OSERR, "meeting the other nodes");
        r = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
        if (r == MPI_SUCCESS) {
                MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
                MPI_Comm_size(MPI_COMM_WORLD, &n_nodes);
                MPI_Comm_rank(MPI_COMM_WORLD, &node);
                r = MPI_Comm_dup(MPI_COMM_WORLD, &mpi->world);
        }
        if (r == MPI_SUCCESS)
                r = MPI_Comm_dup(MPI_COMM_WORLD, &mpi->beats);
        guard_end(&guard);
        if (r != MPI_SUCCESS)
                return failed(r, "meeting", why);
        if (provided < MPI_THREAD_FUNNELED)
                return why_set(why, -ENOTSUP, "this MPI cannot be used by a program that has threads");
        /* Without its plugin for MPI srun starts so many strangers, and each would fetch everything for itself. */
        if (n_launched > 0 && (uint32_t)n_nodes != n_launched)
                return why_set(why, -EPROTO,
                               "%u processes were started, but MPI knows of %d: with Slurm use srun --mpi=pmix, with "
                               "mpirun the one of the MPI that this was built with",
                               n_launched, n_nodes);
        mpi->base.node = (uint32_t)node;
        mpi->base.n_nodes = (uint32_t)n_nodes;
        return make_everyone(mpi) < 0 ? why_set(why, -ENOMEM, "no memory for %d nodes", n_nodes) : 0;
}

static int begin_listening(struct mpi *mpi, struct why *why) {
        int r;

        if (watch_new(mpi->base.node, mpi->base.n_nodes, (const char(*)[CLUSTER_NAME_SIZE])mpi->base.names,
                      mpi->base.options.stall_s, clock_now_ns(), &mpi->watch) < 0)
                return why_set(why, -ENOMEM, "no memory to watch %u nodes", mpi->base.n_nodes);
        if (mpi->base.node == 0)
                r = MPI_Irecv(&mpi->heard, sizeof(mpi->heard), MPI_BYTE, MPI_ANY_SOURCE, TAG_BEAT, mpi->beats,
                              &mpi->receiving);
        else
                r = MPI_Irecv(&mpi->answer, 1, MPI_BYTE, 0, TAG_ANSWER, mpi->beats, &mpi->receiving);
        return r == MPI_SUCCESS ? 0 : failed(r, "talking", why);
}

/* Until a node's name is known, a number has to do. */
static int name_nodes(struct mpi *mpi, struct why *why) {
        char name[CLUSTER_NAME_SIZE] = "";
        uint32_t n_nodes = mpi->base.n_nodes;

        mpi->base.names = calloc(n_nodes, sizeof(*mpi->base.names));
        if (!mpi->base.names)
                return why_set(why, -ENOMEM, "no memory for the names of %u nodes", n_nodes);
        for (uint32_t i = 0; i < n_nodes; i++)
                snprintf(mpi->base.names[i], CLUSTER_NAME_SIZE, "node number %u", i);
        cluster_own_name(name);
        memcpy(mpi->told.news.node, name, sizeof(name));
        return 0;
}

static int exchange_names(struct mpi *mpi, struct why *why) {
        char name[CLUSTER_NAME_SIZE];
        uint32_t n_nodes = mpi->base.n_nodes;
        int r;

        memcpy(name, mpi->told.news.node, sizeof(name));
        r = mpi_gather(&mpi->base, name, sizeof(name), mpi->base.names, why);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n_nodes; i++)
                mpi->base.names[i][CLUSTER_NAME_SIZE - 1] = '\0';
        for (uint32_t i = 0; i < n_nodes; i++)
                for (uint32_t j = i + 1; j < n_nodes; j++)
                        if (strcmp(mpi->base.names[i], mpi->base.names[j]) == 0)
                                return why_set(why, -EEXIST,
                                               "two processes are on %s: start one a node (mpirun --map-by ppr:1:node, "
                                               "srun --ntasks-per-node=1), and give hosts names of their own",
                                               mpi->base.names[i]);
        return 0;
}

int cluster_mpi_join(const struct cluster_options *options, struct cluster **ret_cluster, struct why *why) {
        struct mpi *mpi = calloc(1, sizeof(*mpi));
        int is_begun = 0, r;

        if (!mpi)
                return why_set(why, -ENOMEM, "no memory");
        mpi->base.type = &MPI;
        mpi->base.options = *options;
        mpi->thread = pthread_self();
        mpi->world = mpi->beats = MPI_COMM_NULL;
        mpi->sending = mpi->receiving = MPI_REQUEST_NULL;
        mpi->is_answered = true;
        r = begin(mpi, why);
        if (r == 0)
                r = name_nodes(mpi, why);
        if (r == 0)
                r = begin_listening(mpi, why);
        if (r == 0)
                r = exchange_names(mpi, why);
        if (r == 0) {
                *ret_cluster = &mpi->base;
                return 0;
        }
        MPI_Initialized(&is_begun);
        if (is_begun && r != -EEXIST && r != -EPROTO)
                return r; /* messages may be under way into what is left: it stays, and mpirun ends the others */
        if (is_begun)
                finalize(mpi); /* all know it, and end by themselves */
        mpi_free(mpi);
        return r;
}
