#include "daemon/data/formats/arrow/arrow_columns.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/formats/arrow/table/ipc_texts.h"
#include "daemon/data/formats/differing/number_types.h"
#include "daemon/data/formats/table_columns.h"
#include "daemon/data/index/index_layout.h"

#define SERVED "numbers, bools, text, binary, lists of numbers, bools or text, structs of these, Image and Audio"

struct planning {
        const struct arrow_schema *schema;
        const cJSON *features; /* NULL: nothing is known */
        const char *fields;    /* which are wanted; NULL: all */
        bool is_compressed;
        struct refusals *refusals;
        struct why *why;
};

static const char *arrow_columns_name_of(const struct planning *planning, uint32_t idx_field) {
        return arrow_schema_text(planning->schema, arrow_schema_field(planning->schema, idx_field)->name);
}

static int arrow_columns_refuse(const struct planning *planning, const char *name, const char *type) {
        return why_set(planning->why, -ENOTSUP,
                       "column \"%s\" is %s, which cannot be served (" SERVED " can); convert it", name, type);
}

static int arrow_columns_refuse_field(const struct planning *planning, const char *name, uint32_t idx_field) {
        const struct arrow_field *field = arrow_schema_field(planning->schema, idx_field);
        char type[128];

        snprintf(type, sizeof(type), "%s%s%s%s", field->has_dictionary ? "a dictionary of " : "a ", field->type,
                 field->n_children > 0 ? " of " : "",
                 field->n_children == 1  ? arrow_schema_field(planning->schema, idx_field + 1)->type
                 : field->n_children > 1 ? "several members"
                                         : "");
        return arrow_columns_refuse(planning, name, type);
}

/* ---- fields ---------------------------------------------------------------------------------------------------- */

static int arrow_columns_plan_list(const struct planning *planning, struct arrow_column *column) {
        uint32_t n_levels;
        const struct arrow_field *element = arrow_list_element(planning->schema, column->place.idx_field, &n_levels);
        const struct arrow_field *list = arrow_schema_field(planning->schema, column->place.idx_field);

        column->role = element->kind == ARROW_BOOL ? ARROW_ROLE_BOOLS : ARROW_ROLE_STORED;
        column->field.kind = FIELD_VALUE;
        column->field.dtype = element->kind == ARROW_BOOL ? DLP_DTYPE_BOOL : element->dtype;
        column->field.n_dims = n_levels;
        for (uint32_t i = 0; i < n_levels; i++) {
                const struct arrow_field *level = list + i;

                column->field.shape[i] = level->kind == ARROW_FIXED_LIST ? (int64_t)level->width : -1;
                column->is_surveyed = column->is_surveyed || (i > 0 && level->kind != ARROW_FIXED_LIST);
                if (column->field.shape[i] == 0)
                        return arrow_columns_refuse(planning, column->field.name, "a list without elements");
        }
        return 0;
}

static int plan_number(struct arrow_column *column, const struct arrow_field *field) {
        column->role = ARROW_ROLE_NUMBER;
        column->field.kind = FIELD_VALUE;
        column->field.dtype = field->kind == ARROW_BOOL ? DLP_DTYPE_BOOL : field->dtype;
        return 0;
}

static int plan_bytes(struct arrow_column *column, enum field_kind kind) {
        column->role = ARROW_ROLE_STORED;
        column->field.kind = kind;
        return 0;
}

static bool arrow_columns_is_bytes(const struct arrow_field *field, bool is_text) {
        return (field->kind == ARROW_BYTES || field->kind == ARROW_BYTES_VIEW) && !field->has_dictionary &&
               field->is_text == is_text;
}

