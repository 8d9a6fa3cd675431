#include "daemon/data/formats/parquet/fill.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/data/files/listed.h"
#include "daemon/data/formats/copied.h"
#include "daemon/data/formats/differing/number_types.h"
#include "daemon/data/formats/outside.h"
#include "daemon/data/formats/text_list.h"
#include "proto/base/cleanup.h"
#include "proto/base/utf8.h"

#define ROWS_AT_A_TIME 4096u /* between two looks at whether it is cancelled */

struct filling {
        struct parquet_visitor visitor; /* of a part */
        struct copied copied;
        struct parquet_pass *pass;
        struct index_builder *builder;
        struct index_row rows[INDEX_FIELDS_MAX]; /* of the sample that is given */
        struct parquet_memory memory;
        struct parquet_reader *readers; /* one for each column */
        struct outside_files outside;
        struct growing elements;  /* of the list of a row, */
        struct growing converted; /* and as numbers of another type */
        struct text_list texts;   /* the same */
        uint64_t row;             /* of the file */
};

/* What only reading needs. */
static void fill_filling_rest(struct filling *filling) {
        for (uint32_t i = 0; filling->readers && i < filling->pass->columns.n; i++)
                parquet_reader_fini(&filling->readers[i]);
        free(filling->readers);
        filling->readers = NULL;
        growing_fini(&filling->elements);
        growing_fini(&filling->converted);
        text_list_fini(&filling->texts);
}

static void fill_filling_fini(struct filling *filling) {
        copied_fini(&filling->copied);
        fill_filling_rest(filling);
        outside_fini(&filling->outside);
        index_builder_free(filling->builder);
}

static bool fill_is_stored(const struct parquet_column *column) {
        return column->role == PARQUET_ROLE_STORED || column->role == PARQUET_ROLE_MEDIA;
}

static bool fill_is_null(const struct parquet_value *value) {
        return !value->bytes && value->offset == PARQUET_NULL;
}

/* ---- the index's fields ---------------------------------------------------------------------------------------- */

static int fill_add_classes(struct index_builder *builder, const cJSON *names) {
        const cJSON *name;
        int r = 0;

        cJSON_ArrayForEach(name, names) {
                r = index_builder_add_class(builder, name->valuestring);
                if (r < 0)
                        break;
        }
        return r;
}

static int describe_column(struct filling *filling, struct parquet_column *column, uint32_t *n_stored) {
        if (fill_is_stored(column)) {
                column->idx_index = (*n_stored)++;
                index_builder_describe(filling->builder, column->idx_index, &column->field);
                if (parquet_column_has_own_file(column))
                        index_builder_set_own_file(filling->builder, column->idx_index);
                return 0;
        }
        if (column->role == PARQUET_ROLE_CLASS)
                return fill_add_classes(filling->builder, column->class_names);
        return index_builder_add_column(filling->builder, &column->field, &column->idx_index);
}

