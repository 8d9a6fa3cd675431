/* data/formats/webdataset/member_name.h: what the name of a file in an archive says: to which sample it belongs, and which
 * field of it the file is. The rules are those of the webdataset library. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/data/schema.h"

enum member_name {
        MEMBER_IS_FIELD,
        MEMBER_IS_NO_FIELD, /* no dot, or a name that the library uses itself ("__index__") */
        MEMBER_IS_HIDDEN,   /* it would be a field without the dot at its begin */
        MEMBER_IS_REFUSED,  /* it would be read otherwise than it was meant */
};

struct member_place {
        const char
                *key; /* the name of the sample: the first n_key bytes, without NUL. A path that stays in its folder */
        size_t n_key;
        char field[SCHEMA_NAME_MAX];
};

/* Splits "./a/000.seg.PNG" at the first dot of its last component: the sample "./a/000", as the library calls it, and
 * the field "seg.png", in lower case. `n_key_max`: the longest name of a sample that is allowed. `ret_place`, which
 * points into `name`, is set for MEMBER_IS_FIELD only; `ret_refusal`, which says what is wrong, for MEMBER_IS_REFUSED
 * only. */
enum member_name member_name_read(const char *name, size_t n_key_max, struct member_place *ret_place,
                                  const char **ret_refusal);

/* Is it the key of the sample, a text? */
bool member_is_of(const struct member_place *place, const char *key);

/* The kind of a field, from the last part of its name. */
enum field_kind member_kind(const char *field);

bool member_is_npy(const char *field);
