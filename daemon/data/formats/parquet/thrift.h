/* data/formats/parquet/thrift.h: reads Thrift's compact protocol, the encoding of Parquet's metadata.
 *
 * A struct is a row of fields, each with its number and type, up to a stop byte; nothing says how long a value is
 * before it was read. The bytes come from a file and are never trusted: the first one that cannot be right marks the
 * input as damaged; from then on there are no more fields, and all values are 0 or empty. So a reader checks
 * `is_damaged` once, after it has read what it needs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum thrift_type {
        THRIFT_STOP = 0,
        THRIFT_TRUE = 1,
        THRIFT_FALSE = 2,
        THRIFT_BYTE = 3,
        THRIFT_I16 = 4,
        THRIFT_I32 = 5,
        THRIFT_I64 = 6,
        THRIFT_DOUBLE = 7,
        THRIFT_BINARY = 8,
        THRIFT_LIST = 9,
        THRIFT_SET = 10,
        THRIFT_MAP = 11,
        THRIFT_STRUCT = 12,
        THRIFT_UUID = 13,
};

struct thrift {
        const uint8_t *bytes;
        size_t n_bytes;
        size_t at;
        bool is_damaged;
};

/* The field that is read now; zeroes before the first one of a struct. */
struct thrift_field {
        int32_t id;
        enum thrift_type type;
};

/* Goes on to the next field of a struct, whose value the caller then takes or skips. False after the last one. */
bool thrift_next(struct thrift *thrift, struct thrift_field *field);

/* Takes a value of this type: a whole number of any width; a bool; bytes, which are not NUL-terminated. Another type is
 * damage. */
int64_t thrift_integer(struct thrift *thrift, enum thrift_type type);
bool thrift_bool(struct thrift *thrift, enum thrift_type type);
const char *thrift_binary(struct thrift *thrift, enum thrift_type type, size_t *ret_n);

/* Enters a list. Returns how many elements follow, at most one for each byte that is left; each one has to be taken or
 * skipped. */
size_t thrift_list(struct thrift *thrift, enum thrift_type type, enum thrift_type *ret_element);

/* Enters a struct: its fields follow. False: it is of another type, which is damage. */
bool thrift_struct(struct thrift *thrift, enum thrift_type type);

/* Skips a value, of at most THRIFT_DEPTH_MAX levels. */
#define THRIFT_DEPTH_MAX 32u
void thrift_skip(struct thrift *thrift, enum thrift_type type);
