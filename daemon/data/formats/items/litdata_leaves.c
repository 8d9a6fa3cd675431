#include "daemon/data/formats/items/litdata_leaves.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/formats/items/index_json.h"
#include "daemon/data/formats/table_columns.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define SPEC_MAX   (1u << 20) /* bytes of the description of an item */
#define SPEC_DEPTH 8u
#define FORMAT_MAX 64u
#define LEAVES_MAX (INDEX_FIELDS_MAX + REFUSALS_MAX)

struct leaves {
        struct refusals *refusals;
        struct growing columns; /* struct item_column, of all leaves */
        uint32_t n;
        uint32_t idx_column; /* that is named next */
};

static struct item_column *column_at(const struct leaves *leaves, uint32_t idx) {
        return (struct item_column *)(void *)leaves->columns.bytes + idx;
}

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

static bool litdata_leaves_is_called(const char *text, size_t n, const char *name) {
        return strlen(name) == n && memcmp(text, name, n) == 0;
}

/* "no_header_numpy:9": one dimension, and the number of the type. */
static bool read_flat(const char *text, size_t n, struct item_column *column) {
        bool is_tensor = litdata_leaves_is_called(text, n, "no_header_tensor");

        if ((!is_tensor && !litdata_leaves_is_called(text, n, "no_header_numpy")) || text[n] != ':')
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
                if (litdata_leaves_is_called(text, n, SERIALIZERS[i].name)) {
                        column->field.kind = SERIALIZERS[i].kind;
                        column->field.dtype = SERIALIZERS[i].dtype;
                        column->prefix = SERIALIZERS[i].prefix;
                        return true;
                }
        return read_flat(text, n, column);
}

static int take_leaf(void *userdata, const struct json_token *element, struct why *why) {
        struct leaves *leaves = userdata;
        struct item_column column = { .field.is_stored = true };
        char text[FORMAT_MAX];
        int r;

        if (leaves->n == LEAVES_MAX)
                return why_set(why, -E2BIG, "an item has more than %u leaves", LEAVES_MAX);
        r = index_json_text(element, "", text, sizeof(text), why);
        if (r < 0)
                return r;
        snprintf(column.field.name, sizeof(column.field.name), "%u", leaves->n);
        if (!read_serializer(text, &column)) {
                column.field.kind = FIELD_BYTES;
                snprintf(column.refused, sizeof(column.refused), "%.31s", text);
        }
        r = growing_append(&leaves->columns, &column, sizeof(column));
        if (r < 0)
                return why_errno(why, r, "the leaves of an item");
        leaves->n++;
        return 0;
}

/* ---- names of the leaves ----------------------------------------------------------------------------------------- */

/* A node of the description, which torch's pytree writes: type, context (the keys of a dictionary) and children. */
struct node {
        struct leaves *leaves;
        char name[ITEM_NAME_MAX]; /* of the node; "" for the whole item */
        uint32_t depth, idx_child;
        uint8_t *keys; /* the context as JSON; NULL: children are numbered */
        size_t n_keys;
};

static int litdata_leaves_name_node(struct node *node, const struct json_token *spec, struct why *why);

static int name_leaf(const struct node *node, struct why *why) {
        struct leaves *leaves = node->leaves;
        const char *text = node->name[0] ? node->name : "data";
        char *name;
        int r = 0;

        if (leaves->idx_column == leaves->n)
                return why_set(why, -EBADMSG, "an item has more leaves than \"data_format\" names");
        name = column_at(leaves, leaves->idx_column)->field.name;
        field_name_from(text, strlen(text), name);
        for (uint32_t i = 0; i < leaves->idx_column && r == 0; i++)
                if (strcmp(column_at(leaves, i)->field.name, name) == 0)
                        r = why_set(why, -ENOTSUP, "two leaves of an item have the name %s; rename one", name);
        leaves->idx_column++;
        return r < 0 ? refusals_add(leaves->refusals, name, r, why) : 0;
}

/* The key of child number idx: text or a number. */
static int litdata_leaves_read_key(const struct node *node, uint32_t idx, char *key, size_t size, struct why *why) {
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
        struct node child = { .leaves = node->leaves, .depth = node->depth + 1 };
        char key[ITEM_NAME_MAX];
        int r = indexing_is_over() ? why_set(why, -ECANCELED, "indexing was cancelled")
                                   : litdata_leaves_read_key(node, node->idx_child++, key, sizeof(key), why);

        if (r < 0)
                return r;
        if (child.depth > SPEC_DEPTH || (size_t)snprintf(child.name, sizeof(child.name), "%s%s%s", node->name,
                                                         node->name[0] ? "." : "", key) >= sizeof(child.name))
                return why_set(
                        why, -ENOTSUP,
                        "the name of a leaf, %s.%s, has more than %zu bytes, or it lies too deep: use shorter keys",
                        node->name, key, sizeof(child.name) - 1);
        return litdata_leaves_name_node(&child, spec, why);
}

static int litdata_leaves_name_node(struct node *node, const struct json_token *spec, struct why *why) {
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
static int name_leaves(struct leaves *leaves, const struct json_token *whole, struct why *why) {
        _cleanup_(freep) uint8_t *bytes = NULL;
        struct node node = { .leaves = leaves };
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
                r = litdata_leaves_name_node(&node, &spec, why);
        if (r == 0 && leaves->idx_column != leaves->n)
                return why_set(why, -EBADMSG, "an item has fewer leaves than \"data_format\" names");
        return r;
}

/* Leaves for which there is no room are stepped over in each item. */
static int litdata_leaves_take_columns(const struct leaves *leaves, struct item_set *set, const char *fields,
                                       struct why *why) {
        _cleanup_(freep) struct item_place *places = calloc(leaves->n + 1, sizeof(*places));
        int r = places ? 0 : why_errno(why, -ENOMEM, "the leaves of an item");

        for (uint32_t i = 0; i < leaves->n && r == 0; i++) {
                const struct item_column *column = column_at(leaves, i);
                bool is_wanted = table_column_is_wanted(fields, column->field.name);

                places[i] = (struct item_place){ COLUMN_NONE, column->field.dtype, column->n_bytes };
                if (set->n_columns < INDEX_FIELDS_MAX && (is_wanted || leaves->n <= INDEX_FIELDS_MAX)) {
                        places[i].idx_column = set->n_columns;
                        set->columns[set->n_columns++] = *column;
                } else if (is_wanted) {
                        r = table_column_is_too_many(set->refusals, column->field.name, true, why);
                }
        }
        if (r == 0 && item_set_add_layout(set, places, leaves->n) < 0)
                r = why_errno(why, -ENOMEM, "the leaves of an item");
        return r;
}

int litdata_leaves_read(struct item_set *set, const struct json_token *whole, const char *fields, struct why *why) {
        struct leaves leaves = { .refusals = set->refusals };
        int r = index_json_each(whole, "config.data_format", take_leaf, &leaves, why);

        if (r == 0)
                r = name_leaves(&leaves, whole, why);
        if (r == 0)
                r = litdata_leaves_take_columns(&leaves, set, fields, why);
        growing_fini(&leaves.columns);
        return r;
}
