#include "daemon/data/formats/columnar/columnar_columns.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/formats/differing/number_types.h"
#include "daemon/data/formats/table_columns.h"
#include "daemon/data/index/index_layout.h"
#include "proto/base/cleanup.h"

/* ---- planning ---------------------------------------------------------------------------------------------------- */

int columnar_refuse(const struct columnar_planning *planning, const char *name, const char *type) {
        return why_set(planning->why, -ENOTSUP,
                       "column \"%s\" is %s, which cannot be served (" COLUMNAR_SERVED " can); convert it", name, type);
}

/* struct{bytes: binary, path: string}, as Image and Audio are stored: which of its members are these? */
static bool columnar_is_media(const struct columnar_planning *planning, uint32_t idx,
                              struct columnar_place *ret_place) {
        const struct columns_type *type = planning->format->type;
        uint32_t end = idx + 1 + type->n_below(planning->schema, idx), n = 0;

        if (type->sort(planning->schema, idx) != COLUMN_STRUCT)
                return false;
        ret_place->idx_bytes = ret_place->idx_path = 0;
        for (uint32_t i = idx + 1; i < end; i += 1 + type->n_below(planning->schema, i), n++) {
                enum field_kind kind = planning->format->kind(planning->schema, i);
                const char *name = type->name(planning->schema, i);

                if (strcmp(name, "bytes") == 0 && kind == FIELD_BYTES)
                        ret_place->idx_bytes = i;
                if (strcmp(name, "path") == 0 && kind == FIELD_TEXT)
                        ret_place->idx_path = i;
        }
        return n == 2 && ret_place->idx_bytes && ret_place->idx_path;
}

/* A column that cannot be served is listed. */
static int columnar_leave_out(const struct columnar_planning *planning, struct columnar_columns *columns,
                              const char *name, int error) {
        if (columns->n < INDEX_FIELDS_MAX)
                columns->all[columns->n] = (struct columnar_column){ 0 };
        return table_column_refuse(planning->refusals, name, error, planning->why);
}

static int columnar_plan_type(const struct columnar_planning *planning, const struct columnar_candidate *candidate,
                              struct columnar_column *column) {
        const struct columnar_format *format = planning->format;
        int r = 0;

        column->place.idx_field = candidate->idx;
        column->place.n_parents = format->has_parents ? candidate->n_parents : 0;
        memcpy(column->place.idx_parents, candidate->idx_parents, sizeof(candidate->idx_parents));
        for (uint32_t i = 0; i < SCHEMA_DIMS_MAX; i++)
                column->widths.n[i] = COLUMNAR_WIDTH_NONE;
        column->least = INT64_MAX;
        column->most = INT64_MIN;
        column->field.may_be_absent = true; /* the index finds out whether all samples have it */
        if (columnar_is_media(planning, candidate->idx, &column->place)) {
                column->role = COLUMNAR_MEDIA;
                column->is_surveyed = true;
                column->field.kind = FIELD_BYTES;
        } else {
                r = format->plan(planning, candidate, column);
        }
        if (r < 0)
                return r;
        column->field.kind = table_feature_kind(planning->features, candidate->name, &column->field);
        if (column->role == COLUMNAR_NUMBER)
                column->class_names = table_feature_classes(planning->features, candidate->name, &column->field);
        column->is_surveyed = column->is_surveyed || column->class_names;
        return format->settle ? format->settle(planning, column) : 0;
}

static int columnar_plan_column(const struct columnar_planning *planning, struct columnar_columns *columns,
                                const struct columnar_candidate *candidate) {
        struct columnar_column *column = &columns->all[columns->n];
        int r;

        if (columns->n == INDEX_FIELDS_MAX) {
                r = why_set(planning->why, -ENOTSUP,
                            "the dataset has more than %u columns; choose this one with fields = \"...\"",
                            INDEX_FIELDS_MAX);
                return columnar_leave_out(planning, columns, candidate->name, r);
        }
        r = table_column_name(candidate->name, &column->field, planning->why);
        for (uint32_t i = 0; i < columns->n && r == 0; i++)
                if (strcmp(columns->all[i].field.name, column->field.name) == 0)
                        return table_column_is_twice(planning->refusals, column->field.name, planning->why);
        if (r == 0)
                r = columnar_plan_type(planning, candidate, column);
        if (r < 0)
                return columnar_leave_out(planning, columns, candidate->name, r);
        columns->n++;
        return 0;
}

