#include "daemon/data/formats/listing/listing_table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/formats/listing/csv/csv_cell.h"
#include "daemon/data/formats/listing/table_part.h"
#include "daemon/data/formats/table_columns.h"
#include "proto/base/cleanup.h"

void table_fini(struct record_table *table) {
        listing_fini(&table->listing);
        columns_fini(&table->columns);
        table_files_fini(&table->files);
        class_names_fini(&table->classes);
        growing_fini(&table->text);
        table_notes_free(table->notes);
}

/* ---- while records are read ------------------------------------------------------------------------------------ */

/* Takes the next name of a list "a, b", without the blanks around it. False: none. */
static bool listing_table_take_word(const char **at, char name[SCHEMA_NAME_MAX]) {
        size_t n, n_name;

        *at += strspn(*at, " \t");
        n = n_name = strcspn(*at, ",");
        while (n_name > 0 && ((*at)[n_name - 1] == ' ' || (*at)[n_name - 1] == '\t'))
                n_name--;
        if (n_name == 0)
                return false;
        field_name_from(*at, n_name, name);
        *at += n;
        return true;
}

static bool is_in_list(const char *list, const char *name) {
        char one[SCHEMA_NAME_MAX];

        while (list && listing_table_take_word(&list, one)) {
                if (strcmp(one, name) == 0)
                        return true;
                list += *list == ',';
        }
        return false;
}

int table_init(struct record_table *table, const char *files, const char *raw, const char *label) {
        table->raw = raw;
        table->label = label;
        table->files_option = files;
        return table_files_init(&table->files, files, table->listing.why);
}

/* The path of the listing that is read, from the root. */
static const char *name_of_listing(const struct record_table *table) {
        const struct text_listing *listing = &table->listing;

        if (listing_n_files(listing) == 0)
                return "";
        return (const char *)listing->names.bytes + listing_file(listing, listing_n_files(listing) - 1)->name;
}

int table_leave_out(struct record_table *table, struct table_column *column, int error, const struct why *why) {
        bool is_needed = column->is_label || column->is_path || column->is_part;
        struct why reason;
        int r = 0;

        if (is_needed || !refusals_are_for(error))
                return error;
        why_set(&reason, error, "%s: line %" PRIu64 ": %s", name_of_listing(table), table->listing.window.n_lines,
                why->text);
        if (!table->notes)
                r = refusals_add(table->refusals, column->name, error, &reason);
        if (r == 0)
                columns_leave_out(&table->columns, column);
        return r;
}

/* Can the column be a field? */
static int judge_column(struct record_table *table, struct table_column *column, struct why *why) {
        const struct table_columns *columns = &table->columns;
        struct schema_field field;
        int r = table_column_name(column->name, &field, why);

        if (r < 0)
                return table_leave_out(table, column, r, why);
        if (table->notes || columns->n_columns - columns->n_left_out <= INDEX_FIELDS_MAX || column->is_label ||
            column->is_path || column->is_part)
                return 0;
        r = table_column_is_too_many(table->refusals, column->name, false, why);
        if (r == 0)
                columns_leave_out(&table->columns, column);
        return r;
}

int table_find_column(struct record_table *table, const char *name, size_t n, struct table_column **ret_column,
                      struct why *why) {
        struct table_column *column = columns_find(&table->columns, name, n);

        if (!column) {
                int r = columns_add(&table->columns, name, n, &column, why);

                if (r < 0)
                        return r;
                column->is_label = table->label && strcmp(table->label, column->name) == 0;
                column->is_raw = is_in_list(table->raw, column->name);
                table_files_bind(&table->files, column);
                r = judge_column(table, column, why);
                if (r < 0)
                        return r;
        }
        *ret_column = column;
        return 0;
}

static int note_label(struct record_table *table, const char *text, size_t n, struct why *why) {
        int r;

        if (memchr(text, '\0', n))
                return why_set(why, -EINVAL, "the name of a class has a NUL in it");
        r = class_names_put(&table->classes, table->columns.n_rows - 1, text, n);
        return r < 0 ? why_set(why, r, r == -E2BIG ? "there are too many classes" : "no memory for the classes") : 0;
}