static int fill_describe(struct filling *filling) {
        struct parquet_columns *columns = &filling->pass->columns;
        uint32_t n_stored = 0;
        int r;

        for (uint32_t i = 0; i < columns->n; i++)
                n_stored += fill_is_stored(&columns->all[i]);
        r = index_builder_new(FORMAT_PARQUET.name, n_stored, &filling->builder);
        if (r < 0)
                return r;
        index_builder_name_rows(filling->builder);
        index_builder_set_scattered(filling->builder);
        filling->readers = calloc(columns->n, sizeof(*filling->readers));
        if (!filling->readers)
                return -ENOMEM;
        n_stored = 0;
        for (uint32_t i = 0; i < columns->n; i++) {
                filling->readers[i].memory = &filling->memory;
                filling->readers[i].is_in_file = fill_is_stored(&columns->all[i]) &&
                                                 !parquet_column_has_own_file(&columns->all[i]);
        }
        for (uint32_t i = 0; i < columns->n && r >= 0; i++)
                r = describe_column(filling, &columns->all[i], &n_stored);
        return r;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static int fill_fill_file(void *userdata, const char *name, const struct stat *status, struct why *why) {
        struct filling *filling = userdata;
        int r = index_builder_add_shard(filling->builder, name, status);

        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}

/* Copies the bytes of a value, with a NUL after them. */
static int copy_path(const struct parquet_reader *reader, const struct parquet_value *value, char *path,
                     struct why *why) {
        int r = outside_check_length(value->n_bytes, why);

        if (r == 0 && !value->bytes)
                r = listed_read(reader->fd, path, value->n_bytes, value->offset, why);
        else if (r == 0)
                memcpy(path, value->bytes, value->n_bytes);
        if (r == 0)
                path[value->n_bytes] = '\0';
        return r;
}

static int fill_fill_stored(struct filling *filling, const struct parquet_column *column, struct parquet_reader *reader,
                            struct index_row *ret_row, struct why *why) {
        struct parquet_value value;
        char path[PATH_MAX];
        int r = parquet_reader_next(reader, &value, why);

        if (r < 0)
                return r;
        if (!fill_is_null(&value) && parquet_column_has_own_file(column)) {
                r = copy_path(reader, &value, path, why);
                return r == 0 ? outside_find(&filling->outside, path, value.n_bytes, ret_row, why) : r;
        }
        if (value.bytes)
                return why_set(why, -ESTALE,
                               "is encoded otherwise than the footer says, or has changed while it was read; try "
                               "again, or write the file again");
        *ret_row = (struct index_row){
                .file = INDEX_NO_FILE,
                .offset = fill_is_null(&value) ? INDEX_ROW_ABSENT : value.offset,
                .length = fill_is_null(&value) ? 0 : value.n_bytes,
        };
        return 0;
}

/* Counts what is kept in the index beside numbers. */
static int fill_count_copied(struct filling *filling, uint64_t n_bytes, struct why *why) {
        uint64_t max = filling->copied.max;

        if (copied_add(&filling->copied, n_bytes))
                return 0;
        return why_set(why, -EFBIG,
                       "the dataset has more than %" PRIu64
                       " MiB when it is unpacked; stage it with prepare = \"convert\", choose columns with fields = "
                       "\"...\", or raise memory_limit",
                       max >> 20);
}

static int fill_fill_copied(struct filling *filling, const struct parquet_column *column, struct parquet_reader *reader,
                            struct why *why) {
        struct parquet_value value;
        int r = parquet_reader_next(reader, &value, why);

        if (r < 0 || fill_is_null(&value))
                return r;
        r = fill_count_copied(filling, value.n_bytes, why);
        if (r < 0)
                return r;
        if (reader->element->meaning == PARQUET_NOTHING)
                return why_set(why, -EBADMSG, "is of the type null, but has a value; write the file again");
        if (column->field.kind == FIELD_TEXT && utf8_valid(value.bytes, value.n_bytes) < value.n_bytes)
                return why_set(why, -EBADMSG, "a text is not UTF-8: \"%.*s\"; write it as binary",
                               value.n_bytes < 100 ? (int)value.n_bytes : 100, (const char *)value.bytes);
        r = index_builder_set_value(filling->builder, column->idx_index, value.bytes, value.n_bytes);
        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}

static int fill_number(struct filling *filling, const struct parquet_column *column, struct parquet_reader *reader,
                       int32_t *label, struct why *why) {
        struct parquet_value value;
        int64_t stored = 0, number = 0;
        int r = parquet_reader_next(reader, &value, why);

        if (r < 0 || (fill_is_null(&value) && column->role == PARQUET_ROLE_NUMBER))
                return r;
        if (!fill_is_null(&value) && !parquet_number(reader->element, value.bytes, &stored))
                return why_set(why, -EBADMSG, "has a number that does not fit %s; write the file again",
                               dlp_dtype_name(reader->element->dtype));
        if (!fill_is_null(&value) && !number_convert(reader->element->dtype, &stored, column->field.dtype, &number))
                return number_differs(reader->element->dtype, column->field.dtype, why);
        if (column->role == PARQUET_ROLE_NUMBER) {
                r = index_builder_set_value(filling->builder, column->idx_index, &number,
                                            dlp_dtype_bytes(column->field.dtype));
                return r < 0 ? why_set(why, r, "no memory for its index") : 0;
        }
        if (fill_is_null(&value) || number < 0 || number >= cJSON_GetArraySize(column->class_names))
                return why_set(why, -ESTALE, "has changed while it was read");
        *label = (int32_t)number;
        return 0;
}

/* The bytes of an array of fixed shape. */
static uint64_t fill_bytes_of(const struct schema_field *field) {
        uint64_t n_bytes = dlp_dtype_bytes(field->dtype);

        for (uint32_t i = 0; i < field->n_dims; i++)
                n_bytes *= (uint64_t)field->shape[i];
        return n_bytes;
}

/* The elements of a list, in the type that they have in all files together. */
static int fill_convert(struct filling *filling, uint32_t from, uint32_t to, struct why *why) {
        uint64_t n = filling->elements.n_bytes / dlp_dtype_bytes(from);
        int r;

        growing_clear(&filling->converted);
        r = n == 0 ? 0 : growing_append(&filling->converted, NULL, n * dlp_dtype_bytes(to));
        if (r < 0)
                return why_set(why, r, "no memory for its lists");
        return numbers_convert(from, filling->elements.bytes, n, to, filling->converted.bytes)
                       ? 0
                       : number_differs(from, to, why);
}

static int fill_fill_list(struct filling *filling, struct parquet_column *column, struct parquet_reader *reader,
                          struct why *why) {
        struct growing *elements = &filling->elements;
        bool is_missing;
        int r;

        growing_clear(elements);
        r = parquet_reader_next_list(reader, &column->widths, elements, &is_missing, why);
        if (r == 0 && !is_missing && reader->element->dtype != column->field.dtype) {
                r = fill_convert(filling, reader->element->dtype, column->field.dtype, why);
                elements = &filling->converted;
        }
        if (r == 0)
                r = fill_count_copied(filling, elements->n_bytes, why);
        if (r < 0 || is_missing)
                return r;
        if (column->field.shape[0] > 0 && elements->n_bytes != fill_bytes_of(&column->field))
                return why_set(why, -EBADMSG,
                               "has a list of another length than the %" PRIi64
                               " elements of its Arrow type; write the file again",
                               column->field.shape[0]);
        r = index_builder_set_value(filling->builder, column->idx_index, elements->bytes, elements->n_bytes);
        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}

static int fill_take_text(void *userdata, const struct parquet_value *text, struct why *why) {
        struct filling *filling = userdata;

        if (!text)
                return why_set(why, -ENOTSUP,
                               "row %" PRIu64
                               " of the file has a list with a missing text (null); replace it by an empty text",
                               filling->row);
        return text_list_add(&filling->texts, text->bytes, text->n_bytes, why);
}

static int fill_fill_texts(struct filling *filling, struct parquet_column *column, struct parquet_reader *reader,
                           struct why *why) {
        struct why detail;
        bool is_missing;
        int r;

        text_list_clear(&filling->texts);
        filling->texts.max_bytes = index_watch_max_copied(filling->pass->watch);
        r = parquet_reader_next_texts(reader, fill_take_text, filling, &is_missing, why);
        if (r == 0)
                r = fill_count_copied(filling, text_list_bytes(&filling->texts), why);
        if (r < 0 || is_missing)
                return r;
        r = text_list_set(&filling->texts, filling->builder, column->idx_index, &detail);
        return r < 0 ? why_set(why, r, "row %" PRIu64 " of the file: %s", filling->row, detail.text) : 0;
}

/* A row's value in one column. */
static int fill_fill_value(struct filling *filling, uint32_t idx_column, struct index_row *stored, int32_t *label,
                           struct why *why) {
        struct parquet_column *column = &filling->pass->columns.all[idx_column];
        struct parquet_reader *reader = &filling->readers[idx_column];
        struct why detail;
        int r;

        switch (column->role) {
        case PARQUET_ROLE_STORED:
        case PARQUET_ROLE_MEDIA:
                r = fill_fill_stored(filling, column, reader, &stored[column->idx_index], &detail);
                break;
        case PARQUET_ROLE_COPIED:
                r = fill_fill_copied(filling, column, reader, &detail);
                break;
        case PARQUET_ROLE_LIST:
                r = fill_fill_list(filling, column, reader, &detail);
                break;
        case PARQUET_ROLE_TEXTS:
                r = fill_fill_texts(filling, column, reader, &detail);
                break;
        default:
                r = fill_number(filling, column, reader, label, &detail);
        }
        if (r >= 0)
                return 0;
        return why_set(why, r, "column \"%s\": %s", column->field.name, detail.text);
}

static int fill_fill_row(struct filling *filling, struct why *why) {
        struct index_row *stored = filling->rows;
        int32_t label = 0;
        int r = 0;

        for (uint32_t k = 0; k < filling->pass->columns.n; k++) {
                const char *name = filling->pass->columns.all[k].field.name;
                int error = fill_fill_value(filling, k, stored, &label, why);

                r = error < 0 ? error : r;
                if (error < 0 && !refusals_mark_of_several(filling->pass->refusals, name, error, why))
                        return error;
        }
        if (r < 0)
                return r;
        r = index_builder_add_sample(filling->builder, stored, label);
        if (r == -E2BIG)
                return why_set(why, r, "more samples than an index can hold");
        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}

/* The first pass has seen all types of its numbers. */
static int begin_column(const struct parquet_group *group, const struct parquet_column *column, uint32_t idx,
                        struct parquet_reader *reader, struct why *why) {
        int r = parquet_group_begin(group, idx, reader, why);

        if (r == 0 && column->field.kind == FIELD_VALUE && !reader->is_missing &&
            number_types_join(reader->element->dtype, column->field.dtype) != column->field.dtype)
                return why_set(why, -ESTALE, "has changed while it was read");
        return r;
}

/* Begins or ends with all columns of a group. */
static int each_reader(struct filling *filling, const struct parquet_group *group, bool is_begin, struct why *why) {
        struct why detail;
        int damaged = 0;

        for (uint32_t i = 0; i < filling->pass->columns.n; i++) {
                const struct parquet_column *column = &filling->pass->columns.all[i];
                uint32_t idx = parquet_column_has_own_file(column) ? column->idx_path : column->idx_value;
                int error = is_begin ? begin_column(group, column, idx, &filling->readers[i], &detail)
                                     : parquet_reader_end(&filling->readers[i], &detail);

                if (error == 0)
                        continue;
                damaged = why_set(why, error, "column \"%s\": %s", column->field.name, detail.text);
                if (!refusals_mark_of_several(filling->pass->refusals, column->field.name, error, why))
                        return error;
        }
        return damaged;
}

static int fill_group(void *userdata, const struct parquet_group *group, struct why *why) {
        struct filling *filling = userdata;
        uint64_t n = 0;
        int r = each_reader(filling, group, true, why);

        filling->row = group->first_row;
        while (r == 0 && n < group->n_rows) {
                r = fill_fill_row(filling, why);
                filling->row++;
                if (r == 0 && (++n % ROWS_AT_A_TIME == 0 || n == group->n_rows))
                        r = parquet_pass_look_up(filling->pass, (n - 1) % ROWS_AT_A_TIME + 1, why);
        }
        return r == 0 ? each_reader(filling, group, false, why) : r;
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

static void fill_free_part(struct parquet_visitor *part) {
        fill_filling_fini(part->userdata);
        free(part->userdata);
}

static void fill_rest_part(struct parquet_visitor *part) {
        fill_filling_rest(part->userdata);
}

static struct parquet_visitor *fill_make_part(void *userdata, struct parquet_pass *part) {
        struct filling *filling = userdata, *made = calloc(1, sizeof(*made));

        if (!made)
                return NULL;
        made->pass = part;
        made->memory.max_bytes = parquet_pass_page_bytes(part);
        copied_begin_part(&made->copied, &filling->copied);
        made->visitor = (struct parquet_visitor){ .userdata = made, .file = fill_fill_file, .group = fill_group };
        if (fill_describe(made) < 0) {
                fill_free_part(&made->visitor);
                return NULL;
        }
        return &made->visitor;
}

static int fill_take_part(void *userdata, struct parquet_visitor *part, struct why *why) {
        struct filling *filling = userdata, *found = part->userdata;
        int r;

        if (!copied_take(&filling->copied, &found->copied))
                return PARQUET_AGAIN; /* which row is too much? */
        r = index_builder_append(filling->builder, found->builder);
        if (r == -E2BIG)
                return why_set(why, r, "more samples, or more bytes of values, than an index can hold");
        return r < 0 ? why_set(why, r, "no memory for its index") : 0;
}

/* Which file has which number depends on all rows before. */
static bool fill_may_be_parted(const struct parquet_columns *columns) {
        for (uint32_t i = 0; i < columns->n; i++)
                if (parquet_column_has_own_file(&columns->all[i]))
                        return false;
        return true;
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

int parquet_fill(struct parquet_pass *pass, struct index_builder **ret_builder) {
        _cleanup_(fill_filling_fini) struct filling filling = {
                .pass = pass,
                .memory = { .max_bytes = parquet_pass_page_bytes(pass) },
        };
        struct parquet_visitor visitor = { .userdata = &filling, .file = fill_fill_file, .group = fill_group };
        int r = fill_describe(&filling);

        copied_begin(&filling.copied, pass->watch);
        if (r >= 0)
                r = listed_give_root(&pass->listed, pass->files, filling.builder);
        if (r < 0)
                return why_set(pass->why, r, "%s: no memory for its index", pass->files->root);
        outside_init(&filling.outside, pass->root_fd, pass->files->root, filling.builder);
        if (fill_may_be_parted(&pass->columns)) {
                visitor.make = fill_make_part;
                visitor.rest = fill_rest_part;
                visitor.free = fill_free_part;
                visitor.take = fill_take_part;
        }
        r = parquet_pass_run(pass, &visitor);
        if (r == 0)
                *ret_builder = TAKE_PTR(filling.builder);
        return r;
}
