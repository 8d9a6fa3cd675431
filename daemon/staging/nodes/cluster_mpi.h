/* staging/nodes/cluster_mpi.h: what the files of the kind MPI share. Begin and end and what all nodes do together are
 * in cluster_mpi.c, words and waiting in cluster_mpi_words.c, groups and spreading in cluster_mpi_spread.c. */
#pragma once

#include <mpi.h>
#include <pthread.h>

#include "daemon/staging/nodes/cluster_private.h"
#include "daemon/staging/nodes/cluster_watch.h"

struct beat {
        struct node_progress news;
        uint64_t n_steps;
        uint64_t is_waiting;
};

struct mpi {
        struct cluster base;
        pthread_t thread; /* the one that joined: MPI_THREAD_FUNNELED */
        MPI_Comm world;   /* of our own, so that nothing that strays in is taken for ours */
        MPI_Comm beats;
        struct watch *watch;
        struct beat told;      /* last given to cluster_tell() */
        struct beat sent;      /* on its way; others than the first */
        struct beat heard;     /* the first: being received into */
        char answer;           /* its bytes say nothing */
        MPI_Request sending;   /* of `sent` */
        MPI_Request receiving; /* of `heard`, or of the answer */
        bool is_answered;      /* the first has answered what was sent last */
        uint64_t beaten_ns;    /* when it was sent */
        uint64_t idled_ns;     /* when options.idle() was called last */
        uint64_t n_steps;      /* messages that came through: progress, too */
        struct cluster_group *everyone;
        struct mpi_spread *active; /* what is under way, in the order in which it was started */
        uint64_t advanced_ns;
        uint32_t n_waiting; /* > 0: in a call that needs the others */
};

struct mpi_group {
        struct cluster_group base;
        int *nodes; /* the members, in their order */
        uint32_t n_nodes;
        uint32_t mine;      /* this node's place among them */
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
        uint32_t n_there;       /* received; of the source: all */
        uint32_t n_sent;        /* on their way to the next, */
        uint32_t n_passed_on;   /* and away */
        MPI_Request requests[]; /* a receive for each segment, then a send for each */
};

/* The outer struct; asserts the thread. */
struct mpi *mpi_of(const struct cluster *cluster);

/* What MPI says, as an errno and `why`: "`what` with the other nodes: ...". */
int mpi_failed(int code, const char *what, struct why *why);

/* ---- words and waiting ---- */

/* Begins to listen, once the nodes have numbers. */
int mpi_begin_words(struct mpi *mpi, struct why *why);
int mpi_tell(struct cluster *cluster, const struct node_progress *news, struct why *why);
const struct node_progress *mpi_news(const struct cluster *cluster, uint32_t node);

/* Between two looks at what is waited for: words, what is to be passed on, the caller's idle(), a short sleep. */
int mpi_pass_time(struct mpi *mpi, uint64_t begin_ns, struct why *why);

/* Until it is through. */
int mpi_wait_for(struct mpi *mpi, MPI_Request *request, const char *what, struct why *why);

/* ---- groups and spreading ---- */

/* `members` NULL: all. */
int mpi_group_new(struct cluster *cluster, const uint8_t *members, struct cluster_group **ret_group, struct why *why);
void mpi_group_free(struct cluster_group *group);
int mpi_spread_start(struct cluster_group *group, uint32_t from_node, void *bytes, uint32_t n_bytes,
                     struct cluster_spread **ret_spread, struct why *why);
int mpi_spread_test(struct cluster_spread *spread, struct why *why);
int mpi_share(struct cluster *cluster, uint32_t from, void *bytes, uint64_t n_bytes, struct why *why);

/* Passes on what has come, of all spreads under way. Never blocks. */
int mpi_advance(struct mpi *mpi, struct why *why);
