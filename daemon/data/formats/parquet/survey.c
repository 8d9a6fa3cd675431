#include "daemon/data/formats/parquet/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/differing/columns_map.h"
#include "daemon/data/formats/differing/number_types.h"
#include "proto/base/cleanup.h"

#define ROWS_AT_A_TIME 4096u /* between two looks at whether it is cancelled */

struct survey {
        struct parquet_visitor visitor; /* of a part */
        struct parquet_pass *pass;
        struct parquet_memory memory;
        struct parquet_reader reader, paths; /* one column after the other */
        struct growing elements;
};

static void survey_survey_fini(struct survey *survey) {
        parquet_reader_fini(&survey->reader);
        parquet_reader_fini(&survey->paths);
        growing_fini(&survey->elements);
}

static bool survey_is_null(const struct parquet_value *value) {
        return !value->bytes && value->offset == PARQUET_NULL;
}

/* Adds to the type of a column's numbers that of others. */
static void survey_widen(struct parquet_column *column, uint32_t dtype) {
        uint32_t joined = number_types_join(column->field.dtype, dtype);

        if (column->field.kind != FIELD_VALUE || joined == NUMBER_TYPE_NONE)
                return;
        column->field.dtype = joined;
        if (joined != DLP_DTYPE_INT64 && column->class_names) {
                column->class_names = NULL; /* classes have whole numbers */
                column->is_surveyed = false;
        }
}

static int survey_label(struct survey *survey, struct parquet_column *column, struct why *why) {
        const struct parquet_element *element = survey->reader.element;
        struct parquet_value value;
        int64_t number, label;
        int r = parquet_reader_next(&survey->reader, &value, why);

        if (r < 0)
                return r;
        if (survey_is_null(&value) || !parquet_number(element, value.bytes, &number) ||
            !number_convert(element->dtype, &number, DLP_DTYPE_INT64, &label)) {
                column->n_absent++;
                return 0;
        }
        column->least = label < column->least ? label : column->least;
        column->most = label > column->most ? label : column->most;
        return 0;
}

static int survey_survey_media(struct survey *survey, struct parquet_column *column, struct why *why) {
        struct parquet_value bytes, path;
        int r = parquet_reader_next(&survey->reader, &bytes, why);

        if (r == 0)
                r = parquet_reader_next(&survey->paths, &path, why);
        if (r < 0)
                return r;
        if (!survey_is_null(&bytes))
                column->n_inside++;
        else if (!survey_is_null(&path))
                column->n_outside++;
        else
                column->n_absent++;
        return 0;
}

static int survey_row(struct survey *survey, struct parquet_column *column, struct why *why) {
        bool is_missing;

        if (column->class_names)
                return survey_label(survey, column, why);
        if (column->role == PARQUET_ROLE_MEDIA)
                return survey_survey_media(survey, column, why);
        return parquet_reader_next_list(&survey->reader, &column->widths, &survey->elements, &is_missing, why);
}

static int survey_survey_rows(struct survey *survey, struct parquet_column *column, const struct parquet_group *group,
                              struct why *why) {
        int r;

        survey->reader.is_levels_only = survey->paths.is_levels_only = !column->class_names;
        r = parquet_group_begin(group, column->idx_value, &survey->reader, why);
        if (r == 0 && column->role == PARQUET_ROLE_MEDIA)
                r = parquet_group_begin(group, column->idx_path, &survey->paths, why);
        for (uint64_t i = 0; i < group->n_rows && r == 0; i++) {
                growing_clear(&survey->elements);
                r = survey_row(survey, column, why);
                if (r == 0 && (i + 1) % ROWS_AT_A_TIME == 0)
                        r = parquet_pass_look_up(survey->pass, 0, why);
        }
        return r;
}

/* Can its bytes be read, and how wide are its numbers? */
static int survey_chunk(const struct parquet_group *group, struct parquet_column *column, struct why *why) {
        const struct parquet_element *element;
        uint32_t idx;
        int r = parquet_group_leaf(group, column->idx_value, &idx, why);

        if (r < 0 || idx == COLUMN_NONE)
                return r;
        element = parquet_element(&group->footer->schema, idx);
        if (!group->chunks[element->idx_leaf].is_verbatim)
                column->is_compressed = true;
        if (element->meaning == PARQUET_NUMBER)
                survey_widen(column, element->dtype);
        return parquet_chunk_check(&group->chunks[element->idx_leaf], why);
}

