/* staging/nodes/cluster.h: the nodes of a run and what they say to each other.
 *
 * Under mpirun or srun there is a process a node and this is MPI (cluster_mpi.c); alone, or built without MPI, it is
 * one node and everything here returns at once (cluster.c). Nothing here waits for ever: a call that waits looks
 * on while the others make progress, and gives up with their names if nobody does.
 *
 * All calls on the thread that joined, and often: a node whose thread is away for stall_s (blocked in a disk) is given
 * up like one that is dead. All nodes make the same calls in the same order. After an error of any of them there is
 * nothing left but cluster_abort(): messages may be under way still, on memory that then must stay. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/record/record_progress.h"
#include "proto/base/why.h"

#define CLUSTER_UNDER_WAY 1 /* positive outcome of spread_test() */

struct cluster_options {
        uint32_t stall_s;             /* no word or no progress of a node for so long ends the run */
        void (*idle)(void *userdata); /* called about every 50 ms while something is waited for; may be NULL */
        void *userdata;
};

struct cluster;

/* Is this process one of several (mpirun, srun)? From the environment; joins nothing. */
bool cluster_is_launched(void);

/* Meets the others. Returns 0; -EEXIST: two processes are on one host, named in `why`; -EPROTO: started as several, but
 * they do not find each other (srun without its plugin for MPI); -ENOSYS: built without MPI; -ETIMEDOUT; -EIO; -ENOMEM.
 * The first two are known to all; otherwise it takes leaving the process with an exit status to end the others. If the
 * others do not come at all, the process ends here with status 71 and a line in the log: MPI's beginning cannot be
 * called back. */
int cluster_join(const struct cluster_options *options, struct cluster **ret_cluster, struct why *why);

/* The end of a run that went well or in which all nodes know that it did not. NULL is fine. */
void cluster_leave(struct cluster *cluster);

/* The end of a run that others wait in: takes all processes down, with this exit status. Says nothing itself. */
void cluster_abort(struct cluster *cluster, int status) __attribute__((noreturn));

uint32_t cluster_node(const struct cluster *cluster); /* 0 <= node < n_nodes */
uint32_t cluster_n_nodes(const struct cluster *cluster);
const char *cluster_name(const struct cluster *cluster, uint32_t node); /* its host's name */

/* n_bytes of each node, one after the other, into `all` on every node. -ETIMEDOUT with `why` naming the nodes that are
 * late. */
int cluster_gather(struct cluster *cluster, const void *mine, uint64_t n_bytes, void *all, struct why *why);

/* n_bytes of node `from` to all others, any size. */
int cluster_share(struct cluster *cluster, uint32_t from, void *bytes, uint64_t n_bytes, struct why *why);

/* Some of the nodes, among which chunks are spread. `members`: a bit a node; all nodes make the same groups in the same
 * order, those that are no member get NULL. What is spread in one group has come through before the next is used. */
struct cluster_group;
int cluster_group_new(struct cluster *cluster, const uint8_t *members, struct cluster_group **ret_group,
                      struct why *why);
void cluster_group_free(struct cluster_group *group); /* NULL is fine */

/* One message on its way from a member to all members of the group; the memory must stay until it is through. Several
 * may be under way: all members start them in the same order. They go from member to member, and move on here only
 * while this thread calls something of this file: so it does not block in a disk meanwhile. With each member a source
 * in turn more of them under way than members keep all lines busy. */
struct cluster_spread;
int spread_start(struct cluster_group *group, uint32_t from_node, void *bytes, uint32_t n_bytes,
                 struct cluster_spread **ret_spread, struct why *why);

/* 0: it is through and freed; CLUSTER_UNDER_WAY; an errno. Never blocks. */
int spread_test(struct cluster_spread *spread, struct why *why);

/* Tells the first node (cheap; sends twice a second), and on the first node takes what the others told. -ETIMEDOUT with
 * `why` naming the nodes that have said nothing for stall_s; or, if no node at all got on for so long, those that do
 * not wait for others. Any change in the news is getting on, and so is a message that came through. Call it in every
 * loop.
 */
int cluster_tell(struct cluster *cluster, const struct node_progress *news, struct why *why);

/* On the first node: what a node last told; on the others they know of themselves alone. */
const struct node_progress *cluster_news(const struct cluster *cluster, uint32_t node);