/* Each member of a struct becomes a field, if it is wanted; a struct within a struct is passed through. The depth is
 * limited by the schema's. */
static int columnar_plan_candidate(const struct columnar_planning *planning, struct columnar_columns *columns,
                                   const struct columnar_candidate *candidate) {
        const struct columns_type *type = planning->format->type;
        uint32_t end = candidate->idx + 1 + type->n_below(planning->schema, candidate->idx);
        bool is_wanted = table_column_is_wanted(planning->fields, candidate->name);
        struct columnar_candidate member = { .idx = candidate->idx + 1, .n_parents = candidate->n_parents + 1 };
        struct columnar_place unused;
        char name[SCHEMA_NAME_MAX];
        int r = 0;

        field_name_from(candidate->name, strlen(candidate->name), name);
        if (refusals_have(planning->refusals, name))
                return 0;
        if (type->sort(planning->schema, candidate->idx) != COLUMN_STRUCT || member.idx == end ||
            columnar_is_media(planning, candidate->idx, &unused))
                return is_wanted ? columnar_plan_column(planning, columns, candidate) : 0;
        if (planning->fields && is_wanted)
                return why_set(planning->why, -EINVAL,
                               "column \"%s\" is a struct, whose members are fields: name those, as in \"%s.%s\"",
                               candidate->name, candidate->name, type->name(planning->schema, member.idx));
        if (planning->format->has_parents && candidate->n_parents == COLUMNAR_PARENTS_MAX) {
                r = columnar_refuse(planning, candidate->name, "a struct within too many others");
                return is_wanted ? columnar_leave_out(planning, columns, candidate->name, r) : 0;
        }
        memcpy(member.idx_parents, candidate->idx_parents, sizeof(member.idx_parents));
        if (candidate->n_parents < COLUMNAR_PARENTS_MAX)
                member.idx_parents[candidate->n_parents] = candidate->idx;
        for (; member.idx < end && r == 0; member.idx += 1 + type->n_below(planning->schema, member.idx)) {
                const char *own = type->name(planning->schema, member.idx);

                snprintf(member.name, sizeof(member.name), "%.120s.%.120s", candidate->name, own);
                if (planning->format->note)
                        member.note = planning->format->note(planning, candidate, own);
                r = columnar_plan_candidate(planning, columns, &member);
        }
        return r;
}

static int columnar_find_features(struct columnar_pass *pass, struct columnar_planning *planning) {
        int r = pass->format->begin_plan(pass, planning);

        if (r < 0 || planning->features)
                return r;
        r = indexing_json_read(&pass->columns.notes, TABLE_NOTES, planning->notes, planning->n_notes);
        planning->features = table_features(pass->columns.notes.root);
        return r < 0 ? why_errno(planning->why, r, TABLE_NOTES) : 0;
}

int columnar_columns_plan(struct columnar_pass *pass, void *reading, const char *fields, struct why *why) {
        const struct columnar_format *format = pass->format;
        struct columnar_planning planning = { .format = format,
                                              .schema = pass->schema,
                                              .reading = reading,
                                              .fields = fields,
                                              .refusals = pass->refusals,
                                              .why = why };
        struct columns_range range = format->range(pass->schema);
        int r = columnar_find_features(pass, &planning);

        if (r < 0)
                return r;
        pass->columns.all = calloc(INDEX_FIELDS_MAX, sizeof(*pass->columns.all));
        if (!pass->columns.all)
                return why_set(why, -ENOMEM, "no memory for its columns");
        for (uint32_t i = range.begin; i < range.end && r == 0; i += 1 + format->type->n_below(pass->schema, i)) {
                struct columnar_candidate candidate = { .idx = i };

                snprintf(candidate.name, sizeof(candidate.name), "%s", format->type->name(pass->schema, i));
                if (format->note)
                        candidate.note = format->note(&planning, NULL, candidate.name);
                r = columnar_plan_candidate(&planning, &pass->columns, &candidate);
        }
        return r == 0 && pass->columns.n == 0 ? table_no_column(fields, pass->refusals, why) : r;
}

