#include "daemon/data/formats/items/items.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/base/machine/disk.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/formats/table_columns.h"
#include "proto/base/cleanup.h"

#define LOOK_UP_ITEMS 4096u /* between two checks of the cancel flag */

void item_set_fini(struct item_set *set) {
        growing_fini(&set->shards);
        growing_fini(&set->names);
}

int item_set_add_shard(struct item_set *set, const char *name, int64_t n_items, int64_t n_bytes, struct why *why) {
        struct item_shard shard = { .name = set->names.n_bytes,
                                    .n_items = (uint64_t)n_items,
                                    .n_bytes = (uint64_t)n_bytes };
        int r;

        if (!name[0] || name[0] == '/' || !index_is_inner_path(name))
                return why_set(why, -EBADMSG, "the name of a shard, \"%.100s\", is not a path within the folder", name);
        if (n_items < 0 || n_items > UINT32_MAX || n_bytes < 0)
                return why_set(why, -EBADMSG,
                               "shard %.100s has %" PRId64 " %ss and %" PRId64 " bytes, which is impossible", name,
                               n_items, set->item, n_bytes);
        r = growing_append(&set->names, name, strlen(name) + 1);
        if (r >= 0)
                r = growing_append(&set->shards, &shard, sizeof(shard));
        return r < 0 ? why_errno(why, r, "the list of shards") : 0;
}

/* ---- reading a shard --------------------------------------------------------------------------------------------- */

struct walk {
        struct item_set *set;
        int root_fd;
        const char *root;
        const struct index_watch *watch;
        struct why *why;
        struct index_builder *builder; /* NULL: this walk only finds what the arrays are */
        uint64_t n_items;              /* so far */

        const char *name; /* of the shard */
        int fd;
        uint64_t n_bytes;
        uint64_t idx_item; /* in the shard */
        uint32_t *begins;  /* of the items, and the end of the last one */

        uint64_t window_at;
        size_t n_window;
        uint8_t window[64 << 10];
        bool has_array[INDEX_FIELDS_MAX]; /* the column's type and shape are known from an earlier item */
};

static int refuse(const struct walk *walk, const char *what) {
        return why_set(walk->why, -EBADMSG, "%s/%s: %s %" PRIu64 ": %s", walk->root, walk->name, walk->set->item,
                       walk->idx_item, what);
}

/* `n` bytes at `offset`, which are within the file; at most 4 KiB. Items that are small share a read. */
static int peek(struct walk *walk, uint64_t offset, size_t n, const uint8_t **ret_bytes) {
        uint64_t left = walk->n_bytes - offset;
        bool is_near = offset < walk->window_at + 2 * sizeof(walk->window);
        size_t wanted = is_near ? sizeof(walk->window) : 4096;
        int r;

        if (offset < walk->window_at || offset + n > walk->window_at + walk->n_window) {
                wanted = left < wanted ? (size_t)left : wanted;
                r = disk_read_at(walk->fd, walk->window, wanted, offset);
                if (r < 0)
                        return why_errno(walk->why, r, "%s/%s: at byte %" PRIu64, walk->root, walk->name, offset);
                walk->window_at = offset;
                walk->n_window = wanted;
        }
        *ret_bytes = walk->window + (offset - walk->window_at);
        return 0;
}

