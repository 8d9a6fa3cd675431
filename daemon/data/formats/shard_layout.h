/* data/formats/shard_layout.h: the bytes of a shard, for the code that writes and reads it.
 *
 *   header (one block of SHARD_ALIGN) | samples | table: entries, class names (offsets), names | zeroes
 *
 * Little-endian. Each sample begins at a multiple of SHARD_ALIGN, and so do the table and the end of the file: so a
 * sample can always be read in whole blocks. Entries are in the order of the samples. Names are NUL-terminated bytes,
 * one after the other: first those of the classes, then the paths of the samples, each once. Offsets of names count
 * from the beginning of that section.
 *
 * The checksum covers header and table, not the samples: those are unchanged from their source, and their decoder
 * notices damage. The checksum finds accidents; nothing is trusted because of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/formats/shard.h"
#include "daemon/data/index/index_layout.h"
#include "proto/base/why.h"

#define SHARD_MAGIC       "DLDSHARD"
#define SHARD_VERSION     1u
#define SHARD_SAMPLES_MAX (1ull << 24)  /* of one shard; for the same reason as below */
#define SHARD_TABLE_MAX   (1ull << 30)  /* bytes: the most that a look at a stranger's shard may cost */
#define SHARD_SOURCE      "imagefolder" /* the format whose samples a shard holds */

struct shard_header {
        char magic[8];
        uint32_t version;
        uint32_t header_bytes; /* sizeof(struct shard_header) */
        uint64_t checksum;     /* index_checksum() of this header with the table's checksum in this field */
        uint64_t file_bytes;   /* of the whole file; a multiple of SHARD_ALIGN */
        uint64_t table;        /* where it begins: a multiple of SHARD_ALIGN */
        uint64_t table_bytes;  /* a multiple of 8 */
        uint64_t n_samples;
        uint64_t n_classes; /* of the whole dataset */
        uint64_t names_bytes;
        uint64_t total_bytes;               /* sum of the samples' lengths */
        char source[INDEX_FORMAT_NAME_MAX]; /* the format that the samples had before; their digest names it */
};

struct shard_entry {
        uint64_t offset; /* bytes from the file's begin; a multiple of SHARD_ALIGN */
        uint64_t length; /* bytes */
        uint64_t path;   /* offset into names */
        int32_t label;
        uint32_t reserved; /* zero */
};

_Static_assert(sizeof(struct shard_header) == 112, "the header is part of the file format");
_Static_assert(sizeof(struct shard_entry) == 32, "entries are part of the file format");
_Static_assert(SHARD_ALIGN % 512 == 0 && sizeof(struct shard_header) <= SHARD_ALIGN, "the header has a block");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is read in place");

/* A checked shard. Points into the bytes that it was made from. */
struct shard {
        const struct shard_header *header;
        const struct shard_entry *entries;
        const uint64_t *classes; /* offsets into names */
        const char *names;
};

/* Checks a header (aligned to 8) against the length of its file, so that `table` and `table_bytes` may be used. Returns
 * 0, or -EBADMSG with `why`, which begins with a small letter because the caller puts the name of the file before
 * it. */
int shard_check_header(const struct shard_header *header, uint64_t file_bytes, struct why *why);

/* Checks the table (aligned to 8, header->table_bytes long) of a checked header: checksum, every reference, every path
 * (none leaves the folder), every label. O(size). Returns as above. */
int shard_check_table(const struct shard_header *header, const void *table, struct shard *ret_shard, struct why *why);

/* The value for header->checksum. */
uint64_t shard_checksum(const struct shard_header *header, const void *table);

/* Can it be the name of a folder? 1 to NAME_MAX bytes, no slash. */
bool shard_is_class_name(const char *name);
