#include "daemon/data/formats/webdataset/member_name.h"

#include <string.h>

#include "daemon/data/field_name.h"
#include "daemon/data/formats/webdataset/tar.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"

#define EXTENSION_MAX 255u

/* Names that the library uses itself: "__index__", "__meta__/...". */
static bool is_meta(const char *name) {
        const char *end = name[0] == '_' && name[1] == '_' ? strstr(name + 2, "__") : NULL;
        const char *slash = strchr(name, '/');

        while (end && end[2] != '\0' && end[2] != '/')
                end = strstr(end + 1, "__");
        return end && (!slash || end < slash);
}

/* The extension in lower case. Returns false if it is empty or longer than a file's name can be. */
static bool member_name_read_field(const char *extension, char ret_field[SCHEMA_NAME_MAX]) {
        size_t n = strlen(extension);
        char lower[EXTENSION_MAX];

        if (n == 0 || n > EXTENSION_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                lower[i] = (char)(extension[i] >= 'A' && extension[i] <= 'Z' ? extension[i] + 'a' - 'A' : extension[i]);
        field_name_from(lower, n, ret_field);
        return true;
}

static enum member_name member_name_refuse(const char *what, const char **ret_refusal) {
        *ret_refusal = what;
        return MEMBER_IS_REFUSED;
}

enum member_name member_name_read(const char *name, size_t n_key_max, struct member_place *ret_place,
                                  const char **ret_refusal) {
        const char *whole = name, *slash, *base, *dot;
        struct member_place place;

        name = tar_plain_name(name); /* it is only a name here, not a path to open */
        if (is_meta(name))
                return MEMBER_IS_NO_FIELD;
        slash = strrchr(name, '/');
        base = slash ? slash + 1 : name;
        dot = strchr(base, '.');
        if (!dot)
                return MEMBER_IS_NO_FIELD;
        if (dot == base) /* "d/.x" would be the field x of the sample "d/", which is certainly not meant */
                return strchr(base + 1, '.') ? MEMBER_IS_HIDDEN : MEMBER_IS_NO_FIELD;
        place = (struct member_place){ .key = whole, .n_key = (size_t)(dot - whole) };
        _Static_assert(EXTENSION_MAX == 255, "as the message says");
        if (!member_name_read_field(dot + 1, place.field))
                return member_name_refuse("the part after the first dot names a field: it must have 1 to 255 bytes",
                                          ret_refusal);
        if (place.n_key > n_key_max)
                return member_name_refuse("the name of a sample is too long", ret_refusal);
        if (!index_is_inner_path(name))
                return member_name_refuse("the name of a sample may not leave its folder", ret_refusal);
        *ret_place = place;
        return MEMBER_IS_FIELD;
}

bool member_is_of(const struct member_place *place, const char *key) {
        return strncmp(key, place->key, place->n_key) == 0 && key[place->n_key] == '\0';
}

static const char *last_part(const char *field) {
        const char *dot = strrchr(field, '.');

        return dot ? dot + 1 : field;
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
