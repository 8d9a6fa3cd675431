#include "daemon/data/formats/arrow/table/ipc_schema.h"
#include "daemon/data/looks_like.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/formats/differing/number_types.h"
#include "proto/base/cleanup.h"
#include "proto/layout.h"

/* Numbers of Arrow's Schema.fbs: the types, and the fields of its tables. */
enum {
        TYPE_NULL = 1,
        TYPE_INT,
        TYPE_FLOAT,
        TYPE_BINARY,
        TYPE_TEXT,
        TYPE_BOOL,
        TYPE_DECIMAL,
        TYPE_DATE,
        TYPE_TIME,
        TYPE_TIMESTAMP,
        TYPE_INTERVAL,
        TYPE_LIST,
        TYPE_STRUCT,
        TYPE_UNION,
        TYPE_FIXED_BINARY,
        TYPE_FIXED_LIST,
        TYPE_MAP,
        TYPE_DURATION,
        TYPE_LARGE_BINARY,
        TYPE_LARGE_TEXT,
        TYPE_LARGE_LIST,
        TYPE_RUN_END,
        TYPE_BINARY_VIEW,
        TYPE_TEXT_VIEW,
        TYPE_LIST_VIEW,
        TYPE_LARGE_LIST_VIEW,
};

#define UNIT_MILLISECOND 1
#define PAIRS_MAX        1024u       /* entries of a field's metadata that are looked at */
#define NOTES_MAX        (16u << 20) /* bytes of what "datasets" has noted */

enum {
        SCHEMA_ENDIANNESS,
        SCHEMA_FIELDS,
        SCHEMA_METADATA
};
enum {
        FIELD_TITLE,
        FIELD_NULLABLE,
        FIELD_TYPE,
        FIELD_TYPE_TABLE,
        FIELD_DICTIONARY,
        FIELD_CHILDREN,
        FIELD_METADATA
};
enum {
        DICTIONARY_ID,
        DICTIONARY_INDEX
};

/* What follows from the type's number alone. */
static const struct {
        const char *name;
        enum arrow_kind kind;
        bool is_large, is_text;
        uint8_t n_children; /* ANY: any number */
} TYPES[] = {
#define ANY 255
        [TYPE_NULL] = { "null", ARROW_NULL },
        [TYPE_INT] = { "int", ARROW_NUMBER },
        [TYPE_FLOAT] = { "float", ARROW_NUMBER },
        [TYPE_BINARY] = { "binary", ARROW_BYTES },
        [TYPE_TEXT] = { "string", ARROW_BYTES, .is_text = true },
        [TYPE_BOOL] = { "bool", ARROW_BOOL },
        [TYPE_DECIMAL] = { "decimal", ARROW_FIXED },
        [TYPE_DATE] = { "date", ARROW_NUMBER },
        [TYPE_TIME] = { "time", ARROW_NUMBER },
        [TYPE_TIMESTAMP] = { "timestamp", ARROW_NUMBER },
        [TYPE_INTERVAL] = { "interval", ARROW_FIXED },
        [TYPE_LIST] = { "list", ARROW_LIST, .n_children = 1 },
        [TYPE_STRUCT] = { "struct", ARROW_STRUCT, .n_children = ANY },
        [TYPE_UNION] = { "union", ARROW_UNION, .n_children = ANY },
        [TYPE_FIXED_BINARY] = { "fixed_size_binary", ARROW_FIXED },
        [TYPE_FIXED_LIST] = { "fixed_size_list", ARROW_FIXED_LIST, .n_children = 1 },
        [TYPE_MAP] = { "map", ARROW_LIST, .n_children = 1 },
        [TYPE_DURATION] = { "duration", ARROW_NUMBER },
        [TYPE_LARGE_BINARY] = { "large_binary", ARROW_BYTES, .is_large = true },
        [TYPE_LARGE_TEXT] = { "large_string", ARROW_BYTES, .is_large = true, .is_text = true },
        [TYPE_LARGE_LIST] = { "large_list", ARROW_LIST, .is_large = true, .n_children = 1 },
        [TYPE_RUN_END] = { "run_end_encoded", ARROW_RUNS, .n_children = ANY },
        [TYPE_BINARY_VIEW] = { "binary_view", ARROW_BYTES_VIEW },
        [TYPE_TEXT_VIEW] = { "string_view", ARROW_BYTES_VIEW, .is_text = true },
        [TYPE_LIST_VIEW] = { "list_view", ARROW_LIST_VIEW, .n_children = 1 },
        [TYPE_LARGE_LIST_VIEW] = { "large_list_view", ARROW_LIST_VIEW, .is_large = true, .n_children = 1 },
};

