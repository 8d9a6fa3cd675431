#include "daemon/data/formats/columnar/columnar_fill.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/copied.h"
#include "daemon/data/formats/differing/number_types.h"
#include "daemon/data/formats/outside.h"
#include "proto/base/cleanup.h"
#include "proto/base/utf8.h"

struct columnar_filling {
        struct copied copied;
        struct columnar_pass *pass;
        struct index_builder *builder;
        struct index_row rows[INDEX_FIELDS_MAX]; /* of the sample that is given */
        struct outside_files outside;
        struct growing copy;      /* the bytes of a value that was read, */
        struct growing converted; /* and as numbers of another type */
        struct text_list texts;
};

/* ---- the index's fields ---------------------------------------------------------------------------------------- */

static int columnar_add_classes(struct index_builder *builder, const cJSON *names) {
        const cJSON *name;
        int r = 0;

        cJSON_ArrayForEach(name, names) {
                r = index_builder_add_class(builder, name->valuestring);
                if (r < 0)
                        break;
        }
        return r;
}

int columnar_describe(struct columnar_pass *pass, struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        struct columnar_columns *columns = &pass->columns;
        uint32_t n_stored = 0;
        int r;

        for (uint32_t i = 0; i < columns->n; i++)
                n_stored += columnar_is_stored(&columns->all[i]);
        r = index_builder_new(pass->name, n_stored, &builder);
        if (r < 0)
                return r;
        index_builder_name_rows(builder);
        index_builder_set_scattered(builder);
        n_stored = 0;
        for (uint32_t i = 0; i < columns->n && r >= 0; i++) {
                struct columnar_column *column = &columns->all[i];

                if (columnar_is_stored(column)) {
                        column->idx_index = n_stored++;
                        index_builder_describe(builder, column->idx_index, &column->field);
                        if (columnar_has_own_file(column))
                                index_builder_set_own_file(builder, column->idx_index);
                } else if (column->role == COLUMNAR_CLASS) {
                        r = columnar_add_classes(builder, column->class_names);
                } else {
                        r = index_builder_add_column(builder, &column->field, &column->idx_index);
                }
        }
        if (r >= 0)
                *ret_builder = TAKE_PTR(builder);
        return r < 0 ? r : 0;
}

int columnar_give_root(const struct columnar_pass *pass, struct index_builder *builder) {
        return pass->format->give_root ? pass->format->give_root(pass, builder)
                                       : listed_give_root(pass->listed, pass->files, builder);
}

int columnar_filling_new(struct columnar_pass *pass, struct columnar_filling *whole,
                         struct columnar_filling **ret_filling) {
        _cleanup_(columnar_filling_freep) struct columnar_filling *filling = calloc(1, sizeof(*filling));
        int r;

        if (!filling)
                return -ENOMEM;
        filling->pass = pass;
        if (whole)
                copied_begin_part(&filling->copied, &whole->copied);
        else
                copied_begin(&filling->copied, pass->watch);
        r = columnar_describe(pass, &filling->builder);
        if (r == 0 && !whole)
                r = columnar_give_root(pass, filling->builder);
        if (r < 0)
                return r;
        if (!whole)
                outside_init(&filling->outside, pass->root_fd, pass->files->root, filling->builder);
        *ret_filling = TAKE_PTR(filling);
        return 0;
}

void columnar_filling_rest(struct columnar_filling *filling) {
        growing_fini(&filling->copy);
        growing_fini(&filling->converted);
        text_list_fini(&filling->texts);
}

void columnar_filling_free(struct columnar_filling *filling) {
        if (!filling)
                return;
        copied_fini(&filling->copied);
        columnar_filling_rest(filling);
        index_builder_free(filling->builder);
        free(filling);
}

void columnar_filling_freep(struct columnar_filling **filling) {
        columnar_filling_free(*filling);
}

