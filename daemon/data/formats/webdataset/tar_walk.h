/* data/formats/webdataset/tar_walk.h: which samples and fields one archive after the other holds.
 *
 * A walk belongs to one thread at a time. Several walks of one dataset do not know each other: each numbers the fields
 * as it meets them. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/files/seen.h"
#include "daemon/data/format.h"
#include "daemon/data/formats/npy_survey.h"
#include "daemon/data/growing.h"

/* A file of an archive. */
struct found_member {
        uint64_t offset, n_bytes;
        uint32_t idx_field;  /* of its walk */
        uint32_t idx_sample; /* within its shard */
};

/* What is in an archive: a part of what its walk has. */
struct found_shard {
        const struct walk *walk; /* NULL: nothing */
        struct stat status;      /* from before it was read */
        uint64_t first_member, n_members;
        uint64_t first_key, n_keys; /* the keys of its samples */
        bool has_links;             /* so the members of a sample may lie far apart */
};

/* Which ones a dataset has room for is known when all archives are: here are also those that are only listed. */
#define WALK_FIELDS_MAX (INDEX_FIELDS_MAX + REFUSALS_MAX)

struct found_field {
        char name[SCHEMA_NAME_MAX];
        uint64_t n_samples; /* that have this field */
        bool is_npy;        /* by its name */
        struct npy_survey npy;
};

/* The first four are the caller's to set; all else begins as zero. */
struct walk {
        int root_fd;
        const char *root;
        const struct index_watch *watch; /* whose cancel flag is looked at; may be NULL */
        struct why *why;
        struct growing members, keys, names; /* struct found_member; uint64_t, offsets into names; texts */
        struct found_field fields[WALK_FIELDS_MAX];
        uint32_t n_fields;
        uint64_t n_members;
        _Atomic uint64_t n_samples; /* which other threads may read */
        int64_t settled_ns;
        struct seen *seen; /* of all walks */
};

void walk_fini(struct walk *walk);

/* Reads the headers of an archive of the root. Returns 0, or an errno with `why`, which names root, archive and byte.
 * Blocks for the file system. */
int walk_shard(struct walk *walk, const char *name, struct found_shard *ret_shard);
