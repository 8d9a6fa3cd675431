#include "daemon/data/format.h"

/* litdata: the folder that LitData's optimize() or StreamingDataset writer made: index.json and chunks. The leaves of
 * an item are the fields; their names are the keys of dictionaries, and the places in tuples and lists.
 *
 * Items of text and numbers alone may be rows of Arrow tables at the ends of the chunks (litdata_rows.h).
 *
 * Chunks of tokens (TokensLoader) are arrays without any header. An item is a document; with block_size = N, samples
 * are blocks of N tokens as TokensLoader cuts them: from each chunk, whole blocks only. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/format_options.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/items/index_json.h"
#include "daemon/data/formats/items/items.h"
#include "daemon/data/formats/items/litdata_rows.h"
#include "proto/base/cleanup.h"

#define BLOCK_SIZE     "block_size"
#define BLOCK_SIZE_MAX (1u << 30)
#define SPEC_MAX       (64u << 10) /* bytes of the description of an item */
#define SPEC_DEPTH     8u
#define FORMAT_MAX     64u

struct reading {
        struct item_set set;
        const struct format_options *options;
        int root_fd;
        const char *root;
        bool has_rows;       /* the chunks hold Arrow tables */
        uint32_t idx_column; /* that is read next */
        uint64_t n_chunks, n_flat;
        uint64_t n_unpacked; /* chunks that lie decompressed beside their compressed files, or in their place */
};

/* ---- what the leaves of an item are ------------------------------------------------------------------------------ */

static const struct {
        const char *name; /* of a serializer; what follows after a ':' does not change it */
        enum field_kind kind;
        uint32_t dtype;
        enum item_prefix prefix;
} SERIALIZERS[] = {
        { "str", FIELD_TEXT, 0, PREFIX_NONE },
        { "text", FIELD_TEXT, 0, PREFIX_NONE },
        { "bool", FIELD_VALUE, DLP_DTYPE_BOOL, PREFIX_NONE },
        { "int", FIELD_VALUE, DLP_DTYPE_INT64, PREFIX_NONE },
        { "float", FIELD_VALUE, DLP_DTYPE_FLOAT64, PREFIX_NONE },
        { "jpeg", FIELD_PICTURE, 0, PREFIX_NONE },
        { "image", FIELD_PICTURE, 0, PREFIX_NONE },
        { "numpy", FIELD_VALUE, 0, PREFIX_NUMPY },
        { "tensor", FIELD_VALUE, 0, PREFIX_TENSOR },
        { "bytes", FIELD_BYTES, 0, PREFIX_NONE },
        { "file", FIELD_BYTES, 0, PREFIX_NONE },
        { "pil", FIELD_PICTURE, 0, PREFIX_NONE }, /* pixels after a header of its own: decode/pil.c */
        { "jpeg_array", FIELD_BYTES, 0, PREFIX_NONE },
        { "json", FIELD_BYTES, 0, PREFIX_NONE }, /* a binary form of LitData's own */
        { "video", FIELD_BYTES, 0, PREFIX_NONE },
        { "audio", FIELD_SOUND, 0, PREFIX_NONE },
        { "nifti", FIELD_BYTES, 0, PREFIX_NONE },
        { "mesh", FIELD_BYTES, 0, PREFIX_NONE },
        { "pdf", FIELD_BYTES, 0, PREFIX_NONE },
        { "tifffile", FIELD_BYTES, 0, PREFIX_NONE },
        { "tiff", FIELD_BYTES, 0, PREFIX_NONE },
};

static bool is_called(const char *text, size_t n, const char *name) {
        return strlen(name) == n && memcmp(text, name, n) == 0;
}

/* "no_header_numpy:9": one dimension, and the number of the type. */
static bool read_flat(const char *text, size_t n, struct item_column *column) {
        bool is_tensor = is_called(text, n, "no_header_tensor");

        if ((!is_tensor && !is_called(text, n, "no_header_numpy")) || text[n] != ':')
                return false;
        column->field.kind = FIELD_VALUE;
        column->field.n_dims = 1;
        column->field.shape[0] = -1;
        return item_dtype(is_tensor ? PREFIX_TENSOR : PREFIX_NUMPY, (uint32_t)strtoul(text + n + 1, NULL, 10),
                          &column->field.dtype);
}

