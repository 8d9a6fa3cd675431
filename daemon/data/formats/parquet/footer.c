#include "daemon/data/formats/parquet/footer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/listed.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

#define MAGIC      "PAR1"
#define ENCRYPTED  "PARE"
#define N_MAGIC    4u
#define N_END      8u /* the footer's length and the magic */
#define NOTES_NAME "huggingface"
#define ARROW_NAME "ARROW:schema"

/* A file has at most this many rows, and ROWS_A_BYTE more for each of its bytes. A few bytes may stand for any number
 * of equal values, and an index has something for each row. */
#define ROWS_FOR_NOTHING (1u << 20)
#define ROWS_A_BYTE      64u

/* Numbers of parquet.thrift. */
enum {
        FILE_SCHEMA = 2,
        FILE_N_ROWS = 3,
        FILE_GROUPS = 4,
        FILE_NOTES = 5,
        FILE_ENCRYPTION = 8,
};
enum {
        NOTE_NAME = 1,
        NOTE_VALUE = 2,
};
enum {
        GROUP_CHUNKS = 1,
        GROUP_N_ROWS = 3,
};
enum {
        CHUNK_FILE = 1,
        CHUNK_ABOUT = 3,
        CHUNK_CRYPTO = 8,
        CHUNK_ENCRYPTED = 9,
};
enum {
        ABOUT_TYPE = 1,
        ABOUT_ENCODINGS = 2,
        ABOUT_CODEC = 4,
        ABOUT_N_VALUES = 5,
        ABOUT_N_BYTES = 7,
        ABOUT_PAGES = 9,
        ABOUT_DICTIONARY = 11,
};

struct row_group {
        uint64_t at; /* in the footer's bytes */
        uint64_t n_rows;
};

/* ---- the bytes of the footer ----------------------------------------------------------------------------------- */

static int check_magic(const uint8_t *magic, bool is_end, struct why *why) {
        if (memcmp(magic, MAGIC, N_MAGIC) == 0)
                return 0;
        if (memcmp(magic, ENCRYPTED, N_MAGIC) == 0)
                return why_set(why, -ENOTSUP,
                               "is encrypted, and keys are not supported; write it again without encryption");
        return is_end ? why_set(why, -EBADMSG, "is cut: a Parquet file ends with \"" MAGIC "\"; copy it again")
                      : why_set(why, -EBADMSG, "is not a Parquet file: it does not begin with \"" MAGIC "\"");
}

static int footer_load(int fd, uint64_t n_bytes, struct parquet_footer *footer, struct why *why) {
        uint8_t begin[N_MAGIC], end[N_END];
        uint32_t n;
        int r;

        if (n_bytes < N_MAGIC + N_END)
                return why_set(why, -EBADMSG, "is not a Parquet file: it has only %" PRIu64 " bytes", n_bytes);
        r = listed_read(fd, begin, sizeof(begin), 0, why);
        if (r == 0)
                r = listed_read(fd, end, sizeof(end), n_bytes - N_END, why);
        if (r == 0)
                r = check_magic(begin, false, why);
        if (r == 0)
                r = check_magic(end + 4, true, why);
        if (r < 0)
                return r;
        n = le32(end);
        if (n > n_bytes - N_MAGIC - N_END)
                return why_set(why, -EBADMSG,
                               "is damaged: its footer is said to have %" PRIu32 " bytes, more than the file; copy it "
                               "again",
                               n);
        if (n > PARQUET_FOOTER_MAX)
                return why_set(why, -EFBIG,
                               "has a footer of %" PRIu32 " bytes; %u are allowed: write larger row groups", n,
                               PARQUET_FOOTER_MAX);
        if (growing_append(&footer->bytes, NULL, (size_t)n + 1) < 0)
                return why_set(why, -ENOMEM, "no memory for its footer");
        footer->bytes.n_bytes = n;
        footer->end = n_bytes - N_END - n;
        return listed_read(fd, footer->bytes.bytes, n, footer->end, why);
}

static struct thrift thrift_at(const struct parquet_footer *footer, size_t at) {
        return (struct thrift){ .bytes = footer->bytes.bytes, .n_bytes = footer->bytes.n_bytes, .at = at };
}

/* ---- its contents ---------------------------------------------------------------------------------------------- */

