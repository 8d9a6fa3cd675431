#include "daemon/staging/nodes/cluster_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define NS_PER_S    1000000000ull
#define LOOK_GAP_NS (2 * NS_PER_S) /* longer, and the watcher was not there itself */
#define WAITING     "waiting"
#define NAMES_BYTES 360u /* what they may take of a `why` */

struct watched {
        struct node_progress news;
        uint64_t n_steps;
        uint64_t heard_ns;    /* CLOCK_MONOTONIC */
        uint64_t progress_ns; /* when what it tells last changed */
        bool is_waiting;
};

struct watch {
        uint32_t node, n_nodes;
        const char (*names)[PROGRESS_NAME_SIZE];
        uint64_t stall_ns;
        uint64_t looked_ns;
        struct watched nodes[];
};

int cluster_watch_new(uint32_t node, uint32_t n_nodes, const char (*names)[PROGRESS_NAME_SIZE], uint32_t stall_s,
                      uint64_t now_ns, struct watch **ret_watch) {
        struct watch *watch = calloc(1, sizeof(*watch) + n_nodes * sizeof(watch->nodes[0]));

        if (!watch)
                return -ENOMEM;
        watch->node = node;
        watch->n_nodes = n_nodes;
        watch->names = names;
        watch->stall_ns = stall_s * NS_PER_S;
        watch->looked_ns = now_ns;
        for (uint32_t i = 0; i < n_nodes; i++)
                watch->nodes[i].heard_ns = watch->nodes[i].progress_ns = now_ns;
        *ret_watch = watch;
        return 0;
}

void cluster_watch_free(struct watch *watch) {
        free(watch);
}

/* Padding is zero on both sides: news are copied whole, from objects that were. What differs in it alone would be taken
 * for progress, and no more. */
void watch_hear(struct watch *watch, uint32_t node, const struct node_progress *news, uint64_t n_steps, bool is_waiting,
                uint64_t now_ns) {
        struct watched *watched = &watch->nodes[node];

        watched->heard_ns = now_ns;
        if (n_steps != watched->n_steps || memcmp(news, &watched->news, sizeof(*news)) != 0)
                watched->progress_ns = now_ns;
        watched->n_steps = n_steps;
        watched->news = *news;
        watched->news.node[sizeof(news->node) - 1] = '\0';
        watched->news.doing[sizeof(news->doing) - 1] = '\0';
        watched->news.last_error[sizeof(news->last_error) - 1] = '\0';
        watched->is_waiting = is_waiting || strncmp(news->doing, WAITING, strlen(WAITING)) == 0;
}

void watch_hear_answer(struct watch *watch, uint64_t now_ns) {
        watch->nodes[0].heard_ns = now_ns;
}

static void account_for_absence(struct watch *watch, uint64_t now_ns) {
        uint64_t gap_ns = now_ns - watch->looked_ns;

        watch->looked_ns = now_ns;
        if (gap_ns <= LOOK_GAP_NS)
                return;
        for (uint32_t i = 0; i < watch->n_nodes; i++) {
                struct watched *watched = &watch->nodes[i];

                watched->heard_ns = watched->heard_ns + gap_ns < now_ns ? watched->heard_ns + gap_ns : now_ns;
                watched->progress_ns = watched->progress_ns + gap_ns < now_ns ? watched->progress_ns + gap_ns : now_ns;
        }
}

/* The others are slower to give up the first node: it knows more of what is wrong and should be the one to say it. */
static uint64_t silence_limit_ns(const struct watch *watch) {
        return watch->node == 0 ? watch->stall_ns : watch->stall_ns + watch->stall_ns / 4 + 2 * NS_PER_S;
}

static bool is_silent(const struct watch *watch, uint32_t node, uint64_t now_ns, uint64_t limit_ns) {
        if (node == watch->node || (watch->node != 0 && node != 0))
                return false;
        return now_ns - watch->nodes[node].heard_ns > limit_ns;
}

static bool is_any_silent(const struct watch *watch, uint64_t now_ns) {
        for (uint32_t i = 0; i < watch->n_nodes; i++)
                if (is_silent(watch, i, now_ns, silence_limit_ns(watch)))
                        return true;
        return false;
}

