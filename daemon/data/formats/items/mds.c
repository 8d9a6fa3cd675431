#include "daemon/base/machine/beneath.h"
#include "daemon/data/format.h"

/* mds: the folder of a mosaicml-streaming writer: index.json, which says what the columns and the shards are, and the
 * shards. Values lie in the shards as they are: the index only says where. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/formats/differing/number_types.h"
#include "daemon/data/formats/items/index_json.h"
#include "daemon/data/formats/items/items.h"
#include "daemon/data/formats/table_columns.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/index/indexing_sort.h"
#include "proto/base/cleanup.h"

#define VERSION      2
#define NDARRAY      "ndarray"
#define ENCODING_MAX 128u
#define COLUMNS_MAX  16384u

struct reading {
        struct item_set set;
        int root_fd;
        const char *root;
        const char *fields;                        /* that are wanted; NULL: all */
        struct json_token names, encodings, sizes; /* of the last shard */
        uint64_t n_shards;
        struct growing parsed; /* struct item_column: its columns, in the sequence of its items */
        uint32_t n_parsed;
        uint32_t idx_column; /* that is read next */
};

static struct item_column *parsed_columns(const struct reading *reading) {
        return (struct item_column *)(void *)reading->parsed.bytes;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* What an encoding is as a field. Those with a dtype have a fixed size. */
static const struct encoding {
        const char *name;
        enum field_kind kind;
        uint32_t dtype;
} ENCODINGS[] = {
        { "bytes", FIELD_BYTES, 0 },
        { "str", FIELD_TEXT, 0 },
        { "int", FIELD_VALUE, DLP_DTYPE_INT64 },
        { "uint8", FIELD_VALUE, DLP_DTYPE_UINT8 },
        { "uint16", FIELD_VALUE, DLP_DTYPE_UINT16 },
        { "uint32", FIELD_VALUE, DLP_DTYPE_UINT32 },
        { "uint64", FIELD_VALUE, DLP_DTYPE_UINT64 },
        { "int8", FIELD_VALUE, DLP_DTYPE_INT8 },
        { "int16", FIELD_VALUE, DLP_DTYPE_INT16 },
        { "int32", FIELD_VALUE, DLP_DTYPE_INT32 },
        { "int64", FIELD_VALUE, DLP_DTYPE_INT64 },
        { "float16", FIELD_VALUE, DLP_DTYPE_FLOAT16 },
        { "float32", FIELD_VALUE, DLP_DTYPE_FLOAT32 },
        { "float64", FIELD_VALUE, DLP_DTYPE_FLOAT64 },
        { "str_int", FIELD_NUMBER, 0 },
        { "str_float", FIELD_TEXT, 0 },
        { "str_decimal", FIELD_TEXT, 0 },
        { "jpeg", FIELD_PICTURE, 0 },
        { "png", FIELD_PICTURE, 0 },
        { "json", FIELD_TEXT, 0 },
        { "pil", FIELD_PICTURE, 0 }, /* pixels after a header of its own: decode/pil.c */
        { "jpeg_array", FIELD_BYTES, 0 },
        { "jpegarray", FIELD_BYTES, 0 },
        { "list[pil]", FIELD_BYTES, 0 },
        { "list[jpeg]", FIELD_BYTES, 0 },
        { "list[png]", FIELD_BYTES, 0 },
};

static const struct encoding *find_encoding(const char *name, size_t n) {
        for (size_t i = 0; i < ARRAY_SIZE(ENCODINGS); i++)
                if (strlen(ENCODINGS[i].name) == n && memcmp(ENCODINGS[i].name, name, n) == 0)
                        return &ENCODINGS[i];
        return NULL;
}

/* "2,3" after "ndarray:float32:". */
static bool mds_read_shape(const char *text, struct schema_field *field) {
        while (*text) {
                char *end;
                long long n = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : 0;

                if (n < 1 || n == LLONG_MAX || (*end != ',' && *end != '\0') || field->n_dims == SCHEMA_DIMS_MAX)
                        return false;
                field->shape[field->n_dims++] = n;
                text = *end == ',' ? end + 1 : end;
        }
        return field->n_dims > 0;
}

/* "ndarray", "ndarray:float32" or "ndarray:float32:2,3". */
static bool read_ndarray(const char *text, struct item_column *column) {
        const struct encoding *element;
        size_t n;

        column->field.kind = FIELD_VALUE;
        column->prefix = PREFIX_MDS_ARRAY;
        if (*text == '\0')
                return true;
        n = strcspn(++text, ":");
        element = find_encoding(text, n);
        if (!element || element->kind != FIELD_VALUE || strncmp(text, "int", n) == 0)
                return false;
        column->field.dtype = element->dtype;
        column->prefix = PREFIX_MDS_SHAPE;
        if (text[n] == '\0')
                return true;
        column->prefix = PREFIX_NONE;
        return mds_read_shape(text + n + 1, &column->field);
}

static bool read_encoding(const char *text, struct item_column *column) {
        const struct encoding *encoding = find_encoding(text, strlen(text));

        if (strncmp(text, NDARRAY, strlen(NDARRAY)) == 0 &&
            (text[strlen(NDARRAY)] == '\0' || text[strlen(NDARRAY)] == ':'))
                return read_ndarray(text + strlen(NDARRAY), column);
        if (!encoding)
                return false;
        column->field.kind = encoding->kind;
        column->field.dtype = encoding->dtype;
        return true;
}

/* The size that the encoding has; 0: it varies. UINT64_MAX: it overflows. */
static uint64_t size_of(const struct item_column *column) {
        uint64_t n = dlp_dtype_bytes(column->field.dtype);

        if (column->field.kind != FIELD_VALUE || column->prefix != PREFIX_NONE)
                return 0;
        for (uint32_t i = 0; i < column->field.n_dims; i++)
                if (__builtin_mul_overflow(n, (uint64_t)column->field.shape[i], &n))
                        return UINT64_MAX;
        return n;
}

static int mds_take_name(void *userdata, const struct json_token *element, struct why *why) {
        struct reading *reading = userdata;
        struct item_column column = { .field.is_stored = true };
        char name[ITEM_NAME_MAX];
        int r;

        if (reading->n_parsed == COLUMNS_MAX)
                return why_set(why, -E2BIG, "it has more than %u columns", COLUMNS_MAX);
        r = index_json_text(element, "", name, sizeof(name), NULL);
        if (r < 0 || !name[0])
                return why_set(why, -ENOTSUP, "column %u: its name does not have 1 to %zu bytes", reading->n_parsed,
                               sizeof(name) - 1);
        field_name_from(name, strlen(name), column.field.name);
        r = growing_append(&reading->parsed, &column, sizeof(column));
        if (r < 0)
                return why_set(why, r, "no memory for its columns");
        reading->n_parsed++;
        return 0;
}

static int take_encoding(void *userdata, const struct json_token *element, struct why *why) {
        struct reading *reading = userdata;
        struct item_column *column = &parsed_columns(reading)[reading->idx_column];
        char text[ENCODING_MAX];

        if (reading->idx_column++ == reading->n_parsed || index_json_text(element, "", text, sizeof(text), NULL) < 0)
                return why_set(why, -EBADMSG, "its columns do not have an encoding each");
        column->field.is_json = strcmp(text, "json") == 0;
        if (!read_encoding(text, column)) {
                column->field.kind = FIELD_BYTES;
                snprintf(column->refused, sizeof(column->refused), "%.31s", text);
        }
        return 0;
}

static int mds_take_size(void *userdata, const struct json_token *element, struct why *why) {
        struct reading *reading = userdata;
        struct item_column *column = &parsed_columns(reading)[reading->idx_column];
        int64_t n_bytes = 0;

        if (reading->idx_column++ == reading->n_parsed ||
            (element->kind != JSON_NULL && index_json_number(element, "", &n_bytes, NULL) < 0))
                return why_set(why, -EBADMSG, "its columns do not have a size each");
        column->n_bytes = (uint64_t)n_bytes;
        if ((uint64_t)n_bytes == size_of(column) && n_bytes <= UINT32_MAX)
                return 0;
        return why_set(why, -EBADMSG, "column %s has a size of %" PRId64 " bytes, which its encoding does not fit",
                       column->field.name, n_bytes);
}

static int mds_by_name(const void *one, const void *other, void *unused) {
        (void)unused;
        return strcmp((*(const struct item_column *const *)one)->field.name,
                      (*(const struct item_column *const *)other)->field.name);
}

/* Each of many shards may have thousands of them in a sequence of its own. */
static int check_names(const struct reading *reading, struct why *why) {
        _cleanup_(growing_fini) struct growing sorted = { 0 };
        const struct item_column **columns;
        uint32_t n = reading->n_parsed;
        int r = growing_reserve(&sorted, (n + 1) * sizeof(*columns));

        columns = (const struct item_column **)(void *)sorted.bytes;
        for (uint32_t i = 0; i < n && r == 0; i++)
                columns[i] = &parsed_columns(reading)[i];
        if (r == 0 && n > 1)
                r = indexing_sort(columns, n, sizeof(*columns), mds_by_name, NULL);
        if (r < 0)
                return why_errno(why, r, "its columns");
        for (uint32_t i = 1; i < n; i++)
                if (strcmp(columns[i - 1]->field.name, columns[i]->field.name) == 0)
                        return why_set(why, -EBADMSG, "it has two columns with the name %s", columns[i]->field.name);
        return 0;
}

static int parse_columns(struct reading *reading, const struct json_token *shard, struct why *why) {
        int r;

        growing_clear(&reading->parsed);
        reading->n_parsed = reading->idx_column = 0;
        r = index_json_each(shard, "column_names", mds_take_name, reading, why);
        if (r == 0)
                r = check_names(reading, why);
        if (r == 0)
                r = index_json_each(shard, "column_encodings", take_encoding, reading, why);
        if (r == 0 && reading->idx_column != reading->n_parsed)
                return why_set(why, -EBADMSG, "its columns do not have an encoding each");
        reading->idx_column = 0;
        if (r == 0)
                r = index_json_each(shard, "column_sizes", mds_take_size, reading, why);
        if (r == 0 && (reading->idx_column != reading->n_parsed || reading->n_parsed == 0))
                return why_set(why, -EBADMSG, "its columns do not have a size each");
        return r;
}

/* ---- shards that differ ------------------------------------------------------------------------------------------ */

static const char *mds_name_of(const void *columns, uint32_t idx) {
        return ((const struct item_column *)columns)[idx].field.name;
}

static uint32_t mds_n_below_of(const void *columns, uint32_t idx) {
        (void)columns, (void)idx;
        return 0;
}

static enum column_sort mds_sort_of(const void *columns, uint32_t idx) {
        (void)columns, (void)idx;
        return COLUMN_VALUE;
}

static bool mds_is_number(const struct item_column *column) {
        return column->field.kind == FIELD_VALUE && column->field.n_dims == 0 && column->prefix == PREFIX_NONE;
}

static bool is_alike(const void *columns, uint32_t idx, const void *others, uint32_t idx_other) {
        const struct item_column *one = (const struct item_column *)columns + idx;
        const struct item_column *other = (const struct item_column *)others + idx_other;

        if (one->refused[0] || other->refused[0])
                return strcmp(one->refused, other->refused) == 0;
        if (mds_is_number(one) && mds_is_number(other))
                return number_types_join(one->field.dtype, other->field.dtype) != NUMBER_TYPE_NONE;
        return one->field.kind == other->field.kind && one->field.dtype == other->field.dtype &&
               one->field.is_json == other->field.is_json && one->prefix == other->prefix &&
               one->field.n_dims == other->field.n_dims &&
               memcmp(one->field.shape, other->field.shape, sizeof(one->field.shape)) == 0;
}

static const struct columns_type COLUMNS = {
        .name = mds_name_of, .n_below = mds_n_below_of, .sort = mds_sort_of, .is_alike = is_alike
};

/* What becomes of a column of the set, which is column `idx` of this shard. */
static void meet_column(const struct reading *reading, struct item_column *column, uint32_t idx) {
        const struct item_column *other = idx < COLUMN_OTHER ? &parsed_columns(reading)[idx] : NULL;

        if (!other)
                column->field.may_be_absent = true;
        if (idx == COLUMN_OTHER && column->n_shard == 0) {
                column->n_shard = reading->n_shards + 1;
                if (!column->refused[0])
                        strcpy(column->refused, "?");
        } else if (other && mds_is_number(column) && column->field.dtype != other->field.dtype) {
                column->field.dtype = number_types_join(column->field.dtype, other->field.dtype);
                column->is_mixed = true;
        }
}

/* Where this shard has the columns of the set. */
static int meet_columns(struct reading *reading, struct item_place *places, uint32_t *map) {
        struct item_set *set = &reading->set;
        const struct item_column *parsed = parsed_columns(reading);

        columns_map(&COLUMNS, (struct columns_range){ set->columns, 0, set->n_columns },
                    (struct columns_range){ parsed, 0, reading->n_parsed }, map);
        for (uint32_t i = 0; i < reading->n_parsed; i++)
                places[i] = (struct item_place){ COLUMN_NONE, parsed[i].field.dtype, parsed[i].n_bytes };
        for (uint32_t i = 0; i < set->n_columns; i++) {
                if (map[i] < COLUMN_OTHER)
                        places[map[i]].idx_column = i;
                meet_column(reading, &set->columns[i], map[i]);
        }
        return item_set_add_layout(set, places, reading->n_parsed);
}

/* The first shard says which columns there are. */
static int mds_take_columns(struct reading *reading, struct why *why) {
        struct item_set *set = &reading->set;
        int r = 0;

        for (uint32_t i = 0; i < reading->n_parsed && r == 0; i++) {
                const struct item_column *column = &parsed_columns(reading)[i];
                bool is_wanted = table_column_is_wanted(reading->fields, column->field.name);

                if (refusals_have(set->refusals, column->field.name))
                        continue;
                if (set->n_columns < INDEX_FIELDS_MAX && (is_wanted || reading->n_parsed <= INDEX_FIELDS_MAX))
                        set->columns[set->n_columns++] = *column;
                else if (is_wanted)
                        r = table_column_is_too_many(set->refusals, column->field.name, true, why);
        }
        return r;
}

static bool mds_is_same(const struct json_token *one, const struct json_token *other) {
        return one->n_bytes == other->n_bytes && memcmp(one->bytes, other->bytes, one->n_bytes) == 0;
}

/* Most shards have the columns of the one before. Positive outcome: this one does not. */
#define OTHERS 1

static int look_at_columns(struct reading *reading, const struct json_token *shard, struct why *why) {
        static const char *const PATHS[] = { "column_names", "column_encodings", "column_sizes" };
        struct json_token *const lasts[] = { &reading->names, &reading->encodings, &reading->sizes };
        bool is_like_last = reading->n_shards > 0;

        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++) {
                struct json_token value;
                int r = index_json_member(shard, PATHS[i], &value, why);

                if (r < 0)
                        return r;
                if (r == JSON_ABSENT)
                        return why_set(why, -EBADMSG, "\"%s\" is missing", PATHS[i]);
                is_like_last = is_like_last && mds_is_same(lasts[i], &value);
                *lasts[i] = value;
        }
        return is_like_last ? 0 : OTHERS;
}

