#include "daemon/data/format.h"

/* csv: a row is a sample, and the first row names the columns. A column whose cells are all numbers is known without
 * reading; of any other column the index says where the cells lie. Blank lines are not samples. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/formats/listing/csv/csv_cell.h"
#include "daemon/data/formats/listing/csv/csv_scan.h"
#include "daemon/data/formats/listing/join.h"
#include "daemon/data/formats/listing/parts.h"
#include "daemon/data/formats/listing/table_part.h"
#include "proto/base/cleanup.h"

#define NAMES_BYTES (16u << 10) /* that are read at once to find the names of columns again */

struct csv_dataset {
        struct record_table table;
        struct join join;
        char delimiter;     /* or CSV_BLANKS */
        bool is_by_name;    /* the delimiter is told by the ending of a file's name instead */
        uint64_t n_skipped; /* lines before the first row of each file */
        const char *names;  /* the option `columns`; NULL: the first row of each file names them */
        size_t idx_file;    /* of the one that is read */
        size_t idx_named;   /* 1 + the file whose columns are the following; 0: none */
        struct table_column *order[TABLE_COLUMNS_MAX]; /* the columns as they stand in its rows */
        size_t n_columns;
        uint64_t n_named; /* lines of names so far */
        struct why why;   /* what is wrong in the row that is being read */
};

/* ---- options --------------------------------------------------------------------------------------------------- */

static bool csv_is_word(const char *delimiter) {
        return strcmp(delimiter, "tab") == 0 || strcmp(delimiter, "blank") == 0;
}

static int csv_check_delimiter(const char *text, struct why *why) {
        if (csv_is_word(text) || (strlen(text) == 1 && !strchr("\"\r\n", text[0]) && (unsigned char)text[0] < 0x80))
                return 0;
        return why_set(why, -EINVAL,
                       "\"%s\" is not allowed; write one character such as \";\", or \"tab\" or \"blank\"", text);
}

static int csv_read_options(struct csv_dataset *dataset, const struct format_options *options) {
        const char *delimiter = format_option(options, "delimiter");

        dataset->names = format_option(options, "columns");
        dataset->is_by_name = delimiter == NULL;
        if (delimiter)
                dataset->delimiter = !csv_is_word(delimiter) ? delimiter[0] : delimiter[0] == 't' ? '\t' : CSV_BLANKS;
        dataset->n_skipped = format_option_number(options, "skip_lines", 0);
        return table_init(&dataset->table, format_option(options, "files"), format_option(options, "raw"),
                          format_option(options, "label"));
}

