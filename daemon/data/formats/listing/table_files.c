#include "daemon/data/formats/listing/table_files.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

void table_files_fini(struct table_files_set *set) {
        for (size_t i = 0; i < set->n; i++) {
                file_paths_fini(&set->items[i].paths);
                growing_fini(&set->items[i].rows);
        }
        set->n = 0;
}

/* ---- the option ------------------------------------------------------------------------------------------------ */

/* Takes the next name of a list "a, b=c" up to one of `ends`, without the blanks around it. False: none. */
static bool table_files_take_name(const char **at, const char *ends, char name[SCHEMA_NAME_MAX]) {
        size_t n;

        *at += strspn(*at, " \t");
        n = strcspn(*at, ends);
        while (n > 0 && text_is_blank((*at)[n - 1]))
                n--;
        if (n == 0)
                return false;
        field_name_from(*at, n, name);
        *at += strcspn(*at, ends);
        return true;
}

/* Takes "masks/{id}.png", of n bytes. */
static bool table_files_take_parts(struct table_files *files, const char *text, size_t n) {
        const char *end = text + n;

        for (;;) {
                struct table_files_part *part = &files->parts[files->n_parts++];
                const char *open = memchr(text, '{', (size_t)(end - text));
                const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
                const char *name = open ? open + 1 : NULL;

                part->literal = text;
                part->n_literal = (size_t)((open ? open : end) - text);
                if (memchr(text, '}', part->n_literal))
                        return false;
                if (!open)
                        return true;
                if (!close || close == name || memchr(name, '{', (size_t)(close - name)) ||
                    files->n_parts > TABLE_FILES_PARTS_MAX)
                        return false;
                field_name_from(name, (size_t)(close - name), part->name);
                text = close + 1;
        }
}

/* Takes "COLUMN" or "a/{COLUMN}" and what follows it, up to the comma. */
static bool take_source(struct table_files *files, const char **at) {
        size_t n;

        *at += strspn(*at, " \t");
        n = strcspn(*at, ",");
        if (!memchr(*at, '{', n))
                return table_files_take_name(at, ",=", files->column) && **at != '=';
        files->column[0] = '\0';
        if (!table_files_take_parts(files, *at, n))
                return false;
        for (struct table_files_part *last = &files->parts[files->n_parts - 1];
             last->n_literal > 0 && text_is_blank(last->literal[last->n_literal - 1]);)
                last->n_literal--;
        *at += n;
        return true;
}

static int table_files_refuse_option(const char *option, struct why *why) {
        return why_set(why, -EINVAL,
                       "files = \"%s\": names of fields and of columns were expected, as in \"image=path, "
                       "mask?=masks/{id}.png\", %u at most, and no field twice",
                       option, TABLE_FILES_MAX);
}

static int table_files_read_option(struct table_files_set *set, const char *option, struct why *why) {
        for (const char *at = option; *at;) {
                struct table_files *files = &set->items[set->n];

                if (set->n == TABLE_FILES_MAX || !table_files_take_name(&at, ",=?", files->field))
                        return table_files_refuse_option(option, why);
                set->n++;
                strcpy(files->column, files->field);
                files->is_optional = *at == '?';
                at += files->is_optional;
                at += strspn(at, " \t");
                if (*at && *at != ',' && *at != '=')
                        return table_files_refuse_option(option, why);
                if (*at == '=') {
                        at++;
                        if (!take_source(files, &at))
                                return table_files_refuse_option(option, why);
                }
                for (size_t i = 0; i + 1 < set->n; i++)
                        if (strcmp(set->items[i].field, files->field) == 0)
                                return table_files_refuse_option(option, why);
                at += *at == ',';
        }
        return 0;
}

int table_files_init(struct table_files_set *set, const char *option, struct why *why) {
        if (option)
                return table_files_read_option(set, option, why);
        strcpy(set->items[0].column, "file_name");
        strcpy(set->items[1].column, "audio_filepath");
        set->items[0].is_guess = set->items[1].is_guess = true;
        set->n = 2;
        return 0;
}

/* ---- while records are read ------------------------------------------------------------------------------------ */

void table_files_bind(struct table_files_set *set, struct table_column *column) {
        for (size_t i = 0; i < set->n; i++) {
                struct table_files *files = &set->items[i];

                column->is_path |= strcmp(files->column, column->name) == 0;
                for (size_t k = 0; k < files->n_parts; k++)
                        if (strcmp(files->parts[k].name, column->name) == 0) {
                                files->parts[k].column = column;
                                column->is_part = true;
                        }
        }
}

/* Adds a path for a record. The last one counts if there are several. */
static int put_path(struct table_files *files, uint64_t row, const char *listing, const char *path, size_t n,
                    struct why *why) {
        uint64_t n_rows = files->rows.n_bytes / sizeof(uint64_t), at = 0, *rows;
        int r = file_paths_add(&files->paths, listing, path, n, &at, why);

        if (r < 0)
                return r;
        if (n_rows <= row && growing_append(&files->rows, NULL, (row + 1 - n_rows) * sizeof(uint64_t)) < 0)
                return why_set(why, -ENOMEM, "no memory for a path");
        rows = (void *)files->rows.bytes;
        files->n_present += rows[row] == 0;
        rows[row] = at + 1;
        return 0;
}