static int mds_read_columns(struct reading *reading, const struct json_token *shard, struct why *why) {
        _cleanup_(freep) struct item_place *places = NULL;
        _cleanup_(freep) uint32_t *map = NULL;
        int r = look_at_columns(reading, shard, why);

        if (r != OTHERS)
                return r;
        r = parse_columns(reading, shard, why);
        if (r == 0 && reading->n_shards == 0)
                r = mds_take_columns(reading, why);
        if (r < 0)
                return r;
        places = calloc(reading->n_parsed + 1, sizeof(*places));
        map = calloc(reading->set.n_columns + 1, sizeof(*map));
        r = places && map ? meet_columns(reading, places, map) : -ENOMEM;
        return r < 0 ? why_set(why, r, "no memory for its columns") : 0;
}

/* ---- columns that are refused ------------------------------------------------------------------------------------ */

static int refuse_column(const struct item_column *column, struct why *why) {
        if (strcmp(column->refused, "pkl") == 0)
                return why_set(
                        why, -ENOTSUP,
                        "column %s holds pickled Python objects, which run code when they are read; write it with "
                        "another encoding, such as bytes, json or ndarray",
                        column->field.name);
        if (column->n_shard > 0)
                return why_set(why, -ENOTSUP,
                               "column %s has another encoding in shard %" PRIu64
                               " than in the first one; write all shards with the same",
                               column->field.name, column->n_shard - 1);
        return why_set(why, -ENOTSUP, "column %s has the encoding \"%s\", which is unknown", column->field.name,
                       column->refused);
}