/* The table: as long as the shard's index says, and each item after the one before. */
static int read_table(struct walk *walk, const struct item_shard *shard) {
        uint64_t n_table = 4 * (shard->n_items + 2);
        uint8_t *bytes;
        int r;

        if (walk->set->is_resized && n_table > walk->n_bytes)
                return why_set(walk->why, -EBADMSG,
                               "%s/%s: has %" PRIu64 " bytes, too few for the %" PRIu64 " %ss that index.json says",
                               walk->root, walk->name, walk->n_bytes, shard->n_items, walk->set->item);
        if ((walk->n_bytes != shard->n_bytes && !walk->set->is_resized) || n_table > walk->n_bytes)
                return why_set(walk->why, -EBADMSG,
                               "%s/%s: has %" PRIu64 " bytes, but index.json says %" PRIu64 " with %" PRIu64 " %ss",
                               walk->root, walk->name, walk->n_bytes, shard->n_bytes, shard->n_items, walk->set->item);
        bytes = malloc((size_t)n_table);
        if (!bytes)
                return why_errno(walk->why, -ENOMEM, "%s/%s: its table", walk->root, walk->name);
        walk->begins = (void *)bytes;
        r = disk_read_at(walk->fd, bytes, (size_t)n_table, 0);
        if (r < 0)
                return why_errno(walk->why, r, "%s/%s: its table", walk->root, walk->name);
        if (le32(bytes) != shard->n_items)
                return why_set(walk->why, -EBADMSG, "%s/%s: has %u %ss, but index.json says %" PRIu64, walk->root,
                               walk->name, le32(bytes), walk->set->item, shard->n_items);
        for (uint64_t i = 0; i <= shard->n_items; i++)
                walk->begins[i] = le32(bytes + 4 * (i + 1)); /* in place */
        for (walk->idx_item = 0; walk->idx_item <= shard->n_items; walk->idx_item++) {
                uint64_t from = walk->idx_item > 0 ? walk->begins[walk->idx_item - 1] : n_table;

                if (walk->begins[walk->idx_item] < from || walk->begins[walk->idx_item] > walk->n_bytes)
                        return refuse(walk, "the table says that it lies outside of the shard");
        }
        if (walk->begins[shard->n_items] != walk->n_bytes)
                return why_set(walk->why, -EBADMSG, "%s/%s: has bytes after its last %s", walk->root, walk->name,
                               walk->set->item);
        return 0;
}

const struct item_column *item_set_choose(struct item_set *set, const char *fields) {
        for (uint32_t i = 0; i < set->n_columns; i++) {
                struct item_column *column = &set->columns[i];
                struct schema_field *field = &column->field;

                if (table_column_is_wanted(fields, field->name)) {
                        if (column->refused[0])
                                return column;
                        continue;
                }
                field->kind = FIELD_BYTES;
                field->dtype = field->n_dims = 0;
                column->prefix = PREFIX_NONE;
        }
        return NULL;
}

/* ---- arrays that say themselves what they are -------------------------------------------------------------------- */

struct item_array {
        uint32_t dtype;
        uint32_t n_dims;
        uint64_t shape[SCHEMA_DIMS_MAX];
        uint64_t n_prefix; /* bytes before the elements */
};

#define NO_DTYPE    UINT8_MAX
#define ARRAY_SHOWN 96u /* characters of its type and shape in a message */

bool item_dtype(enum item_prefix prefix, uint32_t number, uint32_t *ret_dtype) {
        static const uint8_t NUMPY[] = {
                DLP_DTYPE_INT8,    DLP_DTYPE_INT16,  DLP_DTYPE_INT32,  DLP_DTYPE_INT64,   DLP_DTYPE_UINT8,
                DLP_DTYPE_UINT16,  DLP_DTYPE_UINT32, DLP_DTYPE_UINT64, DLP_DTYPE_FLOAT16, DLP_DTYPE_FLOAT32,
                DLP_DTYPE_FLOAT64, NO_DTYPE,         NO_DTYPE,         DLP_DTYPE_BOOL,
        };
        /* Most types of torch have two names, and LitData's list has both. */
        static const uint8_t TENSOR[] = {
                DLP_DTYPE_FLOAT32,  DLP_DTYPE_FLOAT32, DLP_DTYPE_FLOAT64, DLP_DTYPE_FLOAT64, NO_DTYPE,
                NO_DTYPE,           NO_DTYPE,          NO_DTYPE,          DLP_DTYPE_FLOAT16, DLP_DTYPE_FLOAT16,
                DLP_DTYPE_BFLOAT16, DLP_DTYPE_UINT8,   DLP_DTYPE_INT8,    DLP_DTYPE_INT16,   DLP_DTYPE_INT16,
                DLP_DTYPE_INT32,    DLP_DTYPE_INT32,   DLP_DTYPE_INT64,   DLP_DTYPE_INT64,   DLP_DTYPE_BOOL,
                DLP_DTYPE_UINT16,
        };
        static const struct {
                uint8_t number, dtype;
        } MDS[] = {
                { 8, DLP_DTYPE_UINT8 },  { 9, DLP_DTYPE_INT8 },     { 16, DLP_DTYPE_UINT16 },
                { 17, DLP_DTYPE_INT16 }, { 18, DLP_DTYPE_FLOAT16 }, { 32, DLP_DTYPE_UINT32 },
                { 33, DLP_DTYPE_INT32 }, { 34, DLP_DTYPE_FLOAT32 }, { 64, DLP_DTYPE_UINT64 },
                { 65, DLP_DTYPE_INT64 }, { 66, DLP_DTYPE_FLOAT64 },
        };
        uint8_t dtype = NO_DTYPE;

        if (prefix == PREFIX_NUMPY && number < ARRAY_SIZE(NUMPY))
                dtype = NUMPY[number];
        else if (prefix == PREFIX_TENSOR && number < ARRAY_SIZE(TENSOR))
                dtype = TENSOR[number];
        for (size_t i = 0; i < ARRAY_SIZE(MDS) && prefix == PREFIX_MDS_ARRAY; i++)
                if (MDS[i].number == number)
                        dtype = MDS[i].dtype;
        if (dtype == NO_DTYPE)
                return false;
        *ret_dtype = dtype;
        return true;
}

