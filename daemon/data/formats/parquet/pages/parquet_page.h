/* data/formats/parquet/pages/parquet_page.h: the pages of a chunk, one after the other: their headers, and their bytes in memory or
 * only where they lie. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/formats/parquet/footer.h"
#include "daemon/data/formats/parquet/pages/parquet_unpack.h"

enum parquet_page_kind {
        PARQUET_PAGE_DATA = 0,
        PARQUET_PAGE_INDEX = 1,
        PARQUET_PAGE_DICTIONARY = 2,
        PARQUET_PAGE_DATA_2 = 3,
};

struct parquet_page_header {
        uint64_t n_header;              /* bytes of the header itself */
        uint64_t n_packed, n_plain;     /* bytes that follow, and of these when they are unpacked */
        uint64_t n_values;              /* with those that are missing */
        uint64_t n_repeated, n_defined; /* bytes of the levels, of PARQUET_PAGE_DATA_2 */
        int64_t kind, encoding;         /* numbers that are in no enum are possible */
        int64_t level_encodings[2];     /* of repetition and definition, of PARQUET_PAGE_DATA */
        bool is_compressed, has_sum;
        uint32_t sum; /* CRC-32 of the packed bytes */
};

/* The bytes of a page: levels, then values. Taking from them moves on. */
struct parquet_page_bytes {
        const uint8_t *bytes; /* NULL: they are only in the file */
        uint64_t offset;      /* in the file */
        uint64_t n;
};

/* Reads the header at byte `at`; it and what follows it are in front of `end`. Returns 0; -EBADMSG with `why`; or an
 * errno of reading. Blocks for a read. */
int parquet_page_header_read(int fd, uint64_t at, uint64_t end, struct parquet_page_header *ret_header,
                             struct why *why);

/* Brings the bytes that follow the header into memory, as they are when they are unpacked; `packed` is used on the way.
 * Returns 0; -EBADMSG, -EFBIG or -ENOMEM with `why`; or an errno of reading. Blocks for a read. */
int parquet_page_load(int fd, uint64_t at, const struct parquet_page_header *header, int64_t codec,
                      struct parquet_buffer *packed, struct parquet_buffer *plain, struct parquet_memory *memory,
                      struct parquet_page_bytes *ret_bytes, struct why *why);

/* The name of an encoding, for messages. */
const char *parquet_encoding_name(int64_t encoding);
