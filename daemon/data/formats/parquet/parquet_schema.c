#include "daemon/data/formats/parquet/parquet_schema.h"

#include <errno.h>
#include <string.h>

#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/formats/differing/number_types.h"
#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"
#include "proto/layout.h"

/* Numbers of parquet.thrift. */
enum {
        ELEMENT_TYPE = 1,
        ELEMENT_WIDTH = 2,
        ELEMENT_REPETITION = 3,
        ELEMENT_NAME = 4,
        ELEMENT_N_CHILDREN = 5,
        ELEMENT_CONVERTED = 6,
        ELEMENT_LOGICAL = 10,
};
enum {
        REQUIRED,
        OPTIONAL,
        REPEATED,
};
enum {
        CONVERTED_UTF8 = 0,
        CONVERTED_MAP = 1,
        CONVERTED_MAP_PAIRS = 2,
        CONVERTED_LIST = 3,
        CONVERTED_ENUM = 4,
        CONVERTED_DECIMAL = 5,
        CONVERTED_DATE = 6,
        CONVERTED_TIME_MILLIS = 7,
        CONVERTED_TIME_MICROS = 8,
        CONVERTED_TIMESTAMP_MILLIS = 9,
        CONVERTED_TIMESTAMP_MICROS = 10,
        CONVERTED_UINT8 = 11,
        CONVERTED_INT64 = 18,
        CONVERTED_JSON = 19,
        CONVERTED_INTERVAL = 21,
};
enum {
        LOGICAL_NONE = 0,
        LOGICAL_STRING = 1,
        LOGICAL_MAP = 2,
        LOGICAL_LIST = 3,
        LOGICAL_ENUM = 4,
        LOGICAL_DECIMAL = 5,
        LOGICAL_DATE = 6,
        LOGICAL_TIME = 7,
        LOGICAL_TIMESTAMP = 8,
        LOGICAL_INTEGER = 10,
        LOGICAL_UNKNOWN = 11,
        LOGICAL_JSON = 12,
        LOGICAL_FLOAT16 = 15,
        LOGICAL_VARIANT = 16,
};

/* An element as it stands in the file. */
struct declared {
        int64_t type, width, repetition, n_children, converted; /* -1: not said */
        int32_t logical;
        int32_t unit;   /* of LOGICAL_TIME and LOGICAL_TIMESTAMP: 1 milliseconds, 2 microseconds, 3 nanoseconds */
        int64_t n_bits; /* of LOGICAL_INTEGER */
        bool is_signed;
        const char *name;
        size_t n_name;
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

static void read_integer_type(struct thrift *thrift, enum thrift_type type, struct declared *declared) {
        struct thrift_field field = { 0 };

        if (!thrift_struct(thrift, type))
                return;
        while (thrift_next(thrift, &field)) {
                if (field.id == 1)
                        declared->n_bits = thrift_integer(thrift, field.type);
                else if (field.id == 2)
                        declared->is_signed = thrift_bool(thrift, field.type);
                else
                        thrift_skip(thrift, field.type);
        }
}

/* A union: a struct with one field, whose number is the type. */
static int32_t read_union(struct thrift *thrift, enum thrift_type type) {
        struct thrift_field field = { 0 };
        int32_t id = 0;

        if (!thrift_struct(thrift, type))
                return 0;
        while (thrift_next(thrift, &field)) {
                id = field.id;
                thrift_skip(thrift, field.type);
        }
        return id;
}

static void read_time_type(struct thrift *thrift, enum thrift_type type, struct declared *declared) {
        struct thrift_field field = { 0 };

        if (!thrift_struct(thrift, type))
                return;
        while (thrift_next(thrift, &field)) {
                if (field.id == 2)
                        declared->unit = read_union(thrift, field.type);
                else
                        thrift_skip(thrift, field.type);
        }
}

static void read_logical(struct thrift *thrift, enum thrift_type type, struct declared *declared) {
        struct thrift_field field = { 0 };

        if (!thrift_struct(thrift, type))
                return;
        while (thrift_next(thrift, &field)) {
                declared->logical = field.id;
                if (field.id == LOGICAL_INTEGER)
                        read_integer_type(thrift, field.type, declared);
                else if (field.id == LOGICAL_TIME || field.id == LOGICAL_TIMESTAMP)
                        read_time_type(thrift, field.type, declared);
                else
                        thrift_skip(thrift, field.type);
        }
}

static struct declared parquet_schema_read_element(struct thrift *thrift, enum thrift_type type) {
        struct declared declared = {
                .type = -1, .width = -1, .repetition = -1, .n_children = -1, .converted = -1, .name = ""
        };
        struct thrift_field field = { 0 };