/* struct{bytes: binary, path: string}, as Image and Audio are stored: which of its members are these? */
static bool arrow_columns_is_media(const struct arrow_schema *schema, uint32_t idx_field, uint32_t *ret_bytes,
                                   uint32_t *ret_path) {
        const struct arrow_field *field = arrow_schema_field(schema, idx_field);
        uint32_t idx_child = idx_field + 1;

        *ret_bytes = *ret_path = 0;
        for (uint32_t i = 0; i < field->n_children; i++) {
                const struct arrow_field *child = arrow_schema_field(schema, idx_child);
                const char *name = arrow_schema_text(schema, child->name);

                if (strcmp(name, "bytes") == 0 && arrow_columns_is_bytes(child, false))
                        *ret_bytes = idx_child;
                if (strcmp(name, "path") == 0 && arrow_columns_is_bytes(child, true))
                        *ret_path = idx_child;
                idx_child += 1 + child->n_below;
        }
        return !field->has_dictionary && field->n_children == 2 && *ret_bytes && *ret_path;
}

static int arrow_columns_plan_media(const struct planning *planning, struct arrow_column *column) {
        if (!arrow_columns_is_media(planning->schema, column->place.idx_field, &column->place.idx_bytes,
                                    &column->place.idx_path))
                return arrow_columns_refuse_field(planning, column->field.name, column->place.idx_field);
        column->role = ARROW_ROLE_MEDIA;
        column->is_surveyed = true;
        column->field.kind = FIELD_BYTES;
        return 0;
}

static int arrow_columns_plan_type(const struct planning *planning, struct arrow_column *column) {
        const struct arrow_field *field = arrow_schema_field(planning->schema, column->place.idx_field);

        switch (field->kind) {
        case ARROW_BOOL:
        case ARROW_NUMBER:
                return plan_number(column, field);
        case ARROW_NULL:
                return plan_bytes(column, FIELD_BYTES);
        case ARROW_BYTES:
        case ARROW_BYTES_VIEW:
                return plan_bytes(column, field->is_text ? FIELD_TEXT : FIELD_BYTES);
        case ARROW_FIXED:
                return strcmp(field->type, "fixed_size_binary") == 0
                               ? plan_bytes(column, FIELD_BYTES)
                               : arrow_columns_refuse_field(planning, column->field.name, column->place.idx_field);
        case ARROW_STRUCT:
                return arrow_columns_plan_media(planning, column);
        default:
                if (arrow_has_texts(planning->schema, column->place.idx_field)) {
                        column->role = ARROW_ROLE_TEXTS;
                        column->field.kind = FIELD_TEXTS;
                        return 0;
                }
                if (field->has_dictionary || !(arrow_has_cells(planning->schema, column->place.idx_field) ||
                                               arrow_has_bools(planning->schema, column->place.idx_field)))
                        return arrow_columns_refuse_field(planning, column->field.name, column->place.idx_field);
                return arrow_columns_plan_list(planning, column);
        }
}

/* What "datasets" knows about the column. */
static void plan_feature(const struct planning *planning, const char *name, struct arrow_column *column) {
        column->field.kind = table_feature_kind(planning->features, name, &column->field);
        column->class_names = column->role == ARROW_ROLE_NUMBER
                                      ? table_feature_classes(planning->features, name, &column->field)
                                      : NULL;
        column->is_surveyed = column->is_surveyed || column->class_names;
}

/* The features as dataset_info.json or the schema's own notes tell them. */
static int find_features(struct planning *planning, struct arrow_columns *columns, const cJSON *info) {
        const char *text = arrow_schema_text(planning->schema, planning->schema->huggingface);
        int r;

        planning->features = cJSON_GetObjectItemCaseSensitive(info, "features");
        if (planning->features)
                return 0;
        r = indexing_json_read(&columns->notes, TABLE_NOTES, text, strlen(text));
        planning->features = table_features(columns->notes.root);
        return r < 0 ? why_errno(planning->why, r, TABLE_NOTES) : 0;
}

/* What is unpacked goes into the index, which is meant for text and numbers. */
static int plan_copy(const struct planning *planning, struct arrow_column *column) {
        if (column->role == ARROW_ROLE_MEDIA || column->field.kind == FIELD_PICTURE ||
            column->field.kind == FIELD_SOUND)
                return why_set(planning->why, -ENOTSUP,
                               "column \"%s\" holds pictures or sound, and the batches are compressed; write the file "
                               "without compression (pyarrow: IpcWriteOptions(compression=None), feather: "
                               "compression=\"uncompressed\")",
                               column->field.name);
        if (column->role == ARROW_ROLE_STORED)
                column->role = ARROW_ROLE_COPIED;
        return 0;
}

