#include "daemon/data/formats/parquet/parquet_columns.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/formats/parquet/arrow_note.h"
#include "daemon/data/index/index_layout.h"

#define SERVED "numbers, bools, text, binary, lists of numbers, bools or text, structs of these, Image and Audio"

struct planning {
        const struct parquet_schema *schema;
        const cJSON *features; /* NULL: nothing is known */
        const char *fields;    /* which are wanted; NULL: all */
        struct refusals *refusals;
        struct arrow_schema arrow;
        struct why *why;
};

/* A column or a member of a struct, on its way to becoming a field. */
struct candidate {
        char name[256]; /* "objects.bbox"; what is longer is cut */
        uint32_t idx;   /* the element */
        uint32_t arrow; /* the field of Arrow's schema, or PARQUET_ARROW_NONE */
};

/* ---- types ----------------------------------------------------------------------------------------------------- */

static int parquet_columns_refuse(const struct planning *planning, const struct candidate *candidate,
                                  const char *type) {
        return why_set(planning->why, -ENOTSUP,
                       "column \"%s\" is %s, which cannot be served (" SERVED " can); convert it", candidate->name,
                       type);
}

static int refuse_element(const struct planning *planning, const struct candidate *candidate) {
        const struct parquet_element *element = parquet_element(planning->schema, candidate->idx), *last = element;
        char type[160];

        for (uint32_t i = candidate->idx; last->n_children == 1; i++)
                last = parquet_element(planning->schema, i + 1);
        if (element->physical == PARQUET_INT96 && element->meaning == PARQUET_OTHER)
                return why_set(planning->why, -ENOTSUP,
                               "column \"%s\" is int96, a time as old writers stored it; stage the dataset with "
                               "prepare = \"convert\"",
                               candidate->name);
        snprintf(type, sizeof(type), "a %s%s%s%s", element->is_repeated ? "list of " : "", element->type,
                 last != element ? " of " : "", last != element ? last->n_children > 0 ? "structs" : last->type : "");
        return parquet_columns_refuse(planning, candidate, type);
}

/* The leaf at the end of lists; 0 if there is something else between. A list is a group with one repeated member, which
 * is the element, or a group of one member, which is the element. */
static uint32_t find_element(const struct parquet_schema *schema, uint32_t idx) {
        for (;;) {
                const struct parquet_element *list = parquet_element(schema, idx), *member = list + 1;
                const char *name;

                if (list->meaning < PARQUET_LIST)
                        return idx;
                if (list->meaning != PARQUET_LIST || list->n_children != 1 || !member->is_repeated)
                        return 0;
                name = parquet_element_name(schema, idx + 1);
                if (member->meaning >= PARQUET_LIST) {
                        size_t n = strlen(name);

                        /* Under these names old writers have lists of structs with one member. */
                        if (member->n_children != 1 || member[1].is_repeated || strcmp(name, "array") == 0 ||
                            (n > 6 && strcmp(name + n - 6, "_tuple") == 0))
                                return 0;
                        idx++;
                }
                idx++;
        }
}

static int parquet_columns_plan_list(const struct planning *planning, struct parquet_column *column,
                                     const struct candidate *candidate) {
        uint32_t idx_leaf = find_element(planning->schema, candidate->idx);
        const struct parquet_element *leaf = parquet_element(planning->schema, idx_leaf);

        if (idx_leaf > 0 && leaf->meaning == PARQUET_TEXT && leaf->n_repeated == 1) {
                column->role = PARQUET_ROLE_TEXTS;
                column->idx_value = idx_leaf;
                column->field.kind = FIELD_TEXTS;
                return 0;
        }
        if (idx_leaf == 0 || leaf->meaning != PARQUET_NUMBER || leaf->n_repeated > PARQUET_LEVELS_MAX)
                return refuse_element(planning, candidate);
        column->role = PARQUET_ROLE_LIST;
        column->idx_value = idx_leaf;
        column->field.kind = FIELD_VALUE;
        column->field.dtype = leaf->dtype;
        column->field.n_dims = leaf->n_repeated;
        for (uint32_t i = 0; i < leaf->n_repeated; i++)
                column->field.shape[i] = -1;
        parquet_arrow_shape(&planning->arrow, candidate->arrow, leaf->n_repeated, column->field.shape);
        for (uint32_t i = 1; i < leaf->n_repeated; i++) {
                if (column->field.shape[i] < 0)
                        column->is_surveyed = true;
                else
                        column->widths.n[i + 1] = (uint64_t)column->field.shape[i];
        }
        return 0;
}