/* ---- in one file ------------------------------------------------------------------------------------------------- */

/* Adds to the type of a column's numbers that of others. */
static void columnar_join(struct columnar_column *column, uint32_t dtype) {
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
static bool columnar_is_as_settled(const struct columnar_column *column) {
        uint32_t dtype = column->field.dtype;

        return column->field.kind != FIELD_VALUE || column->here.dtype == dtype ||
               (column->is_mixed && number_types_join(dtype, column->here.dtype) == dtype);
}

static int columnar_find_column(const struct columnar_pass *pass, struct columnar_column *column, const void *file,
                                const uint32_t *map, struct why *why) {
        const struct columnar_format *format = pass->format;
        struct columnar_place *here = &column->here;
        uint32_t idx = map[column->place.idx_field];

        *here = (struct columnar_place){ .idx_field = idx, .n_parents = column->place.n_parents };
        if (idx == COLUMN_NONE)
                return 0;
        if (idx != COLUMN_OTHER && column->role == COLUMNAR_MEDIA) {
                here->idx_bytes = map[column->place.idx_bytes];
                here->idx_path = map[column->place.idx_path];
        }
        if (idx == COLUMN_OTHER || here->idx_bytes == COLUMN_OTHER || here->idx_path == COLUMN_OTHER ||
            (format->suits && !format->suits(column, file)))
                return why_set(
                        why, -ENOTSUP,
                        "column \"%s\" is of another type than in the first file (%s); write all files in one way",
                        column->field.name, format->type_name(pass->schema, column->place.idx_field));
        for (uint32_t i = 0; i < here->n_parents; i++)
                here->idx_parents[i] = map[column->place.idx_parents[i]];
        here->dtype = format->dtype(file, idx);
        if (!pass->columns.is_settled)
                columnar_join(column, here->dtype);
        else if (!columnar_is_as_settled(column))
                return why_set(why, -ESTALE, "column \"%s\" has changed while it was read", column->field.name);
        return 0;
}

int columnar_columns_find(struct columnar_pass *pass, const void *file, bool is_empty, struct why *why) {
        struct columns_range range = pass->format->range(pass->schema);
        _cleanup_(freep) uint32_t *map = calloc(range.end + 1u, sizeof(*map));
        int r = 0;

        if (!map)
                return why_set(why, -ENOMEM, "no memory for its columns");
        if (!columns_map(pass->format->type, range, pass->format->range(file), map))
                return why_set(why, -EINVAL, "has none of the columns that the first file has");
        for (uint32_t i = 0; i < pass->columns.n && r == 0 && !is_empty; i++)
                r = refusals_mark(pass->refusals, pass->columns.all[i].field.name,
                                  columnar_find_column(pass, &pass->columns.all[i], file, map, why));
        return r;
}

/* ---- the first pass ---------------------------------------------------------------------------------------------- */

void columnar_see_label(struct columnar_column *column, const void *number) {
        int64_t label;

        if (!number || !number_convert(column->here.dtype, number, DLP_DTYPE_INT64, &label)) {
                column->n_absent++;
                return;
        }
        column->least = label < column->least ? label : column->least;
        column->most = label > column->most ? label : column->most;
}

void columnar_see_media(struct columnar_column *column, bool has_bytes, bool has_path) {
        if (has_bytes)
                column->n_inside++;
        else if (has_path)
                column->n_outside++;
        else
                column->n_absent++;
}

static bool columnar_is_as_wide(const struct columnar_column *column, const struct columnar_column *part) {
        for (uint32_t i = 0; i < SCHEMA_DIMS_MAX; i++)
                if (column->widths.n[i] != part->widths.n[i] && column->widths.n[i] != COLUMNAR_WIDTH_NONE &&
                    part->widths.n[i] != COLUMNAR_WIDTH_NONE)
                        return false;
        return true;
}

bool columnar_columns_add(struct columnar_columns *columns, const struct columnar_columns *part) {
        for (uint32_t i = 0; i < columns->n; i++)
                if (!columnar_is_as_wide(&columns->all[i], &part->all[i]))
                        return false;
        for (uint32_t i = 0; i < columns->n; i++) {
                struct columnar_column *column = &columns->all[i];
                const struct columnar_column *found = &part->all[i];

                for (uint32_t k = 0; k < SCHEMA_DIMS_MAX; k++)
                        if (column->widths.n[k] == COLUMNAR_WIDTH_NONE)
                                column->widths.n[k] = found->widths.n[k];
                columnar_join(column, found->field.dtype);
                column->is_mixed |= found->is_mixed;
                column->is_compressed |= found->is_compressed;
                column->n_inside += found->n_inside;
                column->n_outside += found->n_outside;
                column->n_absent += found->n_absent;
                column->least = found->least < column->least ? found->least : column->least;
                column->most = found->most > column->most ? found->most : column->most;
        }
        return true;
}

/* ---- after it ---------------------------------------------------------------------------------------------------- */

bool columnar_has_own_file(const struct columnar_column *column) {
        return column->role == COLUMNAR_MEDIA && column->n_inside == 0 && column->n_outside > 0;
}

/* What is unpacked goes into the index, which is meant for text and numbers. */
static int columnar_settle_stored(const struct columnar_format *format, struct columnar_column *column,
                                  struct why *why) {
        bool is_stored = columnar_is_stored(column) && (column->role == COLUMNAR_STORED || column->n_inside > 0);

        if (column->role == COLUMNAR_MEDIA && column->n_inside > 0 && column->n_outside > 0)
                return why_set(why, -ENOTSUP,
                               "column \"%s\": %" PRIu64 " rows have their bytes in the %s, and %" PRIu64
                               " name a file outside; write the dataset again, so that all bytes are inside",
                               column->field.name, column->n_inside, format->files, column->n_outside);
        if (is_stored && column->is_compressed &&
            (column->role == COLUMNAR_MEDIA || column->field.kind == FIELD_PICTURE ||
             column->field.kind == FIELD_SOUND))
                return format->compressed(column, why);
        if (column->role == COLUMNAR_STORED && column->is_mixed)
                column->role = COLUMNAR_LIST;
        if (column->role == COLUMNAR_STORED && column->is_compressed)
                column->role = COLUMNAR_COPIED;
        return 0;
}

/* Lists of which no row has shown the length have one element. */
static int columnar_settle_shape(struct columnar_column *column, struct why *why) {
        uint64_t n_elements = column->field.shape[0] > 0 ? (uint64_t)column->field.shape[0] : 1;

        for (uint32_t k = 1; k < column->field.n_dims; k++) {
                uint64_t *width = &column->widths.n[k];

                if (column->field.shape[k] < 0)
                        column->field.shape[k] = *width == COLUMNAR_WIDTH_NONE ? 1 : (int64_t)*width;
                *width = (uint64_t)column->field.shape[k];
                if (__builtin_mul_overflow(n_elements, *width, &n_elements))
                        n_elements = UINT64_MAX;
        }
        if (column->role == COLUMNAR_LIST && n_elements > INT32_MAX)
                return why_set(why, -EFBIG, "column \"%s\" has lists of more than %d elements; split them",
                               column->field.name, INT32_MAX);
        return 0;
}

static int columnar_settle_column(const struct columnar_format *format, struct columnar_column *column,
                                  struct why *why) {
        int r = columnar_settle_stored(format, column, why);

        if (r < 0)
                return r;
        if (column->class_names && column->n_absent == 0 && column->least >= 0 &&
            column->most < cJSON_GetArraySize(column->class_names))
                column->role = COLUMNAR_CLASS; /* else they are numbers: -1 stands for "unknown" */
        return columnar_settle_shape(column, why);
}

int columnar_columns_settle(struct columnar_pass *pass, struct why *why) {
        int r = 0;

        pass->columns.is_settled = true;
        for (uint32_t i = 0; i < pass->columns.n && r == 0; i++)
                r = refusals_mark(pass->refusals, pass->columns.all[i].field.name,
                                  columnar_settle_column(pass->format, &pass->columns.all[i], why));
        return r;
}
