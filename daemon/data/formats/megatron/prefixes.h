/* data/formats/megatron/prefixes.h: which token files a dataset is made of, and with which weights. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/files/files.h"
#include "daemon/data/formats/megatron/megatron_blend.h"

struct prefixes {
        char *text;                /* of which the names are parts */
        const char **names;        /* PREFIX of PREFIX.bin and PREFIX.idx; relative to the root, or absolute */
        double weights[BLEND_MAX]; /* as they are written */
        uint32_t n;
        bool has_weights;
        bool is_blend; /* they were written as a blend, be it of one file */
};

/* `blend`: "0.3 PREFIX 0.7 PREFIX", or prefixes alone, as Megatron's --data-path; NULL: the files that the path names.
 * A prefix may also be written with .bin or .idx. Returns 0, or an errno with `why`. What was found is to be given back
 * in either case. Blocks for reading the folder, if the path is one and there is no blend. */
int prefixes_find(struct prefixes *prefixes, int root_fd, const struct files *files, const char *blend,
                  struct why *why);

/* Takes a struct of zeroes. */
void prefixes_fini(struct prefixes *prefixes);
