/* data/formats/npy_header.h: the beginning of a .npy file, as numpy.lib.format writes it.
 *
 *      "\x93NUMPY", version, length, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", blanks, "\n", data
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/schema.h"
#include "proto/base/why.h"

#define NPY_HEADER_MAX (10000u + 12u) /* bytes from the beginning; numpy does not read more characters either */

struct npy_header {
        uint32_t dtype; /* enum dlp_dtype */
        bool is_big_endian;
        uint32_t n_dims;                     /* of the array, including the dimension of the rows */
        uint64_t shape[SCHEMA_DIMS_MAX + 1]; /* elements; the first is the number of rows */
        uint64_t row_bytes;                  /* > 0 */
        uint64_t data;                       /* offset of the first row */
        uint64_t end;                        /* data + all rows */
};

/* Reads the header from the first `n_bytes` of a file: all of it, or NPY_HEADER_MAX. Returns 0; -EBADMSG if it is
 * damaged or not a .npy file; -ENOTSUP if it holds something that cannot be served row by row (objects, text, Fortran
 * order, ...). `why` says what to do, also that a file of its own (`is_file`) can be converted. Any input is safe. */
int npy_header_read(const uint8_t *bytes, size_t n_bytes, bool is_file, struct npy_header *ret_header, struct why *why);

/* The same for an array that is a value of one sample, and not a row for each: it may be a single number (n_dims 0;
 * row_bytes is that of the number), and may have no rows (shape[0] 0). */
int npy_header_read_value(const uint8_t *bytes, size_t n_bytes, struct npy_header *ret_header, struct why *why);