static uint64_t read_dimension(const uint8_t *at, uint32_t size, bool is_big_endian) {
        uint64_t value = 0;

        for (uint32_t i = 0; i < size; i++)
                value |= (uint64_t)at[is_big_endian ? size - 1 - i : i] << 8 * i;
        return value;
}

static bool read_prefix_in_order(const struct item_column *column, const uint8_t *bytes, size_t n, bool is_big_endian,
                                 struct item_array *array) {
        bool is_lit = column->prefix == PREFIX_NUMPY || column->prefix == PREFIX_TENSOR;
        uint32_t n_type = is_lit ? 4 : column->prefix == PREFIX_MDS_ARRAY ? 1 : 0, size = 4;
        uint64_t at = n_type + (is_lit ? 4 : 1);

        array->dtype = column->field.dtype;
        if (at > n || (n_type > 0 && !item_dtype(column->prefix, (uint32_t)read_dimension(bytes, n_type, is_big_endian),
                                                 &array->dtype)))
                return false;
        array->n_dims = is_lit ? (uint32_t)read_dimension(bytes + 4, 4, is_big_endian) : bytes[n_type] >> 2;
        if (!is_lit)
                size = 1u << (bytes[n_type] & 3);
        if (array->n_dims > SCHEMA_DIMS_MAX || at + (uint64_t)array->n_dims * size > n)
                return false;
        for (uint32_t i = 0; i < array->n_dims; i++, at += size)
                array->shape[i] = read_dimension(bytes + at, size, is_big_endian);
        array->n_prefix = at;
        return true;
}

/* Reads what stands before the elements from n bytes. Returns false if it does not fit, or is an array that no field
 * can be. A type and a number of dimensions that are small in one order of bytes are not in the other one. */
static bool read_prefix(const struct item_column *column, const uint8_t *bytes, size_t n, struct item_array *array) {
        return (column->prefix == PREFIX_TENSOR && read_prefix_in_order(column, bytes, n, true, array)) ||
               read_prefix_in_order(column, bytes, n, false, array);
}

/* Does the array have n_bytes bytes, with its prefix? */
static bool has_its_elements(const struct item_array *array, uint64_t n_bytes) {
        uint64_t n = dlp_dtype_bytes(array->dtype);

        for (uint32_t i = 0; i < array->n_dims; i++)
                if (array->shape[i] > INT64_MAX || (array->shape[i] == 0 && i > 0) ||
                    __builtin_mul_overflow(n, array->shape[i], &n))
                        return false;
        return n == n_bytes - array->n_prefix;
}

static int read_array(struct walk *walk, const struct item_column *column, const struct index_row *row,
                      struct item_array *ret_array) {
        size_t n = row->length < 512 ? (size_t)row->length : 512;
        const uint8_t *bytes;
        int r = peek(walk, row->offset, n, &bytes);

        if (r < 0)
                return r;
        if (!read_prefix(column, bytes, n, ret_array) || ret_array->n_prefix > row->length ||
            !has_its_elements(ret_array, row->length))
                return why_set(walk->why, -EBADMSG,
                               "%s/%s: %s %" PRIu64 ": the array %s is damaged, or none that can be "
                               "served (up to %u dimensions of numbers)",
                               walk->root, walk->name, walk->set->item, walk->idx_item, column->field.name,
                               SCHEMA_DIMS_MAX);
        return 0;
}