int table_note_text(struct record_table *table, struct table_column *column, const char *text, size_t n,
                    struct why *why) {
        int r = 0;

        if (table->notes)
                return table_notes_add(table, column, TABLE_NOTE_TEXT, text, n, why);
        if (column->is_part && columns_put_part(&table->columns, column, text, n) < 0)
                return why_set(why, -ENOMEM, "no memory for a part of a path");
        if (column->is_label)
                r = note_label(table, text, n, why);
        if (column->is_path && r == 0)
                r = table_files_note_path(&table->files, column, table->columns.n_rows - 1, name_of_listing(table),
                                          text, n, why);
        return r;
}

int table_note_number(struct record_table *table, struct table_column *column, const void *text, size_t n,
                      struct why *why) {
        if (table->notes)
                return table_notes_add(table, column, TABLE_NOTE_NUMBER, text, n, why);
        if (columns_put_part(&table->columns, column, text, n) < 0)
                return why_set(why, -ENOMEM, "no memory for a part of a path");
        return 0;
}

int table_keep_text(struct record_table *table, struct table_column *column, const char *text, size_t n,
                    struct why *why) {
        struct table_cell cell = { .begin = (uint32_t)column->texts.n_bytes, .n_bytes = (uint32_t)n & 0xfffffffu };
        int r = 0;

        if (column->is_left_out)
                return 0;
        if (column->texts.n_bytes + n > UINT32_MAX)
                return why_set(why, -E2BIG, "\"%s\" has more than 4 GiB of text", column->name);
        column->is_kept = true;
        csv_cell_judge((const uint8_t *)text, n, &cell);
        if (growing_append(&column->texts, text, n) < 0)
                return why_set(why, -ENOMEM, "no memory for a text");
        if (n > 0 && (column->is_path || column->is_part || column->is_label))
                r = table_note_text(table, column, text, n, why);
        if (r < 0)
                return r;
        r = columns_put(&table->columns, column, &cell, table->columns.n_rows, 0);
        return r < 0 ? why_set(why, r, "no memory for its values") : 0;
}

int table_forget_text(struct record_table *table, struct table_column *column, struct why *why) {
        if (!column->is_path && !column->is_part && !column->is_label)
                return 0;
        if (table->notes)
                return table_notes_add(table, column, TABLE_NOTE_NULL, NULL, 0, why);
        if (column->is_label)
                class_names_forget(&table->classes, table->columns.n_rows - 1);
        column->part_row = 0;
        if (column->is_path)
                table_files_forget_path(&table->files, column, table->columns.n_rows - 1);
        return 0;
}

int table_end_record(struct record_table *table, struct why *why) {
        if (table->notes)
                return 0;
        return table_files_end_record(&table->files, table->columns.n_rows - 1, name_of_listing(table), why);
}

/* ---- what the columns are -------------------------------------------------------------------------------------- */

/* What the index will have: stored fields first, then columns. */
struct table_plan {
        struct schema_field fields[INDEX_FIELDS_MAX];
        /* Where each field comes from. */
        struct {
                const struct table_column *column;
                struct table_files *files; /* NULL: the column itself */
                uint32_t idx_column;       /* of a column of the index */
        } from[INDEX_FIELDS_MAX];
        struct index_row rows[INDEX_FIELDS_MAX]; /* of the sample that is given */
        uint32_t n_stored, n_fields;
        struct index_row first_file[INDEX_FIELDS_MAX]; /* of a field of files: for samples that have none */
};