static bool is_at_a_standstill(const struct watch *watch, uint64_t now_ns) {
        if (watch->node != 0)
                return false;
        for (uint32_t i = 0; i < watch->n_nodes; i++)
                if (now_ns - watch->nodes[i].progress_ns <= watch->stall_ns)
                        return false;
        return true;
}

/* "node2 (writing photos/a.jpg), node3 and 5 more" */
struct naming {
        char text[NAMES_BYTES];
        size_t n_bytes;
        uint32_t n_nodes, n_left_out;
};

static void cluster_watch_name_node(struct naming *naming, const struct watch *watch, uint32_t node) {
        const struct node_progress *news = &watch->nodes[node].news;
        char one[PROGRESS_NAME_SIZE + sizeof(news->doing) + 8];
        size_t length;

        snprintf(one, sizeof(one), news->doing[0] ? "%s%s (%s)" : "%s%s", naming->n_nodes++ > 0 ? ", " : "",
                 watch->names[node], news->doing);
        text_make_printable(one);
        length = strlen(one);
        if (naming->n_left_out > 0 || length >= sizeof(naming->text) - naming->n_bytes) {
                naming->n_left_out++;
                return;
        }
        memcpy(naming->text + naming->n_bytes, one, length + 1);
        naming->n_bytes += length;
}

static int cluster_watch_say(const struct naming *naming, struct why *why, const char *before, const char *after,
                             uint64_t ns) {
        char more[32] = "";

        if (naming->n_left_out > 0)
                snprintf(more, sizeof(more), " and %u more", naming->n_left_out);
        return why_set(why, -ETIMEDOUT, "%s%s%s%s %" PRIu64 " s", before, naming->text, more, after,
                       (uint64_t)(ns / NS_PER_S));
}

/* Nodes that were cut off together were not heard last at the same moment: once one is given up, those that are nearly
 * as late are named with it. Who has been silent longest comes first: on a busy machine a node that is well may be late
 * for a moment, too, and it is late by less. */
static void name_silent(struct naming *naming, const struct watch *watch, uint64_t now_ns) {
        uint64_t after_ns = 0, limit_ns = silence_limit_ns(watch) / 4 * 3;

        for (;;) { /* one time of hearing after the other; only the end of a run comes here */
                uint64_t next_ns = UINT64_MAX;

                for (uint32_t i = 0; i < watch->n_nodes; i++)
                        if (is_silent(watch, i, now_ns, limit_ns) && watch->nodes[i].heard_ns >= after_ns &&
                            watch->nodes[i].heard_ns < next_ns)
                                next_ns = watch->nodes[i].heard_ns;
                if (next_ns == UINT64_MAX)
                        return;
                for (uint32_t i = 0; i < watch->n_nodes; i++)
                        if (is_silent(watch, i, now_ns, limit_ns) && watch->nodes[i].heard_ns == next_ns)
                                cluster_watch_name_node(naming, watch, i);
                after_ns = next_ns + 1;
        }
}

int watch_judge(struct watch *watch, uint64_t now_ns, struct why *why) {
        struct naming silent = { .n_nodes = 0 }, idle = { .n_nodes = 0 };
        uint32_t n_waiting = 0;

        account_for_absence(watch, now_ns);
        if (is_any_silent(watch, now_ns))
                name_silent(&silent, watch, now_ns);
        if (silent.n_nodes > 0)
                return cluster_watch_say(&silent, why, "no word from ", ": stopped, cut off or hanging for more than",
                                         watch->stall_ns);
        if (!is_at_a_standstill(watch, now_ns))
                return 0;
        for (uint32_t i = 0; i < watch->n_nodes; i++)
                n_waiting += watch->nodes[i].is_waiting;
        for (uint32_t i = 0; i < watch->n_nodes; i++)
                if (!watch->nodes[i].is_waiting || n_waiting == watch->n_nodes) /* all: they wait for each other */
                        cluster_watch_name_node(&idle, watch, i);
        return cluster_watch_say(&idle, why, "all wait for ", ", which did not get on for", watch->stall_ns);
}

const struct node_progress *watch_news(const struct watch *watch, uint32_t node) {
        return &watch->nodes[node].news;
}