/* struct{bytes: binary, path: string}, as Image and Audio are stored: which of its members are these? */
static bool parquet_columns_is_media(const struct parquet_schema *schema, uint32_t idx, uint32_t *ret_bytes,
                                     uint32_t *ret_path) {
        const struct parquet_element *group = parquet_element(schema, idx);

        *ret_bytes = *ret_path = 0;
        for (uint32_t i = 1; i <= group->n_children && group->n_below == group->n_children; i++) {
                const char *name = parquet_element_name(schema, idx + i);

                if (group[i].n_repeated > 0)
                        continue;
                if (strcmp(name, "bytes") == 0 && group[i].meaning == PARQUET_BYTES)
                        *ret_bytes = idx + i;
                if (strcmp(name, "path") == 0 && group[i].meaning == PARQUET_TEXT)
                        *ret_path = idx + i;
        }
        return group->n_children == 2 && *ret_bytes && *ret_path;
}

static int parquet_columns_plan_media(const struct planning *planning, struct parquet_column *column,
                                      const struct candidate *candidate) {
        if (!parquet_columns_is_media(planning->schema, candidate->idx, &column->idx_value, &column->idx_path))
                return refuse_element(planning, candidate);
        column->role = PARQUET_ROLE_MEDIA;
        column->is_surveyed = true;
        column->field.kind = FIELD_BYTES;
        return 0;
}

static int parquet_columns_plan_type(const struct planning *planning, struct parquet_column *column,
                                     const struct candidate *candidate) {
        const struct parquet_element *element = parquet_element(planning->schema, candidate->idx);

        if (element->is_repeated || element->meaning == PARQUET_LIST)
                return parquet_columns_plan_list(planning, column, candidate);
        column->idx_value = candidate->idx;
        switch (element->meaning) {
        case PARQUET_NUMBER:
                column->role = PARQUET_ROLE_NUMBER;
                column->field.kind = FIELD_VALUE;
                column->field.dtype = element->dtype;
                return 0;
        case PARQUET_TEXT:
        case PARQUET_BYTES:
                column->role = PARQUET_ROLE_STORED;
                column->field.kind = element->meaning == PARQUET_TEXT ? FIELD_TEXT : FIELD_BYTES;
                return 0;
        case PARQUET_NOTHING:
                column->role = PARQUET_ROLE_COPIED;
                column->field.kind = FIELD_BYTES;
                return 0;
        case PARQUET_GROUP:
                return parquet_columns_plan_media(planning, column, candidate);
        default:
                return refuse_element(planning, candidate);
        }
}

/* ---- columns --------------------------------------------------------------------------------------------------- */

/* A column that cannot be served is listed. */
static int parquet_columns_leave_out(const struct planning *planning, struct parquet_columns *columns,
                                     const struct candidate *candidate, int error) {
        if (columns->n < INDEX_FIELDS_MAX)
                columns->all[columns->n] = (struct parquet_column){ 0 };
        return table_column_refuse(planning->refusals, candidate->name, error, planning->why);
}