static int choose_columns(struct reading *reading, struct why *why) {
        const struct item_column *refused;
        int r = 0;

        while (r == 0 && (refused = item_set_choose(&reading->set, reading->fields)))
                r = refusals_add(reading->set.refusals, refused->field.name, refuse_column(refused, why), why);
        return r;
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

static int mds_check_kind(const struct json_token *shard, struct why *why) {
        char format[16];
        int64_t version;
        int r = index_json_text(shard, "format", format, sizeof(format), why);

        if (r == 0)
                r = index_json_number(shard, "version", &version, why);
        if (r < 0)
                return r;
        if (strcmp(format, "mds") != 0)
                return why_set(why, -ENOTSUP, "it is of the format \"%s\", only \"mds\" can be served", format);
        if (version != VERSION)
                return why_set(why, -ENOTSUP, "it has version %" PRId64 ", only version %d can be served", version,
                               VERSION);
        return 0;
}

/* A compressed shard may have been unpacked beside its packed file, as the streaming library does. */
static int mds_check_plain(const struct reading *reading, const struct json_token *shard, const char *name,
                           struct why *why) {
        struct json_token compression;
        struct stat status;
        char text[32] = "?";

        if (index_json_member(shard, "compression", &compression, NULL) != 0 ||
            beneath_stat(reading->root_fd, name, &status) == 0)
                return 0;
        if (errno == EXDEV)
                return why_errno(why, -EXDEV, "%s", name);
        index_json_text(&compression, "", text, sizeof(text), NULL);
        return why_set(why, -ENOTSUP, "%s is compressed (%s), so that no sample can be read by itself; %s", name, text,
                       strcmp(text, "snappy") == 0
                               ? "write the shards with compression=None, or with zstd, which prepare = \"convert\" "
                                 "unpacks; it does not unpack snappy"
                               : "stage the folder with prepare = \"convert\", which unpacks the shards, or write "
                                 "them with compression=None");
}

static int mds_take_shard(void *userdata, const struct json_token *shard, struct why *why) {
        struct reading *reading = userdata;
        int64_t n_samples = 0, n_bytes = 0;
        char name[PATH_MAX];
        int r = mds_check_kind(shard, why);

        if (indexing_is_over())
                return why_set(why, -ECANCELED, "indexing was cancelled");
        if (r == 0)
                r = mds_read_columns(reading, shard, why);
        if (r == 0)
                r = index_json_text(shard, "raw_data.basename", name, sizeof(name), why);
        if (r == 0)
                r = index_json_number(shard, "raw_data.bytes", &n_bytes, why);
        if (r == 0)
                r = index_json_number(shard, "samples", &n_samples, why);
        if (r == 0)
                r = item_set_add_shard(&reading->set, name, n_samples, n_bytes, why);
        if (r == 0)
                r = mds_check_plain(reading, shard, name, why);
        if (r < 0) {
                struct why detail = *why;

                return why_set(why, r, "shard %" PRIu64 ": %s", reading->n_shards, detail.text);
        }
        reading->n_shards++;
        return 0;
}

/* ---- the format -------------------------------------------------------------------------------------------------- */

static int mds_read_index(struct reading *reading, const struct index_json *json, struct why *why) {
        struct json_token whole = { .bytes = json->bytes, .n_bytes = json->n_bytes };
        struct why detail = { 0 };
        int64_t version = 0;
        int r = index_json_number(&whole, "version", &version, &detail);

        if (r == 0 && version != VERSION)
                r = why_set(&detail, -ENOTSUP, "has version %" PRId64 ", only version %d can be served", version,
                            VERSION);
        if (r == 0)
                r = index_json_each(&whole, "shards", mds_take_shard, reading, &detail);
        if (r == 0)
                r = choose_columns(reading, &detail);
        if (r < 0)
                return why_set(why, r, "%s/index.json: %s", reading->root, detail.text);
        if (reading->n_shards == 0)
                return why_set(why, -ENOENT, "%s/index.json: names no shard", reading->root);
        return 0;
}

static int mds_build(int root_fd, const struct files *files, const struct format_options *options,
                     const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        struct reading *reading = calloc(1, sizeof(*reading));
        struct index_json json = { 0 };
        int r;

        if (!reading)
                return index_builder_refused(-ENOMEM, files->root, why);
        *reading = (struct reading){
                .set = { .format = format_mds.name, .item = "sample", .refusals = format_refusals(options) },
                .root_fd = root_fd,
                .root = files->root,
                .fields = format_option(options, "fields")
        };
        r = beneath_stat(root_fd, ".", &reading->set.folder) < 0 ? why_errno(why, -errno, "%s", files->root) : 0;
        if (r == 0)
                r = index_json_read(&json, root_fd, files->root, &reading->set.settled_ns, why);
        if (r == 0)
                r = mds_read_index(reading, &json, why);
        reading->set.index_status = json.status;
        index_json_fini(&json);
        if (r == 0)
                r = items_build(&reading->set, root_fd, files->root, watch, ret_builder, why);
        item_set_fini(&reading->set);
        growing_fini(&reading->parsed);
        free(reading);
        return r;
}

static int mds_is_it(int root_fd, const struct files *files) {
        struct index_json json = { 0 };
        struct json_token whole, format;
        int64_t settled_ns = 0;
        int r;

        if (files->n_names > 0)
                return 0;
        r = index_json_read(&json, root_fd, files->root, &settled_ns, NULL);
        if (r == 0) {
                whole = (struct json_token){ .bytes = json.bytes, .n_bytes = json.n_bytes };
                r = index_json_member(&whole, "shards[0].format", &format, NULL) == 0 &&
                    json_string_is(&format, "mds", 3);
        }
        index_json_fini(&json);
        return r < 0 ? format_cannot_tell(r) : r;
}

static const struct setting OPTIONS[] = {
        OPTION_FIELDS,
        { 0 },
};

static const struct format_conversion CONVERSIONS[] = {
        { ".mds.zstd", { "zstd", "-dcq" }, ".mds" },
        { ".mds.gz", { "gzip", "-dc" }, ".mds" },
        { ".mds.bz2", { "bzip2", "-dc" }, ".mds" },
        { ".mds.br", { "brotli", "-dc" }, ".mds" },
        { 0 },
};

const struct format format_mds = {
        .name = "mds",
        .doc = "A folder with `index.json` and shards, as mosaicml-streaming (version 2 of its format) writes them. "
               "The columns are the fields; a sample is called SHARD:N.",
        .example = "path = \"/data/mds\" fields = \"image, label\"",
        .options = OPTIONS,
        .conversions = CONVERSIONS,
        .converts = "compressed shards of MDS (.mds.zstd)",
        .is_it = mds_is_it,
        .build = mds_build,
};