        if (!thrift_struct(thrift, type))
                return declared;
        while (thrift_next(thrift, &field)) {
                switch (field.id) {
                case ELEMENT_TYPE:
                        declared.type = thrift_integer(thrift, field.type);
                        break;
                case ELEMENT_WIDTH:
                        declared.width = thrift_integer(thrift, field.type);
                        break;
                case ELEMENT_REPETITION:
                        declared.repetition = thrift_integer(thrift, field.type);
                        break;
                case ELEMENT_NAME:
                        declared.name = thrift_binary(thrift, field.type, &declared.n_name);
                        break;
                case ELEMENT_N_CHILDREN:
                        declared.n_children = thrift_integer(thrift, field.type);
                        break;
                case ELEMENT_CONVERTED:
                        declared.converted = thrift_integer(thrift, field.type);
                        break;
                case ELEMENT_LOGICAL:
                        read_logical(thrift, field.type, &declared);
                        break;
                default:
                        thrift_skip(thrift, field.type);
                }
        }
        return declared;
}

/* ---- types ----------------------------------------------------------------------------------------------------- */

static void parquet_schema_set_number(struct parquet_element *element, uint32_t dtype, uint32_t width) {
        element->meaning = PARQUET_NUMBER;
        element->dtype = dtype;
        element->width = width;
        element->type = dtype == DLP_DTYPE_BOOL ? "boolean" : dlp_dtype_name(dtype);
}

/* The kinds of integers that only say how many bits are used. */
static void parquet_schema_set_integer(struct parquet_element *element, const struct declared *declared,
                                       uint32_t width) {
        static const uint32_t SIGNED[] = { DLP_DTYPE_INT8, DLP_DTYPE_INT16, DLP_DTYPE_INT32, DLP_DTYPE_INT64 };
        static const uint32_t UNSIGNED[] = { DLP_DTYPE_UINT8, DLP_DTYPE_UINT16, DLP_DTYPE_UINT32, DLP_DTYPE_UINT64 };
        uint32_t size = width == 4 ? 2 : 3;
        bool is_signed = true;

        if (declared->logical == LOGICAL_INTEGER) {
                is_signed = declared->is_signed;
                size = declared->n_bits == 8    ? 0
                       : declared->n_bits == 16 ? 1
                       : declared->n_bits == 32 ? 2
                       : declared->n_bits == 64 ? 3
                                                : 4;
        } else if (declared->converted >= CONVERTED_UINT8 && declared->converted <= CONVERTED_INT64) {
                is_signed = declared->converted - CONVERTED_UINT8 >= 4;
                size = (uint32_t)(declared->converted - CONVERTED_UINT8) % 4;
        }
        if (width == 4 ? size > 2 : size != 3) {
                element->meaning = PARQUET_OTHER;
                element->type = "an integer of a width that does not fit its storage";
                return;
        }
        parquet_schema_set_number(element, is_signed ? SIGNED[size] : UNSIGNED[size], width);
}

/* Dates and times are whole numbers, as stored; numbers of another unit mean something else. */
static uint32_t parquet_schema_time_of(const struct declared *declared) {
        static const uint32_t CONVERTED[] = {
                [CONVERTED_DATE] = 16 * LOGICAL_DATE,
                [CONVERTED_TIME_MILLIS] = 16 * LOGICAL_TIME + 1,
                [CONVERTED_TIME_MICROS] = 16 * LOGICAL_TIME + 2,
                [CONVERTED_TIMESTAMP_MILLIS] = 16 * LOGICAL_TIMESTAMP + 1,
                [CONVERTED_TIMESTAMP_MICROS] = 16 * LOGICAL_TIMESTAMP + 2,
        };

        if (declared->logical >= LOGICAL_DATE && declared->logical <= LOGICAL_TIMESTAMP)
                return 16 * (uint32_t)declared->logical + ((uint32_t)declared->unit & 15);
        return declared->converted >= 0 && declared->converted < (int64_t)ARRAY_SIZE(CONVERTED)
                       ? CONVERTED[declared->converted]
                       : 0;
}

static void parquet_schema_set_bytes(struct parquet_element *element, const struct declared *declared) {
        bool is_text = declared->logical == LOGICAL_STRING || declared->logical == LOGICAL_ENUM ||
                       declared->logical == LOGICAL_JSON || declared->converted == CONVERTED_UTF8 ||
                       declared->converted == CONVERTED_ENUM || declared->converted == CONVERTED_JSON;

        element->meaning = is_text ? PARQUET_TEXT : PARQUET_BYTES;
        element->type = is_text ? "string" : "binary";
}

static void parquet_schema_set_fixed(struct parquet_element *element, const struct declared *declared) {
        if (declared->logical == LOGICAL_FLOAT16 && declared->width == 2) {
                parquet_schema_set_number(element, DLP_DTYPE_FLOAT16, 2);
                return;
        }
        element->meaning = declared->converted == CONVERTED_INTERVAL ? PARQUET_OTHER : PARQUET_BYTES;
        element->type = declared->converted == CONVERTED_INTERVAL ? "interval" : "fixed binary";
        element->width = (uint32_t)declared->width;
}

static int set_leaf(struct parquet_element *element, const struct declared *declared, struct why *why) {
        if (declared->type < 0 || declared->type >= PARQUET_N_PHYSICALS)
                return why_set(why, -EBADMSG, "is damaged: a column has the unknown type %lld",
                               (long long)declared->type);
        if (declared->type == PARQUET_FIXED && (declared->width <= 0 || declared->width > PARQUET_WIDTH_MAX))
                return why_set(why, -EBADMSG, "is damaged: a column has values of %lld bytes; 1 to %u are allowed",
                               (long long)declared->width, PARQUET_WIDTH_MAX);
        element->physical = (enum parquet_physical)declared->type;
        element->time = parquet_schema_time_of(declared);
        switch (element->physical) {
        case PARQUET_BOOLEAN:
                parquet_schema_set_number(element, DLP_DTYPE_BOOL, 0);
                break;
        case PARQUET_INT32:
                parquet_schema_set_integer(element, declared, 4);
                break;
        case PARQUET_INT64:
                parquet_schema_set_integer(element, declared, 8);
                break;
        case PARQUET_FLOAT:
                parquet_schema_set_number(element, DLP_DTYPE_FLOAT32, 4);
                break;
        case PARQUET_DOUBLE:
                parquet_schema_set_number(element, DLP_DTYPE_FLOAT64, 8);
                break;
        case PARQUET_BYTE_ARRAY:
                parquet_schema_set_bytes(element, declared);
                break;
        case PARQUET_FIXED:
                parquet_schema_set_fixed(element, declared);
                break;
        default:
                element->meaning = PARQUET_OTHER;
                element->type = "int96 (a time as old writers stored it)";
                element->width = 12;
        }
        if (declared->logical == LOGICAL_UNKNOWN) {
                element->meaning = PARQUET_NOTHING;
                element->type = "null";
        }
        if (declared->logical == LOGICAL_DECIMAL || declared->converted == CONVERTED_DECIMAL) {
                element->meaning = PARQUET_OTHER;
                element->type = "decimal";
        }
        if (declared->logical >= LOGICAL_VARIANT) { /* and geometry, and what is not known yet */
                element->meaning = PARQUET_OTHER;
                element->type = "of a type that is not known here";
        }
        return 0;
}

static void set_group(struct parquet_element *element, const struct declared *declared) {
        bool is_list = declared->logical == LOGICAL_LIST || declared->converted == CONVERTED_LIST;
        bool is_map = declared->logical == LOGICAL_MAP || declared->converted == CONVERTED_MAP ||
                      declared->converted == CONVERTED_MAP_PAIRS;
        bool is_other = declared->logical >= LOGICAL_VARIANT;

        element->meaning = is_list ? PARQUET_LIST : PARQUET_GROUP;
        element->type = is_list ? "list" : is_map ? "map" : is_other ? "of a type that is not known here" : "struct";
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

struct building {
        struct parquet_schema *schema;
        uint32_t parents[PARQUET_DEPTH_MAX]; /* the elements above, and how many children each still gets */
        uint32_t n_missing[PARQUET_DEPTH_MAX];
        uint32_t depth;
};

static int parquet_schema_add_name(struct parquet_schema *schema, const struct declared *declared, uint64_t *ret_offset,
                                   struct why *why) {
        uint64_t offset = schema->names.n_bytes;

        if (declared->n_name > PARQUET_NAME_MAX || !looks_like_text((const uint8_t *)declared->name, declared->n_name))
                return why_set(why, -EBADMSG,
                               "is damaged: the name of a column has more than %u bytes, or is not UTF-8",
                               PARQUET_NAME_MAX);
        if (growing_append(&schema->names, declared->name, declared->n_name) < 0 ||
            growing_append(&schema->names, "", 1) < 0)
                return why_set(why, -ENOMEM, "no memory for its columns");
        *ret_offset = offset;
        return 0;
}

/* What the element has from its parents. */
static void parquet_schema_place(struct building *building, const struct declared *declared,
                                 struct parquet_element *element) {
        struct parquet_schema *schema = building->schema;
        struct parquet_element *elements = (void *)schema->elements.bytes, *parent;

        if (building->depth == 0)
                return;
        element->idx_parent = building->parents[building->depth - 1];
        parent = &elements[element->idx_parent];
        element->is_repeated = declared->repetition == REPEATED;
        element->n_defined = parent->n_defined + (declared->repetition > REQUIRED);
        element->n_repeated = parent->n_repeated + element->is_repeated;
        building->n_missing[building->depth - 1]--;
        for (uint32_t i = 0; i < building->depth; i++)
                elements[building->parents[i]].n_below++;
        schema->n_columns += building->depth == 1;
}

static int parquet_schema_check_place(const struct building *building, const struct declared *declared,
                                      struct why *why) {
        bool is_root = building->schema->n_elements == 0;

        if (!is_root && building->depth == 0)
                return why_set(why, -EBADMSG, "is damaged: its schema has several roots");
        if (!is_root && (declared->repetition < REQUIRED || declared->repetition > REPEATED))
                return why_set(why, -EBADMSG, "is damaged: a column of its schema has no repetition");
        if (declared->n_children > PARQUET_ELEMENTS_MAX || (is_root && declared->n_children <= 0))
                return why_set(why, -EBADMSG, "is damaged: its schema has a group of %lld columns",
                               (long long)declared->n_children);
        if (declared->n_children > 0 && building->depth == PARQUET_DEPTH_MAX)
                return why_set(why, -ENOTSUP, "has groups within groups, more than %u levels", PARQUET_DEPTH_MAX);
        return 0;
}

static int add_element(struct building *building, const struct declared *declared, struct why *why) {
        struct parquet_schema *schema = building->schema;
        struct parquet_element element = { .depth = building->depth };
        int r = parquet_schema_check_place(building, declared, why);

        if (r == 0)
                r = parquet_schema_add_name(schema, declared, &element.name, why);
        if (r < 0)
                return r;
        parquet_schema_place(building, declared, &element);
        if (declared->n_children > 0) {
                set_group(&element, declared);
                element.n_children = (uint32_t)declared->n_children;
        } else if (declared->type < 0) { /* a struct without members has no values anywhere */
                set_group(&element, declared);
        } else {
                r = set_leaf(&element, declared, why);
                if (r < 0)
                        return r;
                element.idx_leaf = schema->n_leaves++;
        }
        if (growing_append(&schema->elements, &element, sizeof(element)) < 0)
                return why_set(why, -ENOMEM, "no memory for its columns");
        if (element.n_children > 0) {
                building->parents[building->depth] = schema->n_elements;
                building->n_missing[building->depth++] = element.n_children;
        }
        schema->n_elements++;
        while (building->depth > 0 && building->n_missing[building->depth - 1] == 0)
                building->depth--;
        return 0;
}

static int parquet_schema_read_all(struct thrift *thrift, enum thrift_type type, struct parquet_schema *schema,
                                   struct why *why) {
        struct building building = { .schema = schema };
        enum thrift_type element;
        size_t n = thrift_list(thrift, type, &element);
        int r = 0;

        if (n > PARQUET_ELEMENTS_MAX)
                return why_set(why, -ENOTSUP, "has %zu columns; %u are allowed", n, PARQUET_ELEMENTS_MAX);
        for (size_t i = 0; i < n && r == 0; i++) {
                struct declared declared = parquet_schema_read_element(thrift, element);

                if (thrift->is_damaged)
                        break;
                r = add_element(&building, &declared, why);
        }
        if (r == 0 && (thrift->is_damaged || n == 0 || building.depth > 0))
                r = why_set(why, -EBADMSG, "is damaged: its schema is not complete");
        return r;
}

int parquet_schema_read(struct thrift *thrift, enum thrift_type type, struct parquet_schema *ret_schema,
                        struct why *why) {
        struct parquet_schema schema = { 0 };
        int r = parquet_schema_read_all(thrift, type, &schema, why);

        if (r < 0)
                parquet_schema_fini(&schema);
        else
                *ret_schema = schema;
        return r;
}

void parquet_schema_fini(struct parquet_schema *schema) {
        growing_fini(&schema->elements);
        growing_fini(&schema->names);
        *schema = (struct parquet_schema){ 0 };
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

uint32_t parquet_schema_level(const struct parquet_schema *schema, uint32_t idx_leaf_element, uint32_t repetition) {
        uint32_t idx = idx_leaf_element;

        while (idx > 0) {
                const struct parquet_element *element = parquet_element(schema, idx);

                if (element->is_repeated && element->n_repeated == repetition)
                        return element->n_defined;
                idx = element->idx_parent;
        }
        return 0;
}

/* ---- in another file --------------------------------------------------------------------------------------------- */

static const char *parquet_schema_name_of(const void *schema, uint32_t idx) {
        return parquet_element_name(schema, idx);
}

static uint32_t parquet_schema_n_below_of(const void *schema, uint32_t idx) {
        return parquet_element(schema, idx)->n_below;
}

static enum column_sort parquet_schema_sort_of(const void *schema, uint32_t idx) {
        const struct parquet_element *element = parquet_element(schema, idx);

        if (element->meaning == PARQUET_GROUP && strcmp(element->type, "struct") == 0 && !element->is_repeated)
                return COLUMN_STRUCT;
        return element->meaning == PARQUET_NOTHING ? COLUMN_NULL : COLUMN_VALUE;
}

static bool is_alike(const void *schema, uint32_t idx, const void *other, uint32_t idx_other) {
        const struct parquet_element *one = parquet_element(schema, idx), *two = parquet_element(other, idx_other);

        if (one->meaning != two->meaning || one->is_repeated != two->is_repeated ||
            one->n_children != two->n_children || one->n_repeated != two->n_repeated || one->time != two->time)
                return false;
        if (one->meaning == PARQUET_NUMBER)
                return number_types_join(one->dtype, two->dtype) != NUMBER_TYPE_NONE;
        if (one->meaning == PARQUET_OTHER || one->meaning == PARQUET_GROUP)
                return one->physical == two->physical && strcmp(one->type, two->type) == 0;
        return true;
}

static int append_element(void *schema, const void *from, uint32_t idx) {
        struct parquet_schema *into = schema;
        struct parquet_element element = *parquet_element(from, idx);
        const char *name = parquet_element_name(from, idx);
        int r;

        element.name = into->names.n_bytes;
        r = into->n_elements >= PARQUET_ELEMENTS_MAX ? -E2BIG : growing_append(&into->names, name, strlen(name) + 1);
        if (r == 0)
                r = growing_append(&into->elements, &element, sizeof(element));
        into->n_elements += r == 0;
        into->n_columns += r == 0 && element.depth == 1;
        return r;
}

static void set_below(void *schema, uint32_t idx, uint32_t n_below) {
        struct parquet_schema *into = schema;

        ((struct parquet_element *)(void *)into->elements.bytes)[idx].n_below = n_below;
}

const struct columns_type PARQUET_COLUMNS = { .name = parquet_schema_name_of,
                                              .n_below = parquet_schema_n_below_of,
                                              .sort = parquet_schema_sort_of,
                                              .is_alike = is_alike,
                                              .append = append_element,
                                              .set_below = set_below };

struct columns_range parquet_schema_range(const void *schema) {
        return (struct columns_range){ schema, 1, ((const struct parquet_schema *)schema)->n_elements };
}

int parquet_schema_complete(void *schema, const void *file, struct why *why) {
        struct parquet_schema made = { 0 }, *whole = schema;
        const void *from = whole->n_elements > 0 ? schema : file;
        int r = append_element(&made, from, 0);

        if (r == 0)
                r = columns_complete(&PARQUET_COLUMNS, parquet_schema_range(from), parquet_schema_range(file), &made,
                                     1);
        if (r < 0) {
                parquet_schema_fini(&made);
                return r == -E2BIG ? why_set(why, r, "has more than %u columns with those of the other files",
                                             PARQUET_ELEMENTS_MAX)
                                   : why_set(why, r, "no memory for its columns");
        }
        set_below(&made, 0, made.n_elements - 1);
        parquet_schema_fini(whole);
        *whole = made;
        return 0;
}