/* A column or a member of a struct, on its way to becoming a field. */
struct candidate {
        char name[256]; /* "objects.bbox"; what is longer is cut */
        uint32_t idx_field;
        uint32_t n_parents, idx_parents[ARROW_PARENTS_MAX];
};

/* A column that cannot be served is listed. */
static int arrow_columns_leave_out(const struct planning *planning, struct arrow_columns *columns,
                                   const char *candidate, int error) {
        if (columns->n < INDEX_FIELDS_MAX)
                columns->all[columns->n] = (struct arrow_column){ 0 };
        return table_column_refuse(planning->refusals, candidate, error, planning->why);
}

static int arrow_columns_plan_column(const struct planning *planning, struct arrow_columns *columns,
                                     const struct candidate *candidate) {
        struct arrow_column *column = &columns->all[columns->n];
        int r;

        if (columns->n == INDEX_FIELDS_MAX) {
                r = why_set(planning->why, -ENOTSUP,
                            "the dataset has more than %u columns; choose this one with fields = \"...\"",
                            INDEX_FIELDS_MAX);
                return arrow_columns_leave_out(planning, columns, candidate->name, r);
        }
        column->place.idx_field = candidate->idx_field;
        column->place.n_parents = candidate->n_parents;
        memcpy(column->place.idx_parents, candidate->idx_parents, sizeof(candidate->idx_parents));
        for (uint32_t i = 0; i < ARROW_LEVELS_MAX; i++)
                column->widths.n[i] = ARROW_WIDTH_NONE;
        column->least = INT64_MAX;
        column->most = INT64_MIN;
        column->field.may_be_absent = true; /* the index finds out whether all samples have it */
        r = table_column_name(candidate->name, &column->field, planning->why);
        for (uint32_t i = 0; i < columns->n && r == 0; i++)
                if (strcmp(columns->all[i].field.name, column->field.name) == 0)
                        return table_column_is_twice(planning->refusals, column->field.name, planning->why);
        if (r == 0)
                r = arrow_columns_plan_type(planning, column);
        if (r == 0)
                plan_feature(planning, candidate->name, column);
        if (r == 0 && planning->is_compressed)
                r = plan_copy(planning, column);
        if (r < 0)
                return arrow_columns_leave_out(planning, columns, candidate->name, r);
        columns->n++;
        return 0;
}

static bool arrow_columns_is_record(const struct planning *planning, uint32_t idx_field) {
        const struct arrow_field *field = arrow_schema_field(planning->schema, idx_field);
        uint32_t bytes, path;

        return field->kind == ARROW_STRUCT && !field->has_dictionary && field->n_children > 0 &&
               !arrow_columns_is_media(planning->schema, idx_field, &bytes, &path);
}

/* Each member of a struct becomes a field, if it is wanted; a struct within a struct is passed through. */
static int arrow_columns_plan_candidate(const struct planning *planning, struct arrow_columns *columns,
                                        const struct candidate *candidate) {
        const struct arrow_field *field = arrow_schema_field(planning->schema, candidate->idx_field);
        bool is_wanted = table_column_is_wanted(planning->fields, candidate->name);
        struct candidate member = { .idx_field = candidate->idx_field + 1, .n_parents = candidate->n_parents + 1 };
        char name[SCHEMA_NAME_MAX];
        int r = 0;

        field_name_from(candidate->name, strlen(candidate->name), name);
        if (refusals_have(planning->refusals, name))
                return 0;
        if (!arrow_columns_is_record(planning, candidate->idx_field))
                return is_wanted ? arrow_columns_plan_column(planning, columns, candidate) : 0;
        if (planning->fields && is_wanted)
                return why_set(planning->why, -EINVAL,
                               "column \"%s\" is a struct, whose members are fields: name those, as in \"%s.%s\"",
                               candidate->name, candidate->name,
                               arrow_columns_name_of(planning, candidate->idx_field + 1));
        if (candidate->n_parents == ARROW_PARENTS_MAX) {
                r = arrow_columns_refuse(planning, candidate->name, "a struct within too many others");
                return is_wanted ? arrow_columns_leave_out(planning, columns, candidate->name, r) : 0;
        }
        memcpy(member.idx_parents, candidate->idx_parents, sizeof(member.idx_parents));
        member.idx_parents[candidate->n_parents] = candidate->idx_field;
        for (uint32_t i = 0; i < field->n_children && r == 0; i++) {
                snprintf(member.name, sizeof(member.name), "%.120s.%.120s", candidate->name,
                         arrow_columns_name_of(planning, member.idx_field));
                r = arrow_columns_plan_candidate(planning, columns, &member);
                member.idx_field += 1 + arrow_schema_field(planning->schema, member.idx_field)->n_below;
        }
        return r;
}