static bool footer_is_name(const char *name, size_t n, const char *wanted) {
        return n == strlen(wanted) && memcmp(name, wanted, n) == 0;
}

/* One of the pairs of texts that writers add. */
static void read_note(struct thrift *thrift, enum thrift_type type, struct parquet_footer *footer) {
        struct thrift_field field = { 0 };
        struct parquet_note note = { .text = "" };
        const char *name = "";
        size_t n_name = 0;

        if (!thrift_struct(thrift, type))
                return;
        while (thrift_next(thrift, &field)) {
                if (field.id == NOTE_NAME)
                        name = thrift_binary(thrift, field.type, &n_name);
                else if (field.id == NOTE_VALUE)
                        note.text = thrift_binary(thrift, field.type, &note.n);
                else
                        thrift_skip(thrift, field.type);
        }
        if (thrift->is_damaged || note.n > PARQUET_NOTES_MAX)
                return;
        note.n = strnlen(note.text, note.n);
        if (!footer->notes.text && footer_is_name(name, n_name, NOTES_NAME)) /* the first one counts */
                footer->notes = note;
        if (!footer->arrow.text && footer_is_name(name, n_name, ARROW_NAME))
                footer->arrow = note;
}

static void read_notes(struct thrift *thrift, enum thrift_type type, struct parquet_footer *footer) {
        enum thrift_type element;
        size_t n = thrift_list(thrift, type, &element);

        for (size_t i = 0; i < n && !thrift->is_damaged; i++)
                read_note(thrift, element, footer);
}

/* Only where it is, and its rows: its chunks are read when they are needed. */
static int footer_read_group(struct thrift *thrift, enum thrift_type type, struct parquet_footer *footer,
                             struct why *why) {
        struct row_group group = { .at = thrift->at };
        struct thrift_field field = { 0 };
        int64_t n_rows = -1;

        if (!thrift_struct(thrift, type))
                return 0;
        while (thrift_next(thrift, &field)) {
                if (field.id == GROUP_N_ROWS)
                        n_rows = thrift_integer(thrift, field.type);
                else
                        thrift_skip(thrift, field.type);
        }
        if (!thrift->is_damaged && n_rows < 0)
                return why_set(why, -EBADMSG, "is damaged: row group %" PRIu64 " has no number of rows",
                               footer->n_groups);
        group.n_rows = (uint64_t)n_rows;
        if (growing_append(&footer->groups, &group, sizeof(group)) < 0)
                return why_set(why, -ENOMEM, "no memory for its row groups");
        footer->n_groups++;
        return 0;
}

static int footer_read_groups(struct thrift *thrift, enum thrift_type type, struct parquet_footer *footer,
                              struct why *why) {
        enum thrift_type element;
        size_t n = thrift_list(thrift, type, &element);
        int r = 0;

        for (size_t i = 0; i < n && r == 0 && !thrift->is_damaged; i++)
                r = footer_read_group(thrift, element, footer, why);
        return r;
}

static int footer_read_field(struct thrift *thrift, const struct thrift_field *field, struct parquet_footer *footer,
                             int64_t *n_rows, struct why *why) {
        switch (field->id) {
        case FILE_SCHEMA:
                if (footer->schema.n_elements > 0)
                        return why_set(why, -EBADMSG, "is damaged: it has two schemas");
                return parquet_schema_read(thrift, field->type, &footer->schema, why);
        case FILE_N_ROWS:
                *n_rows = thrift_integer(thrift, field->type);
                return 0;
        case FILE_GROUPS:
                return footer_read_groups(thrift, field->type, footer, why);
        case FILE_NOTES:
                read_notes(thrift, field->type, footer);
                return 0;
        case FILE_ENCRYPTION:
                return why_set(why, -ENOTSUP,
                               "is encrypted, and keys are not supported; write it again without encryption");
        default:
                thrift_skip(thrift, field->type);
                return 0;
        }
}

