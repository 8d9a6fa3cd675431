#include "daemon/data/formats/differing/columns_map.h"

#include <string.h>

static struct columns_range columns_map_below(const struct columns_type *type, const void *schema, uint32_t idx) {
        return (struct columns_range){ schema, idx + 1, idx + 1 + type->n_below(schema, idx) };
}

/* The column of this name. It is probably at the same place, or after the last one. */
static uint32_t columns_map_find(const struct columns_type *type, struct columns_range file, const char *name,
                                 uint32_t *idx_next) {
        for (uint32_t round = 0; round < 2; round++)
                for (uint32_t i = round == 0 ? *idx_next : file.begin; i < file.end;
                     i += 1 + type->n_below(file.schema, i))
                        if (strcmp(type->name(file.schema, i), name) == 0) {
                                *idx_next = i + 1 + type->n_below(file.schema, i);
                                return i;
                        }
        return COLUMN_NONE;
}

/* Has the file's field the same fields below it? */
static bool columns_map_is_same(const struct columns_type *type, const void *schema, uint32_t idx, const void *file,
                                uint32_t idx_file) {
        uint32_t n = type->n_below(schema, idx);

        if (type->n_below(file, idx_file) != n)
                return false;
        for (uint32_t i = 0; i <= n; i++)
                if (!type->is_alike(schema, idx + i, file, idx_file + i) ||
                    (type->sort(schema, idx + i) == COLUMN_STRUCT && i > 0)) /* a list of structs */
                        return false;
        return true;
}

static void map_all(uint32_t *map, uint32_t idx, uint32_t n, uint32_t place) {
        for (uint32_t i = 0; i <= n; i++)
                map[idx + i] = place < COLUMN_OTHER ? place + i : place;
}

bool columns_map(const struct columns_type *type, struct columns_range columns, struct columns_range file,
                 uint32_t *ret_map) {
        uint32_t idx_next = file.begin, n;
        bool is_any = false;

        for (uint32_t i = columns.begin; i < columns.end; i += 1 + n) {
                uint32_t idx = columns_map_find(type, file, type->name(columns.schema, i), &idx_next);
                enum column_sort sort = type->sort(columns.schema, i);

                n = type->n_below(columns.schema, i);
                is_any = is_any || idx != COLUMN_NONE;
                if (idx == COLUMN_NONE || (sort != COLUMN_NULL && type->sort(file.schema, idx) == COLUMN_NULL))
                        map_all(ret_map, i, n, COLUMN_NONE);
                else if (sort == COLUMN_STRUCT && type->sort(file.schema, idx) == COLUMN_STRUCT) {
                        ret_map[i] = idx;
                        columns_map(type, columns_map_below(type, columns.schema, i),
                                    columns_map_below(type, file.schema, idx), ret_map);
                } else
                        map_all(ret_map, i, n,
                                columns_map_is_same(type, columns.schema, i, file.schema, idx) ? idx : COLUMN_OTHER);
        }
        return is_any;
}

/* ---- columns without a type -------------------------------------------------------------------------------------- */

bool columns_have_null(const struct columns_type *type, struct columns_range columns) {
        for (uint32_t i = columns.begin; i < columns.end; i += 1 + type->n_below(columns.schema, i)) {
                enum column_sort sort = type->sort(columns.schema, i);

                if (sort == COLUMN_NULL ||
                    (sort == COLUMN_STRUCT && columns_have_null(type, columns_map_below(type, columns.schema, i))))
                        return true;
        }
        return false;
}

/* Appends a field with all that is below it. */
static int columns_map_append(const struct columns_type *type, const void *schema, uint32_t idx, void *into,
                              uint32_t *n) {
        uint32_t n_below = type->n_below(schema, idx);
        int r = 0;

        for (uint32_t i = 0; i <= n_below && r == 0; i++)
                r = type->append(into, schema, idx + i);
        *n += n_below + 1;
        return r;
}

static int complete(const struct columns_type *type, struct columns_range columns, struct columns_range file,
                    void *into, uint32_t *n) {
        uint32_t idx_next = file.begin;
        int r = 0;

        for (uint32_t i = columns.begin; i < columns.end && r == 0; i += 1 + type->n_below(columns.schema, i)) {
                uint32_t idx = columns_map_find(type, file, type->name(columns.schema, i), &idx_next), idx_new = *n;
                enum column_sort sort = type->sort(columns.schema, i);

                if (sort == COLUMN_NULL && idx != COLUMN_NONE)
                        r = columns_map_append(type, file.schema, idx, into, n);
                else if (sort != COLUMN_STRUCT || idx == COLUMN_NONE || type->sort(file.schema, idx) != COLUMN_STRUCT)
                        r = columns_map_append(type, columns.schema, i, into, n);
                else {
                        r = type->append(into, columns.schema, i);
                        ++*n;
                        if (r == 0)
                                r = complete(type, columns_map_below(type, columns.schema, i),
                                             columns_map_below(type, file.schema, idx), into, n);
                        if (r == 0)
                                type->set_below(into, idx_new, *n - idx_new - 1);
                }
        }
        return r;
}

int columns_complete(const struct columns_type *type, struct columns_range columns, struct columns_range file,
                     void *into, uint32_t n_before) {
        return complete(type, columns, file, into, &n_before);
}
