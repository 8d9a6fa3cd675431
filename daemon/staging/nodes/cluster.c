#include "daemon/staging/nodes/cluster.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/staging/nodes/cluster_guard.h"
#include "daemon/staging/nodes/cluster_private.h"
#include "proto/base/cleanup.h"

/* How each launcher tells its processes. Slurm's variables of the job (SLURM_NTASKS, SLURM_PROCID) are in batch scripts
 * as well, which are one process: those of the step tell srun's. */
static const struct {
        const char *rank;
        const char *size; /* NULL: it does not say */
} LAUNCHERS[] = {
        { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
        { "PMI_RANK", "PMI_SIZE" },
        { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" },
        { "PMIX_RANK", NULL },
};

uint32_t cluster_n_launched(void) {
        bool is_unsaid = false;

        for (size_t i = 0; i < ARRAY_SIZE(LAUNCHERS); i++) {
                const char *size = LAUNCHERS[i].size ? getenv(LAUNCHERS[i].size) : NULL;
                long n;

                if (!getenv(LAUNCHERS[i].rank))
                        continue;
                if (!LAUNCHERS[i].size)
                        is_unsaid = true;
                if (!size)
                        continue;
                n = strtol(size, NULL, 10);
                if (n > 0 && n <= UINT32_MAX)
                        return (uint32_t)n;
        }
        return is_unsaid ? 0 : 1;
}

bool cluster_is_launched(void) {
        return cluster_n_launched() != 1;
}

void cluster_own_name(char ret_name[PROGRESS_NAME_SIZE]) {
        if (gethostname(ret_name, PROGRESS_NAME_SIZE) < 0)
                strcpy(ret_name, "?");
        ret_name[PROGRESS_NAME_SIZE - 1] = '\0';
}

/* ---- one node: everything is where it should be already, and nobody waits ------------------------------------- */

struct alone {
        struct cluster base;
        struct cluster_group group;
        char name[1][PROGRESS_NAME_SIZE];
        struct node_progress news;
};

static int alone_join(const struct cluster_options *options, struct cluster **ret_cluster, struct why *why) {
        struct alone *alone = calloc(1, sizeof(*alone));

        if (!alone)
                return why_set(why, -ENOMEM, "no memory");
        alone->base = (struct cluster){ .options = *options, .n_nodes = 1, .names = alone->name };
        alone->group.cluster = &alone->base;
        cluster_own_name(alone->name[0]);
        memcpy(alone->news.node, alone->name[0], PROGRESS_NAME_SIZE);
        *ret_cluster = &alone->base;
        return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */

int cluster_join(const struct cluster_options *options, struct cluster **ret_cluster, struct why *why) {
        return cluster_is_launched() ? cluster_mpi_join(options, ret_cluster, why)
                                     : alone_join(options, ret_cluster, why);
}

void cluster_leave(struct cluster *cluster) {
        if (cluster && cluster->type)
                cluster->type->leave(cluster);
        else
                free(cluster);
}

void cluster_abort(struct cluster *cluster, int status) {
        guard_say_last_word(status);
        if (cluster->type)
                cluster->type->abort(cluster, status);
        _exit(status);
}

uint32_t cluster_node(const struct cluster *cluster) {
        return cluster->node;
}

uint32_t cluster_n_nodes(const struct cluster *cluster) {
        return cluster->n_nodes;
}

const char *cluster_name(const struct cluster *cluster, uint32_t node) {
        assert(node < cluster->n_nodes);
        return cluster->names[node];
}

int cluster_gather(struct cluster *cluster, const void *mine, uint64_t n_bytes, void *all, struct why *why) {
        if (cluster->type)
                return cluster->type->gather(cluster, mine, n_bytes, all, why);
        if (n_bytes > 0 && all != mine)
                memcpy(all, mine, n_bytes);
        return 0;
}

int cluster_share(struct cluster *cluster, uint32_t from, void *bytes, uint64_t n_bytes, struct why *why) {
        assert(from < cluster->n_nodes);
        return cluster->type ? cluster->type->share(cluster, from, bytes, n_bytes, why) : 0;
}

int cluster_group_new(struct cluster *cluster, const uint8_t *members, struct cluster_group **ret_group,
                      struct why *why) {
        if (cluster->type)
                return cluster->type->group_new(cluster, members, ret_group, why);
        *ret_group = cluster_is_member(members, 0) ? &((struct alone *)cluster)->group : NULL;
        return 0;
}

void cluster_group_free(struct cluster_group *group) {
        if (group && group->cluster->type)
                group->cluster->type->group_free(group);
}

int spread_start(struct cluster_group *group, uint32_t from_node, void *bytes, uint32_t n_bytes,
                 struct cluster_spread **ret_spread, struct why *why) {
        if (group->cluster->type)
                return group->cluster->type->spread_start(group, from_node, bytes, n_bytes, ret_spread, why);
        assert(from_node == 0);
        *ret_spread = NULL; /* through already */
        return 0;
}

int spread_test(struct cluster_spread *spread, struct why *why) {
        return spread ? spread->group->cluster->type->spread_test(spread, why) : 0;
}

int cluster_tell(struct cluster *cluster, const struct node_progress *news, struct why *why) {
        if (cluster->type)
                return cluster->type->tell(cluster, news, why);
        ((struct alone *)cluster)->news = *news;
        return 0;
}

const struct node_progress *cluster_news(const struct cluster *cluster, uint32_t node) {
        assert(node < cluster->n_nodes);
        return cluster->type ? cluster->type->news(cluster, node) : &((const struct alone *)cluster)->news;
}
