#include "daemon/data/formats/items/item_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/formats/differing/number_types.h"
#include "daemon/data/formats/items/item_array.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define LOOK_UP_ITEMS 4096u /* between two checks of the cancel flag */

static int item_walk_refuse(const struct item_walk *walk, const char *what) {
        return why_set(walk->why, -EBADMSG, "%s/%s: %s %" PRIu64 ": %s", walk->root, walk->name, walk->set->item,
                       walk->idx_item, what);
}

/* `n` bytes at `offset`, which are within the file; no more than the window has. Items that are small share a read. */
static int item_walk_peek(struct item_walk *walk, uint64_t offset, size_t n, const uint8_t **ret_bytes) {
        uint64_t left = walk->n_bytes - offset;
        bool is_near = offset < walk->window_at + 2 * sizeof(walk->window);
        size_t wanted = is_near ? sizeof(walk->window) : n > 4096 ? n : 4096;
        int r;

        if (offset < walk->window_at || offset + n > walk->window_at + walk->n_window) {
                wanted = left < wanted ? (size_t)left : wanted;
                r = indexing_read_at(walk->fd, walk->window, wanted, offset);
                if (r < 0)
                        return why_errno(walk->why, r, "%s/%s: at byte %" PRIu64, walk->root, walk->name, offset);
                walk->window_at = offset;
                walk->n_window = wanted;
        }
        *ret_bytes = walk->window + (offset - walk->window_at);
        return 0;
}

/* The table: as long as the shard's index says, and each item after the one before. */
static int item_walk_read_table(struct item_walk *walk, const struct item_shard *shard) {
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
        if (growing_reserve(&walk->table, (size_t)n_table) < 0)
                return why_errno(walk->why, -ENOMEM, "%s/%s: its table", walk->root, walk->name);
        bytes = walk->table.bytes;
        walk->begins = (void *)bytes;
        r = indexing_read_at(walk->fd, bytes, (size_t)n_table, 0);
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
                        return item_walk_refuse(walk, "the table says that it lies outside of the shard");
        }
        if (walk->begins[shard->n_items] != walk->n_bytes)
                return why_set(walk->why, -EBADMSG, "%s/%s: has bytes after its last %s", walk->root, walk->name,
                               walk->set->item);
        return 0;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

#define ARRAY_SHOWN 96u /* characters of its type and shape in a message */