static int refuse_kinds(const struct record_table *table, const struct table_column *column, enum value_kind one,
                        enum value_kind other) {
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

static int listing_table_plan_field(const struct record_table *table, struct table_plan *plan,
                                    const struct schema_field *field, const struct table_column *column,
                                    struct table_files *files) {
        if (plan->n_fields == INDEX_FIELDS_MAX)
                return why_set(table->listing.why, -E2BIG, "%s: more than %u fields", table->listing.files->root,
                               INDEX_FIELDS_MAX);
        for (uint32_t i = 0; i < plan->n_fields; i++)
                if (strcmp(plan->fields[i].name, field->name) == 0)
                        return why_set(
                                table->listing.why, -EINVAL,
                                "%s: two fields would be called \"%s\", of which one is the files; give the other "
                                "one another name",
                                table->listing.files->root, field->name);
        plan->fields[plan->n_fields] = *field;
        plan->from[plan->n_fields].column = column;
        plan->from[plan->n_fields].files = files;
        plan->n_fields++;
        return 0;
}

/* The column becomes the label; a column of that name has another meaning then. */
static bool is_replaced(const struct record_table *table, const struct table_column *column) {
        return table_files_replace(&table->files, column->name) ||
               (table->has_classes && strcmp(column->name, "label") == 0);
}

/* What the column is in the index. */
static int listing_table_describe(const struct record_table *table, const struct table_column *column,
                                  struct schema_field *ret_field) {
        enum value_kind one = CELL_ABSENT, other = CELL_ABSENT;

        if (column_describe(&table->columns, column, table->syntax, ret_field, &one, &other) < 0)
                return refuse_kinds(table, column, one, other);
        if (column->is_kept && ret_field->is_stored) {
                ret_field->is_stored = false;
                ret_field->coding = CODING_PLAIN;
        }
        if (column->is_label && !table->has_classes)
                strcpy(ret_field->name, "label");
        return 0;
}

static int plan_columns(const struct record_table *table, struct table_plan *plan, bool is_stored) {
        for (size_t i = 0; i < table->columns.n_columns; i++) {
                const struct table_column *column = table->columns.columns[i];
                struct schema_field field;
                int r;

                if (column->is_left_out || is_replaced(table, column) ||
                    (column->n_present == 0 && table->syntax == COLUMNS_JSON))
                        continue;
                if (refusals_have(table->refusals, column->name))
                        continue;
                r = listing_table_describe(table, column, &field);
                if (r < 0) {
                        r = refusals_add(table->refusals, column->name, r, table->listing.why);
                        if (r < 0)
                                return r;
                        continue;
                }
                if (field.is_stored == is_stored)
                        r = plan->n_fields == INDEX_FIELDS_MAX
                                    ? table_column_is_too_many(table->refusals, column->name, false, table->listing.why)
                                    : listing_table_plan_field(table, plan, &field, column, NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Is there a label, and are its values classes? */
static int judge_label(struct record_table *table) {
        struct why *why = table->listing.why;
        const char *root = table->listing.files->root;
        const struct table_column *column;
        struct schema_field field;
        int r;

        if (!table->label)
                return 0;
        column = columns_find(&table->columns, table->label, strlen(table->label));
        if (!column || column->n_present == 0)
                return why_set(why, -EINVAL, "%s: label names the column \"%s\", which no sample has", root,
                               table->label);
        if (strcmp(table->label, "label") != 0 && columns_find(&table->columns, "label", 5))
                return why_set(why, -EINVAL,
                               "%s: label names the column \"%s\", but there is a column \"label\" too; leave the key "
                               "label out, and choose with fields",
                               root, table->label);
        r = listing_table_describe(table, column, &field);
        if (r < 0 || (field.kind == FIELD_VALUE && field.n_dims == 0))
                return r;
        if (field.kind != FIELD_TEXT)
                return why_set(why, -EINVAL, "%s: label names the column \"%s\", which is neither text nor a number",
                               root, table->label);
        for (uint64_t row = 0; row < table->columns.n_rows; row++)
                if (column_cell(column, row).kind == CELL_ABSENT)
                        return why_set(why, -EINVAL,
                                       "%s: sample %" PRIu64 " has no \"%s\", which label makes its class", root, row,
                                       table->label);
        table->has_classes = true;
        r = class_names_sort(&table->classes);
        return r < 0 ? index_builder_refused(r, table->listing.files->root, table->listing.why) : 0;
}

static int plan_samples(const struct record_table *table, struct table_plan *plan) {
        struct schema_field field = { .is_stored = true };

        if (!table->samples)
                return 0;
        field.kind = table->samples->kind;
        strcpy(field.name, field.kind == FIELD_PICTURE ? "image" : field.kind == FIELD_SOUND ? "audio" : "file");
        return listing_table_plan_field(table, plan, &field, NULL, NULL);
}

static int plan_index(struct record_table *table, struct table_plan *plan) {
        const struct text_listing *listing = &table->listing;
        struct refusal first = { 0 };
        int r = table_files_judge(&table->files, &table->columns, listing->root_fd, listing->files->root, listing->why);

        if (r == 0)
                r = judge_label(table);
        if (r == 0)
                r = plan_samples(table, plan);
        for (size_t i = 0; i < table->files.n && r == 0; i++) {
                struct table_files *files = &table->files.items[i];
                struct schema_field field = { .is_stored = true };

                if (files->is_none)
                        continue;
                strcpy(field.name, files->field);
                field.kind = files->paths.kind;
                field.coding = files->paths.coding;
                field.may_be_absent = files->is_optional || files->n_present < table->columns.n_rows;
                r = listing_table_plan_field(table, plan, &field, NULL, files);
        }
        if (r == 0)
                r = plan_columns(table, plan, true);
        plan->n_stored = plan->n_fields;
        if (r == 0)
                r = plan_columns(table, plan, false);
        if (r == 0 && plan->n_fields == 0 && refusals_next(table->refusals, &first))
                return why_set(table->listing.why, -ENODATA, "%s", first.reason);
        if (r == 0 && plan->n_fields == 0)
                return why_set(table->listing.why, -ENOENT, "%s: its samples have no values",
                               table->listing.files->root);
        return r;
}

/* ---- the index ------------------------------------------------------------------------------------------------- */

static int listing_table_give_file(const struct record_table *table, uint64_t path, struct table_files *files,
                                   struct index_builder *builder, struct index_row *ret_row) {
        return file_paths_give(&files->paths, path, table->listing.root_fd, builder, ret_row);
}

/* The path of a file that is there, if there is one. */
static uint64_t a_path_of(const struct record_table *table, const struct table_files *files) {
        for (uint64_t row = 0; files->is_optional && row < table->columns.n_rows; row++) {
                uint64_t path = table_files_path(files, row);

                if (path != TABLE_FILES_NONE && file_paths_exists(&files->paths, path, table->listing.root_fd))
                        return path;
        }
        return table_files_path(files, table_files_first(files));
}

static int make_builder(struct record_table *table, struct table_plan *plan, struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        int r = index_builder_new(table->listing.format, plan->n_stored, &builder);

        if (r < 0)
                return r;
        if (!table->samples)
                index_builder_name_rows(builder);
        for (size_t i = 0; table->has_classes && i < class_names_count(&table->classes) && r == 0; i++)
                r = index_builder_add_class(builder, class_names_at(&table->classes, i));
        for (uint32_t i = 0; i < plan->n_fields && r == 0; i++) {
                if (i < plan->n_stored)
                        index_builder_describe(builder, i, &plan->fields[i]);
                else
                        r = index_builder_add_column(builder, &plan->fields[i], &plan->from[i].idx_column);
                if (plan->from[i].files)
                        index_builder_set_own_file(builder, i);
        }
        if (r == 0)
                r = table->samples ? table->samples->begin(table->samples->userdata, builder)
                                   : listing_give_root(&table->listing, builder);
        /* A row has a file also where a sample names none. */
        for (uint32_t i = 0; i < plan->n_stored && r == 0; i++)
                if (plan->from[i].files && plan->fields[i].may_be_absent)
                        r = listing_table_give_file(table, a_path_of(table, plan->from[i].files), plan->from[i].files,
                                                    builder, &plan->first_file[i]);
        if (r == 0)
                *ret_builder = TAKE_PTR(builder);
        return r;
}

/* A text that the column keeps; a cell without a byte is an empty text. */
static int give_text(const struct table_plan *plan, uint32_t i, const struct table_cell *cell,
                     struct index_builder *builder) {
        const struct table_column *column = plan->from[i].column;
        const uint8_t *text = cell->n_bytes > 0 ? column->texts.bytes + cell->begin : (const uint8_t *)"";

        return index_builder_set_value(builder, plan->from[i].idx_column, text, cell->n_bytes);
}

static int listing_table_give_value(const struct table_plan *plan, uint32_t i, const struct table_cell *cell,
                                    struct index_builder *builder) {
        double number = cell->kind == CELL_FLOAT ? cell->number : (double)cell->integer;
        uint8_t truth = cell->integer != 0;
        const void *value = &cell->integer;

        if (plan->fields[i].kind == FIELD_TEXT)
                return give_text(plan, i, cell, builder);
        if (cell->kind == CELL_ABSENT)
                return 0;
        if (plan->fields[i].dtype == DLP_DTYPE_BOOL)
                value = &truth;
        else if (plan->fields[i].dtype == DLP_DTYPE_FLOAT64)
                value = &number;
        return index_builder_set_value(builder, plan->from[i].idx_column, value,
                                       dlp_dtype_bytes(plan->fields[i].dtype));
}

/* A file that the record names, if it names one. */
static int give_own_file(const struct record_table *table, const struct table_plan *plan, uint32_t i, uint64_t row,
                         struct index_builder *builder, struct index_row *ret_row) {
        struct table_files *files = plan->from[i].files;
        uint64_t path = table_files_path(files, row);
        bool is_missing = false;
        int r = 0;

        if (path != TABLE_FILES_NONE && files->is_optional)
                r = file_paths_miss(&files->paths, path, table->listing.root_fd, builder, &is_missing);
        if (r == 0 && path != TABLE_FILES_NONE && !is_missing)
                return listing_table_give_file(table, path, files, builder, ret_row);
        *ret_row = (struct index_row){ .file = plan->first_file[i].file, .offset = INDEX_ROW_ABSENT };
        return r;
}

static int give_row(struct record_table *table, struct table_plan *plan, uint64_t row, struct index_builder *builder) {
        uint64_t offset = ((const uint64_t *)(const void *)table->columns.rows.bytes)[row];
        int32_t label = table->has_classes ? class_names_label(&table->classes, row) : 0;
        struct index_row *rows = plan->rows;

        for (uint32_t i = 0; i < plan->n_fields; i++) {
                struct table_cell cell = { .kind = CELL_ABSENT };
                int r = 0;

                if (plan->from[i].column)
                        cell = column_cell(plan->from[i].column, row);
                if (i >= plan->n_stored)
                        r = listing_table_give_value(plan, i, &cell, builder);
                else if (table->samples && i == 0)
                        r = table->samples->give(table->samples->userdata, row, builder, &rows[0]);
                else if (plan->from[i].files)
                        r = give_own_file(table, plan, i, row, builder, &rows[i]);
                else if (cell.kind == CELL_ABSENT && cell.integer == 0 && plan->fields[i].may_be_absent)
                        rows[i] = (struct index_row){ .file = INDEX_NO_FILE, .offset = INDEX_ROW_ABSENT };
                else
                        rows[i] = (struct index_row){ .file = INDEX_NO_FILE,
                                                      .offset = offset + cell.begin,
                                                      .length = cell.n_bytes };
                if (r < 0)
                        return r;
        }
        return index_builder_add_sample(builder, rows, label);
}

/* The samples from `row` to before `end`. */
static int listing_table_give_rows(struct record_table *table, struct table_plan *plan, uint64_t row, uint64_t end,
                                   struct index_builder *builder) {
        struct text_listing *listing = &table->listing;
        int r = 0;

        for (; row < end && r == 0; row++) {
                r = give_row(table, plan, row, builder);
                listing->n_samples = row + 1;
                if (r == 0 && listing_look_up(listing, table->columns.n_rows) < 0)
                        return -ECANCELED;
        }
        return r;
}

/* The samples of one listing. */
static int give_listing(struct record_table *table, struct table_plan *plan, size_t idx_file,
                        struct index_builder *builder) {
        const struct text_listing *listing = &table->listing;
        uint64_t end = idx_file + 1 < listing_n_files(listing) ? listing_file(listing, idx_file + 1)->first_sample
                                                               : table->columns.n_rows;
        int r = listing_give_file(listing, builder, idx_file);

        return r < 0 ? r
                     : listing_table_give_rows(table, plan, listing_file(listing, idx_file)->first_sample, end,
                                               builder);
}

int table_make_index(struct record_table *table, struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(freep) struct table_plan *plan = calloc(1, sizeof(*plan));
        struct text_listing *listing = &table->listing;
        int r;

        assert(listing->n_samples == table->columns.n_rows);
        if (!plan)
                return index_builder_refused(-ENOMEM, listing->files->root, listing->why);
        r = plan_index(table, plan);
        if (r < 0)
                return r;
        r = make_builder(table, plan, &builder);
        listing->n_looked = 0;
        for (size_t i = 0; i < listing_n_files(listing) && r == 0; i++)
                r = give_listing(table, plan, i, builder);
        if (r == 0 && table->samples)
                r = listing_table_give_rows(table, plan, 0, table->columns.n_rows, builder);
        if (r == -ECANCELED)
                return r;
        if (r < 0)
                return index_builder_refused(r, listing->files->root, listing->why);
        *ret_builder = TAKE_PTR(builder);
        return 0;
}
