/* tests/support/staged.h: a dataset that is staged in a temporary folder, of files whose bytes say where they belong.
 *
 * Whatever goes wrong in here ends the test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/plan/chunks.h"
#include "daemon/store/plan/plan.h"
#include "daemon/store/record/record_place.h"
#include "daemon/store/tree/tree.h"

#define MIB (1ull << 20)

struct staged_file {
        const char *path;
        uint64_t n_bytes;
        uint64_t seed;    /* of its content: another one, other bytes */
        bool says_sha256; /* the plan does */
        const char *etag;
        bool unpack;
};

struct staged {
        char root[64];
        struct place place; /* root/photos */

        /* What is to lie there. */
        struct plan *plan;
        struct chunks *chunks;
        uint64_t *seeds; /* of each file of the plan */

        /* What was told since it was opened. */
        struct tree *tree; /* NULL: not open */
        uint64_t n_linked, n_bad, n_kept_bytes;
        char last_bad[512];
        struct why why;
};

void staged_begin(struct staged *staged);
void staged_end(struct staged *staged); /* closes, and removes all */

/* Another plan: the tree is closed. */
void staged_plan(struct staged *staged, const struct staged_file *files, size_t n_files);

/* n files of these sizes in a few folders: "many/0017/000123.bin". */
void staged_plan_many(struct staged *staged, size_t n_files, uint64_t n_bytes_each, uint64_t seed);

/* Opens (closing what is open). Returns what tree_open() did. */
int staged_open(struct staged *staged);
void staged_must_open(struct staged *staged); /* what it fails with ends the test */
int staged_open_with(struct staged *staged, const struct tree_options *options);
void staged_close(struct staged *staged);

/* The bytes that chunk must have. */
void staged_chunk(const struct staged *staged, uint64_t idx_chunk, uint8_t *into);

/* Writes all missing chunks up to `end`. Returns how many; the first that fails ends the test. */
uint64_t staged_fill(struct staged *staged, uint64_t end);

bool staged_is_missing(const struct staged *staged, uint64_t idx_chunk);
uint64_t staged_n_missing(const struct staged *staged);

/* Does the file in the version's folder (archives: the spool) hold the right bytes? */
bool staged_is_right(const struct staged *staged, uint64_t idx_file);
void staged_check_all(const struct staged *staged);

/* Its path on the disk. */
void staged_path(const struct staged *staged, const char *path, char ret_path[PATH_MAX]);

/* Overwrites a byte. */
void staged_damage(const struct staged *staged, const char *path, uint64_t offset);

/* Publishes with a stamp that says nothing beside. */
int staged_publish(struct staged *staged);
