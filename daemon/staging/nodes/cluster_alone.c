/* One node: everything is where it should be already. */
#include "daemon/staging/nodes/cluster_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

struct alone {
        struct cluster base;
        char name[1][PROGRESS_NAME_SIZE];
        struct node_progress news;
};

static void alone_leave(struct cluster *cluster) {
        free(cluster);
}

static void alone_abort(struct cluster *cluster, int status) {
}

static int alone_gather(struct cluster *cluster, const void *mine, uint64_t n_bytes, void *all, struct why *why) {
        if (n_bytes > 0 && all != mine)
                memcpy(all, mine, n_bytes);
        return 0;
}

static int alone_share(struct cluster *cluster, uint32_t from, void *bytes, uint64_t n_bytes, struct why *why) {
        return 0;
}

static int alone_barrier(struct cluster *cluster, struct why *why) {
        return 0;
}

static int alone_group_new(struct cluster *cluster, const uint8_t *members, struct cluster_group **ret_group,
                           struct why *why) {
        struct cluster_group *group = NULL;

        if (cluster_is_member(members, 0)) {
                group = calloc(1, sizeof(*group));
                if (!group)
                        return why_set(why, -ENOMEM, "no memory for a group of nodes");
                group->cluster = cluster;
        }
        *ret_group = group;
        return 0;
}

static void alone_group_free(struct cluster_group *group) {
        free(group);
}

static int alone_spread_start(struct cluster_group *group, uint32_t from_node, void *bytes, uint32_t n_bytes,
                              struct cluster_spread **ret_spread, struct why *why) {
        struct cluster_spread *spread;

        assert(from_node == 0);
        spread = calloc(1, sizeof(*spread));
        if (!spread)
                return why_set(why, -ENOMEM, "no memory for a message to the other nodes");
        spread->group = group;
        *ret_spread = spread;
        return 0;
}

static int alone_spread_test(struct cluster_spread *spread, struct why *why) {
        free(spread);
        return 0;
}

/* Alone, nobody waits: whatever takes its time here has deadlines of its own. */
static int alone_tell(struct cluster *cluster, const struct node_progress *news, struct why *why) {
        struct alone *alone = (struct alone *)cluster;

        alone->news = *news;
        return 0;
}

static const struct node_progress *alone_news(const struct cluster *cluster, uint32_t node) {
        return &((const struct alone *)cluster)->news;
}

static const struct cluster_type ALONE = {
        .leave = alone_leave,
        .abort = alone_abort,
        .gather = alone_gather,
        .share = alone_share,
        .barrier = alone_barrier,
        .group_new = alone_group_new,
        .group_free = alone_group_free,
        .spread_start = alone_spread_start,
        .spread_test = alone_spread_test,
        .tell = alone_tell,
        .news = alone_news,
};

int cluster_alone_join(const struct cluster_options *options, struct cluster **ret_cluster, struct why *why) {
        struct alone *alone = calloc(1, sizeof(*alone));

        if (!alone)
                return why_set(why, -ENOMEM, "no memory");
        alone->base = (struct cluster){ .type = &ALONE, .options = *options, .n_nodes = 1, .names = alone->name };
        cluster_own_name(alone->name[0]);
        memcpy(alone->news.node, alone->name[0], PROGRESS_NAME_SIZE);
        *ret_cluster = &alone->base;
        return 0;
}
