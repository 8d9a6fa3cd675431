/* data/formats/arrow/host.h: Arrow tables that lie within the files of another format, which lists these files. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/format.h"

/* All of it belongs to the caller. */
struct arrow_host {
        const char *format;              /* its name */
        const char *fields;              /* as in columnar.h; NULL: all */
        const char *list;                /* the file that lists the others: "index.json" */
        struct stat folder, list_status; /* of the root and of that file, from before they were read */
        int64_t settled_ns;              /* as in index_stamp.h */

        struct refusals *refusals; /* of format_refusals() */
        const char *names;         /* of the files, relative to the root, each with a NUL */
        size_t n_name_bytes;
        uint64_t n_files;
        const uint64_t *n_rows; /* of each file */

        /* Finds the table of a file of n_bytes. Returns 0; or an errno with `why`, which does not name the file. */
        int (*find_table)(int fd, uint64_t n_bytes, uint64_t *ret_begin_byte, uint64_t *ret_n_bytes, struct why *why);
};

/* Makes the index, as the `build` of a format does: a row is a sample, a column is a field, as in Arrow files. */
int arrow_host_build(const struct arrow_host *host, int root_fd, const struct files *files,
                     const struct index_watch *watch, struct index_builder **ret_builder, struct why *why);