struct index_builder *columnar_fill_take_builder(struct columnar_filling *filling) {
        return TAKE_PTR(filling->builder);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

int columnar_fill_file(struct columnar_filling *filling, const char *name, const struct stat *status, struct why *why) {
        int r = index_builder_add_shard(filling->builder, name, status);

        return r < 0 ? why_set(why, r, "%s", index_builder_text(r)) : 0;
}

/* Counts what is kept in the index beside numbers. */
static int columnar_count(struct columnar_filling *filling, const struct columnar_column *column, uint64_t n_bytes,
                          struct why *why) {
        return copied_add(&filling->copied, n_bytes)
                       ? 0
                       : filling->pass->format->too_much(column, filling->copied.max, why);
}

/* The bytes of a value, wherever they are; not NULL. */
static int columnar_read(struct columnar_filling *filling, void *reading, uint32_t idx,
                         const struct columnar_value *value, const uint8_t **ret_bytes, struct why *why) {
        int r;

        if (value->bytes) {
                *ret_bytes = value->bytes;
                return 0;
        }
        growing_clear(&filling->copy);
        r = filling->pass->format->read(reading, idx, value, &filling->copy, why);
        *ret_bytes = filling->copy.bytes;
        return r;
}

static int columnar_set(struct columnar_filling *filling, const struct columnar_column *column, const void *bytes,
                        uint64_t n_bytes, struct why *why) {
        int r = index_builder_set_value(filling->builder, column->idx_index, bytes, n_bytes);

        return r < 0 ? why_errno(why, r, "cannot be kept in the index") : 0;
}

/* The file that a row names. */
static int columnar_fill_outside(struct columnar_filling *filling, void *reading, uint32_t idx,
                                 const struct columnar_value *value, struct index_row *ret_row, struct why *why) {
        const uint8_t *bytes = NULL;
        char path[PATH_MAX];
        int r = outside_check_length(value->n_bytes, why);

        if (r == 0)
                r = columnar_read(filling, reading, idx, value, &bytes, why);
        if (r < 0)
                return r;
        memcpy(path, bytes, value->n_bytes);
        path[value->n_bytes] = '\0';
        return outside_find(&filling->outside, path, value->n_bytes, ret_row, why);
}

static int columnar_fill_stored(struct columnar_filling *filling, void *reading, uint32_t idx,
                                const struct columnar_value *value, struct why *why) {
        const struct columnar_column *column = &filling->pass->columns.all[idx];
        struct index_row *row = &filling->rows[column->idx_index];
        bool is_null = columnar_is_null(value);

        if (!is_null && columnar_has_own_file(column))
                return columnar_fill_outside(filling, reading, idx, value, row, why);
        if (value->bytes)
                return why_set(why, filling->pass->format->elsewhere_error, "%s", filling->pass->format->elsewhere);
        *row = (struct index_row){ .file = INDEX_NO_FILE,
                                   .offset = is_null ? INDEX_ROW_ABSENT : value->offset,
                                   .length = is_null ? 0 : value->n_bytes };
        return 0;
}

static int columnar_fill_copied(struct columnar_filling *filling, void *reading, uint32_t idx,
                                const struct columnar_value *value, struct why *why) {
        const struct columnar_column *column = &filling->pass->columns.all[idx];
        const uint8_t *bytes = NULL;
        int r = columnar_count(filling, column, value->n_bytes, why);

        if (r == 0)
                r = columnar_read(filling, reading, idx, value, &bytes, why);
        if (r < 0)
                return r;
        if (column->field.kind == FIELD_TEXT && utf8_valid(bytes, value->n_bytes) < value->n_bytes)
                return why_set(why, -EBADMSG, "a text is not UTF-8: \"%.*s\"; write it as binary",
                               value->n_bytes < 100 ? (int)value->n_bytes : 100, (const char *)bytes);
        return columnar_set(filling, column, bytes, value->n_bytes, why);
}

/* The elements, in the type that they have in all files together. */
static int columnar_fill_list(struct columnar_filling *filling, void *reading, uint32_t idx,
                              const struct columnar_value *value, struct why *why) {
        const struct columnar_column *column = &filling->pass->columns.all[idx];
        uint32_t from = column->here.dtype, to = column->field.dtype;
        uint64_t n = value->n_bytes / dlp_dtype_bytes(from), n_bytes = n * dlp_dtype_bytes(to);
        const uint8_t *bytes = NULL;
        int r = columnar_count(filling, column, n_bytes, why);

        if (r == 0)
                r = columnar_read(filling, reading, idx, value, &bytes, why);
        if (r < 0)
                return r;
        if (from != to) {
                growing_clear(&filling->converted);
                r = growing_append(&filling->converted, NULL, n_bytes + 1); /* one more: it is not NULL */
                if (r < 0)
                        return why_set(why, r, "no memory for its lists");
                if (!numbers_convert(from, bytes, n, to, filling->converted.bytes))
                        return number_differs(from, to, why);
                bytes = filling->converted.bytes;
        }
        return columnar_set(filling, column, bytes, n_bytes, why);
}

static int columnar_fill_texts(struct columnar_filling *filling, void *reading, uint32_t idx,
                               const struct columnar_rows *rows, uint64_t row, struct why *why) {
        const struct columnar_column *column = &filling->pass->columns.all[idx];
        const struct columnar_format *format = filling->pass->format;
        struct why detail;
        bool is_missing;
        int r;

        text_list_clear(&filling->texts);
        filling->texts.max_bytes = columnar_share(filling->pass, index_watch_max_copied(filling->pass->watch));
        r = format->texts(reading, idx, row, &filling->texts, &is_missing, why);
        if (r == 0 && !is_missing)
                r = columnar_count(filling, column, text_list_bytes(&filling->texts), why);
        if (r < 0 || is_missing)
                return r;
        r = text_list_set(&filling->texts, filling->builder, column->idx_index, &detail);
        return r < 0 ? why_set(why, r, "row %" PRIu64 " %s: %s", rows->first + row, format->place, detail.text) : 0;
}

/* A number, or the label if the dataset has classes. */
static int columnar_fill_number(struct columnar_filling *filling, uint32_t idx, const struct columnar_value *value,
                                int32_t *label, struct why *why) {
        const struct columnar_column *column = &filling->pass->columns.all[idx];
        bool is_label = column->role == COLUMNAR_CLASS, is_null = columnar_is_null(value);
        int64_t number = -1;

        if (is_null && !is_label)
                return 0;
        if (!is_null && !number_convert(column->here.dtype, value->bytes, column->field.dtype, &number))
                return number_differs(column->here.dtype, column->field.dtype, why);
        if (is_label) {
                if (number < 0 || number >= cJSON_GetArraySize(column->class_names))
                        return why_set(why, -ESTALE, "has changed while it was read");
                *label = (int32_t)number;
                return 0;
        }
        return columnar_set(filling, column, &number, dlp_dtype_bytes(column->field.dtype), why);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* A row's value in one column. */
static int columnar_fill_value(struct columnar_filling *filling, void *reading, uint32_t idx,
                               const struct columnar_rows *rows, uint64_t row, int32_t *label, struct why *why) {
        const struct columnar_column *column = &filling->pass->columns.all[idx];
        struct columnar_value value = { .offset = COLUMNAR_NULL };
        bool is_there = column->here.idx_field != COLUMN_NONE;
        int r = 0;

        if (column->role == COLUMNAR_TEXTS)
                return is_there ? columnar_fill_texts(filling, reading, idx, rows, row, why) : 0;
        if (is_there)
                r = filling->pass->format->value(reading, idx, row, &value, why);
        if (r < 0)
                return r;
        switch (column->role) {
        case COLUMNAR_STORED:
        case COLUMNAR_MEDIA:
                return columnar_fill_stored(filling, reading, idx, &value, why);
        case COLUMNAR_COPIED:
                return columnar_is_null(&value) ? 0 : columnar_fill_copied(filling, reading, idx, &value, why);
        case COLUMNAR_LIST:
                return columnar_is_null(&value) ? 0 : columnar_fill_list(filling, reading, idx, &value, why);
        default:
                return columnar_fill_number(filling, idx, &value, label, why);
        }
}

/* `why` says what is wrong with one of several columns. Returns whether the others are to be looked at, too. */
static bool columnar_refuse_column(struct columnar_filling *filling, uint32_t idx, int error, const struct why *detail,
                                   struct why *why) {
        const char *name = filling->pass->columns.all[idx].field.name;

        why_set(why, error, "column \"%s\": %s", name, detail->text);
        return refusals_mark_of_several(filling->pass->refusals, name, error, why);
}

static int columnar_fill_row(struct columnar_filling *filling, void *reading, const struct columnar_rows *rows,
                             uint64_t row, struct why *why) {
        struct why detail;
        int32_t label = 0;
        int r = 0;

        for (uint32_t i = 0; i < filling->pass->columns.n; i++) {
                int error = columnar_fill_value(filling, reading, i, rows, row, &label, &detail);

                r = error < 0 ? error : r;
                if (error < 0 && !columnar_refuse_column(filling, i, error, &detail, why))
                        return error;
        }
        if (r < 0)
                return r;
        r = index_builder_add_sample(filling->builder, filling->rows, label);
        return r < 0 ? why_set(why, r, "%s", index_builder_text(r)) : 0;
}

/* Begins or ends with all columns. */
static int columnar_each(struct columnar_filling *filling, void *reading,
                         int (*one)(void *reading, uint32_t column, struct why *why), struct why *why) {
        struct why detail;
        int damaged = 0;

        for (uint32_t i = 0; one && i < filling->pass->columns.n; i++) {
                bool is_there = filling->pass->columns.all[i].here.idx_field != COLUMN_NONE;
                int error = is_there ? one(reading, i, &detail) : 0;

                if (error == 0)
                        continue;
                damaged = error;
                if (!columnar_refuse_column(filling, i, error, &detail, why))
                        return error;
        }
        return damaged;
}

int columnar_fill_rows(struct columnar_filling *filling, void *reading, const struct columnar_rows *rows,
                       struct why *why) {
        int r = columnar_each(filling, reading, filling->pass->format->begin, why);

        for (uint64_t n = 0; r == 0 && n < rows->n;) {
                r = columnar_fill_row(filling, reading, rows, n++, why);
                if (r == 0 && (n % COLUMNAR_ROWS_MAX == 0 || n == rows->n))
                        r = columnar_look_up(filling->pass, (n - 1) % COLUMNAR_ROWS_MAX + 1, why);
        }
        return r == 0 ? columnar_each(filling, reading, filling->pass->format->end, why) : r;
}

int columnar_fill_take(struct columnar_filling *filling, struct columnar_filling *part, struct why *why) {
        int r;

        if (!copied_take(&filling->copied, &part->copied))
                return 1;
        r = index_builder_append(filling->builder, part->builder);
        return r < 0 ? why_set(why, r, "%s", index_builder_text(r)) : 0;
}
