#include "daemon/data/formats/items/items.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/files/parted.h"
#include "daemon/data/formats/items/item_walk.h"
#include "daemon/data/formats/table_columns.h"
#include "proto/base/cleanup.h"

void item_set_fini(struct item_set *set) {
        growing_fini(&set->layouts);
        growing_fini(&set->places);
        growing_fini(&set->shards);
        growing_fini(&set->names);
}

int item_set_add_layout(struct item_set *set, const struct item_place *places, uint32_t n) {
        struct item_layout layout = { .first = set->places.n_bytes / sizeof(*places), .n = n };
        int r = growing_append(&set->places, places, n * sizeof(*places));

        return r < 0 ? r : growing_append(&set->layouts, &layout, sizeof(layout));
}

/* Without a layout, items hold the columns. */
static int add_own_layout(struct item_set *set) {
        _cleanup_(freep) struct item_place *places = calloc(set->n_columns + 1, sizeof(*places));

        if (set->layouts.n_bytes > 0)
                return 0;
        if (!places)
                return -ENOMEM;
        for (uint32_t i = 0; i < set->n_columns; i++)
                places[i] = (struct item_place){ i, set->columns[i].field.dtype, set->columns[i].n_bytes };
        return item_set_add_layout(set, places, set->n_columns);
}

int item_set_add_shard(struct item_set *set, const char *name, int64_t n_items, int64_t n_bytes, struct why *why) {
        struct item_shard shard = { .name = set->names.n_bytes,
                                    .n_items = (uint64_t)n_items,
                                    .n_bytes = (uint64_t)n_bytes };
        uint32_t n_layouts = (uint32_t)(set->layouts.n_bytes / sizeof(struct item_layout));
        int r;

        if (!name[0] || name[0] == '/' || !index_is_inner_path(name))
                return why_set(why, -EBADMSG, "the name of a shard, \"%s\", is not a path within the folder", name);
        if (n_items < 0 || n_items > UINT32_MAX || n_bytes < 0)
                return why_set(why, -EBADMSG, "shard %s has %" PRId64 " %ss and %" PRId64 " bytes, which is impossible",
                               name, n_items, set->item, n_bytes);
        shard.idx_layout = n_layouts > 0 ? n_layouts - 1 : 0;
        r = growing_append(&set->names, name, strlen(name) + 1);
        if (r >= 0)
                r = growing_append(&set->shards, &shard, sizeof(shard));
        return r < 0 ? why_errno(why, r, "the list of shards") : 0;
}

const struct item_column *item_set_choose(struct item_set *set, const char *fields) {
        for (uint32_t i = 0; i < set->n_columns; i++) {
                struct item_column *column = &set->columns[i];
                struct schema_field *field = &column->field;

                column->is_left_out = refusals_have(set->refusals, field->name);
                if (column->is_left_out)
                        continue;
                if (table_column_is_wanted(fields, field->name)) {
                        if (column->refused[0])
                                return column;
                        continue;
                }
                field->kind = FIELD_BYTES;
                field->dtype = field->n_dims = 0;
                column->prefix = PREFIX_NONE;
                column->is_mixed = false;
        }
        return NULL;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

static uint32_t items_count_served(const struct item_set *set, bool is_mixed) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < set->n_columns; i++)
                n += !set->columns[i].is_left_out && set->columns[i].is_mixed == is_mixed;
        return n;
}

/* Stored fields come first, then the index's own columns, both in the sequence of the set. */
static int items_describe(const struct item_set *set, struct index_builder *builder) {
        uint32_t n_stored = 0, idx;
        int r = 0;

        for (uint32_t i = 0; i < set->n_columns && r >= 0; i++) {
                const struct item_column *column = &set->columns[i];

                if (column->is_left_out)
                        continue;
                if (column->is_mixed)
                        r = index_builder_add_column(builder, &column->field, &idx);
                else
                        index_builder_describe(builder, n_stored++, &column->field);
        }
        return r;
}