static bool read_serializer(const char *text, struct item_column *column) {
        size_t n = strcspn(text, ":");

        for (size_t i = 0; i < ARRAY_SIZE(SERIALIZERS); i++)
                if (is_called(text, n, SERIALIZERS[i].name)) {
                        column->field.kind = SERIALIZERS[i].kind;
                        column->field.dtype = SERIALIZERS[i].dtype;
                        column->prefix = SERIALIZERS[i].prefix;
                        return true;
                }
        return read_flat(text, n, column);
}

static int take_leaf(void *userdata, const struct json_token *element, struct why *why) {
        struct reading *reading = userdata;
        struct item_column *column = &reading->set.columns[reading->set.n_columns];
        char text[FORMAT_MAX];
        int r;

        if (reading->set.n_columns == INDEX_FIELDS_MAX)
                return why_set(why, -E2BIG, "an item has more than %u leaves", INDEX_FIELDS_MAX);
        r = index_json_text(element, "", text, sizeof(text), why);
        if (r < 0)
                return r;
        snprintf(column->field.name, sizeof(column->field.name), "%u", reading->set.n_columns);
        column->field.is_stored = true;
        if (!read_serializer(text, column)) {
                column->field.kind = FIELD_BYTES;
                snprintf(column->refused, sizeof(column->refused), "%.31s", text);
        }
        reading->set.n_columns++;
        return 0;
}

/* ---- names of the leaves ----------------------------------------------------------------------------------------- */

/* A node of the description, which torch's pytree writes: type, context (the keys of a dictionary) and children. */
struct node {
        struct reading *reading;
        char name[ITEM_NAME_MAX]; /* of the node; "" for the whole item */
        uint32_t depth, idx_child;
        uint8_t *keys; /* the context as JSON; NULL: children are numbered */
        size_t n_keys;
};

static int name_node(struct node *node, const struct json_token *spec, struct why *why);

static int name_leaf(const struct node *node, struct why *why) {
        struct item_set *set = &node->reading->set;

        if (node->reading->idx_column == set->n_columns)
                return why_set(why, -EBADMSG, "an item has more leaves than \"data_format\" names");
        const char *name = node->name[0] ? node->name : "data";

        field_name_from(name, strlen(name), set->columns[node->reading->idx_column].field.name);
        for (uint32_t i = 0; i < node->reading->idx_column; i++)
                if (strcmp(set->columns[i].field.name, set->columns[node->reading->idx_column].field.name) == 0)
                        return why_set(why, -ENOTSUP, "two leaves have the name %s", set->columns[i].field.name);
        node->reading->idx_column++;
        return 0;
}

/* The key of child number idx: text or a number. */
static int read_key(const struct node *node, uint32_t idx, char *key, size_t size, struct why *why) {
        struct json_token keys = { .bytes = node->keys, .n_bytes = node->n_keys }, value;
        char path[16];
        int r;

        snprintf(path, sizeof(path), "[%u]", idx);
        r = node->keys ? index_json_member(&keys, path, &value, why) : JSON_ABSENT;
        if (r < 0)
                return r;
        if (r == 0 && value.kind == JSON_STRING)
                return index_json_text(&value, "", key, size, why);
        if (r == 0 && value.kind == JSON_INTEGER && value.n_bytes < size)
                snprintf(key, size, "%.*s", (int)value.n_bytes, (const char *)value.bytes);
        else
                snprintf(key, size, "%u", idx);
        return 0;
}

