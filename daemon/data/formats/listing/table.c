#include "daemon/data/formats/listing/table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"

void table_fini(struct record_table *table) {
        listing_fini(&table->listing);
        columns_fini(&table->columns);
        for (size_t i = 0; i < table->n_files; i++)
                file_paths_fini(&table->files[i].paths);
}

/* ---- options --------------------------------------------------------------------------------------------------- */

/* Takes the next name of a list "a, b=c" up to one of `ends`, without the blanks around it. False: none, or too long.
 */
static bool take_name(const char **at, const char *ends, char name[SCHEMA_NAME_MAX]) {
        size_t n;

        *at += strspn(*at, " \t");
        n = strcspn(*at, ends);
        while (n > 0 && ((*at)[n - 1] == ' ' || (*at)[n - 1] == '\t'))
                n--;
        if (n == 0 || n >= SCHEMA_NAME_MAX)
                return false;
        memcpy(name, *at, n);
        name[n] = '\0';
        *at += strcspn(*at, ends);
        return true;
}

static int refuse_files(const struct record_table *table, const char *files) {
        return why_set(table->listing.why, -EINVAL,
                       "files = \"%.200s\": names of fields and of columns were expected, as in \"image=path, "
                       "audio=wav\", %u at most, and no field twice",
                       files, TABLE_FILES_MAX);
}

static int read_files(struct record_table *table, const char *files) {
        for (const char *at = files; *at;) {
                struct table_files *one = &table->files[table->n_files];

                if (table->n_files == TABLE_FILES_MAX || !take_name(&at, ",=", one->field))
                        return refuse_files(table, files);
                strcpy(one->column, one->field);
                if (*at == '=') {
                        at++;
                        if (!take_name(&at, ",=", one->column) || *at == '=')
                                return refuse_files(table, files);
                }
                for (size_t i = 0; i < table->n_files; i++)
                        if (strcmp(table->files[i].field, one->field) == 0)
                                return refuse_files(table, files);
                table->n_files++;
                at += *at == ',';
        }
        return 0;
}

static bool is_in_list(const char *list, const char *name) {
        char one[SCHEMA_NAME_MAX];

        while (list && take_name(&list, ",", one)) {
                if (strcmp(one, name) == 0)
                        return true;
                list += *list == ',';
        }
        return false;
}

int table_init(struct record_table *table, const char *files, const char *raw) {
        table->raw = raw;
        if (files)
                return read_files(table, files);
        strcpy(table->files[0].column, "file_name");
        strcpy(table->files[1].column, "audio_filepath");
        table->files[0].is_guess = table->files[1].is_guess = true;
        table->n_files = 2;
        return 0;
}

/* ---- while records are read ------------------------------------------------------------------------------------ */

int table_find_column(struct record_table *table, const char *name, size_t n, struct table_column **ret_column,
                      struct why *why) {
        struct table_column *column = columns_find(&table->columns, name, n);

        if (!column) {
                int r = columns_add(&table->columns, name, n, &column, why);

                if (r < 0)
                        return r;
                column->is_raw = is_in_list(table->raw, column->name);
                for (size_t i = 0; i < table->n_files; i++)
                        column->is_path |= strcmp(table->files[i].column, column->name) == 0;
        }
        *ret_column = column;
        return 0;
}

int table_note_path(struct record_table *table, struct table_column *column, const char *path, size_t n,
                    struct table_cell *cell, struct why *why) {
        const struct text_listing *listing = &table->listing;
        const struct listed_file *file = listing_file(listing, listing_n_files(listing) - 1);
        int r = 0;

        for (size_t i = 0; i < table->n_files && r == 0; i++) {
                struct table_files *files = &table->files[i];

                if (strcmp(files->column, column->name) != 0 || files->is_none)
                        continue;
                r = file_paths_add(&files->paths, (const char *)listing->names.bytes + file->name, path, n, &cell->path,
                                   why);
                if (r == -EINVAL && files->is_guess) {
                        files->is_none = true;
                        r = 0;
                }
        }
        return r;
}

/* ---- what the columns are -------------------------------------------------------------------------------------- */

/* The first cell of a column that is there; column->n_present is not 0. */
static struct table_cell first_cell(const struct table_column *column) {
        uint64_t row = 0;

        while (column_cell(column, row).kind == CELL_ABSENT)
                row++;
        return column_cell(column, row);
}

static bool is_text_only(const struct table_column *column) {
        for (enum cell_kind kind = CELL_BOOLEAN; kind < N_CELL_KINDS; kind++)
                if (kind != CELL_TEXT && column->seen[kind].line > 0)
                        return false;
        return column->seen[CELL_TEXT].line > 0;
}

