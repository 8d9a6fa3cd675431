/* prepare/prepare.h: what is done to the samples once, at staging: re-encoded or only packed into shards.
 *
 *   prepare = "resize(short=256) jpeg(90)"     steps separated by blanks, as in a pipeline
 *
 * resize(short=N): the shorter side becomes N (never enlarged), Pillow's bilinear with antialiasing, as torchvision's
 * Resize on a PIL image; jpeg(QUALITY) encodes with libjpeg-turbo, 4:2:0. A sample that cannot be decoded is packed as
 * it is, and counted: what is damaged is the training job's business (its on_error decides). "" packs only.
 *
 * Samples keep index, path and label. Shard k holds a run of samples that follows from the index and shard_bytes alone,
 * so that all nodes agree who makes which without talk, and the same inputs give the same bytes on every node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/why.h"
#include "daemon/data/index.h"

struct prepare_options {
        const struct index *index; /* of the source */
        int root_fd;               /* its folder */
        const char *steps;         /* checked by prepare_check() before */
        uint64_t shard_bytes;      /* of source bytes a shard, about */
        uint32_t node, n_nodes;    /* this node makes shards k with k % n_nodes == node */
        int out_fd;         /* an empty folder, or one that an earlier run of the same left: whole shards are kept */
        uint32_t n_workers; /* threads; 0: as many as may be used */
        void (*progress)(void *userdata, uint64_t n_samples, uint64_t n_total); /* may be NULL; any thread */
        void *userdata;
        const _Atomic bool *cancel; /* may be NULL */
};

struct prepare_report {
        uint64_t n_samples, n_kept_as_is; /* could not be decoded */
        uint64_t n_bytes_in, n_bytes_out;
        struct why first_kept; /* which and why; "" if none */
};

/* Is this a text of steps? -EINVAL with the position and what was expected. */
int prepare_check(const char *steps, struct why *why);

/* How many shards all nodes make together. */
uint64_t prepare_n_shards(const struct index *index, uint64_t shard_bytes);

/* Makes this node's shards. Blocks: a CPU-millisecond or two a picture. Shards are made under another name, synced and
 * renamed to shard_name(). Returns 0, -ECANCELED, or an errno with `why`. */
int prepare_run(const struct prepare_options *options, struct prepare_report *ret_report, struct why *why);