int arrow_columns_plan(struct arrow_columns *columns, const struct arrow_schema *schema, const cJSON *info,
                       const char *fields, bool is_compressed, struct refusals *refusals, struct why *why) {
        struct planning planning = {
                .schema = schema, .fields = fields, .is_compressed = is_compressed, .refusals = refusals, .why = why
        };
        int r = find_features(&planning, columns, info);

        if (r < 0)
                return r;
        columns->all = calloc(INDEX_FIELDS_MAX, sizeof(*columns->all));
        if (!columns->all)
                return why_set(why, -ENOMEM, "no memory for its columns");
        for (uint32_t i = 0; i < schema->n_columns && r == 0; i++) {
                struct candidate candidate = { .idx_field = arrow_schema_column(schema, i) };

                snprintf(candidate.name, sizeof(candidate.name), "%s",
                         arrow_columns_name_of(&planning, candidate.idx_field));
                r = arrow_columns_plan_candidate(&planning, columns, &candidate);
        }
        return r == 0 && columns->n == 0 ? table_no_column(fields, refusals, why) : r;
}

/* ---- in one file ------------------------------------------------------------------------------------------------- */

static uint32_t arrow_columns_dtype_of(const struct arrow_schema *schema, uint32_t idx_field) {
        uint32_t n_levels;
        const struct arrow_field *element = arrow_list_element(schema, idx_field, &n_levels);

        return element->kind == ARROW_BOOL ? DLP_DTYPE_BOOL : element->dtype;
}

/* Can it be read there as it was planned? */
static bool arrow_columns_suits(const struct arrow_column *column, const struct arrow_schema *file) {
        uint32_t idx = column->here.idx_field;
        bool is_number = column->role == ARROW_ROLE_NUMBER || column->role == ARROW_ROLE_CLASS;

        if (column->role == ARROW_ROLE_BOOLS)
                return arrow_has_bools(file, idx) && !arrow_schema_field(file, idx)->has_dictionary;
        if (column->role == ARROW_ROLE_TEXTS)
                return arrow_has_texts(file, idx);
        if (column->role == ARROW_ROLE_MEDIA || is_number)
                return true;
        return arrow_has_cells(file, idx) &&
               (column->field.n_dims == 0 || !arrow_schema_field(file, idx)->has_dictionary);
}

void arrow_column_join(struct arrow_column *column, uint32_t dtype) {
        uint32_t joined = number_types_join(column->field.dtype, dtype);

        if (column->field.kind != FIELD_VALUE || dtype == column->field.dtype || joined == NUMBER_TYPE_NONE)
                return;
        column->field.dtype = joined;
        column->is_mixed = true;
        if (joined != DLP_DTYPE_INT64 && column->class_names) {
                column->class_names = NULL; /* classes have whole numbers */
                column->is_surveyed = false;
        }
}

/* Did the first pass see this type of its numbers? */
static bool arrow_columns_is_as_settled(const struct arrow_column *column) {
        uint32_t dtype = column->field.dtype;

        return column->field.kind != FIELD_VALUE || column->here.dtype == dtype ||
               (column->is_mixed && number_types_join(dtype, column->here.dtype) == dtype);
}