/* A guess comes true if the file that the first record names exists; its ending says what the field is called. */
static void judge_guess(struct record_table *table, struct table_files *files, const struct table_column *column) {
        static const char *const SOUNDS[] = { ".wav", ".flac", ".mp3", ".ogg", ".opus", ".oga" };
        const char *dot;

        files->is_none = files->is_none || !is_text_only(column) ||
                         !file_paths_exists(&files->paths, first_cell(column).path, table->listing.root_fd);
        if (files->is_none)
                return;
        strcpy(files->field, files->paths.is_picture ? "image" : "file");
        dot = strrchr(file_paths_text(&files->paths, first_cell(column).path), '.');
        for (size_t i = 0; i < ARRAY_SIZE(SOUNDS) && dot; i++)
                if (strcasecmp(dot, SOUNDS[i]) == 0)
                        strcpy(files->field, "audio");
}

/* Is there a column or another field of files of this name? */
static bool has_field(const struct record_table *table, const struct table_files *files) {
        for (size_t i = 0; i < table->columns.n_columns; i++)
                if (strcmp(table->columns.columns[i]->name, files->field) == 0)
                        return true;
        return false;
}

static int judge_files(struct record_table *table) {
        for (size_t i = 0; i < table->n_files; i++) {
                struct table_files *files = &table->files[i];
                const struct table_column *column = columns_find(&table->columns, files->column, strlen(files->column));

                if (files->is_guess) {
                        if (!column || column->n_present == 0)
                                files->is_none = true;
                        else
                                judge_guess(table, files, column);
                        if (!files->is_none && (has_field(table, files) || (i > 0 && !table->files[0].is_none)))
                                files->is_none = true;
                } else if (!column || !is_text_only(column)) {
                        return why_set(table->listing.why, -EINVAL, "%s: files names the column \"%s\", %s",
                                       table->listing.files->root, files->column,
                                       column ? "whose values are not all strings"
                                              : "which no sample has; the names are those in the listing");
                }
        }
        return 0;
}

/* What the index will have: stored fields first, then columns. */
struct table_plan {
        struct schema_field fields[INDEX_FIELDS_MAX];
        /* Where each field comes from. */
        struct {
                const struct table_column *column;
                struct table_files *files; /* NULL: the column itself */
                uint32_t idx_column;       /* of a column of the index */
        } from[INDEX_FIELDS_MAX];
        uint32_t n_stored, n_fields;
        struct index_row first_file[INDEX_FIELDS_MAX]; /* of a field of files: for samples that have none */
};

static int refuse_kinds(const struct record_table *table, const struct table_column *column, enum cell_kind one,
                        enum cell_kind other) {
        const struct text_listing *listing = &table->listing;
        const char *names = (const char *)listing->names.bytes;

        return why_set(listing->why, -EINVAL,
                       "%s: \"%s\" is %s in %s line %" PRIu64 " and %s in %s line %" PRIu64
                       "; write it in one way, or take it as it is written with raw = \"%s\"",
                       listing->files->root, column->name, cell_kind_name(one),
                       names + listing_file(listing, column->seen[one].idx_file)->name, column->seen[one].line,
                       cell_kind_name(other), names + listing_file(listing, column->seen[other].idx_file)->name,
                       column->seen[other].line, column->name);
}

/* Is there a field of files with the name of this column? It takes the column's place. */
static bool is_replaced(const struct record_table *table, const struct table_column *column) {
        for (size_t i = 0; i < table->n_files; i++)
                if (!table->files[i].is_none && strcmp(table->files[i].field, column->name) == 0)
                        return true;
        return false;
}

static int plan_field(const struct record_table *table, struct table_plan *plan, const struct schema_field *field,
                      const struct table_column *column, struct table_files *files) {
        if (plan->n_fields == INDEX_FIELDS_MAX)
                return why_set(table->listing.why, -E2BIG, "%s: more than %u fields", table->listing.files->root,
                               INDEX_FIELDS_MAX);
        plan->fields[plan->n_fields] = *field;
        plan->from[plan->n_fields].column = column;
        plan->from[plan->n_fields].files = files;
        plan->n_fields++;
        return 0;
}

