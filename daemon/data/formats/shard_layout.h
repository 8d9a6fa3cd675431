/* data/formats/shard_layout.h: the bytes of a shard, for those who write and read it.
 *
 *   header (one block of SHARD_ALIGN) | samples | table: entries, class names (offsets), names | zeroes
 *
 * Little-endian. Each sample begins at a multiple of SHARD_ALIGN, and so do the table and the file's end, so that a
 * sample can be read in whole blocks wherever it lies. Entries are in the samples' order. Names are NUL-terminated
 * bytes one behind the other, the classes' and then the samples' paths, each once; offsets of names count from that
 * section's begin.
 *
 * The checksum covers header and table, not the samples: those are as their source made them, and who decodes them
 * notices. It finds accidents; nothing is trusted because of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/formats/shard.h"
#include "daemon/data/index/index_layout.h"
#include "proto/base/why.h"

#define SHARD_MAGIC       "DLDSHARD"
#define SHARD_VERSION     1u
#define SHARD_SAMPLES_MAX (1ull << 24)  /* a shard; as below */
#define SHARD_TABLE_MAX   (1ull << 30)  /* bytes: what a stranger's shard may cost to be looked at */
#define SHARD_SOURCE      "imagefolder" /* whose samples a shard holds */

struct shard_header {
        char magic[8];
        uint32_t version;
        uint32_t header_bytes; /* sizeof(struct shard_header) */
        uint64_t checksum;     /* index_checksum() of this header with that of the table in this place */
        uint64_t file_bytes;   /* of the whole file; a multiple of SHARD_ALIGN */
        uint64_t table;        /* where it begins: a multiple of SHARD_ALIGN */
        uint64_t table_bytes;  /* a multiple of 8 */
        uint64_t n_samples;
        uint64_t n_classes; /* of the whole dataset */
        uint64_t names_bytes;
        uint64_t total_bytes;               /* sum of the samples' lengths */
        char source[INDEX_FORMAT_NAME_MAX]; /* the format that the samples had: what their digest names */
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

/* A checked shard. Points into the bytes that it was made of. */
struct shard {
        const struct shard_header *header;
        const struct shard_entry *entries;
        const uint64_t *classes; /* offsets into names */
        const char *names;
};

/* Checks a header (aligned to 8) against the length of its file, so that `table` and `table_bytes` may be read. Returns
 * 0, or -EBADMSG with `why`, which begins with a small letter: the caller names the file. */
int shard_check_header(const struct shard_header *header, uint64_t file_bytes, struct why *why);

/* Checks the table (aligned to 8, header->table_bytes of it) of a checked header: checksum, every reference, every path
 * (none leaves the folder), every label. O(size). As above. */
int shard_check_table(const struct shard_header *header, const void *table, struct shard *ret_shard, struct why *why);

/* What belongs into header->checksum. */
uint64_t shard_checksum(const struct shard_header *header, const void *table);

/* Could a folder have this name? 1 to NAME_MAX bytes, no slash. */
bool shard_is_class_name(const char *name);