/* "uint8 [n, 3]", where n varies. */
static const char *show_array(uint32_t dtype, uint32_t n_dims, const uint64_t *shape, char text[ARRAY_SHOWN]) {
        size_t n = (size_t)snprintf(text, ARRAY_SHOWN, "%s [", dlp_dtype_name(dtype));

        for (uint32_t i = 0; i < n_dims && n < ARRAY_SHOWN; i++)
                n += (size_t)snprintf(text + n, ARRAY_SHOWN - n, shape[i] == UINT64_MAX ? "%sn" : "%s%" PRIu64,
                                      i ? ", " : "", shape[i]);
        if (n < ARRAY_SHOWN)
                snprintf(text + n, ARRAY_SHOWN - n, "]");
        return text;
}

static int refuse_shape(const struct walk *walk, const struct schema_field *field, const struct item_array *array) {
        char before[ARRAY_SHOWN], here[ARRAY_SHOWN];
        uint64_t shape[SCHEMA_DIMS_MAX];

        for (uint32_t i = 0; i < field->n_dims; i++)
                shape[i] = (uint64_t)field->shape[i];
        return why_set(walk->why, -ENOTSUP,
                       "%s/%s: %s %" PRIu64
                       ": the array %s is %s, and %s before it; only the first dimension may vary: "
                       "pad it, write it as bytes, or leave it out with fields = \"...\", which names the others",
                       walk->root, walk->name, walk->set->item, walk->idx_item, field->name,
                       show_array(array->dtype, array->n_dims, array->shape, here),
                       show_array(field->dtype, field->n_dims, shape, before));
}

/* Adds one more array to what is known of the column: its first dimension may vary, nothing else. */
static int learn_array(struct walk *walk, uint32_t idx, const struct item_array *array) {
        struct schema_field *field = &walk->set->columns[idx].field;

        if (!walk->has_array[idx]) {
                walk->has_array[idx] = true;
                field->dtype = array->dtype;
                field->n_dims = array->n_dims;
                for (uint32_t i = 0; i < array->n_dims; i++)
                        field->shape[i] = (int64_t)array->shape[i];
                return 0;
        }
        if (array->dtype != field->dtype || array->n_dims != field->n_dims)
                return refuse_shape(walk, field, array);
        for (uint32_t i = 0; i < array->n_dims; i++)
                if ((uint64_t)field->shape[i] != array->shape[i] && i > 0)
                        return refuse_shape(walk, field, array);
        if (array->n_dims > 0 && (uint64_t)field->shape[0] != array->shape[0])
                field->shape[0] = -1;
        return 0;
}