static int name_child(void *userdata, const struct json_token *spec, struct why *why) {
        struct node *node = userdata;
        struct node child = { .reading = node->reading, .depth = node->depth + 1 };
        char key[ITEM_NAME_MAX];
        int r = read_key(node, node->idx_child++, key, sizeof(key), why);

        if (r < 0)
                return r;
        if (child.depth > SPEC_DEPTH || (size_t)snprintf(child.name, sizeof(child.name), "%s%s%s", node->name,
                                                         node->name[0] ? "." : "", key) >= sizeof(child.name))
                return why_set(
                        why, -ENOTSUP,
                        "the name of a leaf, %s.%s, has more than %zu bytes, or it lies too deep: use shorter keys",
                        node->name, key, sizeof(child.name) - 1);
        return name_node(&child, spec, why);
}

static int name_node(struct node *node, const struct json_token *spec, struct why *why) {
        struct json_token type, context;
        int r = index_json_member(spec, "type", &type, why);

        if (r < 0)
                return r;
        if (r == JSON_ABSENT)
                return name_leaf(node, why);
        r = index_json_member(spec, "context", &context, why);
        if (r < 0)
                return r;
        if (r == 0 && context.kind == JSON_STRING) {
                node->keys = malloc(context.n_bytes);
                if (!node->keys)
                        return why_errno(why, -ENOMEM, "the description of an item");
                r = json_string_read(context.bytes, context.n_bytes, node->keys, &node->n_keys, why);
        }
        if (r >= 0)
                r = index_json_each(spec, "children_spec", name_child, node, why);
        free(node->keys);
        return r;
}