static int survey_group(void *userdata, const struct parquet_group *group, struct why *why) {
        struct survey *survey = userdata;
        struct parquet_columns *columns = &survey->pass->columns;
        struct why detail;
        int damaged = 0, r = parquet_pass_look_up(survey->pass, 0, why);

        for (uint32_t i = 0; i < columns->n && r == 0; i++) {
                struct parquet_column *column = &columns->all[i];
                int error = survey_chunk(group, column, &detail);

                if (error == 0 && column->is_surveyed)
                        error = survey_survey_rows(survey, column, group, &detail);
                if (error == 0)
                        continue;
                damaged = why_set(why, error, "column \"%s\": %s", column->field.name, detail.text);
                if (!refusals_mark_of_several(survey->pass->refusals, column->field.name, error, why))
                        return error;
        }
        return r < 0 ? r : damaged;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void survey_begin(struct survey *survey, struct parquet_pass *pass) {
        *survey = (struct survey){ .pass = pass, .memory = { .max_bytes = parquet_pass_page_bytes(pass) } };
        survey->reader.memory = survey->paths.memory = &survey->memory;
}

static struct parquet_visitor *survey_make_part(void *userdata, struct parquet_pass *part) {
        struct survey *survey = malloc(sizeof(*survey));

        (void)userdata;
        if (!survey)
                return NULL;
        survey_begin(survey, part);
        survey->visitor = (struct parquet_visitor){ .userdata = survey, .group = survey_group };
        return &survey->visitor;
}

static void survey_rest_part(struct parquet_visitor *part) {
        survey_survey_fini(part->userdata);
}

static void survey_free_part(struct parquet_visitor *part) {
        survey_survey_fini(part->userdata);
        free(part->userdata);
}

/* Inner lists that are longer in one part than in another are refused by who reads both. */
static bool survey_is_as_wide(const struct parquet_column *column, const struct parquet_column *part) {
        for (uint32_t i = 0; i <= PARQUET_LEVELS_MAX; i++)
                if (column->widths.n[i] != part->widths.n[i] && column->widths.n[i] != PARQUET_WIDTH_NONE &&
                    part->widths.n[i] != PARQUET_WIDTH_NONE)
                        return false;
        return true;
}

static void survey_add_column(struct parquet_column *column, const struct parquet_column *part) {
        column->is_compressed |= part->is_compressed;
        survey_widen(column, part->field.dtype);
        for (uint32_t i = 0; i <= PARQUET_LEVELS_MAX; i++)
                if (column->widths.n[i] == PARQUET_WIDTH_NONE)
                        column->widths.n[i] = part->widths.n[i];
        column->n_inside += part->n_inside;
        column->n_outside += part->n_outside;
        column->n_absent += part->n_absent;
        column->least = part->least < column->least ? part->least : column->least;
        column->most = part->most > column->most ? part->most : column->most;
}

static int survey_take_part(void *userdata, struct parquet_visitor *part, struct why *why) {
        struct survey *survey = userdata, *found = part->userdata;
        struct parquet_columns *columns = &survey->pass->columns;

        (void)why;
        for (uint32_t i = 0; i < columns->n; i++)
                if (!survey_is_as_wide(&columns->all[i], &found->pass->columns.all[i]))
                        return PARQUET_AGAIN;
        for (uint32_t i = 0; i < columns->n; i++)
                survey_add_column(&columns->all[i], &found->pass->columns.all[i]);
        return 0;
}

int parquet_survey(struct parquet_pass *pass) {
        _cleanup_(survey_survey_fini) struct survey survey;
        struct why detail;
        int r;

        survey_begin(&survey, pass);
        r = parquet_pass_run(pass, &(struct parquet_visitor){ .userdata = &survey,
                                                              .group = survey_group,
                                                              .make = survey_make_part,
                                                              .rest = survey_rest_part,
                                                              .free = survey_free_part,
                                                              .take = survey_take_part });
        if (r < 0)
                return r;
        r = parquet_columns_settle(&pass->columns, pass->refusals, &detail);
        return r < 0 ? why_set(pass->why, r, "%s: %s", pass->files->root, detail.text) : 0;
}