static int parquet_columns_plan_column(const struct planning *planning, struct parquet_columns *columns,
                                       const struct candidate *candidate) {
        struct parquet_column *column = &columns->all[columns->n];
        int r;

        if (columns->n == INDEX_FIELDS_MAX) {
                r = why_set(planning->why, -ENOTSUP,
                            "the dataset has more than %u columns; choose this one with fields = \"...\"",
                            INDEX_FIELDS_MAX);
                return parquet_columns_leave_out(planning, columns, candidate, r);
        }
        r = table_column_name(candidate->name, &column->field, planning->why);
        for (uint32_t i = 0; i <= PARQUET_LEVELS_MAX; i++)
                column->widths.n[i] = PARQUET_WIDTH_NONE;
        column->least = INT64_MAX;
        column->most = INT64_MIN;
        column->field.may_be_absent = true; /* the index finds out whether all samples have it */
        for (uint32_t i = 0; i < columns->n && r == 0; i++)
                if (strcmp(columns->all[i].field.name, column->field.name) == 0)
                        return table_column_is_twice(planning->refusals, column->field.name, planning->why);
        if (r == 0)
                r = parquet_columns_plan_type(planning, column, candidate);
        if (r < 0)
                return parquet_columns_leave_out(planning, columns, candidate, r);
        column->field.kind = table_feature_kind(planning->features, candidate->name, &column->field);
        column->class_names = column->role == PARQUET_ROLE_NUMBER
                                      ? table_feature_classes(planning->features, candidate->name, &column->field)
                                      : NULL;
        column->is_surveyed = column->is_surveyed || column->class_names;
        columns->n++;
        return 0;
}

static bool parquet_columns_is_record(const struct planning *planning, uint32_t idx) {
        const struct parquet_element *element = parquet_element(planning->schema, idx);
        uint32_t bytes, path;

        return element->meaning == PARQUET_GROUP && strcmp(element->type, "struct") == 0 && !element->is_repeated &&
               element->n_children > 0 && !parquet_columns_is_media(planning->schema, idx, &bytes, &path);
}

/* Each member of a struct becomes a field, if it is wanted; a struct within a struct is passed through. The depth is
 * limited by the schema's. */
static int parquet_columns_plan_candidate(const struct planning *planning, struct parquet_columns *columns,
                                          const struct candidate *candidate) {
        const struct parquet_element *element = parquet_element(planning->schema, candidate->idx);
        bool is_wanted = table_column_is_wanted(planning->fields, candidate->name);
        struct candidate member = { .idx = candidate->idx + 1 };
        char name[SCHEMA_NAME_MAX];
        int r = 0;

        field_name_from(candidate->name, strlen(candidate->name), name);
        if (refusals_have(planning->refusals, name))
                return 0;
        if (!parquet_columns_is_record(planning, candidate->idx))
                return is_wanted ? parquet_columns_plan_column(planning, columns, candidate) : 0;
        if (planning->fields && is_wanted)
                return why_set(planning->why, -EINVAL,
                               "column \"%s\" is a struct, whose members are fields: name those, as in \"%s.%s\"",
                               candidate->name, candidate->name, parquet_element_name(planning->schema, member.idx));
        for (uint32_t i = 0; i < element->n_children && r == 0; i++) {
                const char *own = parquet_element_name(planning->schema, member.idx);

                snprintf(member.name, sizeof(member.name), "%.120s.%.120s", candidate->name, own);
                member.arrow = candidate->arrow == PARQUET_ARROW_NONE
                                       ? PARQUET_ARROW_NONE
                                       : parquet_arrow_find(&planning->arrow, candidate->arrow, own);
                r = parquet_columns_plan_candidate(planning, columns, &member);
                member.idx += 1 + parquet_element(planning->schema, member.idx)->n_below;
        }
        return r;
}

static int parquet_columns_plan_all(struct planning *planning, struct parquet_columns *columns,
                                    const struct parquet_footer *footer) {
        struct candidate candidate = { .idx = 1 };
        int r = indexing_json_read(&columns->notes, TABLE_NOTES, footer->notes.text, footer->notes.n);

        if (r < 0)
                return why_errno(planning->why, r, TABLE_NOTES);
        planning->features = table_features(columns->notes.root);
        columns->all = calloc(INDEX_FIELDS_MAX, sizeof(*columns->all));
        if (!columns->all)
                return why_set(planning->why, -ENOMEM, "no memory for its columns");
        for (uint32_t i = 0; i < footer->schema.n_columns && r == 0; i++) {
                const char *name = parquet_element_name(&footer->schema, candidate.idx);

                snprintf(candidate.name, sizeof(candidate.name), "%s", name);
                candidate.arrow = parquet_arrow_find(&planning->arrow, PARQUET_ARROW_NONE, name);
                r = parquet_columns_plan_candidate(planning, columns, &candidate);
                candidate.idx += 1 + parquet_element(&footer->schema, candidate.idx)->n_below;
        }
        return r == 0 && columns->n == 0 ? table_no_column(planning->fields, planning->refusals, planning->why) : r;
}