static int items_begin_index(const struct item_set *set, struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        uint32_t idx_root;
        int r = index_builder_new(set->format, items_count_served(set, false), &builder);

        if (r >= 0)
                r = items_describe(set, builder);
        if (r < 0)
                return r;
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

/* ---- all shards -------------------------------------------------------------------------------------------------- */

/* What another thread has found in a shard. */
struct part {
        struct item_set set; /* of which only the columns are its own */
        struct item_walk walk;
        struct index_watch watch;
        struct why why;
        struct stat status;
};

/* A walk that is under way. What is said here as `of all` does not change. */
struct walking {
        struct item_walk *walk;
        struct item_set set;   /* of all: as it was at first */
        struct item_walk copy; /* of all: the same */
};

static void items_part_free(void *found) {
        struct part *part = found;

        index_builder_free(part->walk.builder);
        free(part);
}

static void *look_at_shard(void *userdata, uint64_t idx_shard, const atomic_bool *is_over) {
        const struct walking *walking = userdata;
        struct part *part = calloc(1, sizeof(*part));
        int r = 0;

        if (!part)
                return NULL;
        part->set = walking->set;
        part->set.refusals = NULL;
        part->walk = walking->copy;
        part->walk.set = &part->set;
        part->walk.why = &part->why;
        part->walk.is_over = is_over;
        part->walk.watch = &part->watch;
        if (walking->copy.watch)
                part->watch = *walking->copy.watch;
        part->watch.part = NULL;
        part->watch.progress = NULL; /* only the caller's thread tells how far it is */
        part->walk.builder = NULL;
        part->walk.n_items = 0;
        if (walking->copy.builder)
                r = items_begin_index(&part->set, &part->walk.builder);
        if (r >= 0)
                r = item_walk_shard(&part->walk, idx_shard, &part->status);
        if (r >= 0)
                return part;
        items_part_free(part);
        return NULL;
}

/* Do both fit one field? Where they do not, the item is refused by who reads both. */
static bool items_is_alike(const struct item_walk *walk, const struct item_walk *part) {
        for (uint32_t i = 0; i < walk->set->n_columns; i++) {
                const struct schema_field *field = &walk->set->columns[i].field, *other = &part->set->columns[i].field;

                if (!walk->has_array[i] || !part->has_array[i])
                        continue;
                if (field->dtype != other->dtype || field->n_dims != other->n_dims)
                        return false;
                for (uint32_t k = 1; k < field->n_dims; k++)
                        if (field->shape[k] != other->shape[k])
                                return false;
        }
        return true;
}

static void learn_arrays(struct item_walk *walk, const struct item_walk *part) {
        for (uint32_t i = 0; i < walk->set->n_columns; i++) {
                struct schema_field *field = &walk->set->columns[i].field;
                const struct schema_field *other = &part->set->columns[i].field;

                if (!part->has_array[i])
                        continue;
                if (!walk->has_array[i])
                        *field = *other;
                else if (field->n_dims > 0 && field->shape[0] != other->shape[0])
                        field->shape[0] = -1;
                walk->has_array[i] = true;
        }
}

static int items_add_part(struct item_walk *walk, uint64_t idx_shard, const struct part *part) {
        const struct item_shard *shards = (const void *)walk->set->shards.bytes;
        const char *name = (const char *)walk->set->names.bytes + shards[idx_shard].name;
        int r = index_builder_add_shard(walk->builder, name, &part->status);

        if (r >= 0)
                r = index_builder_append(walk->builder, part->walk.builder);
        if (r < 0)
                return index_builder_refused(r, walk->root, walk->why);
        walk->n_items += part->walk.n_items;
        return format_look_up(walk->watch, walk->n_items, walk->root, walk->why);
}

static int items_take_shard(void *userdata, uint64_t idx_shard, const void *found) {
        struct item_walk *walk = ((struct walking *)userdata)->walk;
        const struct part *part = found;
        struct stat status;

        if (part && walk->builder)
                return items_add_part(walk, idx_shard, part);
        if (part && items_is_alike(walk, &part->walk)) {
                learn_arrays(walk, &part->walk);
                return 0;
        }
        return item_walk_shard(walk, idx_shard, &status);
}

static int walk_shards(struct item_walk *walk) {
        _cleanup_(freep) struct walking *walking = calloc(1, sizeof(*walking));

        index_builder_refused(-ENOMEM, walk->root, walk->why); /* unless more is said */
        if (!walking)
                return -ENOMEM;
        walk->n_items = 0;
        *walking = (struct walking){ .walk = walk, .set = *walk->set, .copy = *walk };
        return parted_run(&(struct parted){ .n = walk->set->shards.n_bytes / sizeof(struct item_shard),
                                            .look = look_at_shard,
                                            .take = items_take_shard,
                                            .free = items_part_free,
                                            .userdata = walking });
}

int items_build(struct item_set *set, int root_fd, const char *root, const struct index_watch *watch,
                struct index_builder **ret_builder, struct why *why) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(freep) struct item_walk *walk = calloc(1, sizeof(*walk));
        struct why detail;
        int r;

        if (!walk)
                return index_builder_refused(-ENOMEM, root, why);
        if (items_count_served(set, false) + items_count_served(set, true) == 0) {
                r = table_no_column(NULL, set->refusals, &detail);
                return why_set(why, r, "%s: %s", root, detail.text);
        }
        *walk = (struct item_walk){ .set = set, .root_fd = root_fd, .root = root, .watch = watch, .why = why };
        r = add_own_layout(set);
        if (r < 0)
                return index_builder_refused(r, root, why);
        r = has_prefixes(set) ? walk_shards(walk) : 0;
        if (r < 0)
                return r;
        let_empty_vary(set);
        r = items_begin_index(set, &builder);
        if (r < 0)
                return index_builder_refused(r, root, why);
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