struct reading {
        struct arrow_schema *schema;
        struct why *why;
};

static int ipc_schema_damaged(struct reading *reading) {
        return why_set(reading->why, -EBADMSG, "its schema is damaged");
}

/* Appends a text with a NUL. */
static int ipc_schema_add_text(struct reading *reading, const char *text, size_t n, uint64_t *ret_at) {
        uint64_t at = reading->schema->names.n_bytes;
        int r = growing_append(&reading->schema->names, text, n);

        if (r == 0)
                r = growing_append(&reading->schema->names, "", 1);
        if (r < 0)
                return why_set(reading->why, r, "no memory for its schema");
        *ret_at = at;
        return 0;
}

/* The value of a key of the custom metadata; "" if there is none, or none of a sensible length. */
static int add_metadata(struct reading *reading, const struct flat_table *table, uint32_t field, const char *key,
                        size_t n_max, uint64_t *ret_at) {
        struct flat_vector pairs = flat_vector(table, field, 4);

        for (uint32_t i = 0; i < pairs.n && i < PAIRS_MAX; i++) {
                struct flat_table pair = flat_vector_table(&pairs, i);
                size_t n_key, n_value;
                const char *found = flat_text(&pair, 0, &n_key), *value = flat_text(&pair, 1, &n_value);

                if (n_key == strlen(key) && memcmp(found, key, n_key) == 0 && n_value <= n_max &&
                    looks_like_text((const uint8_t *)value, n_value))
                        return ipc_schema_add_text(reading, value, n_value, ret_at);
        }
        return ipc_schema_add_text(reading, "", 0, ret_at);
}

/* ---- types ----------------------------------------------------------------------------------------------------- */

