/* data/formats/npy_array.h: one array of a dataset of the format npy: where it lies, its header, its rows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/formats/npy_raw.h"
#include "proto/base/why.h"

struct npy_array {
        char *file;              /* relative to the root */
        char *member;            /* of the archive that the file is; NULL: the file is the array */
        uint64_t begin, n_bytes; /* of the array with its header, in the file. Without a member set by opening it */
        struct stat status;      /* from when its header was read; of a member also from when the archive was listed */
        uint64_t mark;           /* of its bytes: index_mark() */
        const struct npy_raw *raw; /* while it is opened: it has no header, and this describes it. NULL: it has one */
        struct npy_header header;  /* its offsets are within the file */
        uint8_t *map;              /* of the file up to the array's end; NULL: it cannot be mapped */

        /* Rows that reach into the array's last page are never read from the mapping: see npy_array_rows_were_there().
         * If they are small, a copy of them is kept here. */
        uint64_t first_tail; /* the first such row */
        uint8_t *tail;       /* NULL: these rows must be read */
};

/* "x.npy": the name of its file, or of the member. */
const char *npy_array_name(const struct npy_array *array);

/* Reads the header of an array of which file, member, begin and n_bytes are set, and maps its rows. Waits until the
 * file has rested: `settled_ns` as in index_stamp.h. Returns 0 or an errno with `why`, without the array's name. Blocks
 * for a few reads. */
int npy_array_open(struct npy_array *array, int root_fd, int64_t *settled_ns, struct why *why);

/* Takes a struct of zeroes. */
void npy_array_fini(struct npy_array *array);

/* The bytes of a row if they are in memory or mapped, else NULL; see source_next_piece(). */
const uint8_t *npy_array_row(const struct npy_array *array, uint64_t row);

/* As source_rows_were_there(), for an array that is mapped. */
bool npy_array_rows_were_there(const struct npy_array *array);
