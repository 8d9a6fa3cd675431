/* data/index/index_layout.h: the bytes of an index file, for the code that writes, checks and reads it.
 *
 * Little-endian. Every section is aligned to 8 bytes, and they follow in this fixed order. So the counts in the header
 * give the place of each section, and no offset of a section is stored:
 *
 *   header | fields | rows | files | directories | class names (offsets) | shards | labels | refused | values | names
 *
 * Fields: first the n_fields stored ones, then n_columns columns, whose values are in the index itself. A label comes
 * with the classes, unless the columns have all labels (INDEX_ONLY_NAMES). A row says where a stored field of a sample
 * lies: (file, offset, length). Sample i has n_fields rows, from row i * n_fields on. A file is (directory, name), not
 * a path: a million paths share a thousand directories. Names are NUL-terminated bytes in the last section, whose last
 * byte is NUL.
 *
 * If samples are in shards, files and directories (except the root) are only the former names, and offsets count within
 * the shard. A shard holds the samples from its first one up to the next shard's first one, so rows need not name the
 * shard. Directories that are only names have inode 0. A field with INDEX_FIELD_OWN_FILE is the exception: a listing in
 * a shard may name files, and each of them is the field as a whole. Where shards are merged, the shards
 * that samples were made of come first, then those that only add fields to them, in the same sequence: shards_after of
 * a field says how far its shard is from that of the sample.
 *
 * A column is at `values` in the section of the same name: the elements of all samples, one after the other. If they
 * differ in size, a table comes first: for each sample, an 8-byte word that says where its elements end. Its bit
 * INDEX_VALUE_ABSENT says that the sample does not have the field. Each part begins at a multiple of 8.
 *
 * The checksum finds accidents; the digest identifies the dataset (see index.h). Neither is trusted: index_validate()
 * checks everything that is used as an index or as a name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/machine/file_stamp.h"
#include "daemon/data/index/index.h"
#include "daemon/data/refusals.h"
#include "proto/base/why.h"

#define INDEX_MAGIC           "DLDINDEX"
#define INDEX_VERSION         12u
#define INDEX_FORMAT_NAME_MAX 32u                      /* bytes with NUL */
#define INDEX_FIELDS_MAX      (SCHEMA_FIELDS_MAX - 2u) /* besides the label and the key */
#define INDEX_NO_FILE         UINT64_MAX               /* of a row: no name; see INDEX_NAMES_ROWS */
#define INDEX_VALUE_ABSENT    (1ull << 63)
#define INDEX_VALUES_MAX      (1ull << 48) /* bytes */
#define INDEX_KEY_NAME        "__key__"    /* the field that is the name of a sample */
#define INDEX_ROW_ABSENT      UINT64_MAX   /* offset: the sample does not have the field */
#define INDEX_TIME_ANY        INT64_MIN    /* mtime_ns of a root of which only some files are meant */
#define INDEX_FILES_MAX       (1ull << 40) /* with the other limits: no sum of section sizes overflows */
#define INDEX_DIRS_MAX        (1ull << 24) /* also ends the walk of a tree whose links multiply */
#define INDEX_CLASSES_MAX     (1ull << 24)
#define INDEX_SHARDS_MAX      (1ull << 24)
#define INDEX_NAMES_MAX       (1ull << 48) /* bytes */

struct index_header {
        char magic[8];
        uint32_t version;
        uint32_t header_bytes; /* sizeof(struct index_header) */
        uint64_t checksum;     /* index_checksum() of all that follows this field */
        uint64_t file_bytes;   /* of the whole file */
        uint64_t n_samples;
        uint64_t n_fields;
        uint64_t n_files;
        uint64_t n_dirs;
        uint64_t n_classes;
        uint64_t n_shards; /* 0: each file lies in the folder directly */
        uint64_t n_refused;
        uint64_t n_columns;
        uint64_t values_bytes;
        uint64_t flags; /* INDEX_NAMES_ROWS, ... */
        uint64_t names_bytes;
        uint64_t total_bytes;               /* sum of all rows' lengths */
        uint64_t max_length;                /* the longest row */
        uint64_t max_span;                  /* the longest from a sample's first to its last byte in its shard */
        char format[INDEX_FORMAT_NAME_MAX]; /* the format that made the index */
        char source[INDEX_FORMAT_NAME_MAX]; /* that found the samples: the same, or that of the folder that was packed
                                             */
        char digest[INDEX_DIGEST_SIZE];     /* 64 hexadecimal digits, NUL */
        char options[INDEX_DIGEST_SIZE];    /* of the format's options that the index was made with */
        char reserved[2];                   /* zero */
        uint32_t n_hidden;                  /* files that were passed over because they are hidden */
};

#define INDEX_NAMES_ROWS   1ull  /* samples have no names of their own: they are called SHARD:ROW */
#define INDEX_SCATTERED    2ull  /* the fields of a sample lie far apart in their shard, column by column */
#define INDEX_BY_LIST      4ull  /* the first shard is a file that names the others, and has no samples; */
#define INDEX_LIST_NAMED   8ull  /* the path of the dataset is that file; otherwise it is the folder */
#define INDEX_ONLY_NAMES   16ull /* there are names of classes, but no section of labels: columns have them */
#define INDEX_ROW_NAME_MAX 21u   /* bytes of ":ROW" */

