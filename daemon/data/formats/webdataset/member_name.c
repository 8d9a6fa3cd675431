#include "daemon/data/formats/webdataset/member_name.h"

#include <string.h>

#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"

/* Names that the library uses itself: "__index__", "__meta__/...". */
static bool is_meta(const char *name) {
        const char *end = name[0] == '_' && name[1] == '_' ? strstr(name + 2, "__") : NULL;
        const char *slash = strchr(name, '/');

        while (end && end[2] != '\0' && end[2] != '/')
                end = strstr(end + 1, "__");
        return end && (!slash || end < slash);
}

enum member_name member_name_split(const char *name, const char **ret_key, size_t *ret_n_key,
                                   const char **ret_extension) {
        const char *slash, *base, *dot;

        while (name[0] == '.' && name[1] == '/') /* it is only a name here, not a path to open */
                name += 2;
        if (is_meta(name))
                return MEMBER_IS_NO_FIELD;
        slash = strrchr(name, '/');
        base = slash ? slash + 1 : name;
        dot = strchr(base, '.');
        if (dot == base)
                return slash ? MEMBER_IS_HIDDEN : MEMBER_IS_NO_FIELD;
        if (!dot)
                return MEMBER_IS_NO_FIELD;
        *ret_key = name;
        *ret_n_key = (size_t)(dot - name);
        *ret_extension = dot + 1;
        return MEMBER_IS_FIELD;
}

static const char *last_part(const char *field) {
        const char *dot = strrchr(field, '.');

        return dot ? dot + 1 : field;
}

bool member_field(const char *extension, char ret_field[SCHEMA_NAME_MAX]) {
        size_t n = strlen(extension);

        if (n == 0 || n >= SCHEMA_NAME_MAX)
                return false;
        _Static_assert(SCHEMA_NAME_MAX == 32, "as MEMBER_FIELD_REFUSED says");
        for (size_t i = 0; i <= n; i++)
                ret_field[i] = (char)(extension[i] >= 'A' && extension[i] <= 'Z' ? extension[i] + 'a' - 'A'
                                                                                 : extension[i]);
        return true;
}

enum field_kind member_kind(const char *field) {
        static const char *const NUMBERS[] = { "cls", "cls2", "index", "inx", "id" };
        const char *last = last_part(field);

        for (size_t i = 0; i < ARRAY_SIZE(NUMBERS); i++)
                if (strcmp(last, NUMBERS[i]) == 0)
                        return FIELD_NUMBER;
        return kind_of_file(field);
}

bool member_is_npy(const char *field) {
        return strcmp(last_part(field), "npy") == 0;
}
