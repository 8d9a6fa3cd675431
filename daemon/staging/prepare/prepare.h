/* staging/prepare/prepare.h: what is done to the samples once, at staging: re-encoded or only packed into shards.
 *
 *   prepare = "resize(short=256) jpeg(90)"     steps separated by blanks, as in a pipeline
 *
 * resize(short=N): the shorter side becomes N, Pillow's bilinear with antialiasing, as torchvision's Resize on a PIL
 * image; a picture is never enlarged. jpeg(QUALITY): every picture is encoded with libjpeg-turbo, 4:2:0, as Pillow's
 * save(quality=). Without jpeg() only what was resized is encoded, at quality 95, and a picture that is small enough
 * keeps its bytes. gpu_jpeg: every JPEG, as it is or as the steps before it made it, is transcoded without loss so that
 * its rows of MCUs can be decoded side by side (transcoder.h); all other samples keep their bytes and are counted. ""
 * packs only.
 *
 * Where a picture is encoded again, pixels mean what they mean unprepared (decode/decode.h): grey, palette and CMYK
 * become RGB, alpha is dropped, the EXIF orientation is not applied; metadata are not kept. A sample that cannot be
 * decoded or transcoded, or not within the memory of one sample (88 MiB: a JPEG of 24 Mpixel in several scans fits, a
 * WebP of 12 does not; transcoding ends at about 20 Mpixel), is packed as it is, and counted: what is damaged is the
 * training job's business (its on_error decides).
 *
 * Samples keep index, path and label. Shard k holds a run of samples that follows from the index and shard_bytes alone,
 * so that all nodes agree who makes which without talk, and the same inputs give the same bytes on every node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/index/index.h"
#include "proto/base/why.h"

struct prepare_options {
        const struct source *index; /* of the source */
        int root_fd;                /* its folder */
        const char *steps;          /* checked by steps_check() before */
        uint64_t shard_bytes;       /* of source bytes a shard, at most; a larger sample has a shard by itself */
        uint32_t node, n_nodes;     /* this node makes shards k with k % n_nodes == node */
        int out_fd;         /* an empty folder, or one that an earlier run of the same left: whole shards are kept */
        uint32_t n_workers; /* threads, 64 at most; 0: as many as may be used */
        /* Ten times a second and at the end, on the caller's thread; samples of this node. May be NULL. */
        void (*progress)(void *userdata, uint64_t n_samples, uint64_t n_total);
        void *userdata;
        const _Atomic bool *cancel; /* may be NULL */
};

struct prepare_report {
        uint64_t n_samples;    /* of this node; also those in shards that an earlier run left */
        uint64_t n_kept_as_is; /* could not be prepared; in this run's shards alone */
        struct why first_kept; /* which and why; "" if none */
};

/* How many shards all nodes make together. */
uint64_t prepare_n_shards(const struct source *index, uint64_t shard_bytes);

/* Makes this node's shards. Blocks: two CPU-milliseconds or three a picture. Takes 128 MiB of memory at most, whatever
 * the samples. Shards are made as NAME.part, synced and renamed to shard_name(); what an earlier run left under that
 * name is removed. Returns 0; -ECANCELED (looked for ten times a second, and between samples); -ENOTSUP for samples
 * that are packed already; or an errno with `why` naming the file: -ENOSPC, -ESTALE (it is not what the index says),
 * ... After any of them it can be run again and goes on. */
int prepare_run(const struct prepare_options *options, struct prepare_report *ret_report, struct why *why);