static int item_walk_read_array(struct item_walk *walk, const struct item_column *column, const struct index_row *row,
                                struct item_array *ret_array) {
        size_t n = row->length < 512 ? (size_t)row->length : 512;
        const uint8_t *bytes;
        int r = item_walk_peek(walk, row->offset, n, &bytes);

        if (r < 0)
                return r;
        if (!item_array_read(column, bytes, n, ret_array) || ret_array->n_prefix > row->length ||
            !item_array_has_elements(ret_array, row->length))
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

static int item_walk_refuse_shape(const struct item_walk *walk, const struct schema_field *field,
                                  const struct item_array *array) {
        char before[ARRAY_SHOWN], here[ARRAY_SHOWN];
        uint64_t shape[SCHEMA_DIMS_MAX];

        for (uint32_t i = 0; i < field->n_dims; i++)
                shape[i] = (uint64_t)field->shape[i];
        return why_set(walk->why, -ENOTSUP,
                       "%s/%s: %s %" PRIu64
                       ": the array %s is %s, and %s before it; only the first dimension may vary: "
                       "pad it, or write it as bytes",
                       walk->root, walk->name, walk->set->item, walk->idx_item, field->name,
                       show_array(array->dtype, array->n_dims, array->shape, here),
                       show_array(field->dtype, field->n_dims, shape, before));
}

/* Adds one more array to what is known of the column: its first dimension may vary, nothing else. */
static int learn_array(struct item_walk *walk, uint32_t idx, const struct item_array *array) {
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
                return item_walk_refuse_shape(walk, field, array);
        for (uint32_t i = 0; i < array->n_dims; i++)
                if ((uint64_t)field->shape[i] != array->shape[i] && i > 0)
                        return item_walk_refuse_shape(walk, field, array);
        if (array->n_dims > 0 && (uint64_t)field->shape[0] != array->shape[0])
                field->shape[0] = -1;
        return 0;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

/* Bytes of a value that are known without the item; 0: they are not. */
static uint64_t item_walk_fixed(const struct item_walk *walk, const struct item_place *place) {
        const struct item_column *column = place->idx_column != COLUMN_NONE ? &walk->set->columns[place->idx_column]
                                                                            : NULL;
        bool is_number = column && column->field.kind == FIELD_VALUE && column->field.n_dims == 0 &&
                         column->prefix == PREFIX_NONE;

        return place->n_bytes == 0 && is_number ? dlp_dtype_bytes(place->dtype) : place->n_bytes;
}

/* Where a read is a request, the sizes that an item begins with are not read if the table tells them: all values but
 * one are fixed, and this one has what they leave of n_bytes. */
static bool item_walk_deduce(const struct item_walk *walk, uint64_t n_bytes, uint64_t *ret_left) {
        uint32_t n_unknown = 0;

        if (!indexing_origin())
                return false;
        for (uint32_t i = 0; i < walk->n_places; i++) {
                uint64_t n = item_walk_fixed(walk, &walk->places[i]);

                if (n > n_bytes || (n == 0 && n_unknown++ > 0))
                        return false;
                n_bytes -= n;
        }
        *ret_left = n_bytes;
        return true;
}

/* Where the columns of the current item lie. */
static int item_walk_place_columns(struct item_walk *walk, struct index_row rows[]) {
        const struct item_set *set = walk->set;
        uint64_t at = walk->begins[walk->idx_item], end = walk->begins[walk->idx_item + 1], n_sizes = 0, n_left = 0;
        const uint8_t *sizes = NULL;
        int r = 0;

        if (set->is_bare) {
                rows[0] = (struct index_row){ .file = INDEX_NO_FILE, .offset = at, .length = end - at };
                return 0;
        }
        for (uint32_t i = 0; i < walk->n_places; i++)
                n_sizes += walk->places[i].n_bytes == 0 ? 4 : 0;
        if (n_sizes > end - at)
                return item_walk_refuse(walk, "is shorter than the sizes of its columns");
        if (!item_walk_deduce(walk, end - at - n_sizes, &n_left))
                r = item_walk_peek(walk, at, (size_t)n_sizes, &sizes);
        if (r < 0)
                return r;
        at += n_sizes;
        for (uint32_t i = 0; i < set->n_columns; i++)
                rows[i] = (struct index_row){ .file = INDEX_NO_FILE, .offset = INDEX_ROW_ABSENT };
        for (uint32_t i = 0; i < walk->n_places; i++) {
                const struct item_place *place = &walk->places[i];
                uint64_t n = sizes ? place->n_bytes : item_walk_fixed(walk, place);

                if (n == 0 && !sizes) {
                        n = n_left;
                } else if (n == 0) {
                        n = le32(sizes);
                        sizes += 4;
                }
                if (n > end - at)
                        return item_walk_refuse(walk, "its columns are longer than itself");
                if (place->idx_column != COLUMN_NONE)
                        rows[place->idx_column] =
                                (struct index_row){ .file = INDEX_NO_FILE, .offset = at, .length = n };
                at += n;
        }
        return at == end ? 0 : item_walk_refuse(walk, "its columns are shorter than itself");
}

static int item_walk_check_length(const struct item_walk *walk, const struct schema_field *field, uint64_t length) {
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

/* A number becomes the value of a column of the index. */
static int copy_number(struct item_walk *walk, uint32_t idx, uint32_t idx_mixed, const struct index_row *row) {
        const struct schema_field *field = &walk->set->columns[idx].field;
        uint32_t from = walk->dtypes[idx];
        const uint8_t *bytes;
        struct why detail;
        uint64_t number;
        int r = item_walk_peek(walk, row->offset, (size_t)row->length, &bytes);

        if (r < 0)
                return r;
        if (row->length != dlp_dtype_bytes(from))
                return item_walk_refuse(walk, "the size of a number is not that of its type");
        if (!number_convert(from, bytes, field->dtype, &number)) {
                r = number_differs(from, field->dtype, &detail);
                return why_set(walk->why, r, "%s/%s: %s %" PRIu64 ": column %s %s", walk->root, walk->name,
                               walk->set->item, walk->idx_item, field->name, detail.text);
        }
        r = index_builder_set_value(walk->builder, idx_mixed, &number, dlp_dtype_bytes(field->dtype));
        return r < 0 ? index_builder_refused(r, walk->root, walk->why) : 0;
}

static int item_walk_take_column(struct item_walk *walk, uint32_t idx, struct index_row *row) {
        const struct item_column *column = &walk->set->columns[idx];
        struct item_array array;
        int r;

        if (column->field.kind != FIELD_VALUE || row->offset == INDEX_ROW_ABSENT)
                return 0;
        if (column->prefix == PREFIX_NONE)
                return item_walk_check_length(walk, &column->field, row->length);
        r = item_walk_read_array(walk, column, row, &array);
        if (r < 0)
                return r;
        if (!walk->builder)
                return learn_array(walk, idx, &array);
        if (!item_array_fits(&column->field, &array))
                return item_walk_refuse(walk, "was changed while it was indexed");
        row->offset += array.n_prefix;
        row->length -= array.n_prefix;
        return 0;
}

static int take_item(struct item_walk *walk) {
        struct index_row *rows = walk->rows;
        uint32_t n = 0, n_mixed = 0;
        int r = item_walk_place_columns(walk, rows);

        for (uint32_t i = 0; i < walk->set->n_columns && r >= 0; i++) {
                const struct item_column *column = &walk->set->columns[i];

                if (column->is_left_out)
                        continue;
                if (!column->is_mixed) {
                        r = item_walk_take_column(walk, i, &rows[i]);
                        rows[n++] = rows[i];
                } else if (walk->builder && rows[i].offset != INDEX_ROW_ABSENT)
                        r = copy_number(walk, i, n_mixed, &rows[i]);
                n_mixed += column->is_mixed;
                refusals_mark(walk->set->refusals, column->field.name, r);
        }
        if (r < 0 || !walk->builder)
                return r;
        r = index_builder_add_sample(walk->builder, rows, 0);
        return r < 0 ? index_builder_refused(r, walk->root, walk->why) : 0;
}

static int item_walk_look_up(const struct item_walk *walk) {
        if (walk->n_items % LOOK_UP_ITEMS != 0)
                return 0;
        if (walk->is_over && atomic_load_explicit(walk->is_over, memory_order_relaxed))
                return why_set(walk->why, -ECANCELED, "%s: another shard was refused", walk->root);
        if (!walk->watch)
                return 0;
        if (walk->watch->cancel && atomic_load_explicit(walk->watch->cancel, memory_order_relaxed))
                return why_set(walk->why, -ECANCELED, "%s: indexing was cancelled", walk->root);
        if (walk->watch->progress && walk->builder)
                walk->watch->progress(walk->watch->userdata, walk->n_items);
        return 0;
}

static int take_block(struct item_walk *walk, uint64_t offset) {
        struct index_row row = { .file = INDEX_NO_FILE, .offset = offset, .length = walk->set->n_block_bytes };
        int r = index_builder_add_sample(walk->builder, &row, 0);

        return r < 0 ? index_builder_refused(r, walk->root, walk->why) : 0;
}

/* Takes what all items of the shard hold together, block by block. */
static int take_blocks(struct item_walk *walk, uint64_t n_items) {
        uint64_t at = walk->begins[0], end = walk->begins[n_items];
        int r = 0;

        for (; end - at >= walk->set->n_block_bytes && r >= 0; at += walk->set->n_block_bytes) {
                r = take_block(walk, at);
                walk->n_items++;
                if (r >= 0)
                        r = item_walk_look_up(walk);
        }
        return r;
}

static int take_items(struct item_walk *walk, uint64_t n_items) {
        int r = 0;

        for (walk->idx_item = 0; walk->idx_item < n_items && r >= 0; walk->idx_item++) {
                r = take_item(walk);
                walk->n_items++;
                if (r >= 0)
                        r = item_walk_look_up(walk);
        }
        return r;
}

static int item_walk_check_shard(const struct item_walk *walk) {
        struct why detail = { 0 };
        int r = walk->set->check ? walk->set->check(walk->fd, walk->n_bytes, &detail) : 0;

        return r < 0 ? why_set(walk->why, r, "%s/%s: %s", walk->root, walk->name, detail.text) : 0;
}

static int walk_items(struct item_walk *walk, const struct item_shard *shard, const struct stat *status) {
        int r = item_walk_check_shard(walk);

        if (r == 0)
                r = item_walk_read_table(walk, shard);
        if (r == 0 && walk->builder) {
                r = index_builder_add_shard(walk->builder, walk->name, status);
                if (r < 0)
                        index_builder_refused(r, walk->root, walk->why);
        }
        if (r >= 0)
                r = walk->set->n_block_bytes > 0 ? take_blocks(walk, shard->n_items) : take_items(walk, shard->n_items);
        growing_fini(&walk->table);
        return r;
}

static void begin_layout(struct item_walk *walk, const struct item_shard *shard) {
        const struct item_layout *layout = (const struct item_layout *)(const void *)walk->set->layouts.bytes +
                                           shard->idx_layout;

        walk->places = (const struct item_place *)(const void *)walk->set->places.bytes + layout->first;
        walk->n_places = layout->n;
        for (uint32_t i = 0; i < walk->n_places; i++)
                if (walk->places[i].idx_column != COLUMN_NONE)
                        walk->dtypes[walk->places[i].idx_column] = walk->places[i].dtype;
}

int item_walk_shard(struct item_walk *walk, uint64_t idx_shard, struct stat *ret_status) {
        const struct item_shard *shard = (const struct item_shard *)(const void *)walk->set->shards.bytes + idx_shard;
        int r;

        begin_layout(walk, shard);
        walk->name = (const char *)walk->set->names.bytes + shard->name;
        walk->fd = listed_open(walk->root_fd, walk->root, walk->name, &walk->set->settled_ns, ret_status, walk->why);
        if (walk->fd < 0)
                return walk->fd;
        walk->n_bytes = (uint64_t)ret_status->st_size;
        walk->n_window = 0;
        r = walk_items(walk, shard, ret_status);
        closep(&walk->fd);
        return r;
}
