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
#include "daemon/data/formats/items/index_json.h"
#include "daemon/data/formats/items/items.h"
#include "proto/base/cleanup.h"

#define VERSION      2
#define NDARRAY      "ndarray"
#define ENCODING_MAX 128u

struct reading {
        struct item_set set;
        int root_fd;
        const char *root;
        const char *fields;                        /* that are wanted; NULL: all */
        struct json_token names, encodings, sizes; /* of the first shard */
        uint64_t n_shards;
        uint32_t idx_column; /* that is read next */
};

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
static bool read_shape(const char *text, struct schema_field *field) {
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
        return read_shape(text + n + 1, &column->field);
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

static int take_name(void *userdata, const struct json_token *element, struct why *why) {
        struct reading *reading = userdata;
        struct item_set *set = &reading->set;
        struct item_column *column = &set->columns[set->n_columns];
        char name[ITEM_NAME_MAX];
        int r;

        if (set->n_columns == INDEX_FIELDS_MAX)
                return why_set(why, -E2BIG, "it has more than %u columns", INDEX_FIELDS_MAX);
        r = index_json_text(element, "", name, sizeof(name), NULL);
        if (r < 0 || !name[0])
                return why_set(why, -ENOTSUP, "column %u: its name does not have 1 to %zu bytes", set->n_columns,
                               sizeof(name) - 1);
        field_name_from(name, strlen(name), column->field.name);
        for (uint32_t i = 0; i < set->n_columns; i++)
                if (strcmp(set->columns[i].field.name, column->field.name) == 0)
                        return why_set(why, -EBADMSG, "it has two columns with the name %s", column->field.name);
        column->field.is_stored = true;
        set->n_columns++;
        return 0;
}

static int take_encoding(void *userdata, const struct json_token *element, struct why *why) {
        struct reading *reading = userdata;
        struct item_column *column = &reading->set.columns[reading->idx_column];
        char text[ENCODING_MAX];

        if (reading->idx_column++ == reading->set.n_columns ||
            index_json_text(element, "", text, sizeof(text), NULL) < 0)
                return why_set(why, -EBADMSG, "its columns do not have an encoding each");
        column->field.is_json = strcmp(text, "json") == 0;
        if (!read_encoding(text, column)) {
                column->field.kind = FIELD_BYTES;
                snprintf(column->refused, sizeof(column->refused), "%.31s", text);
        }
        return 0;
}

static int refuse_column(const struct item_column *column, struct why *why) {
        if (strcmp(column->refused, "pkl") == 0)
                return why_set(
                        why, -ENOTSUP,
                        "column %s holds pickled Python objects, which run code when they are read; write it with "
                        "another encoding, such as bytes, json or ndarray",
                        column->field.name);
        return why_set(why, -ENOTSUP, "column %s has the encoding \"%s\", which is unknown", column->field.name,
                       column->refused);
}

static int take_size(void *userdata, const struct json_token *element, struct why *why) {
        struct reading *reading = userdata;
        struct item_column *column = &reading->set.columns[reading->idx_column];
        int64_t n_bytes = 0;

        if (reading->idx_column++ == reading->set.n_columns ||
            (element->kind != JSON_NULL && index_json_number(element, "", &n_bytes, NULL) < 0))
                return why_set(why, -EBADMSG, "its columns do not have a size each");
        column->n_bytes = (uint64_t)n_bytes;
        if ((uint64_t)n_bytes == size_of(column) && n_bytes <= UINT32_MAX)
                return 0;
        return why_set(why, -EBADMSG, "column %s has a size of %" PRId64 " bytes, which its encoding does not fit",
                       column->field.name, n_bytes);
}

static int read_columns(struct reading *reading, const struct json_token *shard, struct why *why) {
        const struct item_column *refused;
        int r = index_json_each(shard, "column_names", take_name, reading, why);

        reading->idx_column = 0;
        if (r == 0)
                r = index_json_each(shard, "column_encodings", take_encoding, reading, why);
        if (r == 0 && reading->idx_column != reading->set.n_columns)
                return why_set(why, -EBADMSG, "its columns do not have an encoding each");
        reading->idx_column = 0;
        if (r == 0)
                r = index_json_each(shard, "column_sizes", take_size, reading, why);
        if (r == 0 && (reading->idx_column != reading->set.n_columns || reading->set.n_columns == 0))
                return why_set(why, -EBADMSG, "its columns do not have a size each");
        while (r == 0 && (refused = item_set_choose(&reading->set, reading->fields)))
                r = refusals_add(reading->set.refusals, refused->field.name, refuse_column(refused, why), why);
        return r;
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

static bool is_same(const struct json_token *one, const struct json_token *other) {
        return one->n_bytes == other->n_bytes && memcmp(one->bytes, other->bytes, one->n_bytes) == 0;
}

/* All shards have the columns of the first one. */
static int check_columns(struct reading *reading, const struct json_token *shard, struct why *why) {
        static const char *const PATHS[] = { "column_names", "column_encodings", "column_sizes" };
        struct json_token *const firsts[] = { &reading->names, &reading->encodings, &reading->sizes };

        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++) {
                struct json_token value;
                int r = index_json_member(shard, PATHS[i], &value, why);

                if (r < 0)
                        return r;
                if (r == JSON_ABSENT)
                        return why_set(why, -EBADMSG, "\"%s\" is missing", PATHS[i]);
                if (reading->n_shards == 0)
                        *firsts[i] = value;
                else if (!is_same(firsts[i], &value))
                        return why_set(why, -ENOTSUP,
                                       "it has other columns than the first shard (\"%s\"): all shards of a "
                                       "dataset have the same",
                                       PATHS[i]);
        }
        return reading->n_shards == 0 ? read_columns(reading, shard, why) : 0;
}

static int check_kind(const struct json_token *shard, struct why *why) {
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
static int check_plain(const struct reading *reading, const struct json_token *shard, const char *name,
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

static int take_shard(void *userdata, const struct json_token *shard, struct why *why) {
        struct reading *reading = userdata;
        int64_t n_samples = 0, n_bytes = 0;
        char name[PATH_MAX];
        int r = check_kind(shard, why);

        if (r == 0)
                r = check_columns(reading, shard, why);
        if (r == 0)
                r = index_json_text(shard, "raw_data.basename", name, sizeof(name), why);
        if (r == 0)
                r = index_json_number(shard, "raw_data.bytes", &n_bytes, why);
        if (r == 0)
                r = index_json_number(shard, "samples", &n_samples, why);
        if (r == 0)
                r = item_set_add_shard(&reading->set, name, n_samples, n_bytes, why);
        if (r == 0)
                r = check_plain(reading, shard, name, why);
        if (r < 0) {
                struct why detail = *why;

                return why_set(why, r, "shard %" PRIu64 ": %s", reading->n_shards, detail.text);
        }
        reading->n_shards++;
        return 0;
}

/* ---- the format -------------------------------------------------------------------------------------------------- */

static int read_index(struct reading *reading, const struct index_json *json, struct why *why) {
        struct json_token whole = { .bytes = json->bytes, .n_bytes = json->n_bytes };
        struct why detail = { 0 };
        int64_t version = 0;
        int r = index_json_number(&whole, "version", &version, &detail);

        if (r == 0 && version != VERSION)
                r = why_set(&detail, -ENOTSUP, "has version %" PRId64 ", only version %d can be served", version,
                            VERSION);
        if (r == 0)
                r = index_json_each(&whole, "shards", take_shard, reading, &detail);
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
                return why_errno(why, -ENOMEM, "%s: its index", files->root);
        *reading = (struct reading){
                .set = { .format = FORMAT_MDS.name, .item = "sample", .refusals = format_refusals(options) },
                .root_fd = root_fd,
                .root = files->root,
                .fields = format_option(options, "fields")
        };
        r = beneath_stat(root_fd, ".", &reading->set.folder) < 0 ? why_errno(why, -errno, "%s", files->root) : 0;
        if (r == 0)
                r = index_json_read(&json, root_fd, files->root, &reading->set.settled_ns, why);
        if (r == 0)
                r = read_index(reading, &json, why);
        reading->set.index_status = json.status;
        index_json_fini(&json);
        if (r == 0)
                r = items_build(&reading->set, root_fd, files->root, watch, ret_builder, why);
        item_set_fini(&reading->set);
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

static const char *const OPTIONS[] = { "fields", NULL };

const struct format FORMAT_MDS = {
        .name = "mds",
        .options = OPTIONS,
        .is_it = mds_is_it,
        .build = mds_build,
};