static bool ipc_schema_set_integer(struct arrow_field *field, int64_t n_bits, bool is_signed) {
        static const struct {
                int64_t n_bits;
                enum dlp_dtype dtypes[2]; /* without and with sign */
                const char *names[2];
        } INTEGERS[] = {
                { 8, { DLP_DTYPE_UINT8, DLP_DTYPE_INT8 }, { "uint8", "int8" } },
                { 16, { DLP_DTYPE_UINT16, DLP_DTYPE_INT16 }, { "uint16", "int16" } },
                { 32, { DLP_DTYPE_UINT32, DLP_DTYPE_INT32 }, { "uint32", "int32" } },
                { 64, { DLP_DTYPE_UINT64, DLP_DTYPE_INT64 }, { "uint64", "int64" } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(INTEGERS); i++)
                if (INTEGERS[i].n_bits == n_bits) {
                        field->width = (uint32_t)n_bits / 8;
                        field->dtype = INTEGERS[i].dtypes[is_signed];
                        field->type = INTEGERS[i].names[is_signed];
                        return true;
                }
        return false;
}

static bool set_float(struct arrow_field *field, int64_t precision) {
        static const struct {
                enum dlp_dtype dtype;
                const char *name;
        } FLOATS[] = { { DLP_DTYPE_FLOAT16, "float16" },
                       { DLP_DTYPE_FLOAT32, "float32" },
                       { DLP_DTYPE_FLOAT64, "float64" } };

        if (precision < 0 || precision >= (int64_t)ARRAY_SIZE(FLOATS))
                return false;
        field->dtype = FLOATS[precision].dtype;
        field->type = FLOATS[precision].name;
        field->width = (uint32_t)dlp_dtype_bytes(field->dtype);
        return true;
}

/* Dates and times are whole numbers, as stored; their names stay. */
static bool set_time(struct arrow_field *field, int64_t n_bits) {
        const char *type = field->type;
        bool is_fine = (n_bits == 32 || n_bits == 64) && ipc_schema_set_integer(field, n_bits, true);

        field->type = type;
        return is_fine;
}

static bool ipc_schema_set_fixed(struct arrow_field *field, int64_t width) {
        field->width = (uint32_t)width;
        return width >= 0 && width <= INT32_MAX;
}

/* What the table of the type says. Returns false for what no Arrow file may say. */
static bool set_type(struct arrow_field *field, uint64_t type, const struct flat_table *table) {
        static const uint8_t INTERVAL_BYTES[] = { 4, 8, 16 };
        switch (type) {
        case TYPE_INT:
                return ipc_schema_set_integer(field, flat_signed(table, 0, 4, 0), flat_unsigned(table, 1, 1, 0) != 0);
        case TYPE_FLOAT:
                return set_float(field, flat_signed(table, 0, 2, 0));
        case TYPE_DATE: /* days or milliseconds */
                field->unit = flat_signed(table, 0, 2, UNIT_MILLISECOND);
                return set_time(field, field->unit == 0 ? 32 : 64);
        case TYPE_TIME:
                field->unit = flat_signed(table, 0, 2, UNIT_MILLISECOND);
                return set_time(field, flat_signed(table, 1, 4, 32));
        case TYPE_TIMESTAMP:
                field->unit = flat_signed(table, 0, 2, 0);
                return set_time(field, 64);
        case TYPE_DURATION:
                field->unit = flat_signed(table, 0, 2, UNIT_MILLISECOND);
                return set_time(field, 64);
        case TYPE_DECIMAL:
                field->unit = flat_signed(table, 1, 4, 0);
                return ipc_schema_set_fixed(field, flat_signed(table, 2, 4, 128) / 8);
        case TYPE_INTERVAL:
                field->unit = flat_signed(table, 0, 2, 0);
                return field->unit >= 0 && field->unit < (int64_t)sizeof(INTERVAL_BYTES) &&
                       ipc_schema_set_fixed(field, INTERVAL_BYTES[field->unit]);
        case TYPE_UNION:
                field->unit = flat_signed(table, 0, 2, 0); /* 1: dense, with a second buffer */
                return true;
        case TYPE_FIXED_BINARY:
        case TYPE_FIXED_LIST:
                return ipc_schema_set_fixed(field, flat_signed(table, 0, 4, 0));
        default:
                return true;
        }
}

static int ipc_schema_read_dictionary(struct reading *reading, struct arrow_field *field,
                                      const struct flat_table *encoding) {
        struct flat_table index = flat_inner(encoding, DICTIONARY_INDEX);
        struct arrow_field as_number = { 0 };

        if (!encoding->flat)
                return 0;
        field->has_dictionary = true;
        field->dictionary = flat_signed(encoding, DICTIONARY_ID, 8, 0);
        field->index_is_signed = !index.flat || flat_unsigned(&index, 1, 1, 0) != 0;
        if (!ipc_schema_set_integer(&as_number, index.flat ? flat_signed(&index, 0, 4, 0) : 32, field->index_is_signed))
                return ipc_schema_damaged(reading);
        field->index_width = as_number.width;
        return 0;
}

/* ---- fields ---------------------------------------------------------------------------------------------------- */

static int ipc_schema_read_one(struct reading *reading, const struct flat_table *table, uint32_t depth,
                               uint32_t n_children) {
        uint64_t type = flat_unsigned(table, FIELD_TYPE, 1, 0);
        struct flat_table details = flat_inner(table, FIELD_TYPE_TABLE);
        struct flat_table encoding = flat_inner(table, FIELD_DICTIONARY);
        struct arrow_field field = { .depth = depth, .n_children = n_children };
        size_t n_name;
        const char *name = flat_text(table, FIELD_TITLE, &n_name);
        int r;

        if (reading->schema->n_fields == ARROW_FIELDS_MAX || depth == ARROW_DEPTH_MAX)
                return why_set(reading->why, -ENOTSUP, "its schema has more than %u fields or %u levels",
                               ARROW_FIELDS_MAX, ARROW_DEPTH_MAX);
        if (n_name > ARROW_NAME_MAX || !looks_like_text((const uint8_t *)name, n_name))
                return why_set(reading->why, -EBADMSG,
                               "its schema is damaged: the name of a column is not UTF-8, or has more than %u bytes",
                               ARROW_NAME_MAX);
        if (type >= ARRAY_SIZE(TYPES) || !TYPES[type].name)
                return why_set(reading->why, -ENOTSUP,
                               "its column \"%.*s\" has a type that is not known (%" PRIu64
                               "); write it with another type",
                               n_name > 60 ? 60 : (int)n_name, name, type);
        field.type = TYPES[type].name;
        field.kind = TYPES[type].kind;
        field.is_large = TYPES[type].is_large;
        field.is_text = TYPES[type].is_text;
        if ((TYPES[type].n_children != ANY && TYPES[type].n_children != n_children) ||
            !set_type(&field, type, &details))
                return ipc_schema_damaged(reading);
        r = ipc_schema_add_text(reading, name, n_name, &field.name);
        if (r == 0)
                r = add_metadata(reading, table, FIELD_METADATA, "ARROW:extension:name", ARROW_NAME_MAX,
                                 &field.extension);
        if (r == 0)
                r = ipc_schema_read_dictionary(reading, &field, &encoding);
        if (r < 0)
                return r;
        r = growing_append(&reading->schema->fields, &field, sizeof(field));
        if (r < 0)
                return why_set(reading->why, r, "no memory for its schema");
        reading->schema->n_fields++;
        return 0;
}

/* A field and what is below it. A vector that contains itself ends at ARROW_DEPTH_MAX. */
static int ipc_schema_read_field(struct reading *reading, const struct flat_table *table, uint32_t depth) {
        struct flat_vector children = flat_vector(table, FIELD_CHILDREN, 4);
        uint32_t idx = reading->schema->n_fields;
        int r = ipc_schema_read_one(reading, table, depth, children.n);

        for (uint32_t i = 0; i < children.n && r == 0; i++) {
                struct flat_table child = flat_vector_table(&children, i);

                r = child.flat ? ipc_schema_read_field(reading, &child, depth + 1) : ipc_schema_damaged(reading);
        }
        if (r == 0)
                ((struct arrow_field *)(void *)reading->schema->fields.bytes)[idx].n_below = reading->schema->n_fields -
                                                                                             idx - 1;
        return r;
}

static int ipc_schema_read_all(struct reading *reading, const struct flat_table *header) {
        struct flat_vector columns = flat_vector(header, SCHEMA_FIELDS, 4);
        int r = 0;

        if (flat_signed(header, SCHEMA_ENDIANNESS, 2, 0) != 0)
                return why_set(reading->why, -ENOTSUP,
                               "its numbers are big-endian; write it again on a little-endian machine");
        for (uint32_t i = 0; i < columns.n && r == 0; i++) {
                struct flat_table column = flat_vector_table(&columns, i);

                r = column.flat ? ipc_schema_read_field(reading, &column, 0) : ipc_schema_damaged(reading);
        }
        reading->schema->n_columns = columns.n;
        if (r == 0)
                r = add_metadata(reading, header, SCHEMA_METADATA, "huggingface", NOTES_MAX,
                                 &reading->schema->huggingface);
        if (r == 0 && header->flat->is_damaged)
                r = ipc_schema_damaged(reading);
        return r;
}

int arrow_schema_read(const struct flat_table *header, struct arrow_schema *ret_schema, struct why *why) {
        struct arrow_schema schema = { 0 };
        struct reading reading = { .schema = &schema, .why = why };
        int r = header->flat ? ipc_schema_read_all(&reading, header) : ipc_schema_damaged(&reading);

        if (r < 0)
                arrow_schema_fini(&schema);
        else
                *ret_schema = schema;
        return r;
}

void arrow_schema_fini(struct arrow_schema *schema) {
        growing_fini(&schema->fields);
        growing_fini(&schema->names);
}

/* ---- in another file --------------------------------------------------------------------------------------------- */

static const char *ipc_schema_name_of(const void *schema, uint32_t idx) {
        return arrow_schema_text(schema, arrow_schema_field(schema, idx)->name);
}

static uint32_t ipc_schema_n_below_of(const void *schema, uint32_t idx) {
        return arrow_schema_field(schema, idx)->n_below;
}

static enum column_sort ipc_schema_sort_of(const void *schema, uint32_t idx) {
        const struct arrow_field *field = arrow_schema_field(schema, idx);

        if (field->kind == ARROW_STRUCT && !field->has_dictionary)
                return COLUMN_STRUCT;
        return field->kind == ARROW_NULL ? COLUMN_NULL : COLUMN_VALUE;
}

/* Kinds that differ only in how the values are stored. */
static enum arrow_kind plain_kind(enum arrow_kind kind) {
        return kind == ARROW_BYTES_VIEW ? ARROW_BYTES : kind == ARROW_LIST_VIEW ? ARROW_LIST : kind;
}

/* Is it a number for its own sake, and no time? */
static bool is_plain_number(const struct arrow_field *field) {
        return field->kind == ARROW_NUMBER && strcmp(field->type, dlp_dtype_name(field->dtype)) == 0;
}

static bool is_alike(const void *schema, uint32_t idx, const void *other, uint32_t idx_other) {
        const struct arrow_field *one = arrow_schema_field(schema, idx), *two = arrow_schema_field(other, idx_other);
        enum arrow_kind kind = plain_kind(one->kind);

        if (kind != plain_kind(two->kind) || one->n_children != two->n_children)
                return false;
        if (one->n_children > 0 && one->has_dictionary != two->has_dictionary)
                return false; /* the members of a dictionary's values are not in the batches */
        if (kind == ARROW_BYTES)
                return one->is_text == two->is_text;
        if (kind == ARROW_LIST) /* a map is stored as one */
                return (strcmp(one->type, "map") == 0) == (strcmp(two->type, "map") == 0);
        if (is_plain_number(one) && is_plain_number(two))
                return number_types_join(one->dtype, two->dtype) != NUMBER_TYPE_NONE;
        return one->width == two->width && one->dtype == two->dtype && one->unit == two->unit &&
               strcmp(one->type, two->type) == 0;
}

static int ipc_schema_copy_text(struct arrow_schema *schema, const char *text, uint64_t *ret_at) {
        *ret_at = schema->names.n_bytes;
        return growing_append(&schema->names, text, strlen(text) + 1);
}

static int append_field(void *schema, const void *from, uint32_t idx) {
        struct arrow_schema *into = schema;
        struct arrow_field field = *arrow_schema_field(from, idx);
        int r = into->n_fields >= ARROW_FIELDS_MAX
                        ? -E2BIG
                        : ipc_schema_copy_text(into, arrow_schema_text(from, field.name), &field.name);

        if (r == 0)
                r = ipc_schema_copy_text(into, arrow_schema_text(from, field.extension), &field.extension);
        if (r == 0)
                r = growing_append(&into->fields, &field, sizeof(field));
        into->n_fields += r == 0;
        into->n_columns += r == 0 && field.depth == 0;
        return r;
}

static void set_below(void *schema, uint32_t idx, uint32_t n_below) {
        struct arrow_schema *into = schema;

        ((struct arrow_field *)(void *)into->fields.bytes)[idx].n_below = n_below;
}

const struct columns_type ARROW_COLUMNS = { .name = ipc_schema_name_of,
                                            .n_below = ipc_schema_n_below_of,
                                            .sort = ipc_schema_sort_of,
                                            .is_alike = is_alike,
                                            .append = append_field,
                                            .set_below = set_below };

struct columns_range arrow_schema_range(const void *schema) {
        return (struct columns_range){ schema, 0, ((const struct arrow_schema *)schema)->n_fields };
}

int arrow_schema_complete(void *schema, const void *file, struct why *why) {
        struct arrow_schema made = { 0 }, *whole = schema;
        const struct arrow_schema *from = whole->n_fields > 0 ? whole : file;
        int r = columns_complete(&ARROW_COLUMNS, arrow_schema_range(from), arrow_schema_range(file), &made, 0);

        if (r == 0)
                r = ipc_schema_copy_text(&made, arrow_schema_text(from, from->huggingface), &made.huggingface);
        if (r < 0) {
                arrow_schema_fini(&made);
                return r == -E2BIG ? why_set(why, r, "has more than %u columns with those of the other files",
                                             ARROW_FIELDS_MAX)
                                   : why_set(why, r, "no memory for its schema");
        }
        arrow_schema_fini(whole);
        *whole = made;
        return 0;
}
