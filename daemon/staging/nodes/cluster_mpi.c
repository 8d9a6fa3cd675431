/* Several nodes, with Open MPI.
 *
 * MPI itself waits for ever: for a node that was stopped, whose disk hangs, whose cable is out. So every call that
 * waits is a nonblocking one that is tested until it is through, and meanwhile each node tells the first, twice a
 * second, that it is there and how far it is, and the first answers (cluster_watch.h judges what comes of it). The few
 * calls that have no nonblocking form run under a guard.
 *
 * After a failure requests may be under way that cannot be called back, on memory that then must stay: what is left to
 * do is cluster_abort(). */
#include "daemon/staging/nodes/cluster_mpi.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/log.h"
#include "daemon/staging/nodes/cluster_guard.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define ABORT_S 5u /* for MPI_Abort(), which asks mpirun */

/* Open MPI's settings that a run by hand needs as well, unless somebody chose otherwise. What only mpirun itself reads
 * is in staging/nodes/launch.c. */
static const struct {
        const char *name, *value;
} SETTINGS[] = {
        { "OMPI_MCA_mpi_yield_when_idle", "1" },
        { "OMPI_MCA_pml", "ob1" }, /* what the deadlines were measured with */
        { "OMPI_MCA_btl", "tcp,self" },
};

struct mpi *mpi_of(const struct cluster *cluster) {
        struct mpi *mpi = (struct mpi *)cluster;

        assert(pthread_equal(mpi->thread, pthread_self()));
        return mpi;
}

int mpi_failed(int code, const char *what, struct why *why) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = 0, class = MPI_ERR_OTHER;

        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
        return why_set(why, class == MPI_ERR_NO_MEM ? -ENOMEM : -EIO, "%s with the other nodes: MPI says: %s", what,
                       text);
}

/* ---- together ---------------------------------------------------------------------------------------------------- */

static int barrier(struct mpi *mpi, struct why *why) {
        MPI_Request request;
        int r;

        r = MPI_Ibarrier(mpi->world, &request);
        if (r != MPI_SUCCESS)
                return mpi_failed(r, "a barrier", why);
        return mpi_wait_for(mpi, &request, "a barrier", why);
}

/* MPI counts in int; what nodes say about themselves is far below that. */
static int mpi_gather(struct cluster *cluster, const void *mine, uint64_t n_bytes, void *all, struct why *why) {
        struct mpi *mpi = mpi_of(cluster);
        MPI_Request request;
        int r;

        if (n_bytes > INT_MAX)
                return why_set(why, -E2BIG, "gathering %llu bytes of each node; the limit is 2 GiB",
                               (unsigned long long)n_bytes);
        r = MPI_Iallgather(mine, (int)n_bytes, MPI_BYTE, all, (int)n_bytes, MPI_BYTE, mpi->world, &request);
        if (r != MPI_SUCCESS)
                return mpi_failed(r, "gathering", why);
        return mpi_wait_for(mpi, &request, "gathering", why);
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static void mpi_free(struct mpi *mpi) {
        cluster_watch_free(mpi->watch);
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
                mpi_group_free(mpi->everyone);
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
        struct mpi *mpi = mpi_of(cluster);
        struct why why;

        /* With a deadline and names, which MPI_Finalize() has not. */
        if (barrier(mpi, &why) < 0) {
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
        .group_new = mpi_group_new,
        .group_free = mpi_group_free,
        .spread_start = mpi_spread_start,
        .spread_test = mpi_spread_test,
        .tell = mpi_tell,
        .news = mpi_news,
};

/* MPI and two communicators of our own. */
static int cluster_mpi_begin(struct mpi *mpi, struct why *why) {
        int n_nodes = 0, node = 0, provided = MPI_THREAD_SINGLE, r;
        uint32_t n_launched = cluster_n_launched();
        struct guard guard;

        for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++)
                setenv(SETTINGS[i].name, SETTINGS[i].value, 0);
        guard_say_first_word();
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
                return mpi_failed(r, "meeting", why);
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
        return mpi_group_new(&mpi->base, NULL, &mpi->everyone, why);
}

/* Until a node's name is known, a number has to do. */
static int name_nodes(struct mpi *mpi, struct why *why) {
        uint32_t n_nodes = mpi->base.n_nodes;

        mpi->base.names = calloc(n_nodes, sizeof(*mpi->base.names));
        if (!mpi->base.names)
                return why_set(why, -ENOMEM, "no memory for the names of %u nodes", n_nodes);
        for (uint32_t i = 0; i < n_nodes; i++)
                snprintf(mpi->base.names[i], PROGRESS_NAME_SIZE, "node number %u", i);
        cluster_own_name(mpi->told.news.node);
        return 0;
}

static int exchange_names(struct mpi *mpi, struct why *why) {
        char name[PROGRESS_NAME_SIZE]; /* news are sent meanwhile */
        uint32_t n_nodes = mpi->base.n_nodes;
        int r;

        memcpy(name, mpi->told.news.node, sizeof(name));
        r = mpi_gather(&mpi->base, name, sizeof(name), mpi->base.names, why);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n_nodes; i++)
                mpi->base.names[i][PROGRESS_NAME_SIZE - 1] = '\0';
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
        r = cluster_mpi_begin(mpi, why);
        if (r == 0)
                r = name_nodes(mpi, why);
        if (r == 0)
                r = mpi_begin_words(mpi, why);
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
