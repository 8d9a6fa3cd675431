/* run/stage_made.h: files that the nodes make of a version, each node its share, and that become a version themselves.
 * Private to this room.
 *
 * There are n_files, the same on all nodes. Of n nodes that write, node k makes those with i % n == k, into a folder
 * beside the version that they are made of. The folder survives a run that was ended, so that the next one goes on.
 * Then all nodes are told what was made, each takes its own files over, and the others' come over the network. */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "daemon/staging/run/run.h"

#define MADE_NAME_SIZE 40u

struct made {
        uint64_t kind; /* the maker's: what sort of file it is; 0: nothing, there is only a note of that, which goes at
                          the end */
        uint64_t n_bytes;
        uint8_t sha256[32];
};

struct making {
        /* Set by who makes them. */
        const char *phase;  /* "preparing" */
        const char *suffix; /* of the folder: ".shards" */

        /* Makes this node's files in the folder and sets `kind` of each; begins with made_alloc(). On a thread of its
         * own, on nodes that write. `argument` is the struct making. Returns 0 or an errno with `why`. */
        run_step *make;

        /* A file's name in the folder, and its path in the new version. */
        void (*name)(const struct making *making, uint64_t idx, char ret_name[MADE_NAME_SIZE]);
        void (*path)(const struct making *making, uint64_t idx, char ret_path[PATH_MAX]);

        /* Can the files of all nodes be one dataset? May be NULL. Returns 0, or an errno with `why`. */
        int (*check)(const struct making *making, struct why *why);

        /* What make() finds. */
        struct version *source;
        char folder[PATH_MAX];
        int folder_fd;
        uint64_t n_files;
        struct made *files;
};

/* Makes the table of the files. -ENOMEM. */
int made_alloc(struct making *making, uint64_t n_files, struct why *why);

/* How many nodes make files. */
uint32_t made_n_makers(const struct run *run);

/* Does all of it. The version of what was made takes the place of `version`. Returns 0, or an errno with `why`: then it
 * can be called again, in another run, and goes on. */
int version_make(struct run *run, struct version *version, struct making *making, struct why *why);