/* The description is JSON within a string: [1, NODE]. Without it the leaves keep their numbers as names. */
static int name_leaves(struct reading *reading, const struct json_token *whole, struct why *why) {
        _cleanup_(freep) uint8_t *bytes = NULL;
        struct node node = { .reading = reading };
        struct json_token text, spec;
        size_t n = 0;
        int r = index_json_member(whole, "config.data_spec", &text, why);

        if (r != 0)
                return r < 0 ? r : 0;
        if (text.kind != JSON_STRING || text.n_bytes > SPEC_MAX)
                return why_set(why, -EBADMSG, "\"data_spec\" is not a text of at most %u bytes", SPEC_MAX);
        bytes = malloc(text.n_bytes);
        if (!bytes)
                return why_errno(why, -ENOMEM, "the description of an item");
        r = json_string_read(text.bytes, text.n_bytes, bytes, &n, why);
        if (r < 0)
                return -EBADMSG;
        text = (struct json_token){ .bytes = bytes, .n_bytes = n };
        r = index_json_member(&text, "[1]", &spec, why);
        if (r == JSON_ABSENT)
                return why_set(why, -EBADMSG, "\"data_spec\" does not describe an item");
        if (r == 0)
                r = name_node(&node, &spec, why);
        if (r == 0 && reading->idx_column != reading->set.n_columns)
                return why_set(why, -EBADMSG, "an item has fewer leaves than \"data_format\" names");
        return r;
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

/* "chunk-0-0.zstd.bin" is compressed as a whole; LitData, and prepare = "convert", decompress it into "chunk-0-0.bin".
 */
static void find_unpacked(struct reading *reading, char *name) {
        static const char PACKED[] = ".zstd.bin", PLAIN[] = ".bin";
        size_t n = strlen(name), n_packed = sizeof(PACKED) - 1;
        char plain[PATH_MAX];
        struct stat status;

        if (n <= n_packed || strcmp(name + n - n_packed, PACKED) != 0 || !index_is_inner_path(name))
                return;
        snprintf(plain, sizeof(plain), "%.*s%s", (int)(n - n_packed), name, PLAIN);
        if (fstatat(reading->root_fd, plain, &status, 0) < 0)
                return;
        strcpy(name, plain);
        reading->n_unpacked++;
}

static int take_chunk(void *userdata, const struct json_token *chunk, struct why *why) {
        struct reading *reading = userdata;
        int64_t n_items = 0, n_bytes = 0;
        struct json_token dim;
        char name[PATH_MAX];
        int r = index_json_text(chunk, "filename", name, sizeof(name), why);

        if (r == 0)
                r = index_json_number(chunk, "chunk_size", &n_items, why);
        if (r == 0)
                r = index_json_number(chunk, "chunk_bytes", &n_bytes, why);
        if (r == 0)
                find_unpacked(reading, name);
        if (r == 0)
                r = item_set_add_shard(&reading->set, name, n_items, n_bytes, why);
        if (r < 0) {
                struct why detail = *why;

                return why_set(why, r, "chunk %" PRIu64 ": %.400s", reading->n_chunks, detail.text);
        }
        reading->n_flat += index_json_member(chunk, "dim", &dim, NULL) == 0;
        reading->n_chunks++;
        return 0;
}

/* Compressed as a whole, which can be undone, or item by item. */
static int check_compression(const struct reading *reading, const struct json_token *whole, struct why *why) {
        struct json_token value;
        int r = index_json_member(whole, "config.compression", &value, why);

        if (r != 0 || (reading->n_unpacked > 0 && reading->n_unpacked == reading->n_chunks))
                return r < 0 ? r : 0;
        r = index_json_member(whole, "config.compression_level", &value, why);
        if (r < 0)
                return r;
        return why_set(why, -ENOTSUP, "the chunks have compression: no item can be read by itself; %s",
                       r == 0 ? "write them without it"
                              : "stage them with prepare = \"convert\", which decompresses them, or write them "
                                "without it");
}

/* What makes the bytes of items unreadable by themselves. An Arrow table says itself how it is compressed. */
static int check_config(const struct reading *reading, const struct json_token *whole, struct why *why) {
        static const char *const PATHS[] = { "config.encryption", "config.ipc_compression" };
        struct json_token value;
        int r = check_compression(reading, whole, why);

        for (size_t i = 0; i < ARRAY_SIZE(PATHS) - reading->has_rows && r == 0; i++) {
                r = index_json_member(whole, PATHS[i], &value, why);
                if (r == 0)
                        return why_set(why, -ENOTSUP,
                                       "the chunks have %s: no item can be read by itself; write them without it",
                                       PATHS[i] + strlen("config."));
                r = r < 0 ? r : 0;
        }
        return r;
}

/* The first chunk tells, if it can be read at all: what chunks are compressed or encrypted has been refused. */
static int look_for_rows(struct reading *reading, struct why *why) {
        const struct item_shard *shards = (const void *)reading->set.shards.bytes;
        int r;

        if (reading->n_chunks == 0)
                return 0;
        r = litdata_has_rows(reading->root_fd, reading->root, (const char *)reading->set.names.bytes + shards[0].name,
                             &reading->set.settled_ns, why);
        reading->has_rows = r > 0;
        return r < 0 ? r : 0;
}

/* Chunks of tokens: arrays of one dimension, one after the other. */
static int check_flat(struct reading *reading, struct why *why) {
        struct item_set *set = &reading->set;
        uint64_t block_size = 0;
        int r = format_option_u64(reading->options, BLOCK_SIZE, 0, 1, BLOCK_SIZE_MAX, &block_size, why);

        if (r < 0)
                return r;
        if (reading->n_flat == 0)
                return block_size == 0
                               ? 0
                               : why_set(why, -EINVAL, "%s is for chunks of tokens, which these are not", BLOCK_SIZE);
        if (reading->n_flat != reading->n_chunks || set->n_columns != 1 || set->columns[0].field.kind != FIELD_VALUE ||
            set->columns[0].field.n_dims != 1)
                return why_set(why, -ENOTSUP,
                               "some chunks hold tokens (\"dim\"), but not all, or their items are not arrays");
        set->is_bare = true;
        strcpy(set->columns[0].field.name, "tokens");
        if (block_size > 0)
                set->columns[0].field.shape[0] = (int64_t)block_size;
        set->n_block_bytes = block_size * dlp_dtype_bytes(set->columns[0].field.dtype);
        return 0;
}

/* ---- the format -------------------------------------------------------------------------------------------------- */

/* The leaves of an item, unless a table says what they are. */
static int read_leaves(struct reading *reading, const struct json_token *whole, struct why *why) {
        const struct item_column *refused;
        int r = reading->has_rows ? 0 : index_json_each(whole, "config.data_format", take_leaf, reading, why);

        if (r == 0 && !reading->has_rows)
                r = name_leaves(reading, whole, why);
        refused = r == 0 ? item_set_choose(&reading->set, format_option(reading->options, "fields")) : NULL;
        if (refused)
                return why_set(
                        why, -ENOTSUP,
                        "leaf %td of an item, %s, is stored as \"%s\", which cannot be served%s; store it in another way, "
                        "or leave it out with fields = \"...\", which names the others",
                        refused - reading->set.columns, refused->field.name, refused->refused,
                        strncmp(refused->refused, "pickle", 6) == 0 ? ": pickled objects run code when they are read"
                                                                    : "");
        return r == 0 ? check_flat(reading, why) : r;
}

static int read_index(struct reading *reading, const struct index_json *json, struct why *why) {
        struct json_token whole = { .bytes = json->bytes, .n_bytes = json->n_bytes };
        struct why detail = { 0 };
        int r = index_json_each(&whole, "chunks", take_chunk, reading, &detail);

        if (r == 0) {
                r = look_for_rows(reading, why);
                if (r < 0)
                        return r;
                r = check_config(reading, &whole, &detail);
        }
        if (r == 0)
                r = read_leaves(reading, &whole, &detail);
        if (r < 0)
                return why_set(why, r, "%s/index.json: %.450s", reading->root, detail.text);
        if (reading->n_chunks == 0 || (reading->set.n_columns == 0 && !reading->has_rows))
                return why_set(why, -ENOENT, "%s/index.json: names no chunk, or no leaf of an item", reading->root);
        return 0;
}

static int litdata_build(int root_fd, const struct files *files, const struct format_options *options,
                         const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        struct reading *reading = calloc(1, sizeof(*reading));
        struct index_json json = { 0 };
        int r;

        if (!reading)
                return why_errno(why, -ENOMEM, "%s: its index", files->root);
        *reading = (struct reading){ .set = { .format = FORMAT_LITDATA.name, .item = "item" },
                                     .options = options,
                                     .root_fd = root_fd,
                                     .root = files->root };
        r = fstatat(root_fd, ".", &reading->set.folder, 0) < 0 ? why_errno(why, -errno, "%s", files->root) : 0;
        if (r == 0)
                r = index_json_read(&json, root_fd, files->root, &reading->set.settled_ns, why);
        if (r == 0)
                r = read_index(reading, &json, why);
        reading->set.index_status = json.status;
        index_json_fini(&json);
        if (r == 0 && reading->has_rows)
                r = litdata_rows_build(&reading->set, root_fd, files, format_option(options, "fields"), watch,
                                       ret_builder, why);
        else if (r == 0)
                r = items_build(&reading->set, root_fd, files->root, watch, ret_builder, why);
        item_set_fini(&reading->set);
        free(reading);
        return r;
}

static int litdata_is_it(int root_fd, const struct files *files) {
        struct index_json json = { 0 };
        struct json_token whole, chunks, config;
        int64_t settled_ns = 0;
        int r;

        if (files->n_names > 0)
                return 0;
        r = index_json_read(&json, root_fd, files->root, &settled_ns, NULL);
        if (r == 0) {
                whole = (struct json_token){ .bytes = json.bytes, .n_bytes = json.n_bytes };
                r = index_json_member(&whole, "chunks", &chunks, NULL) == 0 &&
                    index_json_member(&whole, "config.data_format", &config, NULL) == 0;
        }
        index_json_fini(&json);
        return r < 0 ? format_cannot_tell(r) : r;
}

static const char *const OPTIONS[] = { BLOCK_SIZE, "fields", NULL };

const struct format FORMAT_LITDATA = {
        .name = "litdata",
        .options = OPTIONS,
        .is_it = litdata_is_it,
        .build = litdata_build,
};
