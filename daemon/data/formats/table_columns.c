#include "daemon/data/formats/table_columns.h"

#include <errno.h>
#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/index/index_layout.h"

bool table_column_is_wanted(const char *fields, const char *name) {
        char wanted[SCHEMA_NAME_MAX], cut[SCHEMA_NAME_MAX];

        if (!fields)
                return true;
        field_name_from(name, strlen(name), cut);
        for (const char *at = fields; *at;) {
                size_t n, n_word;

                at += strspn(at, " \t");
                n_word = n = strcspn(at, ",=|");
                while (n_word > 0 && (at[n_word - 1] == ' ' || at[n_word - 1] == '\t'))
                        n_word--;
                field_name_from(at, n_word, wanted);
                if (at[n] != '=' && strcmp(wanted, cut) == 0)
                        return true;
                at += n + (at[n] != '\0');
        }
        return false;
}

int table_no_column(const char *fields, const struct refusals *refusals, struct why *why) {
        struct refusal first = { 0 };

        if (!refusals_next(refusals, &first))
                return why_set(why, -EINVAL, "has no column%s%s", fields ? " that is named in fields = " : "",
                               fields ? fields : "");
        return why_set(why, -ENODATA, "%s%s", refusals->n > 1 ? "none of its columns can be served; the first: " : "",
                       first.reason);
}

int table_column_refuse(struct refusals *refusals, const char *column, int error, const struct why *why) {
        char name[SCHEMA_NAME_MAX];

        field_name_from(column, strlen(column), name);
        return refusals_add(refusals, name, error, why);
}

int table_column_is_twice(struct refusals *refusals, const char *name, struct why *why) {
        int r = why_set(why, -EINVAL, "two columns have the name \"%s\"; rename one", name);

        return refusals_mark(refusals, name, r);
}

int table_column_is_too_many(struct refusals *refusals, const char *column, bool can_choose, struct why *why) {
        int r = why_set(why, -ENOTSUP, "the dataset has more than %u columns%s", INDEX_FIELDS_MAX,
                        can_choose ? "; choose this one with fields = \"...\""
                                   : ", and this one comes after them; write those that are needed first");

        return table_column_refuse(refusals, column, r, why);
}

int table_column_name(const char *name, struct schema_field *field, struct why *why) {
        size_t n = strlen(name);

        for (size_t i = 0; i < n; i++)
                if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
                        return why_set(why, -EINVAL,
                                       "column \"%s\": its name has a control character, so it cannot be the name "
                                       "of a field; rename it",
                                       name);
        if (n == 0)
                return why_set(why, -EINVAL, "a column has no name; rename it");
        field_name_from(name, n, field->name);
        return 0;
}

const cJSON *table_features(const cJSON *notes) {
        return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(notes, "info"), "features");
}

static const char *table_columns_type_of(const cJSON *features, const char *name, const cJSON **ret_feature) {
        *ret_feature = cJSON_GetObjectItemCaseSensitive(features, name);
        return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(*ret_feature, "_type"));
}

enum field_kind table_feature_kind(const cJSON *features, const char *name, const struct schema_field *field) {
        const cJSON *feature;
        const char *type = table_columns_type_of(features, name, &feature);

        if (!type || field->kind != FIELD_BYTES)
                return field->kind;
        if (strcmp(type, "Image") == 0)
                return FIELD_PICTURE;
        return strcmp(type, "Audio") == 0 ? FIELD_SOUND : FIELD_BYTES;
}

const cJSON *table_feature_classes(const cJSON *features, const char *name, const struct schema_field *field) {
        const cJSON *feature, *names, *one;
        const char *type = table_columns_type_of(features, name, &feature);

        if (!type || strcmp(type, "ClassLabel") != 0 || field->kind != FIELD_VALUE || field->n_dims != 0 ||
            field->dtype != DLP_DTYPE_INT64 || strcmp(name, "label") != 0)
                return NULL;
        names = cJSON_GetObjectItemCaseSensitive(feature, "names");
        cJSON_ArrayForEach(one, names) {
                if (!cJSON_IsString(one))
                        return NULL;
        }
        return cJSON_GetArraySize(names) > 0 ? names : NULL;
}
