#include "daemon/data/formats/arrow/arrow_fill.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/data/formats/arrow/indices.h"
#include "daemon/data/formats/arrow/table/ipc_texts.h"
#include "daemon/data/formats/copied.h"
#include "daemon/data/formats/differing/number_types.h"
#include "daemon/data/formats/outside.h"
#include "daemon/data/formats/table_columns.h"
#include "proto/base/cleanup.h"
#include "proto/base/utf8.h"

/* What is known of a chunk of rows, column by column. */
struct gathered {
        struct arrow_cell *cells; /* ARROW_ROWS_MAX of them, or NULL */
        uint8_t *numbers;         /* of 8 bytes at most, or NULL */
        bool *is_valid;
};

struct filling {
        struct arrow_visitor visitor; /* of a part */
        struct copied copied;
        struct arrow_pass *pass;
        struct index_builder *builder;
        struct index_row rows[INDEX_FIELDS_MAX]; /* of the sample that is given */
        struct gathered *gathered;               /* one for each column */
        struct outside_files outside;
        uint32_t n_stored;
        struct growing copy;      /* the value of a row that was unpacked, */
        struct growing converted; /* and as numbers of another type */
        struct text_list texts;
        const char *name; /* of the last file, of the folder's memory; and what it looked like */
        struct stat status;
};

/* What only reading needs. */
static void arrow_fill_filling_rest(struct filling *filling) {
        for (uint32_t i = 0; filling->gathered && i < filling->pass->columns.n; i++) {
                free(filling->gathered[i].cells);
                free(filling->gathered[i].numbers);
                free(filling->gathered[i].is_valid);
        }
        free(filling->gathered);
        filling->gathered = NULL;
        growing_fini(&filling->copy);
        growing_fini(&filling->converted);
        text_list_fini(&filling->texts);
}

static void arrow_fill_filling_fini(struct filling *filling) {
        copied_fini(&filling->copied);
        arrow_fill_filling_rest(filling);
        outside_fini(&filling->outside);
        index_builder_free(filling->builder);
}

static bool arrow_fill_is_stored(const struct arrow_column *column) {
        return column->role == ARROW_ROLE_STORED || column->role == ARROW_ROLE_MEDIA;
}

/* Is each row's value a piece of bytes, or of elements? */
static bool has_places(const struct arrow_column *column) {
        return arrow_fill_is_stored(column) || column->role == ARROW_ROLE_COPIED || column->role == ARROW_ROLE_TEXTS ||
               column->role == ARROW_ROLE_BOOLS;
}

static bool has_own_file(const struct arrow_column *column) {
        return column->role == ARROW_ROLE_MEDIA && column->n_inside == 0 && column->n_outside > 0;
}

/* ---- the index's fields ---------------------------------------------------------------------------------------- */

static int gathered_init(struct gathered *gathered, const struct arrow_column *column) {
        gathered->is_valid = calloc(ARROW_ROWS_MAX, sizeof(*gathered->is_valid));
        if (has_places(column))
                gathered->cells = calloc(ARROW_ROWS_MAX, sizeof(*gathered->cells));
        else
                gathered->numbers = calloc(ARROW_ROWS_MAX, sizeof(uint64_t));
        return gathered->is_valid && (gathered->cells || gathered->numbers) ? 0 : -ENOMEM;
}

static int arrow_fill_add_classes(struct index_builder *builder, const cJSON *names) {
        const cJSON *name;
        int r = 0;

        cJSON_ArrayForEach(name, names) {
                r = index_builder_add_class(builder, name->valuestring);
                if (r < 0)
                        break;
        }
        return r;
}

