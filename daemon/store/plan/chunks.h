/* store/plan/chunks.h: a plan cut into the pieces that move: 4 MiB at most.
 *
 * Large files are cut every 4 MiB; files up to that size are never cut, and as many neighbours as fit share a chunk, so
 * that a million small files cost no million messages. Chunks are in the plan's order; a file's chunks follow each
 * other. A chunk is what is fetched by one node, spread, written, noted as present, and fetched again if it is bad. */
#pragma once

#include <stdint.h>

#include "daemon/store/plan/plan.h"

#define CHUNK_BYTES     (4u << 20) /* measured: the chain of nodes is at 95 % of the line with these, four under way */
#define CHUNK_FILES_MAX 256u       /* files a chunk: bounds what a chunk of tiny or empty files costs */

struct chunk {
        uint64_t first_file; /* of the plan */
        uint32_t n_files;    /* 1 if it is a part of a large file */
        uint32_t n_bytes;    /* in all; 0 if all of its files are empty */
        uint64_t offset;     /* bytes into first_file; 0 unless that is large */
};

struct chunks;

/* The plan must outlive them. 16 bytes a chunk. Returns 0 or -ENOMEM. */
int chunks_new(const struct plan *plan, struct chunks **ret_chunks);
void chunks_free(struct chunks *chunks); /* NULL is fine */

uint64_t chunks_count(const struct chunks *chunks);
struct chunk chunks_get(const struct chunks *chunks, uint64_t idx);

/* The chunks [*ret_first, *ret_first + n) that hold bytes of a file (for an empty file the one that lists it). Returns
 * n. */
uint64_t chunks_of_file(const struct chunks *chunks, uint64_t idx_file, uint64_t *ret_first);
