#include "daemon/data/formats/arrow/arrow_reading.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/arrow/table/ipc_table.h"
#include "daemon/data/formats/arrow/table/ipc_texts.h"

/* What is known of some rows in one column. */
struct gathered {
        struct arrow_cell *cells, *paths; /* ARROW_ROWS_MAX of them, or NULL */
        uint8_t *numbers;                 /* of 8 bytes at most, or NULL */
        bool *is_valid;
};

struct arrow_reading {
        const struct columnar_pass *pass;
        const struct arrow_dataset *dataset;
        int fd;
        size_t idx_file;
        struct arrow_table *table;
        bool is_compressed;     /* the first batch is; known when columns are planned */
        uint64_t n_batch, at;   /* rows of the batch, and the next one */
        uint64_t n_rows;        /* of the batches before */
        struct arrow_rows rows; /* that are read */
        uint32_t n_gathered;
        struct gathered *gathered; /* one for each column, or one for all in the first pass */
};

static const struct arrow_dataset *arrow_dataset_of(const struct columnar_pass *pass) {
        return pass->own;
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

static enum field_kind arrow_kind_of(const void *schema, uint32_t idx) {
        const struct arrow_field *field = arrow_schema_field(schema, idx);

        if ((field->kind != ARROW_BYTES && field->kind != ARROW_BYTES_VIEW) || field->has_dictionary)
                return FIELD_VALUE;
        return field->is_text ? FIELD_TEXT : FIELD_BYTES;
}

static const char *arrow_type_name(const void *schema, uint32_t idx) {
        return arrow_schema_field(schema, idx)->type;
}

static uint32_t arrow_dtype_of(const void *schema, uint32_t idx) {
        uint32_t n_levels;
        const struct arrow_field *element = arrow_list_element(schema, idx, &n_levels);

        return element->kind == ARROW_BOOL ? DLP_DTYPE_BOOL : element->dtype;
}

/* The features as dataset_info.json or the schema's own notes tell them; and whether the batches are compressed,
 * because no row of them can be read alone then. */
static int arrow_begin_plan(const struct columnar_pass *pass, struct columnar_planning *planning) {
        const struct arrow_schema *schema = pass->schema;
        struct arrow_reading *reading = planning->reading;
        int r = arrow_table_next(reading->table, planning->why);

        reading->is_compressed = r == 0 && arrow_table_batch(reading->table)->compression != ARROW_PLAIN;
        planning->features = cJSON_GetObjectItemCaseSensitive(arrow_dataset_of(pass)->folder.info.root, "features");
        planning->notes = arrow_schema_text(schema, schema->huggingface);
        planning->n_notes = strlen(planning->notes);
        return r < 0 ? r : 0;
}

static int arrow_refuse(const struct columnar_planning *planning, const struct columnar_candidate *candidate) {
        const struct arrow_field *field = arrow_schema_field(planning->schema, candidate->idx);
        char type[128];

        snprintf(type, sizeof(type), "%s%s%s%s", field->has_dictionary ? "a dictionary of " : "a ", field->type,
                 field->n_children > 0 ? " of " : "",
                 field->n_children == 1  ? arrow_schema_field(planning->schema, candidate->idx + 1)->type
                 : field->n_children > 1 ? "several members"
                                         : "");
        return columnar_refuse(planning, candidate->name, type);
}

static int arrow_plan_list(const struct columnar_planning *planning, const struct columnar_candidate *candidate,
                           struct columnar_column *column) {
        uint32_t n_levels;
        const struct arrow_field *element = arrow_list_element(planning->schema, candidate->idx, &n_levels);
        const struct arrow_field *list = arrow_schema_field(planning->schema, candidate->idx);

        column->role = element->kind == ARROW_BOOL ? COLUMNAR_LIST : COLUMNAR_STORED; /* bools are bits in the file */
        column->field.kind = FIELD_VALUE;
        column->field.dtype = arrow_dtype_of(planning->schema, candidate->idx);
        column->field.n_dims = n_levels;
        for (uint32_t i = 0; i < n_levels; i++) {
                const struct arrow_field *level = list + i;

                column->field.shape[i] = level->kind == ARROW_FIXED_LIST ? (int64_t)level->width : -1;
                column->is_surveyed = column->is_surveyed || (i > 0 && level->kind != ARROW_FIXED_LIST);
                if (column->field.shape[i] == 0)
                        return columnar_refuse(planning, candidate->name, "a list without elements");
        }
        return 0;
}

static int arrow_plan(const struct columnar_planning *planning, const struct columnar_candidate *candidate,
                      struct columnar_column *column) {
        const struct arrow_schema *schema = planning->schema;
        const struct arrow_field *field = arrow_schema_field(schema, candidate->idx);

        switch (field->kind) {
        case ARROW_BOOL:
        case ARROW_NUMBER:
                column->role = COLUMNAR_NUMBER;
                column->field.kind = FIELD_VALUE;
                column->field.dtype = arrow_dtype_of(schema, candidate->idx);
                return 0;
        case ARROW_NULL:
        case ARROW_BYTES:
        case ARROW_BYTES_VIEW:
                column->role = COLUMNAR_STORED;
                column->field.kind = field->kind != ARROW_NULL && field->is_text ? FIELD_TEXT : FIELD_BYTES;
                return 0;
        case ARROW_FIXED:
                column->role = COLUMNAR_STORED;
                column->field.kind = FIELD_BYTES;
                return strcmp(field->type, "fixed_size_binary") == 0 ? 0 : arrow_refuse(planning, candidate);
        case ARROW_STRUCT:
                return arrow_refuse(planning, candidate);
        default:
                if (arrow_has_texts(schema, candidate->idx)) {
                        column->role = COLUMNAR_TEXTS;
                        column->field.kind = FIELD_TEXTS;
                        return 0;
                }
                if (field->has_dictionary ||
                    !(arrow_has_cells(schema, candidate->idx) || arrow_has_bools(schema, candidate->idx)))
                        return arrow_refuse(planning, candidate);
                return arrow_plan_list(planning, candidate, column);
        }
}

/* What is unpacked goes into the index, which is meant for text and numbers. */
static int arrow_settle(const struct columnar_planning *planning, struct columnar_column *column) {
        const struct arrow_reading *reading = planning->reading;

        if (!reading->is_compressed)
                return 0;
        if (column->role == COLUMNAR_MEDIA || column->field.kind == FIELD_PICTURE || column->field.kind == FIELD_SOUND)
                return why_set(planning->why, -ENOTSUP,
                               "column \"%s\" holds pictures or sound, and the batches are compressed; write the file "
                               "without compression (pyarrow: IpcWriteOptions(compression=None), feather: "
                               "compression=\"uncompressed\")",
                               column->field.name);
        if (column->role == COLUMNAR_STORED)
                column->role = column->field.kind == FIELD_VALUE ? COLUMNAR_LIST : COLUMNAR_COPIED;
        return 0;
}

static bool arrow_is_bools(const struct columnar_column *column) {
        return column->role == COLUMNAR_LIST && column->field.dtype == DLP_DTYPE_BOOL;
}

static bool arrow_suits(const struct columnar_column *column, const void *file) {
        uint32_t idx = column->here.idx_field;

        if (arrow_is_bools(column))
                return arrow_has_bools(file, idx) && !arrow_schema_field(file, idx)->has_dictionary;
        switch (column->role) {
        case COLUMNAR_TEXTS:
                return arrow_has_texts(file, idx);
        case COLUMNAR_STORED:
        case COLUMNAR_COPIED:
        case COLUMNAR_LIST:
                return arrow_has_cells(file, idx) &&
                       (column->field.n_dims == 0 || !arrow_schema_field(file, idx)->has_dictionary);
        default:
                return true;
        }
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

static void arrow_close(void *opened) {
        struct arrow_reading *reading = opened;

        for (uint32_t i = 0; reading->gathered && i < reading->n_gathered; i++) {
                free(reading->gathered[i].cells);
                free(reading->gathered[i].paths);
                free(reading->gathered[i].numbers);
                free(reading->gathered[i].is_valid);
        }
        free(reading->gathered);
        arrow_table_close(reading->table);
        free(reading);
}

static bool arrow_has_numbers(const struct columnar_column *column) {
        return column->role == COLUMNAR_NUMBER || column->role == COLUMNAR_CLASS;
}

/* In the first pass one column is looked at after the other. */
static int arrow_make_room(struct arrow_reading *reading) {
        const struct columnar_columns *columns = &reading->pass->columns;

        reading->n_gathered = columns->is_settled ? columns->n : 1;
        reading->gathered = calloc(reading->n_gathered, sizeof(*reading->gathered));
        for (uint32_t i = 0; reading->gathered && i < reading->n_gathered; i++) {
                struct gathered *gathered = &reading->gathered[i];
                bool has_numbers = !columns->is_settled || arrow_has_numbers(&columns->all[i]);
                bool has_cells = !columns->is_settled || !has_numbers;

                gathered->is_valid = calloc(ARROW_ROWS_MAX, sizeof(*gathered->is_valid));
                if (has_numbers)
                        gathered->numbers = calloc(ARROW_ROWS_MAX, sizeof(uint64_t));
                if (has_cells)
                        gathered->cells = calloc(ARROW_ROWS_MAX, sizeof(*gathered->cells));
                if (!columns->is_settled)
                        gathered->paths = calloc(ARROW_ROWS_MAX, sizeof(*gathered->paths));
                if (!gathered->is_valid || (has_numbers && !gathered->numbers) || (has_cells && !gathered->cells) ||
                    (!columns->is_settled && !gathered->paths))
                        return -ENOMEM;
        }
        return reading->gathered ? 0 : -ENOMEM;
}

static int arrow_open(const struct columnar_pass *pass, int fd, uint64_t n_bytes, size_t idx_file, uint64_t part,
                      uint64_t n_parts, void **ret_reading, struct why *why) {
        struct arrow_reading *reading = calloc(1, sizeof(*reading));
        const struct arrow_dataset *dataset = arrow_dataset_of(pass);
        uint64_t begin_byte = 0;
        int r;

        (void)part, (void)n_parts;
        if (!reading)
                return why_set(why, -ENOMEM, "no memory to read it");
        *reading = (struct arrow_reading){ .pass = pass, .dataset = dataset, .fd = fd, .idx_file = idx_file };
        r = dataset->host ? dataset->host->find_table(fd, n_bytes, &begin_byte, &n_bytes, why) : 0;
        if (r == 0)
                r = arrow_table_open(fd, begin_byte, n_bytes, &reading->table, why);
        if (r == 0 && arrow_make_room(reading) < 0)
                r = why_set(why, -ENOMEM, "no memory to read it");
        if (r < 0) {
                arrow_close(reading);
                return r;
        }
        arrow_table_limit(reading->table, columnar_share(pass, index_watch_max_copied(pass->watch)));
        *ret_reading = reading;
        return 0;
}

static const void *arrow_schema_of(const void *reading) {
        return arrow_table_schema(((const struct arrow_reading *)reading)->table);
}

/* The host's list says how many rows each file has. */
static int arrow_end(const struct arrow_reading *reading, struct why *why) {
        const struct arrow_host *host = reading->dataset->host;

        if (!host || host->n_rows[reading->idx_file] == reading->n_rows)
                return COLUMNAR_END;
        return why_set(why, -EBADMSG, "has %" PRIu64 " rows, and %s says %" PRIu64 "; copy the files again",
                       reading->n_rows, host->list, host->n_rows[reading->idx_file]);
}

static int arrow_next(void *opened, struct columnar_rows *ret_rows, struct why *why) {
        struct arrow_reading *reading = opened;
        uint64_t n_left;

        while (reading->at == reading->n_batch) {
                int r = arrow_table_next(reading->table, why);

                if (r != 0)
                        return r == ARROW_END ? arrow_end(reading, why) : r;
                reading->at = 0;
                reading->n_batch = arrow_table_batch(reading->table)->n_rows;
                reading->n_rows += reading->n_batch;
        }
        n_left = reading->n_batch - reading->at;
        reading->rows = arrow_table_rows(reading->table, reading->at,
                                         n_left < ARROW_ROWS_MAX ? (uint32_t)n_left : ARROW_ROWS_MAX);
        *ret_rows = (struct columnar_rows){ .idx = arrow_table_idx_batch(reading->table),
                                            .first = reading->at,
                                            .n = reading->rows.n };
        reading->at += reading->rows.n;
        return 0;
}

/* ---- the first pass ---------------------------------------------------------------------------------------------- */

static int arrow_survey_labels(struct arrow_reading *reading, struct columnar_column *column, struct why *why) {
        struct gathered *gathered = reading->gathered;
        size_t width = dlp_dtype_bytes(column->here.dtype);
        int r = arrow_numbers(&reading->rows, column->here.idx_field, gathered->numbers, gathered->is_valid, why);

        for (uint32_t i = 0; i < reading->rows.n && r == 0; i++)
                columnar_see_label(column, gathered->is_valid[i] ? gathered->numbers + i * width : NULL);
        return r;
}

static int arrow_survey_media(struct arrow_reading *reading, struct columnar_column *column, struct why *why) {
        struct gathered *gathered = reading->gathered;
        int r = arrow_validity(&reading->rows, column->here.idx_field, gathered->is_valid, why);

        if (r == 0)
                r = arrow_member_cells(&reading->rows, column->here.idx_bytes, gathered->cells, why);
        if (r == 0)
                r = arrow_member_cells(&reading->rows, column->here.idx_path, gathered->paths, why);
        for (uint32_t i = 0; i < reading->rows.n && r == 0; i++)
                columnar_see_media(column, gathered->is_valid[i] && gathered->cells[i].offset != ARROW_CELL_NULL,
                                   gathered->is_valid[i] && gathered->paths[i].offset != ARROW_CELL_NULL);
        return r;
}

static int arrow_survey(void *opened, struct columnar_column *column, struct why *why) {
        struct arrow_reading *reading = opened;

        if (!column->is_surveyed)
                return 0;
        if (column->class_names)
                return arrow_survey_labels(reading, column, why);
        if (column->role == COLUMNAR_MEDIA)
                return arrow_survey_media(reading, column, why);
        return arrow_cells(&reading->rows, column->here.idx_field, &column->widths, reading->gathered->cells, why);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static int arrow_gather(const struct columnar_column *column, const struct arrow_rows *rows, struct gathered *gathered,
                        struct why *why) {
        struct columnar_widths widths = column->widths;

        switch (column->role) {
        case COLUMNAR_STORED:
        case COLUMNAR_COPIED:
        case COLUMNAR_LIST:
                return arrow_cells(rows, column->here.idx_field, &widths, gathered->cells, why);
        case COLUMNAR_TEXTS:
                return arrow_lists(rows, column->here.idx_field, gathered->cells, why);
        case COLUMNAR_MEDIA:
                return arrow_member_cells(
                        rows, columnar_has_own_file(column) ? column->here.idx_path : column->here.idx_bytes,
                        gathered->cells, why);
        default:
                return arrow_numbers(rows, column->here.idx_field, gathered->numbers, gathered->is_valid, why);
        }
}

/* A member of a struct has no value where the struct is null, whatever its own buffers say there. */
static int arrow_take_out(const struct arrow_rows *rows, uint32_t idx_struct, struct gathered *gathered,
                          struct why *why) {
        bool is_there[ARROW_ROWS_MAX];
        int r = arrow_validity(rows, idx_struct, is_there, why);

        for (uint32_t i = 0; i < rows->n && r == 0; i++) {
                if (is_there[i])
                        continue;
                gathered->is_valid[i] = false;
                if (gathered->cells)
                        gathered->cells[i] = (struct arrow_cell){ ARROW_CELL_NULL, 0 };
        }
        return r;
}

static int arrow_begin(void *opened, uint32_t idx, struct why *why) {
        struct arrow_reading *reading = opened;
        const struct columnar_column *column = &reading->pass->columns.all[idx];
        struct gathered *gathered = &reading->gathered[idx];
        int r = arrow_gather(column, &reading->rows, gathered, why);

        if (r == 0 && column->role == COLUMNAR_MEDIA)
                r = arrow_take_out(&reading->rows, column->here.idx_field, gathered, why);
        for (uint32_t k = 0; k < column->here.n_parents && r == 0; k++)
                r = arrow_take_out(&reading->rows, column->here.idx_parents[k], gathered, why);
        return r;
}

/* Are these whole elements of the field's shape? They are, unless the file has changed since the first pass. */
static bool arrow_is_whole(const struct columnar_column *column, const struct arrow_cell *cell) {
        const struct schema_field *field = &column->field;
        uint64_t unit = field->kind == FIELD_VALUE ? dlp_dtype_bytes(column->here.dtype) : 1;

        for (uint32_t i = 0; i < field->n_dims; i++)
                unit *= field->shape[i] > 0 ? (uint64_t)field->shape[i] : 1;
        return cell->n_bytes % unit == 0 && (field->n_dims == 0 || field->shape[0] < 0 || cell->n_bytes == unit);
}

static int arrow_value(void *opened, uint32_t idx, uint64_t row, struct columnar_value *ret_value, struct why *why) {
        const struct arrow_reading *reading = opened;
        const struct columnar_column *column = &reading->pass->columns.all[idx];
        const struct gathered *gathered = &reading->gathered[idx];
        const struct arrow_cell *cell;

        *ret_value = (struct columnar_value){ .offset = COLUMNAR_NULL };
        if (gathered->numbers) {
                if (gathered->is_valid[row])
                        ret_value->bytes = gathered->numbers + row * dlp_dtype_bytes(column->here.dtype);
                return 0;
        }
        cell = &gathered->cells[row];
        if (cell->offset == ARROW_CELL_NULL)
                return 0;
        if (!arrow_is_whole(column, cell) && !columnar_has_own_file(column))
                return why_set(why, -ESTALE, "has changed while it was read");
        *ret_value = (struct columnar_value){ .bytes = arrow_is_bools(column) ? NULL : cell->plain,
                                              .offset = cell->offset,
                                              .n_bytes = cell->n_bytes };
        return 0;
}

static int arrow_read(void *opened, uint32_t idx, const struct columnar_value *value, struct growing *copy,
                      struct why *why) {
        const struct arrow_reading *reading = opened;
        const struct columnar_column *column = &reading->pass->columns.all[idx];
        const struct arrow_cell cell = { .offset = value->offset, .n_bytes = value->n_bytes };
        int r = growing_append(copy, NULL, value->n_bytes + 1);

        if (r == 0 && arrow_is_bools(column))
                return arrow_bools(&reading->rows, column->here.idx_field, &cell, (bool *)copy->bytes, why);
        if (r == 0)
                r = arrow_cell_read(&cell, reading->fd, copy->bytes);
        return r < 0 ? why_errno(why, r, "cannot be copied") : 0;
}

static int arrow_texts_of(void *opened, uint32_t idx, uint64_t row, struct text_list *texts, bool *ret_is_missing,
                          struct why *why) {
        const struct arrow_reading *reading = opened;
        const struct columnar_column *column = &reading->pass->columns.all[idx];
        const struct arrow_cell *cell = &reading->gathered[idx].cells[row];

        *ret_is_missing = cell->offset == ARROW_CELL_NULL;
        return *ret_is_missing ? 0
                               : arrow_texts(&reading->rows, column->here.idx_field, reading->rows.first + row, cell,
                                             texts, why);
}

static int arrow_too_much(const struct columnar_column *column, uint64_t max, struct why *why) {
        if (column->role == COLUMNAR_TEXTS)
                return why_set(why, -EFBIG,
                               "lists of text are kept in memory, and the dataset has more than %" PRIu64
                               " MiB of them; choose columns with fields = \"...\", join each list to one text, or "
                               "raise memory_limit",
                               max >> 20);
        if (column->is_mixed)
                return why_set(why, -EFBIG,
                               "lists whose numbers are not of one type in all files are kept in memory, and the "
                               "dataset has more than %" PRIu64
                               " MiB of them; write all files with one type, choose columns with fields = \"...\", or "
                               "raise memory_limit",
                               max >> 20);
        return why_set(why, -EFBIG,
                       "the dataset has more than %" PRIu64
                       " MiB when it is unpacked; write it without compression (pyarrow: "
                       "IpcWriteOptions(compression=None), feather: compression=\"uncompressed\"), or raise "
                       "memory_limit",
                       max >> 20);
}

/* The host's list is a shard without samples, so that a changed one makes a new index. */
static int arrow_give_root(const struct columnar_pass *pass, struct index_builder *builder) {
        const struct arrow_host *host = arrow_dataset_of(pass)->host;
        uint32_t idx_dir;
        int r;

        if (!host)
                return listed_give_root(pass->listed, pass->files, builder);
        r = index_builder_add_dir(builder, "", &host->folder, &idx_dir);
        if (r < 0)
                return r;
        index_builder_set_listed(builder, false);
        return index_builder_add_shard(builder, host->list, &host->list_status);
}

const struct columnar_format ARROW_READING = {
        .files = "Arrow files",
        .unit = "batch",
        .place = "of the batch",
        .elsewhere =
                "the batch is compressed, but the first one of the dataset is not; write all files in the same way",
        .elsewhere_error = -ENOTSUP,
        .has_parents = true,
        .type = &ARROW_COLUMNS,
        .range = arrow_schema_range,
        .kind = arrow_kind_of,
        .type_name = arrow_type_name,
        .dtype = arrow_dtype_of,
        .complete = arrow_schema_complete,
        .suits = arrow_suits,
        .begin_plan = arrow_begin_plan,
        .plan = arrow_plan,
        .settle = arrow_settle,
        .open = arrow_open,
        .close = arrow_close,
        .schema = arrow_schema_of,
        .next = arrow_next,
        .survey = arrow_survey,
        .begin = arrow_begin,
        .value = arrow_value,
        .read = arrow_read,
        .texts = arrow_texts_of,
        .too_much = arrow_too_much,
        .give_root = arrow_give_root,
};
