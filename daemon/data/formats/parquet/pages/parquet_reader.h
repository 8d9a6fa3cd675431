/* data/formats/parquet/pages/parquet_reader.h: the values of one leaf, row by row.
 *
 * A row's value is the place of its bytes: in the file, where a chunk is not compressed and the caller wants that, or
 * in memory. Of a chunk, one page and the dictionary are in memory at a time; pages whose values stay in the file are
 * not read except for the lengths between them. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/formats/columnar/columnar_value.h"
#include "daemon/data/formats/parquet/pages/encoded.h"
#include "daemon/data/formats/parquet/pages/parquet_runs.h"

#define PARQUET_LEVELS_MAX   7u /* of lists within lists: as many as a field has dimensions */
#define PARQUET_WINDOW_BYTES (64u << 10)

struct parquet_reader {
        /* Set once by the caller. */
        int fd;
        struct parquet_memory *memory;
        bool is_in_file;     /* values of an uncompressed chunk stay there */
        bool is_levels_only; /* only which rows have a value is asked for */

        /* The chunk. */
        const struct parquet_element *element;
        uint32_t levels[PARQUET_LEVELS_MAX + 1]; /* parquet_schema_level() of each */
        uint64_t at, end;                        /* of the pages that are left */
        uint64_t n_left;                         /* entries of these pages: values, missing ones, empty lists */
        int64_t codec;

        /* The page. */
        uint64_t n_page; /* entries that are left of it */
        struct parquet_runs repeated, defined, indices;
        int64_t encoding; /* of its values; -1: it has none */
        struct parquet_page_bytes values;
        struct parquet_encoded encoded;
        uint32_t bit;                           /* of PLAIN bools: below 8 */
        bool is_missing;                        /* the file does not have the column: no row has a value */
        bool has_entry;                         /* the next entry was looked at, but not taken */
        uint32_t n_repeated_now, n_defined_now; /* of it */
        uint8_t flag;                           /* a bool that was decoded */

        bool has_dictionary;
        uint64_t n_dictionary;
        struct growing cells;            /* struct columnar_value, of values of different lengths */
        struct parquet_page_bytes fixed; /* of values of one width */

        struct parquet_buffer packed, plain, dictionary, level_bytes[2];
        uint8_t *window; /* a part of the file */
        uint64_t window_begin, n_window;
};

/* Can the chunk be read? Returns 0, or -ENOTSUP with `why`. */
int parquet_chunk_check(const struct parquet_chunk *chunk, struct why *why);

/* Begins with a chunk of the leaf `idx_element`, which is at most PARQUET_LEVELS_MAX lists deep. The reader keeps its
 * memory from one chunk to the next. `footer` has to live as long as it is read. Returns 0, or -ENOTSUP with `why` if
 * the chunk cannot be read. */
int parquet_reader_begin(struct parquet_reader *reader, const struct parquet_footer *footer, uint32_t idx_element,
                         const struct parquet_chunk *chunk, struct why *why);

/* The same for a leaf that the file does not have: each row is missing. */
void parquet_reader_begin_missing(struct parquet_reader *reader);

/* The value of the next row, of a leaf without lists; COLUMNAR_NULL if it is missing. Returns 0; -EBADMSG, -ENOTSUP,
 * -EFBIG or -ENOMEM with `why`, which does not name the column; or an errno of reading. Blocks for a read, sometimes.
 */
int parquet_reader_next(struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why);

/* The same for a list of numbers: appends the elements in C order, as the dtype of the leaf. */
int parquet_reader_next_list(struct parquet_reader *reader, struct columnar_widths *widths, struct growing *elements,
                             bool *ret_is_null, struct why *why);

/* The same for a list of text: gives them to `take`, one after the other, NULL for one that is missing; its errors are
 * returned. A text is valid until `take` returns. */
int parquet_reader_next_texts(struct parquet_reader *reader,
                              int (*take)(void *userdata, const struct columnar_value *text, struct why *why),
                              void *userdata, bool *ret_is_null, struct why *why);

/* After the last row: was that the whole chunk? Returns 0 or -EBADMSG with `why`. */
int parquet_reader_end(const struct parquet_reader *reader, struct why *why);

/* Takes a struct of which at most the caller's part is set. */
void parquet_reader_fini(struct parquet_reader *reader);

/* Writes a number as the dtype of its element, from the bytes of its value. Returns false if it does not fit. */
bool parquet_number(const struct parquet_element *element, const uint8_t *bytes, void *ret_number);
