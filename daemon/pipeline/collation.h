/* pipeline/collation.h: how the samples of a batch lie in a slot, and how much room a slot has for them.
 *
 * A slot has room for the largest batch that its job can ever be served, so that no batch needs memory after the rank
 * was admitted. For pictures of one size that is known. Encoded bytes get the sum of the longest files that can meet in
 * one batch. Pictures of varying size get what `decode(max_pixels=N)` asks for, else a fixed share of memory_limit;
 * what does not fit is a damaged sample, whatever else runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/augment/recipe.h"
#include "daemon/data/index.h"

struct job_terms;

/* The same for all batches of a stream. */
struct collation {
        bool ragged;            /* encoded bytes of any length */
        bool varies;            /* dense, but each batch has its own picture size */
        uint32_t height, width; /* unless it varies or is ragged */
        struct pixel_format format;
        uint64_t labels_offset; /* int64 [n] */
        uint64_t images_offset;
        uint64_t sample_bytes; /* the most that one sample may take */
        uint64_t slot_bytes;
};

struct collation_limits {
        uint64_t memory_limit; /* bytes */
        uint64_t max_pixels;   /* of a picture */
        uint32_t n_slots;
};

/* For `raw` it looks at each sample's length: milliseconds a million samples. -EOVERFLOW if a ring of such slots would
 * be too large to address, or if a slot of pictures of varying size has no room; with what to change. */
int collation_plan(struct collation *collation, const struct recipe *recipe, const struct job_terms *terms,
                   const struct index *index, const struct collation_limits *limits, struct why *why);