static int arrow_fill_describe(struct filling *filling) {
        struct arrow_columns *columns = &filling->pass->columns;
        uint32_t n_stored = 0;
        int r;

        for (uint32_t i = 0; i < columns->n; i++)
                filling->n_stored += arrow_fill_is_stored(&columns->all[i]);
        r = index_builder_new(filling->pass->host ? filling->pass->host->format : FORMAT_ARROW.name, filling->n_stored,
                              &filling->builder);
        if (r < 0)
                return r;
        index_builder_name_rows(filling->builder);
        index_builder_set_scattered(filling->builder);
        filling->gathered = calloc(columns->n, sizeof(*filling->gathered));
        r = filling->gathered ? 0 : -ENOMEM;
        for (uint32_t i = 0; i < columns->n && r >= 0; i++) {
                struct arrow_column *column = &columns->all[i];

                r = gathered_init(&filling->gathered[i], column);
                if (arrow_fill_is_stored(column)) {
                        column->idx_index = n_stored++;
                        index_builder_describe(filling->builder, column->idx_index, &column->field);
                        if (has_own_file(column))
                                index_builder_set_own_file(filling->builder, column->idx_index);
                } else if (r >= 0) {
                        r = column->role == ARROW_ROLE_CLASS
                                    ? arrow_fill_add_classes(filling->builder, column->class_names)
                                    : index_builder_add_column(filling->builder, &column->field, &column->idx_index);
                }
        }
        return r;
}

/* The list is a shard without samples, so that a changed one makes a new index. */
static int arrow_fill_add_list(const struct filling *filling, const struct arrow_host *host) {
        uint32_t idx_dir;
        int r = index_builder_add_dir(filling->builder, "", &host->folder, &idx_dir);

        if (r < 0)
                return r;
        index_builder_set_listed(filling->builder, false);
        return index_builder_add_shard(filling->builder, host->list, &host->list_status);
}