static char delimiter_of(const struct csv_dataset *dataset) {
        return dataset->is_by_name ? csv_delimiter_of(listing_name(&dataset->table.listing)) : dataset->delimiter;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

/* The text of a cell, with a NUL after it. Its memory is kept for the next one. */
static int csv_text_of(struct csv_dataset *dataset, const uint8_t *row, const struct csv_cell *cell, char **ret_text,
                       size_t *ret_n) {
        struct growing *text = &dataset->table.text;

        if (growing_reserve(text, cell->n_bytes + 1) < 0)
                return why_set(&dataset->why, -ENOMEM, "no memory for a cell of %zu bytes", cell->n_bytes);
        *ret_n = csv_text(row + cell->begin, cell->n_bytes, text->bytes);
        text->bytes[*ret_n] = '\0';
        *ret_text = (char *)text->bytes;
        return 0;
}

static int refuse_other(struct csv_dataset *dataset, size_t idx, const char *name) {
        return why_set(&dataset->why, -EINVAL,
                       "column %zu is \"%s\", and \"%s\" in the file before; files with a joined table all have the "
                       "same columns",
                       idx + 1, name, idx < dataset->n_columns ? dataset->order[idx]->name : "nothing");
}

/* With a table that is joined, all files have the same columns. */
static int check_same(struct csv_dataset *dataset, size_t idx, const char *name, size_t n) {
        char cut[SCHEMA_NAME_MAX];

        field_name_from(name, n, cut);
        if (dataset->join.n == 0 || dataset->n_named == 1 ||
            (idx < dataset->n_columns && strcmp(dataset->order[idx]->name, cut) == 0))
                return 0;
        return refuse_other(dataset, idx, cut);
}

/* Nobody knows which one is meant. */
static int refuse_twice(struct csv_dataset *dataset, struct table_column *column) {
        int r = why_set(&dataset->why, -EINVAL, "two columns have the name \"%s\"; rename one", column->name);

        return dataset->names ? r : table_leave_out(&dataset->table, column, r, &dataset->why);
}

static int name_column(struct csv_dataset *dataset, size_t idx, const char *name, size_t n, bool *ret_is_known) {
        bool is_made_up = n == 0 && !dataset->names; /* so it does not show that this is a row of names */
        struct table_column *column;
        char number[32];
        int r;

        if (is_made_up) { /* pandas writes its index so: named as DuckDB names it */
                n = (size_t)snprintf(number, sizeof(number), "column%zu", idx);
                name = number;
        }
        if (idx == TABLE_COLUMNS_MAX)
                return why_set(&dataset->why, -E2BIG, "there are more than %u columns", TABLE_COLUMNS_MAX);
        r = check_same(dataset, idx, name, n);
        if (r == 0)
                r = table_find_column(&dataset->table, name, n, &column, &dataset->why);
        if (r < 0)
                return r;
        *ret_is_known = !is_made_up && column->n_named > 0 && column->n_named != dataset->n_named;
        if (column->n_named == dataset->n_named)
                r = refuse_twice(dataset, column);
        column->n_named = dataset->n_named;
        dataset->order[idx] = column;
        return r;
}

/* In the option, blanks around a name do not count. */
static void csv_trim(char *name, size_t *n) {
        size_t n_before = strspn(name, " \t");

        memmove(name, name + n_before, *n - n_before + 1);
        *n -= n_before;
        while (*n > 0 && (name[*n - 1] == ' ' || name[*n - 1] == '\t'))
                name[--*n] = '\0';
}

/* The first row of a file, or the option. */
static int take_names(struct csv_dataset *dataset, const uint8_t *row, size_t n_row, char delimiter) {
        size_t at = 0, n_cells = 0, n_known = 0;
        struct csv_cell cell;

        dataset->n_named++;
        while (csv_next_cell(row, n_row, delimiter, &at, &cell)) {
                char *name = NULL;
                bool is_known = false;
                size_t n = 0;
                int r = csv_text_of(dataset, row, &cell, &name, &n);

                if (r == 0 && dataset->names)
                        csv_trim(name, &n);
                if (r == 0)
                        r = name_column(dataset, n_cells++, name, n, &is_known);
                if (r < 0)
                        return r;
                n_known += is_known;
        }
        if (dataset->join.n > 0 && n_cells < dataset->n_columns)
                return refuse_other(dataset, n_cells, "nothing");
        dataset->n_columns = n_cells;
        if (n_known == 0 && dataset->n_named > 1 && !dataset->table.notes)
                return why_set(&dataset->why, -EINVAL,
                               "none of its columns is in the files before it, so it is another table; name the files "
                               "that belong together in path");
        return 0;
}

static int csv_take_cell(struct csv_dataset *dataset, struct table_column *column, const uint8_t *row,
                         const struct csv_cell *found) {
        struct text_listing *listing = &dataset->table.listing;
        struct table_cell cell = { .begin = (uint32_t)found->begin, .n_bytes = (uint32_t)found->n_bytes & 0xfffffffu };
        char *text = NULL;
        size_t n = 0;
        int r = 0;

        if (column->is_left_out)
                return 0;
        if (column->is_path || column->is_part || column->is_label)
                r = csv_text_of(dataset, row, found, &text, &n);
        if (r == 0 && n > 0)
                r = table_note_text(&dataset->table, column, text, n, &dataset->why);
        if (column->is_path) {
                cell.kind = n > 0 ? CELL_TEXT : CELL_ABSENT;
        } else {
                bool has_quotes = found->is_quoted && found->n_bytes >= 2;

                csv_cell_judge(row + found->begin + has_quotes, found->n_bytes - 2 * has_quotes, &cell);
        }
        if (cell.kind == CELL_ABSENT)
                cell.integer = 1;
        if (r < 0)
                return r;
        r = columns_put(&dataset->table.columns, column, &cell, listing->window.n_lines, listing_n_files(listing) - 1);
        return r < 0 ? why_set(&dataset->why, r, "no memory for its values") : 0;
}

static int csv_take_row(struct csv_dataset *dataset, const uint8_t *row, size_t n_row, char delimiter) {
        struct csv_cell cell;
        size_t at = 0, n_cells = 0;

        while (csv_next_cell(row, n_row, delimiter, &at, &cell)) {
                int r;

                if (n_cells == dataset->n_columns)
                        return why_set(&dataset->why, -EBADMSG,
                                       "there are more cells than the %zu columns; a cell with the delimiter in it "
                                       "needs quotes",
                                       dataset->n_columns);
                r = csv_take_cell(dataset, dataset->order[n_cells++], row, &cell);
                if (r < 0)
                        return r;
        }
        if (n_cells < dataset->n_columns)
                return why_set(&dataset->why, -EBADMSG, "there are %zu cells for %zu columns", n_cells,
                               dataset->n_columns);
        return 0;
}

/* The next row, of which the window has all bytes: the window stands after it then. Returns 0, TEXT_WINDOW_END or an
 * errno with dataset->why. */
static int next_row(struct csv_dataset *dataset, char delimiter, const uint8_t **ret_row, size_t *ret_n,
                    uint64_t *ret_offset, uint64_t *ret_n_lines) {
        struct text_window *window = &dataset->table.listing.window;
        size_t n_row = 0, n_with_end = 0;
        int r;

        for (;;) {
                if (window->is_last && window->at == window->n_bytes)
                        return TEXT_WINDOW_END;
                r = csv_find_row(window->bytes + window->at, window->n_bytes - window->at, window->is_last, delimiter,
                                 &n_row, &n_with_end, ret_n_lines, &dataset->why);
                if (r != CSV_MORE)
                        break;
                r = text_window_read_on(window, &dataset->why);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        *ret_row = window->bytes + window->at;
        *ret_offset = window->offset + window->at;
        *ret_n = n_row;
        window->at += n_with_end;
        return 0;
}

static int csv_take_sample(struct csv_dataset *dataset, const uint8_t *row, size_t n_row, uint64_t offset,
                           char delimiter) {
        struct text_listing *listing = &dataset->table.listing;
        int r;

        r = listing->n_samples == 0 ? join_bind(&dataset->join, &dataset->table, &dataset->why) : 0;
        if (r < 0)
                return r;
        if (columns_begin_row(&dataset->table.columns, offset) < 0)
                return why_set(&dataset->why, -ENOMEM, "no memory for another row");
        listing->n_samples++;
        r = csv_take_row(dataset, row, n_row, delimiter);
        if (r == 0)
                r = join_record(&dataset->join, &dataset->table, &dataset->why);
        return r < 0 ? r : table_end_record(&dataset->table, &dataset->why);
}

static int skip_lines(struct csv_dataset *dataset) {
        struct text_window *window = &dataset->table.listing.window;
        int r = 0;

        for (uint64_t i = 0; i < dataset->n_skipped && r == 0; i++) {
                const uint8_t *line;
                size_t n;
                uint64_t offset;

                r = text_window_line(window, &line, &n, &offset, &dataset->why);
        }
        return r < 0 ? r : 0;
}

/* What comes before the samples of a file: lines that are skipped, and the row that names the columns. Returns 0;
 * TEXT_WINDOW_END if the file has no row; or an errno with dataset->why. */
static int csv_read_begin(struct csv_dataset *dataset, char delimiter) {
        struct text_window *window = &dataset->table.listing.window;
        uint64_t stop = window->stop;
        size_t n_row = 0;
        int r;

        window->stop = 0; /* it is only for the samples */
        dataset->idx_named = 0;
        r = skip_lines(dataset);
        window->n_lines = dataset->n_skipped + 1; /* of the row that is read */
        if (r == 0 && dataset->names && dataset->n_named == 0)
                r = take_names(dataset, (const uint8_t *)dataset->names, strlen(dataset->names), ',');
        while (r == 0 && !dataset->names && n_row == 0) {
                uint64_t offset = 0, n_lines = 0;
                const uint8_t *row = NULL;

                r = next_row(dataset, delimiter, &row, &n_row, &offset, &n_lines);
                if (r == 0 && n_row > 0)
                        r = take_names(dataset, row, n_row, delimiter);
                if (r == 0)
                        window->n_lines += n_lines;
        }
        window->stop = stop;
        if (r == 0)
                dataset->idx_named = dataset->idx_file + 1;
        return r;
}

/* The columns of the file, where its rows are read from the middle on. */
static int know_names(struct csv_dataset *dataset, char delimiter) {
        struct text_window *window = &dataset->table.listing.window;
        const struct text_window kept = *window;
        int r;

        if (dataset->idx_named == dataset->idx_file + 1)
                return 0;
        *window = (struct text_window){
                .fd = kept.fd, .n_file = kept.n_file, .n_read = NAMES_BYTES, .n_max = kept.n_max
        };
        r = text_window_begin(window, &dataset->why);
        if (r == 0)
                r = csv_read_begin(dataset, delimiter);
        text_window_fini(window);
        *window = kept;
        return r;
}

static int read_samples(struct csv_dataset *dataset, char delimiter) {
        struct text_listing *listing = &dataset->table.listing;
        int r = 0;

        while (r == 0 && !text_window_is_over(&listing->window)) {
                uint64_t offset = 0, n_lines = 0;
                const uint8_t *row = NULL;
                size_t n_row = 0;

                r = next_row(dataset, delimiter, &row, &n_row, &offset, &n_lines);
                if (r == 0 && n_row > 0)
                        r = csv_take_sample(dataset, row, n_row, offset, delimiter);
                if (r != 0)
                        break;
                listing->window.n_lines += n_lines;
                if (listing_look_up(listing, 0) < 0)
                        return -ECANCELED;
        }
        return r < 0 ? listing_refuse(listing, listing->window.n_lines, r, &dataset->why) : 0;
}

static int csv_read_rows(struct text_listing *listing, void *userdata) {
        struct csv_dataset *dataset = userdata;
        char delimiter = delimiter_of(dataset);
        int r;

        if (!dataset->table.notes)
                dataset->idx_file = listing_n_files(listing) - 1;
        r = listing->is_inside ? know_names(dataset, delimiter) : csv_read_begin(dataset, delimiter);
        if (r < 0)
                return listing_refuse(listing, listing->window.n_lines, r, &dataset->why);
        return r == TEXT_WINDOW_END ? 0 : read_samples(dataset, delimiter);
}

/* ---- in parts -------------------------------------------------------------------------------------------------- */

static void csv_free_part(struct text_listing *listing) {
        struct csv_dataset *part = (struct csv_dataset *)(void *)listing;

        table_fini(&part->table);
        free(part);
}

static struct text_listing *csv_make_part(const void *userdata) {
        const struct csv_dataset *dataset = userdata;
        struct csv_dataset *part = calloc(1, sizeof(*part));

        if (!part)
                return NULL;
        part->delimiter = dataset->delimiter;
        part->is_by_name = dataset->is_by_name;
        part->n_skipped = dataset->n_skipped;
        part->names = dataset->names;
        if (table_part_init(&part->table, &dataset->table) == 0)
                return &part->table.listing;
        csv_free_part(&part->table.listing);
        return NULL;
}

static void csv_clear_part(struct text_listing *listing) {
        table_part_clear(&((struct csv_dataset *)(void *)listing)->table);
}

/* A line break may lie within quotes, so that it is not the end of a row. Each piece says what its quotes do to those
 * after it, which is much faster than reading its rows. */
static int find_row(struct text_listing *listing, struct cuts *cuts, const struct cut *cut) {
        struct csv_dataset *part = (struct csv_dataset *)(void *)listing;
        char delimiter = delimiter_of(part);
        struct text_window *window = &listing->window;
        uint8_t after[CUTS_STATES] = { CUTS_STATES, CUTS_STATES, CUTS_STATES, CUTS_STATES }, state, before;
        uint64_t n_here;

        _Static_assert(N_CSV_STATES <= CUTS_STATES, "a state for each of them");
        part->idx_file = cut->idx_file;
        if (listing->is_inside) {
                int r = know_names(part, delimiter);

                if (r != 0)
                        return r < 0 ? r : -EBADMSG;
                window->at = 1; /* after the byte before the piece */
        } else {
                int r = csv_read_begin(part, delimiter);

                if (r != 0)
                        return r < 0 ? r : 0;
                listing->is_inside = true;
                if (text_window_is_over(window))
                        return 0;
        }
        before = cut->begin > 0 ? window->bytes[0] : '\n';
        n_here = cut->end - text_window_place(window);
        if (n_here > window->n_bytes - window->at)
                return -EBADMSG; /* a row of names that is as long as a piece */
        csv_states(before, window->bytes + window->at, (size_t)n_here, delimiter, after);
        state = cuts_state(cuts, cut, after);
        if (state >= N_CSV_STATES)
                return -EBADMSG; /* nobody knows where a row begins */
        if (cut->begin > 0)
                window->at += csv_find_begin(before, window->bytes + window->at, (size_t)n_here, delimiter, state);
        return 0;
}

static int csv_take_part(void *userdata, struct text_listing *listing, uint64_t line_base) {
        struct csv_dataset *dataset = userdata;

        if (line_base == 0 && listing->n_samples == 0) /* the names of its columns count */
                return PARTS_AGAIN;
        return table_part_take(&dataset->table, &((const struct csv_dataset *)(const void *)listing)->table, line_base);
}

static const struct listing_parts PARTS = {
        .make = csv_make_part,
        .free = csv_free_part,
        .clear = csv_clear_part,
        .find = find_row,
        .read = csv_read_rows,
        .take = csv_take_part,
};

/* ---- the format ------------------------------------------------------------------------------------------------ */

static bool is_csv(const char *name) {
        return listing_has_ending(name, ".csv");
}

static bool is_tsv(const char *name) {
        return listing_has_ending(name, ".tsv");
}

static bool is_csv_or_tsv(const char *name) {
        return is_csv(name) || is_tsv(name);
}

static const struct shards_kind SHARDS = {
        .what = "csv file",
        .pattern = "*.?sv",
        .path = "a file, a folder of files, or a pattern such as DIR/x-{000..127}.csv",
        .is_taken = is_csv,
        .is_else_taken = is_tsv,
};

static int csv_is_it(int root_fd, const struct files *files) {
        return listing_is_it(root_fd, files, &SHARDS, is_csv_or_tsv, false, listing_begins_as_text);
}

static int csv_build(int root_fd, const struct files *files, const struct format_options *options,
                     const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        struct csv_dataset *dataset = calloc(1, sizeof(*dataset));
        int r;

        if (!dataset)
                return why_set(why, -ENOMEM, "%s: no memory for its columns", files->root);
        dataset->table.listing = (struct text_listing){ .root_fd = root_fd,
                                                        .files = files,
                                                        .watch = watch,
                                                        .why = why,
                                                        .format = "csv",
                                                        .split = format_option(options, "split") };
        dataset->table.syntax = COLUMNS_CSV;
        dataset->table.refusals = format_refusals(options);
        r = csv_read_options(dataset, options);
        if (r == 0)
                r = join_open(&dataset->join, format_option(options, "join"), dataset->delimiter, dataset->is_by_name,
                              root_fd, files->root, why);
        if (r == 0)
                r = listing_walk(&dataset->table.listing, &SHARDS, csv_read_rows, dataset->join.n == 0 ? &PARTS : NULL,
                                 dataset);
        if (r == 0)
                r = table_make_index(&dataset->table, ret_builder);
        table_fini(&dataset->table);
        join_fini(&dataset->join);
        free(dataset);
        return r;
}

static const struct setting OPTIONS[] = {
        OPTION_FILES,
        OPTION_RAW,
        OPTION_LABEL,
        { .name = "join",
          .kind = SETTING_OPTIONAL,
          .max = 4095,
          .prose = "Further tables whose rows belong to the samples, as in \"labels.txt(id, class_id), "
                   "classes.txt(class_id, class)\"." },
        { .name = "delimiter",
          .kind = SETTING_OPTIONAL,
          .max = 15,
          .check = csv_check_delimiter,
          .prose = "The character between cells, such as \";\", \"tab\", or \"blank\": any number of blanks and tabs; "
                   "empty: a comma, in files .tsv a tab." },
        { .name = "columns",
          .kind = SETTING_OPTIONAL,
          .max = 4095,
          .prose = "The names of the columns, separated by commas, for files whose first row does not have them." },
        { .name = "skip_lines",
          .kind = SETTING_NUMBER,
          .max = 1000000,
          .unit = "lines",
          .prose = "Lines before the first row of each file; empty: none." },
        OPTION_SPLIT,
        { 0 },
};

static const struct format_naming NAMES[] = { { ".csv", .is_end = true }, { ".tsv", .is_end = true }, { 0 } };

static const struct format_conversion CONVERSIONS[] = {
        FORMAT_DECOMPRESSED(".csv"),
        FORMAT_DECOMPRESSED(".tsv"),
        { 0 },
};

const struct format format_csv = {
        .name = "csv",
        .doc = "A file, a pattern of files, or a folder of `*.csv` files (if there are none, `*.tsv`), in the order "
               "of their names, whose first row names the columns. A row is a sample and a column is a field.",
        .example = "path = \"/data/val.txt\" format = \"csv\" delimiter = \"blank\" columns = \"name, label\"",
        .takes_files = true,
        .is_read_through = true,
        .options = OPTIONS,
        .file_option = "join",
        .names = NAMES,
        .conversions = CONVERSIONS,
        .is_it = csv_is_it,
        .build = csv_build,
};