static int plan_columns(const struct record_table *table, struct table_plan *plan, bool is_stored) {
        for (size_t i = 0; i < table->columns.n_columns; i++) {
                const struct table_column *column = table->columns.columns[i];
                enum cell_kind one = CELL_ABSENT, other = CELL_ABSENT;
                struct schema_field field;
                int r = 0;

                if (is_replaced(table, column) || (column->n_present == 0 && table->syntax == COLUMNS_JSON))
                        continue;
                if (column_describe(&table->columns, column, table->syntax, &field, &one, &other) < 0)
                        return refuse_kinds(table, column, one, other);
                if (field.is_stored == is_stored)
                        r = plan_field(table, plan, &field, column, NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int plan_index(struct record_table *table, struct table_plan *plan) {
        int r = judge_files(table);

        for (size_t i = 0; i < table->n_files && r == 0; i++) {
                struct table_files *files = &table->files[i];
                const struct table_column *column;
                struct schema_field field = { .is_stored = true };

                if (files->is_none)
                        continue;
                column = columns_find(&table->columns, files->column, strlen(files->column));
                strcpy(field.name, files->field);
                field.kind = files->paths.is_picture ? FIELD_PICTURE : FIELD_BYTES;
                field.may_be_absent = column->n_present < table->columns.n_rows;
                r = plan_field(table, plan, &field, column, files);
        }
        if (r == 0)
                r = plan_columns(table, plan, true);
        plan->n_stored = plan->n_fields;
        if (r == 0)
                r = plan_columns(table, plan, false);
        if (r == 0 && plan->n_fields == 0)
                return why_set(table->listing.why, -ENOENT, "%s: its samples have no values",
                               table->listing.files->root);
        return r;
}

/* ---- the index ------------------------------------------------------------------------------------------------- */

static int make_builder(struct record_table *table, struct table_plan *plan, struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        int r = index_builder_new(table->listing.format, plan->n_stored, &builder);

        if (r < 0)
                return r;
        index_builder_name_rows(builder);
        for (uint32_t i = 0; i < plan->n_fields && r == 0; i++) {
                if (i < plan->n_stored)
                        index_builder_describe(builder, i, &plan->fields[i]);
                else
                        r = index_builder_add_column(builder, &plan->fields[i], &plan->from[i].idx_column);
                if (plan->from[i].files)
                        index_builder_set_own_file(builder, i);
        }
        if (r == 0)
                r = listing_give_root(&table->listing, builder);
        /* A row has a file also where a sample names none. */
        for (uint32_t i = 0; i < plan->n_stored && r == 0; i++)
                if (plan->from[i].files && plan->fields[i].may_be_absent)
                        r = file_paths_give(&plan->from[i].files->paths, first_cell(plan->from[i].column).path,
                                            table->listing.root_fd, builder, &plan->first_file[i]);
        if (r == 0)
                *ret_builder = TAKE_PTR(builder);
        return r;
}

static int give_value(const struct table_plan *plan, uint32_t i, const struct table_cell *cell,
                      struct index_builder *builder) {
        double number = cell->kind == CELL_FLOAT ? cell->number : (double)cell->integer;
        uint8_t truth = cell->integer != 0;
        const void *value = &cell->integer;

        if (cell->kind == CELL_ABSENT)
                return 0;
        if (plan->fields[i].dtype == DLP_DTYPE_BOOL)
                value = &truth;
        else if (plan->fields[i].dtype == DLP_DTYPE_FLOAT64)
                value = &number;
        return index_builder_set_value(builder, plan->from[i].idx_column, value,
                                       dlp_dtype_bytes(plan->fields[i].dtype));
}

static int give_row(struct record_table *table, const struct table_plan *plan, uint64_t row,
                    struct index_builder *builder) {
        uint64_t offset = ((const uint64_t *)(const void *)table->columns.rows.bytes)[row];
        struct index_row rows[INDEX_FIELDS_MAX];

        for (uint32_t i = 0; i < plan->n_fields; i++) {
                struct table_cell cell = column_cell(plan->from[i].column, row);
                int r = 0;

                if (i >= plan->n_stored)
                        r = give_value(plan, i, &cell, builder);
                else if (cell.kind == CELL_ABSENT && plan->fields[i].may_be_absent)
                        rows[i] = (struct index_row){
                                .file = plan->from[i].files ? plan->first_file[i].file : INDEX_NO_FILE,
                                .offset = INDEX_ROW_ABSENT,
                        };
                else if (plan->from[i].files)
                        r = file_paths_give(&plan->from[i].files->paths, cell.path, table->listing.root_fd, builder,
                                            &rows[i]);
                else
                        rows[i] = (struct index_row){ .file = INDEX_NO_FILE,
                                                      .offset = offset + cell.begin,
                                                      .length = cell.n_bytes };
                if (r < 0)
                        return r;
        }
        return index_builder_add_sample(builder, rows, 0);
}

/* The samples of one file. */
static int give_rows(struct record_table *table, const struct table_plan *plan, size_t idx_file,
                     struct index_builder *builder) {
        struct text_listing *listing = &table->listing;
        uint64_t row = listing_file(listing, idx_file)->first_sample;
        uint64_t end = idx_file + 1 < listing_n_files(listing) ? listing_file(listing, idx_file + 1)->first_sample
                                                               : table->columns.n_rows;
        int r = listing_give_file(listing, builder, idx_file);

        for (; row < end && r == 0; row++) {
                r = give_row(table, plan, row, builder);
                listing->n_samples = row + 1;
                if (r == 0 && listing_look_up(listing) < 0)
                        return -ECANCELED;
        }
        return r;
}

int table_make_index(struct record_table *table, struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(freep) struct table_plan *plan = calloc(1, sizeof(*plan));
        struct text_listing *listing = &table->listing;
        int r;

        assert(listing->n_samples == table->columns.n_rows);
        if (!plan)
                return listing_no_memory(listing, -ENOMEM);
        r = plan_index(table, plan);
        if (r < 0)
                return r;
        r = make_builder(table, plan, &builder);
        listing->n_looked = 0;
        for (size_t i = 0; i < listing_n_files(listing) && r == 0; i++)
                r = give_rows(table, plan, i, builder);
        if (r == -ECANCELED)
                return r;
        if (r < 0)
                return listing_no_memory(listing, r);
        *ret_builder = TAKE_PTR(builder);
        return 0;
}