static int add_folders(const struct filling *filling) {
        const struct arrow_pass *pass = filling->pass;

        return pass->host ? arrow_fill_add_list(filling, pass->host)
                          : listed_give_root(&pass->folder.listed, pass->files, filling->builder);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static int arrow_fill_fill_file(void *userdata, const char *name, const struct stat *status, struct why *why) {
        struct filling *filling = userdata;
        int r = index_builder_add_shard(filling->builder, name, status);

        filling->name = name;
        filling->status = *status;
        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}

static int gather_media(const struct arrow_column *column, const struct arrow_rows *rows, struct gathered *gathered,
                        struct why *why) {
        uint32_t idx = has_own_file(column) ? column->here.idx_path : column->here.idx_bytes;
        int r = arrow_validity(rows, column->here.idx_field, gathered->is_valid, why);

        if (r == 0)
                r = arrow_member_cells(rows, idx, gathered->cells, why);
        for (uint32_t i = 0; i < rows->n && r == 0; i++)
                if (!gathered->is_valid[i])
                        gathered->cells[i] = (struct arrow_cell){ ARROW_CELL_NULL, 0 };
        return r;
}

static int gather_values(const struct arrow_column *column, const struct arrow_rows *rows, struct gathered *gathered,
                         struct why *why) {
        struct arrow_widths widths = column->widths;

        switch (column->role) {
        case ARROW_ROLE_STORED:
        case ARROW_ROLE_COPIED:
        case ARROW_ROLE_BOOLS:
                return arrow_cells(rows, column->here.idx_field, &widths, gathered->cells, why);
        case ARROW_ROLE_TEXTS:
                return arrow_lists(rows, column->here.idx_field, gathered->cells, why);
        case ARROW_ROLE_MEDIA:
                return gather_media(column, rows, gathered, why);
        default:
                return arrow_numbers(rows, column->here.idx_field, gathered->numbers, gathered->is_valid, why);
        }
}

/* A member of a struct has no value where the struct is null, whatever its own buffers say there. */
static int arrow_fill_gather(const struct arrow_column *column, const struct arrow_rows *rows,
                             struct gathered *gathered, struct why *why) {
        bool is_there[ARROW_ROWS_MAX];
        int r;

        if (column->here.idx_field == COLUMN_NONE) {
                for (uint32_t i = 0; i < rows->n; i++) {
                        gathered->is_valid[i] = false;
                        if (gathered->cells)
                                gathered->cells[i] = (struct arrow_cell){ ARROW_CELL_NULL, 0 };
                }
                return 0;
        }
        r = gather_values(column, rows, gathered, why);
        for (uint32_t k = 0; k < column->here.n_parents && r == 0; k++) {
                r = arrow_validity(rows, column->here.idx_parents[k], is_there, why);
                for (uint32_t i = 0; i < rows->n && r == 0; i++) {
                        if (is_there[i])
                                continue;
                        gathered->is_valid[i] = false;
                        if (gathered->cells)
                                gathered->cells[i] = (struct arrow_cell){ ARROW_CELL_NULL, 0 };
                }
        }
        return r;
}

/* Are these whole elements of the field's shape? They are, unless the file has changed since the first pass. */
static bool arrow_fill_is_whole(const struct arrow_column *column, const struct arrow_cell *cell) {
        const struct schema_field *field = &column->field;
        uint64_t unit = field->kind == FIELD_VALUE ? dlp_dtype_bytes(column->here.dtype) : 1;

        for (uint32_t i = 0; i < field->n_dims; i++)
                unit *= field->shape[i] > 0 ? (uint64_t)field->shape[i] : 1;
        return cell->n_bytes % unit == 0 && (field->n_dims == 0 || field->shape[0] < 0 || cell->n_bytes == unit);
}

/* The file that a row names. */
static int arrow_fill_find_outside(struct filling *filling, int fd, const struct arrow_cell *cell,
                                   struct index_row *ret_row, struct why *why) {
        char path[PATH_MAX];
        int r = outside_check_length(cell->n_bytes, why);

        if (r < 0)
                return r;
        r = arrow_cell_read(cell, fd, path);
        if (r < 0)
                return why_errno(why, r, "a path cannot be read");
        path[cell->n_bytes] = '\0';
        return outside_find(&filling->outside, path, cell->n_bytes, ret_row, why);
}

static int arrow_fill_fill_stored(struct filling *filling, const struct arrow_column *column,
                                  const struct arrow_rows *rows, const struct arrow_cell *cell,
                                  struct index_row *ret_row, struct why *why) {
        struct why detail;
        int r;

        if (cell->offset != ARROW_CELL_NULL && has_own_file(column)) {
                r = arrow_fill_find_outside(filling, rows->fd, cell, ret_row, &detail);
                return r < 0 ? why_set(why, r, "column \"%s\": %s", column->field.name, detail.text) : 0;
        }
        if (cell->plain)
                return why_set(
                        why, -ENOTSUP,
                        "column \"%s\": the batch is compressed, but the first one of the dataset is not; write all "
                        "files in the same way",
                        column->field.name);
        *ret_row = (struct index_row){
                .file = INDEX_NO_FILE,
                .offset = cell->offset == ARROW_CELL_NULL ? INDEX_ROW_ABSENT : cell->offset,
                .length = cell->n_bytes,
        };
        return 0;
}

/* Counts what is kept in the index beside numbers. */
static int arrow_fill_count_copied(struct filling *filling, const struct arrow_column *column, uint64_t n_bytes,
                                   struct why *why) {
        uint64_t max = filling->copied.max;

        if (copied_add(&filling->copied, n_bytes))
                return 0;
        if (column->role == ARROW_ROLE_TEXTS)
                return why_set(
                        why, -EFBIG,
                        "column \"%s\": lists of text are kept in memory, and the dataset has more than %" PRIu64
                        " MiB of them; choose columns with fields = \"...\", join each list to one text, or raise "
                        "memory_limit",
                        column->field.name, max >> 20);
        if (column->is_mixed)
                return why_set(
                        why, -EFBIG,
                        "column \"%s\": lists whose numbers are not of one type in all files are kept in memory, and "
                        "the dataset has more than %" PRIu64
                        " MiB of them; write all files with one type, choose columns with fields = \"...\", or raise "
                        "memory_limit",
                        column->field.name, max >> 20);
        return why_set(why, -EFBIG,
                       "the dataset has more than %" PRIu64
                       " MiB when it is unpacked; write it without compression (pyarrow: "
                       "IpcWriteOptions(compression=None), feather: compression=\"uncompressed\"), or raise "
                       "memory_limit",
                       max >> 20);
}

static int arrow_fill_fill_texts(struct filling *filling, const struct arrow_column *column,
                                 const struct arrow_rows *rows, uint32_t idx_row, const struct arrow_cell *cell,
                                 struct why *why) {
        uint64_t row = rows->first + idx_row;
        struct why detail;
        int r;

        text_list_clear(&filling->texts);
        filling->texts.max_bytes = index_watch_max_copied(filling->pass->watch);
        r = arrow_texts(rows, column->here.idx_field, row, cell, &filling->texts, &detail);
        if (r < 0)
                return why_set(why, r, "column \"%s\": %s", column->field.name, detail.text);
        r = arrow_fill_count_copied(filling, column, text_list_bytes(&filling->texts), why);
        if (r < 0)
                return r;
        r = text_list_set(&filling->texts, filling->builder, column->idx_index, &detail);
        return r < 0 ? why_set(why, r, "column \"%s\": row %" PRIu64 " of the batch: %s", column->field.name, row,
                               detail.text)
                     : 0;
}

static int inexact(const struct arrow_column *column, struct why *why) {
        struct why detail;
        int r = number_differs(column->here.dtype, column->field.dtype, &detail);

        return why_set(why, r, "column \"%s\" %s", column->field.name, detail.text);
}

/* A list of numbers, whose bytes are in filling->copy. */
static int fill_converted(struct filling *filling, const struct arrow_column *column, uint64_t n_bytes,
                          struct why *why) {
        uint64_t n = n_bytes / dlp_dtype_bytes(column->here.dtype);
        uint64_t n_new = n * dlp_dtype_bytes(column->field.dtype);
        int r;

        growing_clear(&filling->converted);
        r = growing_append(&filling->converted, NULL, n_new + 1); /* one more: it is not NULL */
        if (r == 0 &&
            !numbers_convert(column->here.dtype, filling->copy.bytes, n, column->field.dtype, filling->converted.bytes))
                return inexact(column, why);
        if (r == 0)
                r = index_builder_set_value(filling->builder, column->idx_index, filling->converted.bytes, n_new);
        return r < 0 ? why_errno(why, r, "column \"%s\" cannot be copied", column->field.name) : 0;
}

static int arrow_fill_fill_copied(struct filling *filling, const struct arrow_column *column,
                                  const struct arrow_rows *rows, const struct arrow_cell *cell, struct why *why) {
        uint64_t n_bytes = column->is_mixed ? cell->n_bytes / dlp_dtype_bytes(column->here.dtype) *
                                                      dlp_dtype_bytes(column->field.dtype)
                                            : cell->n_bytes;
        struct why detail;
        int r = arrow_fill_count_copied(filling, column, n_bytes, why);

        if (r < 0)
                return r;
        growing_clear(&filling->copy);
        r = growing_append(&filling->copy, NULL, cell->n_bytes + 1); /* one more: it is not NULL */
        if (r >= 0 && column->role == ARROW_ROLE_BOOLS) {
                r = arrow_bools(rows, column->here.idx_field, cell, (bool *)filling->copy.bytes, &detail);
                if (r < 0)
                        return why_set(why, r, "column \"%s\": %s", column->field.name, detail.text);
        } else if (r >= 0)
                r = arrow_cell_read(cell, rows->fd, filling->copy.bytes);
        if (r >= 0 && column->is_mixed)
                return fill_converted(filling, column, cell->n_bytes, why);
        if (r >= 0 && column->field.kind == FIELD_TEXT &&
            utf8_valid(filling->copy.bytes, cell->n_bytes) < cell->n_bytes)
                return why_set(why, -EBADMSG, "column \"%s\": a text is not UTF-8: \"%.100s\"; write it as binary",
                               column->field.name, filling->copy.bytes);
        if (r >= 0)
                r = index_builder_set_value(filling->builder, column->idx_index, filling->copy.bytes, cell->n_bytes);
        return r < 0 ? why_errno(why, r, "column \"%s\" cannot be copied", column->field.name) : 0;
}

/* The number of a row, in the type that it has in all files together. */
static int arrow_fill_take_number(const struct filling *filling, uint32_t idx_column, uint32_t idx_row,
                                  uint64_t *ret_number, struct why *why) {
        const struct arrow_column *column = &filling->pass->columns.all[idx_column];
        size_t width = dlp_dtype_bytes(column->here.dtype);

        if (number_convert(column->here.dtype, filling->gathered[idx_column].numbers + idx_row * width,
                           column->field.dtype, ret_number))
                return 0;
        return inexact(column, why);
}

/* A row's value in one column. */
static int arrow_fill_fill_value(struct filling *filling, const struct arrow_rows *rows, uint32_t idx_column,
                                 uint32_t idx_row, struct index_row *stored, struct why *why) {
        const struct arrow_column *column = &filling->pass->columns.all[idx_column];
        const struct gathered *gathered = &filling->gathered[idx_column];
        const struct arrow_cell *cell = has_places(column) ? &gathered->cells[idx_row] : NULL;
        uint64_t number;
        int r = 0;

        if (cell && cell->offset != ARROW_CELL_NULL && !arrow_fill_is_whole(column, cell) && !has_own_file(column))
                return why_set(why, -ESTALE, "column \"%s\" has changed while it was read", column->field.name);
        if (arrow_fill_is_stored(column))
                return arrow_fill_fill_stored(filling, column, rows, cell, &stored[column->idx_index], why);
        if (cell && cell->offset == ARROW_CELL_NULL)
                return 0;
        if (column->role == ARROW_ROLE_TEXTS)
                return arrow_fill_fill_texts(filling, column, rows, idx_row, cell, why);
        if (cell)
                return arrow_fill_fill_copied(filling, column, rows, cell, why);
        if (column->role == ARROW_ROLE_CLASS || !gathered->is_valid[idx_row])
                return 0;
        r = arrow_fill_take_number(filling, idx_column, idx_row, &number, why);
        if (r < 0)
                return r;
        r = index_builder_set_value(filling->builder, column->idx_index, &number, dlp_dtype_bytes(column->field.dtype));
        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}

/* The label, if the dataset has classes. */
static int arrow_fill_find_label(const struct filling *filling, uint32_t idx_row, int32_t *ret_label, struct why *why) {
        const struct arrow_columns *columns = &filling->pass->columns;
        uint64_t label = 0;

        for (uint32_t i = 0; i < columns->n; i++) {
                if (columns->all[i].role != ARROW_ROLE_CLASS)
                        continue;
                if (!filling->gathered[i].is_valid[idx_row] ||
                    arrow_fill_take_number(filling, i, idx_row, &label, why) < 0 ||
                    label >= (uint64_t)cJSON_GetArraySize(columns->all[i].class_names))
                        return why_set(why, -ESTALE, "column \"%s\" has changed while it was read",
                                       columns->all[i].field.name);
        }
        *ret_label = (int32_t)label;
        return 0;
}

/* One row: its stored fields, its values, its label. */
static int arrow_fill_fill_row(struct filling *filling, const struct arrow_rows *rows, uint32_t idx_row,
                               struct why *why) {
        struct index_row *stored = filling->rows;
        int32_t label = 0;
        int r = arrow_fill_find_label(filling, idx_row, &label, why);

        for (uint32_t k = 0; k < filling->pass->columns.n && r == 0; k++)
                r = refusals_mark(filling->pass->refusals, filling->pass->columns.all[k].field.name,
                                  arrow_fill_fill_value(filling, rows, k, idx_row, stored, why));
        if (r < 0)
                return r;
        r = index_builder_add_sample(filling->builder, stored, label);
        if (r == -E2BIG)
                return why_set(why, r, "more samples than an index can hold");
        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}

static int arrow_fill_fill_rows(void *userdata, const struct arrow_rows *rows, struct why *why) {
        struct filling *filling = userdata;
        struct why detail;
        int r = 0;

        for (uint32_t i = 0; i < filling->pass->columns.n && r == 0; i++) {
                const struct arrow_column *column = &filling->pass->columns.all[i];

                r = arrow_fill_gather(column, rows, &filling->gathered[i], &detail);
                if (r < 0) {
                        why_set(why, r, "column \"%s\": %s", column->field.name, detail.text);
                        return refusals_mark(filling->pass->refusals, column->field.name, r);
                }
        }
        for (uint32_t i = 0; i < rows->n && r == 0; i++)
                r = arrow_fill_fill_row(filling, rows, i, why);
        return r;
}

/* ---- the format ------------------------------------------------------------------------------------------------ */

/* The same rows in the sequence of the indices files. Files that rows name are refused: a finished index cannot give
 * them to another one, and datasets had no Image when it wrote indices. */
static int put_in_order(struct filling *all, struct index_builder **ret_builder) {
        _cleanup_(arrow_fill_filling_fini) struct filling ordered = { .pass = all->pass };
        const struct arrow_columns *columns = &all->pass->columns;
        int r = 0;

        for (uint32_t i = 0; i < columns->n; i++)
                if (columns->all[i].role == ARROW_ROLE_MEDIA)
                        return why_set(all->pass->why, -ENOTSUP,
                                       "%s: column \"%s\" is of the type Image or Audio, beside an indices file; load "
                                       "it, call flatten_indices() and save it again",
                                       all->pass->files->root, columns->all[i].field.name);
        r = arrow_fill_describe(&ordered);
        if (r >= 0)
                r = add_folders(&ordered);
        if (r < 0)
                return why_set(all->pass->why, r, "%s: no memory for its index", all->pass->files->root);
        r = arrow_indices_apply(all->pass, all->builder, all->name, &all->status, ordered.builder);
        if (r == 0)
                *ret_builder = TAKE_PTR(ordered.builder);
        return r;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void arrow_fill_free_part(struct arrow_visitor *part) {
        arrow_fill_filling_fini(part->userdata);
        free(part->userdata);
}

static void arrow_fill_rest_part(struct arrow_visitor *part) {
        arrow_fill_filling_rest(part->userdata);
}

static struct arrow_visitor *arrow_fill_make_part(void *userdata, struct arrow_pass *part) {
        struct filling *filling = userdata, *made = calloc(1, sizeof(*made));

        if (!made)
                return NULL;
        made->pass = part;
        copied_begin_part(&made->copied, &filling->copied);
        made->visitor =
                (struct arrow_visitor){ .userdata = made, .file = arrow_fill_fill_file, .rows = arrow_fill_fill_rows };
        if (arrow_fill_describe(made) < 0) {
                arrow_fill_free_part(&made->visitor);
                return NULL;
        }
        return &made->visitor;
}

static int arrow_fill_take_part(void *userdata, struct arrow_visitor *part, const char *name, const struct stat *status,
                                struct why *why) {
        struct filling *filling = userdata, *found = part->userdata;
        int r;

        if (!copied_take(&filling->copied, &found->copied))
                return ARROW_AGAIN; /* which row is too much? */
        r = arrow_fill_fill_file(filling, name, status, why);
        if (r < 0)
                return r;
        r = index_builder_append(filling->builder, found->builder);
        if (r == -E2BIG)
                return why_set(why, r, "more samples, or more bytes of values, than an index can hold");
        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}

/* Which file has which number depends on all rows before. */
static bool arrow_fill_may_be_parted(const struct arrow_columns *columns) {
        for (uint32_t i = 0; i < columns->n; i++)
                if (has_own_file(&columns->all[i]))
                        return false;
        return true;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

int arrow_fill(struct arrow_pass *pass, struct index_builder **ret_builder) {
        _cleanup_(arrow_fill_filling_fini) struct filling filling = { .pass = pass };
        struct arrow_visitor visitor = { .userdata = &filling,
                                         .file = arrow_fill_fill_file,
                                         .rows = arrow_fill_fill_rows };
        int r = arrow_fill_describe(&filling);

        copied_begin(&filling.copied, pass->watch);
        if (r >= 0)
                r = add_folders(&filling);
        if (r < 0)
                return why_set(pass->why, r, "%s: no memory for its index", pass->files->root);
        outside_init(&filling.outside, pass->root_fd, pass->files->root, filling.builder);
        if (arrow_fill_may_be_parted(&pass->columns)) {
                visitor.make = arrow_fill_make_part;
                visitor.rest = arrow_fill_rest_part;
                visitor.free = arrow_fill_free_part;
                visitor.take = arrow_fill_take_part;
        }
        r = arrow_pass_run(pass, &visitor);
        if (r == 0 && pass->folder.indices.n > 0)
                return put_in_order(&filling, ret_builder);
        if (r == 0)
                *ret_builder = TAKE_PTR(filling.builder);
        return r;
}
