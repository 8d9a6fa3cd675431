#include "daemon/data/formats/arrow/arrow_survey.h"

#include <errno.h>
#include <string.h>

#include "daemon/data/formats/differing/number_types.h"
#include "proto/base/cleanup.h"

struct survey {
        struct arrow_visitor visitor;
        struct arrow_columns *columns;
        struct refusals *refusals; /* NULL in a part */
        struct arrow_cell cells[ARROW_ROWS_MAX], paths[ARROW_ROWS_MAX];
        int64_t labels[ARROW_ROWS_MAX];
        bool is_valid[ARROW_ROWS_MAX];
};

static bool is_here(const struct arrow_column *column) {
        return column->here.idx_field != COLUMN_NONE;
}

static int survey_labels(struct survey *survey, struct arrow_column *column, const struct arrow_rows *rows,
                         struct why *why) {
        int r = arrow_numbers(rows, column->here.idx_field, survey->labels, survey->is_valid, why);
        size_t width = dlp_dtype_bytes(column->here.dtype);
        int64_t label = 0;

        for (uint32_t i = 0; i < rows->n && r == 0; i++) {
                if (!survey->is_valid[i] ||
                    !number_convert(column->here.dtype, (const uint8_t *)survey->labels + i * width, DLP_DTYPE_INT64,
                                    &label)) {
                        column->n_absent++;
                        continue;
                }
                column->least = label < column->least ? label : column->least;
                column->most = label > column->most ? label : column->most;
        }
        return r;
}

static int arrow_survey_survey_media(struct survey *survey, struct arrow_column *column, const struct arrow_rows *rows,
                                     struct why *why) {
        int r = arrow_validity(rows, column->here.idx_field, survey->is_valid, why);

        if (r == 0)
                r = arrow_member_cells(rows, column->here.idx_bytes, survey->cells, why);
        if (r == 0)
                r = arrow_member_cells(rows, column->here.idx_path, survey->paths, why);
        for (uint32_t i = 0; i < rows->n && r == 0; i++) {
                if (!survey->is_valid[i])
                        column->n_absent++;
                else if (survey->cells[i].offset != ARROW_CELL_NULL)
                        column->n_inside++;
                else if (survey->paths[i].offset != ARROW_CELL_NULL)
                        column->n_outside++;
                else
                        column->n_absent++;
        }
        return r;
}

static int survey_column(struct survey *survey, struct arrow_column *column, const struct arrow_rows *rows,
                         struct why *why) {
        if (!is_here(column)) {
                column->n_absent += rows->n;
                return 0;
        }
        if (column->class_names)
                return survey_labels(survey, column, rows, why);
        if (column->role == ARROW_ROLE_MEDIA)
                return arrow_survey_survey_media(survey, column, rows, why);
        return arrow_cells(rows, column->here.idx_field, &column->widths, survey->cells, why);
}

static int arrow_survey_survey_rows(void *userdata, const struct arrow_rows *rows, struct why *why) {
        struct survey *survey = userdata;
        struct why detail;
        int r = 0;

        for (uint32_t i = 0; i < survey->columns->n && r == 0; i++) {
                struct arrow_column *column = &survey->columns->all[i];

                r = column->is_surveyed ? survey_column(survey, column, rows, &detail) : 0;
                if (r < 0) {
                        why_set(why, r, "column \"%s\": %s", column->field.name, detail.text);
                        return refusals_mark(survey->refusals, column->field.name, r);
                }
        }
        return r;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static struct arrow_visitor *arrow_survey_make_part(void *userdata, struct arrow_pass *part) {
        const struct survey *whole = userdata;
        struct survey *survey = calloc(1, sizeof(*survey));

        if (!survey)
                return NULL;
        survey->columns = &part->columns;
        survey->visitor = (struct arrow_visitor){ .userdata = survey, .rows = whole->visitor.rows };
        return &survey->visitor;
}

static void arrow_survey_free_part(struct arrow_visitor *part) {
        free(part->userdata);
}

/* Inner lists that are longer in one part than in another are refused by who reads both. */
static bool arrow_survey_is_as_wide(const struct arrow_column *column, const struct arrow_column *part) {
        for (uint32_t i = 0; i < ARROW_LEVELS_MAX; i++)
                if (column->widths.n[i] != part->widths.n[i] && column->widths.n[i] != ARROW_WIDTH_NONE &&
                    part->widths.n[i] != ARROW_WIDTH_NONE)
                        return false;
        return true;
}

static void arrow_survey_add_column(struct arrow_column *column, const struct arrow_column *part) {
        for (uint32_t i = 0; i < ARROW_LEVELS_MAX; i++)
                if (column->widths.n[i] == ARROW_WIDTH_NONE)
                        column->widths.n[i] = part->widths.n[i];
        arrow_column_join(column, part->field.dtype);
        column->is_mixed |= part->is_mixed;
        column->n_inside += part->n_inside;
        column->n_outside += part->n_outside;
        column->n_absent += part->n_absent;
        column->least = part->least < column->least ? part->least : column->least;
        column->most = part->most > column->most ? part->most : column->most;
}

static int arrow_survey_take_part(void *userdata, struct arrow_visitor *part, const char *name,
                                  const struct stat *status, struct why *why) {
        struct survey *survey = userdata, *found = part->userdata;

        (void)name, (void)status, (void)why;
        for (uint32_t i = 0; i < survey->columns->n; i++)
                if (!arrow_survey_is_as_wide(&survey->columns->all[i], &found->columns->all[i]))
                        return ARROW_AGAIN;
        for (uint32_t i = 0; i < survey->columns->n; i++)
                arrow_survey_add_column(&survey->columns->all[i], &found->columns->all[i]);
        return 0;
}

int arrow_survey(struct arrow_pass *pass) {
        _cleanup_(freep) struct survey *survey = calloc(1, sizeof(*survey));
        bool is_needed = false; /* the rows are looked at */
        struct why detail;
        int r = 0;

        if (!survey)
                return why_set(pass->why, -ENOMEM, "%s: no memory for its index", pass->files->root);
        survey->columns = &pass->columns;
        survey->refusals = pass->refusals;
        for (uint32_t i = 0; i < pass->columns.n; i++)
                is_needed = is_needed || pass->columns.all[i].is_surveyed;
        survey->visitor = (struct arrow_visitor){ .userdata = survey,
                                                  .rows = is_needed ? arrow_survey_survey_rows : NULL,
                                                  .make = arrow_survey_make_part,
                                                  .free = arrow_survey_free_part,
                                                  .take = arrow_survey_take_part };
        if (is_needed || pass->folder.listed.n > 1)
                r = arrow_pass_run(pass, &survey->visitor);
        if (r < 0)
                return r;
        r = arrow_columns_settle(&pass->columns, pass->refusals, &detail);
        return r < 0 ? why_set(pass->why, r, "%s: %s", pass->files->root, detail.text) : 0;
}