struct index_field {
        char name[SCHEMA_NAME_MAX];
        uint32_t kind;  /* enum field_kind */
        uint32_t flags; /* INDEX_FIELD_... */
        uint32_t coding;
        uint32_t dtype;
        uint32_t n_dims;
        uint32_t shards_after; /* of a stored field: how far its shard is from that of the sample; 0: the same */
        int64_t shape[SCHEMA_DIMS_MAX];
        uint64_t values;       /* of a column: where it begins in the section of values */
        uint64_t values_bytes; /* of the elements of all samples */
};

#define INDEX_FIELD_MAY_BE_ABSENT 1u
#define INDEX_FIELD_BIG_ENDIAN    2u
#define INDEX_FIELD_OWN_FILE      4u  /* a row is a whole file, although there are shards */
#define INDEX_FIELD_VARIES        8u  /* of a column: its values differ in size, or some are absent */
#define INDEX_FIELD_JSON          16u /* a text or bytes: they are JSON */
#define INDEX_FIELD_FLAGS         31u

struct index_row {
        uint64_t file;
        uint64_t offset; /* bytes */
        uint64_t length; /* bytes */
};

struct index_file {
        uint64_t name; /* offset into names */
        uint32_t dir;
        uint32_t flags; /* INDEX_FILE_... */
};

struct index_dir {
        uint64_t path; /* offset into names: relative to the root, "" for the root itself, which is directory 0 */
        struct file_stamp stamp; /* its mtime_ns may be INDEX_TIME_ANY. Inode 0: the directory is only a name */
};

struct index_shard {
        uint64_t name;         /* offset into names: a file's path relative to the root */
        uint64_t first_sample; /* the first sample in it; 0 for the first shard, and never less than the one before */
        struct file_stamp stamp;
};

/* A column that is left out. */
struct index_refused {
        uint64_t name, reason; /* offsets into names */
};

_Static_assert(sizeof(struct index_header) == 344, "the header is part of the file format");
_Static_assert(sizeof(struct index_field) == 128, "fields are part of the file format");
_Static_assert(sizeof(struct index_row) == 24, "rows are part of the file format");
_Static_assert(sizeof(struct index_file) == 16, "files are part of the file format");
_Static_assert(sizeof(struct index_dir) == 48, "directories are part of the file format");
_Static_assert(sizeof(struct index_shard) == 56, "shards are part of the file format");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is read in place");

/* Has each sample a label of its own, in the section of labels? */
static inline bool index_header_has_labels(const struct index_header *header) {
        return header->n_classes > 0 && !(header->flags & INDEX_ONLY_NAMES);
}

/* Where the sections begin, in bytes from the beginning of the file. */
struct index_places {
        uint64_t fields, rows, files, dirs, classes, shards, labels, refused, values, names, end;
};

/* Computes the places. Returns 0, or -EBADMSG with `why` if a count is above its limit. */
int index_places(const struct index_header *header, struct index_places *ret_places, struct why *why);

/* A hash of n_bytes bytes (a multiple of 8, aligned to 8). It finds each single change, and runs at memory speed. */
uint64_t index_checksum(const void *bytes, uint64_t n_bytes);

/* The same for bytes that come in pieces, each a multiple of 8 and aligned to 8. */
struct index_sum {
        uint64_t lanes[4];
        uint64_t n_words;
};
void index_sum_begin(struct index_sum *sum);
void index_sum_add(struct index_sum *sum, const void *bytes, uint64_t n_bytes);
uint64_t index_sum_end(const struct index_sum *sum);
#define INDEX_CHECKSUM_FROM (offsetof(struct index_header, checksum) + sizeof(uint64_t))

/* Do magic, version and counts of a header fit a file of n_bytes? These checks are possible before the file is copied.
 * Returns 0, or -EBADMSG with `why`. */
int index_check_shape(const struct index_header *header, uint64_t n_bytes, struct why *why);

/* Reads the header of an open file and checks its shape. Returns 0, or -EBADMSG or another errno with `why`, which does
 * not name the file. */
int index_read_header(int fd, struct index_header *ret_header, struct why *why);

/* Checks a whole file in memory, so that the accessors need no checks: sizes, checksum, every reference, every name (no
 * "..", no path of PATH_MAX or more), every label, sums. O(size). Returns 0 and the length of the longest path of a
 * file, or -EBADMSG with `why`. */
int index_validate(const void *bytes, uint64_t n_bytes, uint64_t *ret_longest_path, struct why *why);

/* Parts of index_validate(): are the fields, and the values of the columns, as this header says they are? -EBADMSG. */
int index_check_fields(const struct index_header *header, const struct index_field *fields, struct why *why);
int index_check_columns(const struct index_header *header, const struct index_field *columns, const uint8_t *values,
                        struct why *why);

/* The longest distance from the first byte of a sample to its last in one shard, over the fields that it has there. */
uint64_t index_span(const struct index_row *rows, const struct index_field *fields, uint64_t n_fields);

/* Is it a path that cannot leave the root: no empty component, no "." or ".."? "" is the root. */
bool index_is_inner_path(const char *path);
