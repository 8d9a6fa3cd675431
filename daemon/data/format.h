/* data/format.h: what kinds of datasets there are. Each is one file, formats/NAME.c, and one row of the table in
 * format.c.
 *
 * A format either finds its samples once and fills an index, which is asked from then on (build), or it is a source
 * itself and computes what it is asked for (open). */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/data/files.h"
#include "daemon/data/index/index_builder.h"
#include "proto/base/why.h"

/* Someone who looks on while an index is built. */
struct index_watch {
        void (*progress)(void *userdata, uint64_t n_files); /* every few thousand files, and at the end; may be NULL */
        void *userdata;
        const atomic_bool *cancel; /* once true, building ends soon with -ECANCELED; may be NULL */
};

struct format {
        const char *name;
        bool takes_files; /* its path may also be a file; else a folder alone */

        /* One of the next two; the other one is NULL.
         *
         * Makes an index of `files`, of which `root_fd` is the root (O_PATH is enough). `watch` may be NULL. Returns 0
         * or an errno with `why` naming file or folder. Blocks as long as reading all directories takes. */
        int (*build)(int root_fd, const struct files *files, const struct index_watch *watch,
                     struct index_builder **ret_builder, struct why *why);

        /* Opens `files` as they are. Same returns. Blocks for a few reads a file. */
        int (*open)(int root_fd, const struct files *files, struct source **ret_source, struct why *why);
};

extern const struct format FORMAT_IMAGEFOLDER;
extern const struct format FORMAT_NPY;
extern const struct format FORMAT_PACKED;
extern const struct format FORMAT_WEBDATASET;

/* Returns 0, or -EINVAL with `why` listing the formats that there are. */
int format_find(const char *name, const struct format **ret_format, struct why *why);

/* May a dataset of this format be made of these files? Returns 0, or -ENOTDIR with `why` saying what is allowed. */
int format_check_files(const struct format *format, const struct files *files, struct why *why);
