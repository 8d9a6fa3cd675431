/* data/formats/parquet/pages/parquet_unpack.h: memory for pages, and what is compressed in them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/data/growing.h"
#include "proto/base/why.h"

#define PARQUET_PAGE_MAX (256u << 20) /* bytes of a page that has to be in memory, packed or unpacked */

/* Bytes of all pages together: of each column that is read, one and a dictionary. */
#define PARQUET_MEMORY_MAX (1024u << 20)

/* As many as that, of what an index may copy: pages are given back one by one. */
#define PARQUET_MEMORY_OF(max_copied) (2 * (max_copied))

/* What all buffers that share it have taken. */
struct parquet_memory {
        uint64_t n_bytes;
        uint64_t max_bytes; /* 0, or more: PARQUET_MEMORY_MAX */
};

struct parquet_buffer {
        uint8_t *bytes;
        size_t capacity;
        struct growing room;
};

/* Makes the buffer hold n_bytes, whose contents are then undefined. Returns 0; -EFBIG with `why` above the limits; or
 * -ENOMEM. */
int parquet_buffer_reserve(struct parquet_buffer *buffer, uint64_t n_bytes, struct parquet_memory *memory,
                           struct why *why);

/* Takes a struct of zeroes. */
void parquet_buffer_fini(struct parquet_buffer *buffer, struct parquet_memory *memory);

/* Is it a codec that can be unpacked? Returns 0, or -ENOTSUP with `why`, which names it. */
int parquet_codec_check(int64_t codec, struct why *why);

/* Unpacks exactly n_bytes into memory. Returns 0, -EBADMSG or -ENOMEM with `why`. Any input is safe. */
int parquet_unpack(int64_t codec, const uint8_t *packed, size_t n_packed, uint8_t *into, size_t n_bytes,
                   struct why *why);
