/* base/json/json_scan.h: reads JSON token by token, without building anything.
 *
 * The caller owns the bytes, and tokens point into them: where a value lies is as important as what it is. The text may
 * come in pieces (json_scan_feed()), so that a file of any size needs memory for its longest string only.
 *
 * The grammar is RFC 8259, read strictly, plus NaN, Infinity and -Infinity, which Python writes. Whoever reads
 * numbers can so refuse these words by name, and still read what lies beside them. Strings are checked:
 * they are UTF-8 in the shortest form, without control characters. An escape that names half of a surrogate pair is
 * accepted here, as in Python, and refused when it has to become UTF-8 (json_string_read()). Numbers are not converted
 * here, so none loses a digit. No function allocates or blocks. Any input is safe; its time is linear. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

#define JSON_DEPTH_MAX  128u /* arrays and objects within each other */
#define JSON_NUMBER_MAX 400u /* characters of a number */

/* Positive outcome: the bytes end within a token, and more of them follow. */
#define JSON_MORE 1

enum json_kind {
        JSON_END, /* of the text */
        JSON_NULL,
        JSON_FALSE,
        JSON_TRUE,
        JSON_INTEGER, /* digits only; its value may exceed 64 bits */
        JSON_FLOAT,   /* with a fraction or an exponent; NaN, Infinity, -Infinity */
        JSON_STRING,
        JSON_KEY, /* the name of a member; its value is the next token */
        JSON_ARRAY,
        JSON_ARRAY_END,
        JSON_OBJECT,
        JSON_OBJECT_END,
};

struct json_token {
        enum json_kind kind;
        bool has_escapes;     /* JSON_STRING, JSON_KEY: there is a backslash in it */
        const uint8_t *bytes; /* as written: a string with its quotes, of an array or object the bracket */
        size_t n_bytes;
};

/* Private, except `at`, `depth` and `offset`. */
struct json_scan {
        const uint8_t *bytes;
        size_t n_bytes;
        size_t at;       /* the next byte; what lies before it is not needed any more */
        uint64_t offset; /* of bytes[0] in the whole text */
        uint32_t depth;  /* arrays and objects that are open */
        int state;
        bool is_last; /* the text ends with these bytes */
        uint64_t objects[JSON_DEPTH_MAX / 64];
};

/* Begins with a whole text. */
void json_scan_init(struct json_scan *scan, const void *bytes, size_t n_bytes);

/* Gives the next piece of a text: its bytes begin at scan->at of the piece before, that is, with what was not consumed.
 * Before the first piece, the struct is all zeroes. */
void json_scan_feed(struct json_scan *scan, const void *bytes, size_t n_bytes, bool is_last);

/* Where the next byte lies in the whole text. */
uint64_t json_scan_offset(const struct json_scan *scan);

/* The next token. Exactly one value is read; after it comes JSON_END. Returns 0; JSON_MORE if the caller has to feed
 * more bytes and call again; -EBADMSG with `why`, which says "byte N: ..." and not which file; -E2BIG if values are
 * nested too deep or a number is too long. After an error the scan is of no use. `why` may be NULL. */
int json_next(struct json_scan *scan, struct json_token *ret_token, struct why *why);

/* Goes on until `depth` arrays and objects are open: after JSON_ARRAY or JSON_OBJECT, scan->depth - 1 skips what is in
 * it. Returns as json_next(). */
int json_skip(struct json_scan *scan, uint32_t depth, struct why *why);

/* The next token; of an array or object the whole of it, with both brackets. Only for a whole text. Returns as
 * json_next(). */
int json_value(struct json_scan *scan, struct json_token *ret_token, struct why *why);