static int footer_check_rows(struct parquet_footer *footer, int64_t n_rows, uint64_t n_bytes, struct why *why) {
        uint64_t n_sum = 0;

        for (uint64_t i = 0; i < footer->n_groups; i++)
                if (__builtin_add_overflow(n_sum, parquet_footer_rows(footer, i), &n_sum))
                        return why_set(why, -EBADMSG, "is damaged: its row groups have too many rows");
        if (n_rows < 0 || n_sum != (uint64_t)n_rows)
                return why_set(why, -EBADMSG,
                               "is damaged: it is said to have %" PRIi64 " rows, but its row groups have %" PRIu64,
                               n_rows, n_sum);
        if (n_sum > DLP_SAMPLES_MAX || n_sum / ROWS_A_BYTE > n_bytes + ROWS_FOR_NOTHING / ROWS_A_BYTE)
                return why_set(why, -EBADMSG, "claims to have %" PRIu64 " rows in %" PRIu64 " bytes", n_sum, n_bytes);
        footer->n_rows = n_sum;
        return 0;
}

static int footer_parse(struct parquet_footer *footer, uint64_t n_bytes, struct why *why) {
        struct thrift thrift = thrift_at(footer, 0);
        struct thrift_field field = { 0 };
        int64_t n_rows = -1;
        int r = 0;

        while (r == 0 && thrift_next(&thrift, &field))
                r = footer_read_field(&thrift, &field, footer, &n_rows, why);
        if (r == 0 && (thrift.is_damaged || footer->schema.n_elements == 0))
                r = why_set(why, -EBADMSG, "is damaged: its footer cannot be read; copy it again");
        return r == 0 ? footer_check_rows(footer, n_rows, n_bytes, why) : r;
}

int parquet_footer_read(int fd, uint64_t n_bytes, struct parquet_footer *ret_footer, struct why *why) {
        struct parquet_footer footer = { 0 };
        int r = footer_load(fd, n_bytes, &footer, why);

        if (r == 0)
                r = footer_parse(&footer, n_bytes, why);
        if (r < 0)
                parquet_footer_fini(&footer);
        else
                *ret_footer = footer;
        return r;
}

void parquet_footer_fini(struct parquet_footer *footer) {
        parquet_schema_fini(&footer->schema);
        growing_fini(&footer->bytes);
        growing_fini(&footer->groups);
        *footer = (struct parquet_footer){ 0 };
}

uint64_t parquet_footer_rows(const struct parquet_footer *footer, uint64_t idx_group) {
        return ((const struct row_group *)(const void *)footer->groups.bytes)[idx_group].n_rows;
}

/* ---- chunks ---------------------------------------------------------------------------------------------------- */

/* What is said of a chunk before it is checked. */
struct about {
        int64_t type, codec, n_values, n_bytes, pages, dictionary;
        bool is_taken_apart; /* an encoding does not keep values as they are */
};

static void read_encodings(struct thrift *thrift, enum thrift_type type, struct about *about) {
        enum thrift_type element;
        size_t n = thrift_list(thrift, type, &element);

        for (size_t i = 0; i < n && !thrift->is_damaged; i++) {
                int64_t encoding = thrift_integer(thrift, element);

                if (encoding != PARQUET_PLAIN && encoding != PARQUET_PLAIN_DICTIONARY && encoding != PARQUET_RLE &&
                    encoding != PARQUET_BIT_PACKED && encoding != PARQUET_RLE_DICTIONARY)
                        about->is_taken_apart = true;
        }
}

static void read_about(struct thrift *thrift, enum thrift_type type, struct about *about) {
        struct thrift_field field = { 0 };

        if (!thrift_struct(thrift, type))
                return;
        while (thrift_next(thrift, &field)) {
                int64_t *number = field.id == ABOUT_TYPE         ? &about->type
                                  : field.id == ABOUT_CODEC      ? &about->codec
                                  : field.id == ABOUT_N_VALUES   ? &about->n_values
                                  : field.id == ABOUT_N_BYTES    ? &about->n_bytes
                                  : field.id == ABOUT_PAGES      ? &about->pages
                                  : field.id == ABOUT_DICTIONARY ? &about->dictionary
                                                                 : NULL;

                if (number)
                        *number = thrift_integer(thrift, field.type);
                else if (field.id == ABOUT_ENCODINGS)
                        read_encodings(thrift, field.type, about);
                else
                        thrift_skip(thrift, field.type);
        }
}