static int arrow_columns_find_column(struct arrow_column *column, const struct arrow_schema *schema,
                                     const struct arrow_schema *file, const uint32_t *map, bool is_settled,
                                     struct why *why) {
        struct arrow_place *here = &column->here;
        uint32_t idx = map[column->place.idx_field];

        *here = (struct arrow_place){ .idx_field = idx, .n_parents = column->place.n_parents };
        if (idx == COLUMN_NONE)
                return 0;
        if (idx != COLUMN_OTHER && column->role == ARROW_ROLE_MEDIA) {
                here->idx_bytes = map[column->place.idx_bytes];
                here->idx_path = map[column->place.idx_path];
        }
        if (idx == COLUMN_OTHER || here->idx_bytes == COLUMN_OTHER || here->idx_path == COLUMN_OTHER ||
            !arrow_columns_suits(column, file))
                return why_set(
                        why, -ENOTSUP,
                        "column \"%s\" is of another type than in the first file (%s); write all files in one way",
                        column->field.name, arrow_schema_field(schema, column->place.idx_field)->type);
        for (uint32_t i = 0; i < here->n_parents; i++)
                here->idx_parents[i] = map[column->place.idx_parents[i]];
        here->dtype = arrow_columns_dtype_of(file, idx);
        if (!is_settled)
                arrow_column_join(column, here->dtype);
        else if (!arrow_columns_is_as_settled(column))
                return why_set(why, -ESTALE, "column \"%s\" has changed while it was read", column->field.name);
        return 0;
}

int arrow_columns_find(struct arrow_columns *columns, const struct arrow_schema *schema,
                       const struct arrow_schema *file, struct refusals *refusals, struct why *why) {
        uint32_t *map = calloc(schema->n_fields + 1, sizeof(*map));
        int r = 0;

        if (!map)
                return why_set(why, -ENOMEM, "no memory for its columns");
        if (!arrow_schema_map(schema, file, map))
                r = why_set(why, -EINVAL, "has none of the columns that the first file has");
        for (uint32_t i = 0; i < columns->n && r == 0; i++)
                r = refusals_mark(
                        refusals, columns->all[i].field.name,
                        arrow_columns_find_column(&columns->all[i], schema, file, map, columns->is_settled, why));
        free(map);
        return r;
}

/* ---- after the first pass -------------------------------------------------------------------------------------- */

static int arrow_columns_settle_media(const struct arrow_column *column, struct why *why) {
        if (column->n_inside == 0 || column->n_outside == 0)
                return 0;
        return why_set(why, -ENOTSUP,
                       "column \"%s\": %" PRIu64 " rows have their bytes in the Arrow files, and %" PRIu64
                       " name a file outside; save the dataset again, so that all bytes are inside",
                       column->field.name, column->n_inside, column->n_outside);
}

int arrow_columns_settle(struct arrow_columns *columns, struct refusals *refusals, struct why *why) {
        int r = 0;

        columns->is_settled = true;
        for (uint32_t i = 0; i < columns->n && r == 0; i++) {
                struct arrow_column *column = &columns->all[i];

                if (column->role == ARROW_ROLE_MEDIA)
                        r = refusals_mark(refusals, column->field.name, arrow_columns_settle_media(column, why));
                if (column->is_mixed && column->role == ARROW_ROLE_STORED)
                        column->role = ARROW_ROLE_COPIED; /* lists of numbers */
                if (column->class_names && column->n_absent == 0 && column->least >= 0 &&
                    column->most < cJSON_GetArraySize(column->class_names))
                        column->role = ARROW_ROLE_CLASS; /* else they are numbers: -1 stands for "unknown" */
                for (uint32_t k = 1; k < column->field.n_dims; k++)
                        if (column->field.shape[k] < 0)
                                column->field.shape[k] = column->widths.n[k] == ARROW_WIDTH_NONE
                                                                 ? 1
                                                                 : (int64_t)column->widths.n[k];
        }
        return r;
}

void arrow_columns_fini(struct arrow_columns *columns) {
        free(columns->all);
        indexing_json_fini(&columns->notes);
        *columns = (struct arrow_columns){ 0 };
}
