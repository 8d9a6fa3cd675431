#include "daemon/data/formats/parquet/survey.h"

#include <errno.h>
#include <string.h>

#include "proto/base/cleanup.h"

#define ROWS_AT_A_TIME 4096u /* between two looks at whether it is cancelled */

struct survey {
        struct parquet_pass *pass;
        struct parquet_memory memory;
        struct parquet_reader reader, paths; /* one column after the other */
        struct growing elements;
};

static void survey_fini(struct survey *survey) {
        parquet_reader_fini(&survey->reader);
        parquet_reader_fini(&survey->paths);
        growing_fini(&survey->elements);
}

static bool is_null(const struct parquet_value *value) {
        return !value->bytes && value->offset == PARQUET_NULL;
}

static int survey_label(struct survey *survey, struct parquet_column *column, struct why *why) {
        struct parquet_value value;
        int64_t label;
        int r = parquet_reader_next(&survey->reader, &value, why);

        if (r < 0)
                return r;
        if (is_null(&value)) {
                column->n_absent++;
                return 0;
        }
        memcpy(&label, value.bytes, sizeof(label));
        column->least = label < column->least ? label : column->least;
        column->most = label > column->most ? label : column->most;
        return 0;
}

static int survey_media(struct survey *survey, struct parquet_column *column, struct why *why) {
        struct parquet_value bytes, path;
        int r = parquet_reader_next(&survey->reader, &bytes, why);

        if (r == 0)
                r = parquet_reader_next(&survey->paths, &path, why);
        if (r < 0)
                return r;
        if (!is_null(&bytes))
                column->n_inside++;
        else if (!is_null(&path))
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
                return survey_media(survey, column, why);
        return parquet_reader_next_list(&survey->reader, &column->widths, &survey->elements, &is_missing, why);
}

static int survey_rows(struct survey *survey, struct parquet_column *column, const struct parquet_group *group,
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

static int survey_group(void *userdata, const struct parquet_group *group, struct why *why) {
        struct survey *survey = userdata;
        struct parquet_columns *columns = &survey->pass->columns;
        struct why detail;
        int r = parquet_pass_look_up(survey->pass, 0, why);

        for (uint32_t i = 0; i < columns->n && r == 0; i++) {
                struct parquet_column *column = &columns->all[i];
                uint32_t idx_leaf = parquet_element(&group->footer->schema, column->idx_value)->idx_leaf;

                r = parquet_chunk_check(&group->chunks[idx_leaf], &detail);
                if (!group->chunks[idx_leaf].is_verbatim)
                        column->is_compressed = true;
                if (r == 0 && column->is_surveyed)
                        r = survey_rows(survey, column, group, &detail);
                if (r < 0)
                        return why_set(why, r, "column \"%s\": %.350s", column->field.name, detail.text);
        }
        return r;
}

int parquet_survey(struct parquet_pass *pass) {
        _cleanup_(survey_fini) struct survey survey = {
                .pass = pass, .memory = { .max_bytes = PARQUET_MEMORY_OF(index_watch_max_copied(pass->watch)) }
        };
        struct why detail;
        int r;

        survey.reader.memory = survey.paths.memory = &survey.memory;
        r = parquet_pass_run(pass, &(struct parquet_visitor){ .userdata = &survey, .group = survey_group });
        if (r < 0)
                return r;
        r = parquet_columns_settle(&pass->columns, &detail);
        return r < 0 ? why_set(pass->why, r, "%.300s: %.350s", pass->files->root, detail.text) : 0;
}
