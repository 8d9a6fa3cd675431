/* data/formats/webdataset/member_name.h: what the name of a file in an archive says: to which sample it belongs, and which
 * field of it the file is. The rules are those of the webdataset library. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/data/schema.h"

enum member_name {
        MEMBER_IS_FIELD,
        MEMBER_IS_NO_FIELD, /* no dot, hidden, or a name that the library uses itself ("__index__") */
        MEMBER_IS_HIDDEN,   /* "d/.x" would be the field x of the sample "d/", which is certainly not meant */
};

/* Splits "./a/000.seg.png" at the first dot of its last component: `ret_key` points at "a/000.seg.png" in `name`, the
 * first `ret_n_key` bytes of which are the name of the sample; `ret_extension` points at "seg.png", the field. They are
 * set for MEMBER_IS_FIELD only. */
enum member_name member_name_split(const char *name, const char **ret_key, size_t *ret_n_key,
                                   const char **ret_extension);

#define MEMBER_FIELD_REFUSED "the part after the first dot names a field: it must have 1 to 31 bytes"

/* The name of the field: the extension in lower case. Returns false if it is empty or too long. */
bool member_field(const char *extension, char ret_field[SCHEMA_NAME_MAX]);

/* The kind of a field, from the last part of its name. */
enum field_kind member_kind(const char *field);

bool member_is_npy(const char *field);
