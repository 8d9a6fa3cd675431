/* data/intake/roll.h: which shards a stream has taken, and in which sequence, in a file.
 *
 * After a restart the same shards must get the same numbers, although the folder may now have a shard that came too
 * late and was refused. So each shard that is taken is written down, with a digest of its samples, before its samples
 * are served; the next intake takes these shards first, and refuses one that has changed.
 *
 * A line for each shard: number of samples, digest, name; at last "end". The first line has the digest of the stream:
 * if that is another one, the stream begins anew, and so does the file. A line that was torn by a kill is ignored. If
 * the file cannot be written, the stream goes on, and says so. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/growing.h"
#include "proto/base/why.h"

struct roll {
        char *path;
        int fd;               /* -1: nothing is written, because another intake has the file or the disk is full */
        struct growing lines; /* struct roll_line */
        struct growing names;
        bool has_end;
        bool is_busy; /* another intake writes it */
        char digest[65];
};

struct roll_line {
        uint64_t n_samples;
        uint64_t digest;
        uint64_t name; /* offset in names */
};

/* Reads the file; it is empty if it is damaged or not there. 0, or -ENOMEM. `why`: why it cannot be written; "" if it
 * can. */
int roll_open(struct roll *roll, const char *path, struct why *why);

/* Begins anew, for the stream with this digest. */
int roll_begin(struct roll *roll, const char *digest, struct why *why);

/* Takes a struct of zeroes with fd = -1. */
void roll_fini(struct roll *roll);

uint64_t roll_n(const struct roll *roll);

/* The shard that was taken as number i. */
const struct roll_line *roll_at(const struct roll *roll, uint64_t i, const char **ret_name);

/* Adds a line. 0; or an errno with `why` if it could not be written: it is then not written any more. */
int roll_add(struct roll *roll, uint64_t n_samples, uint64_t digest, const char *name, struct why *why);
int roll_add_end(struct roll *roll, struct why *why);
