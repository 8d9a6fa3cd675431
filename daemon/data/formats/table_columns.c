#include "daemon/data/formats/table_columns.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "proto/base/utf8.h"

bool table_column_is_wanted(const char *fields, const char *name) {
        static const char BETWEEN[] = " \t=|,";

        if (!fields)
                return true;
        for (const char *at = fields; *at;) {
                size_t n = strcspn(at, BETWEEN);

                if (n == strlen(name) && memcmp(at, name, n) == 0)
                        return true;
                at += n;
                at += strspn(at, BETWEEN);
        }
        return false;
}

int table_column_name(const char *name, struct schema_field *field, struct why *why) {
        size_t n = strlen(name);
        bool is_fine = n > 0 && n < sizeof(field->name);

        for (size_t i = 0; i < n && is_fine; i++)
                is_fine = isalnum((unsigned char)name[i]) || strchr("_.-", name[i]);
        if (!is_fine)
                return why_set(why, -EINVAL,
                               "column \"%.60s\": its name becomes the name of a field: it must have 1 to %zu letters, "
                               "digits, \"_\", \".\" or \"-\"; call rename_column()",
                               name, sizeof(field->name) - 1);
        memcpy(field->name, name, n + 1);
        return 0;
}

const cJSON *table_features(const cJSON *notes) {
        return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(notes, "info"), "features");
}

static const char *type_of(const cJSON *features, const struct schema_field *field, const cJSON **ret_feature) {
        *ret_feature = cJSON_GetObjectItemCaseSensitive(features, field->name);
        return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(*ret_feature, "_type"));
}

enum field_kind table_feature_kind(const cJSON *features, const struct schema_field *field) {
        const cJSON *feature;
        const char *type = type_of(features, field, &feature);

        if (!type || field->kind != FIELD_BYTES)
                return field->kind;
        if (strcmp(type, "Image") == 0)
                return FIELD_PICTURE;
        return strcmp(type, "Audio") == 0 ? FIELD_SOUND : FIELD_BYTES;
}

const cJSON *table_feature_classes(const cJSON *features, const struct schema_field *field) {
        const cJSON *feature, *names, *name;
        const char *type = type_of(features, field, &feature);

        if (!type || strcmp(type, "ClassLabel") != 0 || field->kind != FIELD_VALUE || field->n_dims != 0 ||
            field->dtype != DLP_DTYPE_INT64 || strcmp(field->name, "label") != 0)
                return NULL;
        names = cJSON_GetObjectItemCaseSensitive(feature, "names");
        cJSON_ArrayForEach(name, names) {
                if (!cJSON_IsString(name))
                        return NULL;
        }
        return cJSON_GetArraySize(names) > 0 ? names : NULL;
}

bool table_is_utf8(const uint8_t *bytes, size_t n_bytes) {
        uint32_t point;
        size_t n;

        for (size_t at = 0; at < n_bytes; at += n) {
                n = bytes[at] < 0x80 ? 1 : utf8_decode((const char *)bytes + at, n_bytes - at, &point);
                if (n == 0)
                        return false;
        }
        return true;
}
