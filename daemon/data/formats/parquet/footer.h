/* data/formats/parquet/footer.h: what a Parquet file says about itself at its end: columns, row groups, and where the
 * chunk of each column begins.
 *
 *      PAR1 | chunks of pages | footer (Thrift) | its length, 4 bytes | PAR1
 *
 * The footer's bytes are kept, and a row group is read from them when it is asked for, so a file of many row groups and
 * columns takes the memory of its footer and 16 bytes for each group. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/formats/parquet/parquet_schema.h"

#define PARQUET_FOOTER_MAX (256u << 20) /* bytes */
#define PARQUET_NOTES_MAX  (64u << 20)  /* bytes of a note */

enum parquet_codec {
        PARQUET_UNCOMPRESSED = 0,
        PARQUET_SNAPPY = 1,
        PARQUET_GZIP = 2,
        PARQUET_ZSTD = 6,
        PARQUET_LZ4_RAW = 7,
};

enum parquet_encoding {
        PARQUET_PLAIN = 0,
        PARQUET_PLAIN_DICTIONARY = 2,
        PARQUET_RLE = 3,
        PARQUET_BIT_PACKED = 4,
        PARQUET_DELTA_BINARY_PACKED = 5,
        PARQUET_DELTA_LENGTH_BYTE_ARRAY = 6,
        PARQUET_DELTA_BYTE_ARRAY = 7,
        PARQUET_RLE_DICTIONARY = 8,
        PARQUET_BYTE_STREAM_SPLIT = 9,
};

/* The values of one leaf in one row group. */
struct parquet_chunk {
        uint64_t offset, n_bytes; /* of its pages, within the file and in front of the footer */
        uint64_t n_values;        /* with those that are missing */
        int64_t codec;            /* enum parquet_codec, or a number that is not among them */
        bool is_verbatim;         /* not compressed, and no encoding takes values apart */
        bool is_encrypted;
        bool is_elsewhere; /* in another file */
};

/* A text that writers add, within the footer. */
struct parquet_note {
        const char *text; /* NULL: there is none */
        size_t n;
};

struct parquet_footer {
        uint64_t end; /* where the footer begins: all pages are in front of it */
        uint64_t n_rows;
        struct parquet_schema schema;
        uint64_t n_groups;
        struct parquet_note notes; /* what the library "datasets" has noted: JSON */
        struct parquet_note arrow; /* the schema that an Arrow table had before it was written, in base64 */

        struct growing bytes;  /* the footer */
        struct growing groups; /* of each row group, where it begins in `bytes`, and how many rows it has */
};

/* Reads the footer of `fd`, a regular file of n_bytes. Returns 0; -EBADMSG or -ENOTSUP with `why`, which does not name
 * the file; -EFBIG for a footer above the limit; -ENOMEM; or an errno of reading. Blocks for two reads. */
int parquet_footer_read(int fd, uint64_t n_bytes, struct parquet_footer *ret_footer, struct why *why);

/* Takes a struct of zeroes. */
void parquet_footer_fini(struct parquet_footer *footer);

/* The rows of a row group < n_groups. */
uint64_t parquet_footer_rows(const struct parquet_footer *footer, uint64_t idx_group);

/* Writes the chunks of a row group, one for each leaf of the schema. Returns 0, or -EBADMSG with `why`, which does not
 * name the group. */
int parquet_footer_chunks(const struct parquet_footer *footer, uint64_t idx_group, struct parquet_chunk *ret_chunks,
                          struct why *why);