/* Is it still what the first walk found? */
static bool fits(const struct schema_field *field, const struct item_array *array) {
        if (array->dtype != field->dtype || array->n_dims != field->n_dims)
                return false;
        for (uint32_t i = 0; i < array->n_dims; i++)
                if ((uint64_t)field->shape[i] != array->shape[i] && (i > 0 || field->shape[0] != -1))
                        return false;
        return true;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

/* Where the columns of the current item lie. */
static int place_columns(struct walk *walk, struct index_row rows[]) {
        const struct item_set *set = walk->set;
        uint64_t at = walk->begins[walk->idx_item], end = walk->begins[walk->idx_item + 1], n_sizes = 0;
        const uint8_t *sizes;
        int r;

        if (set->is_bare) {
                rows[0] = (struct index_row){ .file = INDEX_NO_FILE, .offset = at, .length = end - at };
                return 0;
        }
        for (uint32_t i = 0; i < set->n_columns; i++)
                n_sizes += set->columns[i].n_bytes == 0 ? 4 : 0;
        if (n_sizes > end - at)
                return refuse(walk, "is shorter than the sizes of its columns");
        r = peek(walk, at, (size_t)n_sizes, &sizes);
        if (r < 0)
                return r;
        at += n_sizes;
        for (uint32_t i = 0; i < set->n_columns; i++) {
                uint64_t n = set->columns[i].n_bytes;

                if (n == 0) {
                        n = le32(sizes);
                        sizes += 4;
                }
                if (n > end - at)
                        return refuse(walk, "its columns are longer than itself");
                rows[i] = (struct index_row){ .file = INDEX_NO_FILE, .offset = at, .length = n };
                at += n;
        }
        return at == end ? 0 : refuse(walk, "its columns are shorter than itself");
}

static int check_length(const struct walk *walk, const struct schema_field *field, uint64_t length) {
        uint64_t unit = dlp_dtype_bytes(field->dtype);
        bool is_varying = field->n_dims > 0 && field->shape[0] == -1;

        for (uint32_t i = is_varying; i < field->n_dims; i++)
                unit *= (uint64_t)field->shape[i];
        if (is_varying ? unit > 0 && length % unit == 0 : length == unit)
                return 0;
        return why_set(walk->why, -EBADMSG,
                       "%s/%s: %s %" PRIu64 ": %s has %" PRIu64 " bytes, which its type does not fit", walk->root,
                       walk->name, walk->set->item, walk->idx_item, field->name, length);
}

static int take_column(struct walk *walk, uint32_t idx, struct index_row *row) {
        const struct item_column *column = &walk->set->columns[idx];
        struct item_array array;
        int r;

        if (column->field.kind != FIELD_VALUE)
                return 0;
        if (column->prefix == PREFIX_NONE)
                return check_length(walk, &column->field, row->length);
        r = read_array(walk, column, row, &array);
        if (r < 0)
                return r;
        if (!walk->builder)
                return learn_array(walk, idx, &array);
        if (!fits(&column->field, &array))
                return refuse(walk, "was changed while it was indexed");
        row->offset += array.n_prefix;
        row->length -= array.n_prefix;
        return 0;
}

static int take_item(struct walk *walk) {
        struct index_row rows[INDEX_FIELDS_MAX];
        int r = place_columns(walk, rows);

        for (uint32_t i = 0; i < walk->set->n_columns && r >= 0; i++)
                r = take_column(walk, i, &rows[i]);
        if (r < 0 || !walk->builder)
                return r;
        r = index_builder_add_sample(walk->builder, rows, 0);
        return r < 0 ? why_errno(walk->why, r, "%s: its index, after %" PRIu64 " samples", walk->root, walk->n_items)
                     : 0;
}

static int look_up(const struct walk *walk) {
        if (walk->n_items % LOOK_UP_ITEMS != 0 || !walk->watch)
                return 0;
        if (walk->watch->cancel && atomic_load_explicit(walk->watch->cancel, memory_order_relaxed))
                return why_set(walk->why, -ECANCELED, "%s: indexing was cancelled", walk->root);
        if (walk->watch->progress && walk->builder)
                walk->watch->progress(walk->watch->userdata, walk->n_items);
        return 0;
}

static int take_block(struct walk *walk, uint64_t offset) {
        struct index_row row = { .file = INDEX_NO_FILE, .offset = offset, .length = walk->set->n_block_bytes };
        int r = index_builder_add_sample(walk->builder, &row, 0);

        return r < 0 ? why_errno(walk->why, r, "%s: its index, after %" PRIu64 " samples", walk->root, walk->n_items)
                     : 0;
}

/* Takes what all items of the shard hold together, block by block. */
static int take_blocks(struct walk *walk, uint64_t n_items) {
        uint64_t at = walk->begins[0], end = walk->begins[n_items];
        int r = 0;

        for (; end - at >= walk->set->n_block_bytes && r >= 0; at += walk->set->n_block_bytes) {
                r = take_block(walk, at);
                walk->n_items++;
                if (r >= 0)
                        r = look_up(walk);
        }
        return r;
}

static int take_items(struct walk *walk, uint64_t n_items) {
        int r = 0;

        for (walk->idx_item = 0; walk->idx_item < n_items && r >= 0; walk->idx_item++) {
                r = take_item(walk);
                walk->n_items++;
                if (r >= 0)
                        r = look_up(walk);
        }
        return r;
}

static int check_shard(const struct walk *walk) {
        struct why detail = { 0 };
        int r = walk->set->check ? walk->set->check(walk->fd, walk->n_bytes, &detail) : 0;

        return r < 0 ? why_set(walk->why, r, "%s/%s: %.400s", walk->root, walk->name, detail.text) : 0;
}

static int walk_items(struct walk *walk, const struct item_shard *shard, const struct stat *status) {
        int r = check_shard(walk);

        if (r == 0)
                r = read_table(walk, shard);
        if (r == 0 && walk->builder) {
                r = index_builder_add_shard(walk->builder, walk->name, status);
                if (r < 0)
                        why_errno(walk->why, r, "%s: its index", walk->root);
        }
        if (r >= 0)
                r = walk->set->n_block_bytes > 0 ? take_blocks(walk, shard->n_items) : take_items(walk, shard->n_items);
        free(walk->begins);
        walk->begins = NULL;
        return r;
}

static int walk_shards(struct walk *walk) {
        const struct item_shard *shards = (const void *)walk->set->shards.bytes;
        int r = 0;

        walk->n_items = 0;
        for (uint64_t i = 0; i < walk->set->shards.n_bytes / sizeof(*shards) && r >= 0; i++) {
                struct stat status = { 0 };

                walk->name = (const char *)walk->set->names.bytes + shards[i].name;
                walk->fd = listed_open(walk->root_fd, walk->root, walk->name, &walk->set->settled_ns, &status,
                                       walk->why);
                if (walk->fd < 0)
                        return walk->fd;
                walk->n_bytes = (uint64_t)status.st_size;
                walk->n_window = 0;
                r = walk_items(walk, &shards[i], &status);
                closep(&walk->fd);
        }
        return r;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

static int begin_index(const struct walk *walk, struct index_builder **ret_builder) {
        const struct item_set *set = walk->set;
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        uint32_t idx_root;
        int r = index_builder_new(set->format, set->n_columns, &builder);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < set->n_columns; i++)
                index_builder_describe(builder, i, &set->columns[i].field);
        index_builder_name_rows(builder);
        r = index_builder_add_dir(builder, "", &set->folder, &idx_root);
        if (r >= 0)
                index_builder_set_listed(builder, false);
        /* A shard without samples: so that a changed index.json makes a new index. */
        if (r >= 0)
                r = index_builder_add_shard(builder, "index.json", &set->index_status);
        if (r >= 0)
                *ret_builder = TAKE_PTR(builder);
        return r;
}

static bool has_prefixes(const struct item_set *set) {
        for (uint32_t i = 0; i < set->n_columns; i++)
                if (set->columns[i].prefix != PREFIX_NONE)
                        return true;
        return false;
}

/* Arrays without a single element have no fixed shape that a tensor could have. */
static void let_empty_vary(struct item_set *set) {
        for (uint32_t i = 0; i < set->n_columns; i++)
                if (set->columns[i].field.n_dims > 0 && set->columns[i].field.shape[0] == 0)
                        set->columns[i].field.shape[0] = -1;
}

int items_build(struct item_set *set, int root_fd, const char *root, const struct index_watch *watch,
                struct index_builder **ret_builder, struct why *why) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(freep) struct walk *walk = calloc(1, sizeof(*walk));
        int r;

        if (!walk)
                return why_errno(why, -ENOMEM, "%s: its index", root);
        *walk = (struct walk){ .set = set, .root_fd = root_fd, .root = root, .watch = watch, .why = why };
        r = has_prefixes(set) ? walk_shards(walk) : 0;
        if (r < 0)
                return r;
        let_empty_vary(set);
        r = begin_index(walk, &builder);
        if (r < 0)
                return why_errno(why, r, "%s: its index", root);
        walk->builder = builder;
        r = walk_shards(walk);
        if (r < 0)
                return r;
        if (walk->n_items == 0)
                return why_set(why, -ENOENT, "%s: there is no %s in its shards", root, set->item);
        if (watch && watch->progress)
                watch->progress(watch->userdata, walk->n_items);
        *ret_builder = TAKE_PTR(builder);
        return 0;
}
