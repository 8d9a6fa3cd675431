/* staging/run/run.h: one staging, from the survey to the stamp, on each of its nodes.
 *
 *   owner.c      root acts as the user whose folder it is
 *   agree.c      all nodes go on, or all end: with the words of the one that could not
 *   run.c        the steps, in order
 *   stage_survey.c     what shall be there: the origin's plan, the same on all nodes
 *   sharing.c    is the folder shared between nodes? who writes?
 *   stage_source.c     the origin's files onto the disk
 *   unpacking.c  archives, while they arrive
 *   stage_made.c       files that the nodes make of a version, each its share
 *   stage_shards.c     ... samples prepared and packed
 *   converting.c ... files through a program
 *   stage_indexing.c   the index, made by each and compared */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/dataset_settings.h"
#include "daemon/data/format.h"
#include "daemon/fetch/fetch_http.h"
#include "daemon/staging/nodes/cluster.h"
#include "daemon/staging/nodes/transfer.h"
#include "daemon/staging/run/stage_options.h"
#include "daemon/staging/run/stage_report.h"
#include "daemon/store/plan/chunks.h"
#include "daemon/store/plan/plan.h"
#include "daemon/store/record/record_place.h"
#include "daemon/store/record/stamp.h"
#include "daemon/store/tree/tree.h"

/* A set of files on its way to be a version: the origin's, what was unpacked of them, what was made of those. */
struct version {
        struct plan *plan;
        struct chunks *chunks;
        struct tree *tree; /* NULL on nodes that do not write */
};

struct run {
        const struct stage_options *options;
        const struct dataset_setting *dataset;
        const _Atomic bool *cancel;

        struct cluster *cluster;
        uint32_t node, n_nodes;
        struct place place;
        bool is_shared; /* the folder, by all nodes: the first one writes */
        bool is_writer;
        int lock_fd;
        struct http *http;
        bool is_over; /* nothing more is reported */

        char source_digest[PLACE_DIGEST_SIZE]; /* of the origin's plan */
        struct stamp stamp;                    /* what is served now, on this node; manifest "": nothing */
        struct stamp next;                     /* what will be */

        pthread_t main_thread;
        pthread_mutex_t report_lock; /* covers the next two; held while a line is written or logged */
        struct report *report;       /* NULL: it has ended */
        char last_said[sizeof(((struct node_progress *)0)->last_error)]; /* for the first node, which speaks for all */

        /* Progress: this node's. */
        struct transfer_counts counts;
        uint64_t n_bytes_total, n_files_total;
        _Atomic uint64_t n_bytes_before; /* there before this run */
        _Atomic uint64_t n_steps_done;   /* samples prepared, files hashed: a sign of life */
        char doing[64];
        struct node_progress *news;                                     /* of all nodes, for the report; first node */
        char (*heard)[sizeof(((struct node_progress *)0)->last_error)]; /* of each node; first node */
        struct node_progress latest;
};

/* Returns 0 or the sysexits code; everything has been said. */
int run_stage(const struct stage_options *options, const struct dataset_setting *dataset);

/* ---- agree.c ---- */

/* All nodes call it with how the last step went for them. Returns 0 if it went well for all; else, on all nodes, the
 * errno of the first that failed, and `why` with its name. Also how nodes wait for each other. */
int agree(struct run *run, int r, struct why *why);

/* A step that takes long and must not keep this node from telling that it is alive: on a thread of its own, while the
 * calling thread looks after the cluster. Returns what it returned. If the cluster is beyond help it does not return.
 */
typedef int run_step(struct run *run, void *argument, struct why *why);
int run_aside(struct run *run, run_step *step, void *argument, struct why *why);

/* The same in two halves, for who has something to do meanwhile. `aside` stays where it is until aside_wait(). */
struct aside {
        struct run *run;
        run_step *step;
        void *argument;
        pthread_t thread;
        int result;
        struct why why;
        _Atomic bool is_done;
};
int aside_start(struct aside *aside, struct run *run, run_step *step, void *argument, struct why *why);
int aside_wait(struct aside *aside, struct why *why);

/* Tells the others, and draws: for transfer_options.look. */
int run_look(void *userdata, struct why *why);

/* What a phase is called, for all who look on. */
void run_phase(struct run *run, const char *phase);

/* A line for the report of the first node; of the other nodes' lines it hears the last of each half second. Any thread.
 */
void run_say(struct run *run, const char *level, const char *text);

/* The last word. */
void run_end_report(struct run *run, const char *result, const char *text);

/* On the first node: what the others said last and it has not heard yet. All nodes call it. */
void run_hear_all(struct run *run);

/* For when nodes can no longer reach each other: says why, and takes all processes down. */
void run_lost(struct run *run, const struct why *why) __attribute__((noreturn));

/* Of all nodes to all nodes, and of one to all; as cluster_gather() and cluster_share(). They do not fail: without them
 * there is no common end. What was gathered, n_bytes a node, is the caller's (free). */
void *run_gather(struct run *run, const void *mine, uint64_t n_bytes);
void run_share(struct run *run, uint32_t from, void *bytes, uint64_t n_bytes);

/* A text of the node `from` to all; the others' *text is theirs (free). */
void share_text(struct run *run, uint32_t from, char **text, size_t *n_bytes);

/* The first node's plan to all that have none (*plan is NULL). `what` it is, for messages. All nodes call it. */
int share_plan(struct run *run, const char *what, struct plan **plan, struct why *why);

/* ---- the steps ---- */
int stage_survey(struct run *run, struct plan **ret_plan, struct why *why);
int find_place(struct run *run, struct why *why);

void version_fini(struct version *version);

/* Opens a version on this node: what is there is checked. Takes the plan. */
int version_open(struct run *run, struct plan *plan, struct version *ret_version, struct why *why);

/* Brings what is missing; `has_origin`: also from there. */
int version_complete(struct run *run, struct version *version, bool has_origin, void (*written)(void *, uint64_t),
                     void *userdata, struct why *why);

/* Where what is made of a version lies until it is a version itself: a folder beside it, made if it is not there.
 * *ret_fd is the caller's. */
int version_folder(const struct run *run, const struct version *version, const char *suffix, char ret_path[PATH_MAX],
                   int *ret_fd, struct why *why);

/* Brings a plan with archives and unpacks them as they arrive. The version of what was in them takes the place. */
int version_unpack(struct run *run, struct version *version, struct why *why);

/* The shards that are made of a version, on all nodes. The version of the shards takes its place. */
int version_prepare(struct run *run, struct version *version, struct why *why);

/* The files of a version through a program (steps->command, or the one of steps->converts), on all nodes. The version
 * of what the programs wrote takes its place. */
struct steps;
int version_convert(struct run *run, struct version *version, const struct steps *steps, struct why *why);

/* The format of a version's files: the one of this name, or for "auto" what they show. As format_tell(). */
int format_of_version(const struct run *run, const struct version *version, const char *name,
                      const struct format **ret_format, struct why *why);

/* The index of a version's files, of a format that has one, at `path`. Returns its descriptor, the caller's; an errno.
 */
int index_files(struct run *run, const struct version *version, const struct format *format, const char *path,
                struct why *why);

/* Made beside the version by each node that writes, and compared; fills in run->next. */
int version_index(struct run *run, struct version *version, struct why *why);
