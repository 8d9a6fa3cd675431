/* staging/nodes/cluster_watch.h: who of the nodes is late. Bookkeeping alone: it neither sends nor waits.
 *
 * The first node watches all others, the others watch the first. Two things end a run: a node that is not heard of for
 * the stall time (killed, stopped, cut off; its main thread hangs in a dead disk), and a standstill: all nodes are
 * heard of, but for so long none of them got on. Getting on is any change in what a node tells. At a standstill those
 * are named that do not wait for others: where all the rest waits for a disk, the disk's node is.
 *
 * Time in which the watcher itself did not look (stopped, suspended, swapping) is not held against the others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/staging/nodes/cluster.h"
#include "proto/base/why.h"

struct watch;

/* `names`: PROGRESS_NAME_SIZE bytes each, stay the caller's and outlive it. Returns 0 or -ENOMEM. */
int cluster_watch_new(uint32_t node, uint32_t n_nodes, const char (*names)[PROGRESS_NAME_SIZE], uint32_t stall_s,
                      uint64_t now_ns, struct watch **ret_watch);
void cluster_watch_free(struct watch *watch); /* NULL is fine */

/* A node has spoken. `is_waiting`: in a call that needs the others (news.doing that begins with "waiting" counts too);
 * `n_steps`: a counter of what it got done besides the news. */
void watch_hear(struct watch *watch, uint32_t node, const struct node_progress *news, uint64_t n_steps, bool is_waiting,
                uint64_t now_ns);

/* The first node has answered: all that the others know of it. */
void watch_hear_answer(struct watch *watch, uint64_t now_ns);

/* Is somebody late? 0, or -ETIMEDOUT with `why` naming them. To be called often, after what came has been heard. */
int watch_judge(struct watch *watch, uint64_t now_ns, struct why *why);

/* What a node last told; zeros if nothing was heard. */
const struct node_progress *watch_news(const struct watch *watch, uint32_t node);