static void read_chunk(struct thrift *thrift, enum thrift_type type, struct parquet_chunk *chunk, struct about *about) {
        struct thrift_field field = { 0 };
        size_t n = 0;

        if (!thrift_struct(thrift, type))
                return;
        while (thrift_next(thrift, &field)) {
                switch (field.id) {
                case CHUNK_FILE:
                        thrift_binary(thrift, field.type, &n);
                        chunk->is_elsewhere = n > 0;
                        break;
                case CHUNK_ABOUT:
                        read_about(thrift, field.type, about);
                        break;
                case CHUNK_CRYPTO:
                case CHUNK_ENCRYPTED:
                        chunk->is_encrypted = true;
                        thrift_skip(thrift, field.type);
                        break;
                default:
                        thrift_skip(thrift, field.type);
                }
        }
}

/* The element of a leaf. */
static const struct parquet_element *find_leaf(const struct parquet_schema *schema, uint32_t idx_leaf, uint32_t *at) {
        for (;; (*at)++) {
                const struct parquet_element *element = parquet_element(schema, *at);

                if ((element->meaning < PARQUET_LIST) && element->idx_leaf == idx_leaf && *at > 0)
                        return element;
        }
}

static int place_chunk(const struct parquet_footer *footer, const struct parquet_element *element,
                       const struct about *about, struct parquet_chunk *chunk, struct why *why) {
        int64_t begin = about->pages;

        chunk->codec = about->codec;
        chunk->is_verbatim = about->codec == PARQUET_UNCOMPRESSED && !about->is_taken_apart;
        if (chunk->is_encrypted || chunk->is_elsewhere)
                return 0;
        /* Some writers say 0 for a dictionary that is not there. */
        if (about->dictionary > 0 && about->dictionary < begin)
                begin = about->dictionary;
        if (begin < (int64_t)N_MAGIC || about->n_bytes < 0 || (uint64_t)begin > footer->end ||
            (uint64_t)about->n_bytes > footer->end - (uint64_t)begin)
                return why_set(why, -EBADMSG,
                               "its chunk is said to be at byte %" PRIi64 ", of %" PRIi64
                               " bytes, outside the file; copy it again",
                               begin, about->n_bytes);
        if (about->type != (int64_t)element->physical || about->n_values < 0)
                return why_set(why, -EBADMSG, "its chunk contradicts the schema; write the file again");
        chunk->offset = (uint64_t)begin;
        chunk->n_bytes = (uint64_t)about->n_bytes;
        chunk->n_values = (uint64_t)about->n_values;
        return 0;
}

static int read_chunks(const struct parquet_footer *footer, struct thrift *thrift, enum thrift_type type,
                       struct parquet_chunk *chunks, struct why *why) {
        enum thrift_type element;
        size_t n = thrift_list(thrift, type, &element);
        uint32_t at = 0;

        if (n != footer->schema.n_leaves)
                return why_set(why, -EBADMSG, "has %zu columns, but the schema has %u; write the file again", n,
                               footer->schema.n_leaves);
        for (uint32_t i = 0; i < n && !thrift->is_damaged; i++) {
                struct about about = { .type = -1, .codec = -1, .n_values = -1, .n_bytes = -1, .pages = -1 };
                const struct parquet_element *leaf = find_leaf(&footer->schema, i, &at);
                struct why detail;
                int r;

                chunks[i] = (struct parquet_chunk){ 0 };
                read_chunk(thrift, element, &chunks[i], &about);
                if (thrift->is_damaged)
                        break;
                r = place_chunk(footer, leaf, &about, &chunks[i], &detail);
                if (r < 0)
                        return why_set(why, r, "column \"%s\": %s", parquet_element_name(&footer->schema, at),
                                       detail.text);
        }
        return 0;
}

int parquet_footer_chunks(const struct parquet_footer *footer, uint64_t idx_group, struct parquet_chunk *ret_chunks,
                          struct why *why) {
        const struct row_group *group = (const struct row_group *)(const void *)footer->groups.bytes + idx_group;
        struct thrift thrift = thrift_at(footer, (size_t)group->at);
        struct thrift_field field = { 0 };
        bool has_chunks = false;
        int r = 0;

        while (r == 0 && thrift_next(&thrift, &field)) {
                if (field.id == GROUP_CHUNKS && !has_chunks) {
                        has_chunks = true;
                        r = read_chunks(footer, &thrift, field.type, ret_chunks, why);
                } else {
                        thrift_skip(&thrift, field.type);
                }
        }
        if (r == 0 && (thrift.is_damaged || !has_chunks))
                r = why_set(why, -EBADMSG, "has no list of columns; copy the file again");
        return r;
}