int table_files_note_path(struct table_files_set *set, const struct table_column *column, uint64_t row,
                          const char *listing, const char *path, size_t n, struct why *why) {
        int r = 0;

        for (size_t i = 0; i < set->n && r == 0; i++) {
                struct table_files *files = &set->items[i];

                if (strcmp(files->column, column->name) != 0 || files->is_none)
                        continue;
                r = put_path(files, row, listing, path, n, why);
                if (r == -EINVAL && files->is_guess) {
                        files->is_none = true;
                        r = 0;
                }
        }
        return r;
}

void table_files_forget_path(struct table_files_set *set, const struct table_column *column, uint64_t row) {
        for (size_t i = 0; i < set->n; i++) {
                struct table_files *files = &set->items[i];

                if (strcmp(files->column, column->name) != 0 || table_files_path(files, row) == TABLE_FILES_NONE)
                        continue;
                ((uint64_t *)(void *)files->rows.bytes)[row] = 0;
                files->n_present--;
        }
}

static int table_files_append(char *path, size_t *n_path, const void *bytes, size_t n, struct why *why) {
        if (n >= PATH_MAX - *n_path)
                return why_set(why, -EINVAL, "the path \"%.*s...\" is too long", *n_path > 200 ? 200 : (int)*n_path,
                               path);
        if (n > 0)
                memcpy(path + *n_path, bytes, n);
        *n_path += n;
        return 0;
}

static int end_one(struct table_files *files, uint64_t row, const char *listing, struct why *why) {
        char path[PATH_MAX];
        size_t n = 0;

        for (size_t i = 0; i < files->n_parts; i++) {
                const struct table_files_part *part = &files->parts[i];
                int r = table_files_append(path, &n, part->literal, part->n_literal, why);

                if (r == 0 && part->name[0]) {
                        if (!part->column || part->column->part_row != row + 1)
                                return 0;
                        r = table_files_append(path, &n, part->column->part.bytes, part->column->part.n_bytes, why);
                }
                if (r < 0)
                        return r;
        }
        return put_path(files, row, listing, path, n, why);
}

int table_files_end_record(struct table_files_set *set, uint64_t row, const char *listing, struct why *why) {
        int r = 0;

        for (size_t i = 0; i < set->n && r == 0; i++)
                if (set->items[i].n_parts > 0)
                        r = end_one(&set->items[i], row, listing, why);
        return r;
}

uint64_t table_files_path(const struct table_files *files, uint64_t row) {
        uint64_t at = 0;

        if (row < files->rows.n_bytes / sizeof(at))
                at = ((const uint64_t *)(const void *)files->rows.bytes)[row];
        return at > 0 ? at - 1 : TABLE_FILES_NONE;
}

uint64_t table_files_first(const struct table_files *files) {
        uint64_t row = 0;

        assert(files->n_present > 0);
        while (table_files_path(files, row) == TABLE_FILES_NONE)
                row++;
        return row;
}

/* ---- after the last record ------------------------------------------------------------------------------------- */

static bool is_text_only(const struct table_column *column) {
        for (enum value_kind kind = CELL_BOOLEAN; kind < N_CELL_KINDS; kind++)
                if (kind != CELL_TEXT && column->seen[kind].line > 0)
                        return false;
        return column->seen[CELL_TEXT].line > 0;
}

/* A guess comes true if the file that the first record names exists; the endings say what the field is called. */
static void judge_guess(struct table_files *files, const struct table_column *column, int root_fd) {
        uint64_t first;

        files->is_none = files->is_none || !column || files->n_present == 0 || !is_text_only(column);
        if (files->is_none)
                return;
        first = table_files_path(files, table_files_first(files));
        files->is_none = !file_paths_exists(&files->paths, first, root_fd);
        if (files->is_none)
                return;
        strcpy(files->field, files->paths.kind == FIELD_PICTURE ? "image"
                             : files->paths.kind == FIELD_SOUND ? "audio"
                                                                : "file");
}

static int judge_parts(const struct table_files *files, const char *root, struct why *why) {
        for (size_t i = 0; i < files->n_parts; i++)
                if (files->parts[i].name[0] && !files->parts[i].column)
                        return why_set(why, -EINVAL,
                                       "%s: files names the column \"%s\", which no sample has; the names are those in "
                                       "the listing",
                                       root, files->parts[i].name);
        if (files->n_present == 0)
                return why_set(why, -EINVAL, "%s: no sample has all columns that name the files of the field \"%s\"",
                               root, files->field);
        return 0;
}

int table_files_judge(struct table_files_set *set, struct table_columns *columns, int root_fd, const char *root,
                      struct why *why) {
        for (size_t i = 0; i < set->n; i++) {
                struct table_files *files = &set->items[i];
                const struct table_column *column = columns_find(columns, files->column, strlen(files->column));
                int r = files->n_parts > 0 ? judge_parts(files, root, why) : 0;

                if (r < 0)
                        return r;
                if (files->is_guess) {
                        judge_guess(files, column, root_fd);
                        if (!files->is_none && (columns_find(columns, files->field, strlen(files->field)) ||
                                                (i > 0 && !set->items[0].is_none)))
                                files->is_none = true;
                } else if (files->n_parts == 0 && (!column || !is_text_only(column))) {
                        return why_set(why, -EINVAL, "%s: files names the column \"%s\", %s", root, files->column,
                                       column ? "whose values are not all strings"
                                              : "which no sample has; the names are those in the listing");
                }
        }
        return 0;
}

bool table_files_replace(const struct table_files_set *set, const char *name) {
        for (size_t i = 0; i < set->n; i++)
                if (!set->items[i].is_none && strcmp(set->items[i].field, name) == 0)
                        return true;
        return false;
}