int parquet_columns_plan(struct parquet_columns *columns, const struct parquet_footer *footer, const char *fields,
                         struct refusals *refusals, struct why *why) {
        struct planning planning = { .schema = &footer->schema, .fields = fields, .refusals = refusals, .why = why };
        int r = parquet_arrow_read(&footer->arrow, &planning.arrow);

        if (r < 0)
                return why_set(why, r, "no memory for its columns");
        r = parquet_columns_plan_all(&planning, columns, footer);
        arrow_schema_fini(&planning.arrow);
        return r;
}

/* ---- after the first pass -------------------------------------------------------------------------------------- */

bool parquet_column_has_own_file(const struct parquet_column *column) {
        return column->role == PARQUET_ROLE_MEDIA && column->n_inside == 0 && column->n_outside > 0;
}

static int refuse_compressed(const struct parquet_column *column, struct why *why) {
        return why_set(why, -ENOTSUP,
                       "column \"%s\" holds pictures or sound, and its pages are compressed, so that no sample can be "
                       "read alone; stage the dataset with prepare = \"convert\", or write it again: with datasets 4.6 "
                       "or newer, or with pyarrow's compression={\"%s\": \"none\", ...}",
                       column->field.name, column->field.name);
}

static int parquet_columns_settle_media(const struct parquet_column *column, struct why *why) {
        if (column->n_inside == 0)
                return 0;
        if (column->n_outside > 0)
                return why_set(why, -ENOTSUP,
                               "column \"%s\": %" PRIu64 " rows have their bytes in the Parquet files, and %" PRIu64
                               " name a file outside; write the dataset again, so that all bytes are inside",
                               column->field.name, column->n_inside, column->n_outside);
        return column->is_compressed ? refuse_compressed(column, why) : 0;
}

static int settle_list(struct parquet_column *column, struct why *why) {
        uint64_t n_elements = column->field.shape[0] > 0 ? (uint64_t)column->field.shape[0] : 1;

        for (uint32_t k = 1; k < column->field.n_dims; k++) {
                uint64_t *width = &column->widths.n[k + 1];

                *width = *width == PARQUET_WIDTH_NONE ? 1 : *width;
                column->field.shape[k] = (int64_t)*width;
                if (__builtin_mul_overflow(n_elements, *width, &n_elements))
                        n_elements = UINT64_MAX;
        }
        if (n_elements > INT32_MAX)
                return why_set(why, -EFBIG, "column \"%s\" has lists of more than %d elements; split them",
                               column->field.name, INT32_MAX);
        return 0;
}

static int settle_column(struct parquet_column *column, struct why *why) {
        if (column->role == PARQUET_ROLE_MEDIA)
                return parquet_columns_settle_media(column, why);
        if (column->role == PARQUET_ROLE_STORED && column->is_compressed) {
                if (column->field.kind == FIELD_PICTURE || column->field.kind == FIELD_SOUND)
                        return refuse_compressed(column, why);
                column->role = PARQUET_ROLE_COPIED;
        }
        if (column->class_names && column->n_absent == 0 && column->least >= 0 &&
            column->most < cJSON_GetArraySize(column->class_names))
                column->role = PARQUET_ROLE_CLASS; /* else they are numbers: -1 stands for "unknown" */
        return column->role == PARQUET_ROLE_LIST ? settle_list(column, why) : 0;
}

int parquet_columns_settle(struct parquet_columns *columns, struct refusals *refusals, struct why *why) {
        int r = 0;

        for (uint32_t i = 0; i < columns->n && r == 0; i++)
                r = refusals_mark(refusals, columns->all[i].field.name, settle_column(&columns->all[i], why));
        return r;
}

void parquet_columns_fini(struct parquet_columns *columns) {
        free(columns->all);
        indexing_json_fini(&columns->notes);
        *columns = (struct parquet_columns){ 0 };
}
