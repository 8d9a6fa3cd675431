/* staging/nodes/cluster_private.h: what several nodes are to cluster.c, which is one node by itself. */
#pragma once

#include "daemon/staging/nodes/cluster.h"

struct cluster_type {
        void (*leave)(struct cluster *cluster);
        void (*abort)(struct cluster *cluster, int status);
        int (*gather)(struct cluster *cluster, const void *mine, uint64_t n_bytes, void *all, struct why *why);
        int (*share)(struct cluster *cluster, uint32_t from, void *bytes, uint64_t n_bytes, struct why *why);
        int (*group_new)(struct cluster *cluster, const uint8_t *members, struct cluster_group **ret_group,
                         struct why *why);
        void (*group_free)(struct cluster_group *group);
        int (*spread_start)(struct cluster_group *group, uint32_t from_node, void *bytes, uint32_t n_bytes,
                            struct cluster_spread **ret_spread, struct why *why);
        int (*spread_test)(struct cluster_spread *spread, struct why *why);
        int (*tell)(struct cluster *cluster, const struct node_progress *news, struct why *why);
        const struct node_progress *(*news)(const struct cluster *cluster, uint32_t node);
};

/* The first member of what each kind makes of it. */
struct cluster {
        const struct cluster_type *type; /* NULL: one node */
        struct cluster_options options;  /* stall_s is set */
        uint32_t node, n_nodes;
        char (*names)[PROGRESS_NAME_SIZE]; /* a node each */
};

struct cluster_group {
        struct cluster *cluster;
};

struct cluster_spread {
        struct cluster_group *group;
};

static inline bool cluster_is_member(const uint8_t *members, uint32_t node) {
        return members[node / 8] >> node % 8 & 1;
}

/* How many processes the environment says there are: 1 if this was started alone, 0 if it was started with others and
 * their number is not said. */
uint32_t cluster_n_launched(void);

/* This host's name, cut where it does not fit. */
void cluster_own_name(char ret_name[PROGRESS_NAME_SIZE]);

/* -ENOSYS where it is built without MPI. */
int cluster_mpi_join(const struct cluster_options *options, struct cluster **ret_cluster, struct why *why);
