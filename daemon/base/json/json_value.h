/* base/json/json_value.h: what the values of a JSON text are: numbers, arrays of numbers, text, members by path.
 *
 * All functions take the bytes of one value (as struct json_token has them) and check them, since a file may change
 * after it was indexed. None allocates or blocks. Errors: -EBADMSG is malformed JSON, -EINVAL is a value of another
 * kind than wanted, -ERANGE is a number that does not fit; `why` says what is wrong and not where the value lies, and
 * may be NULL. */
#pragma once

#include "daemon/base/json/json_scan.h"

#define JSON_DIMS_MAX 3u
#define JSON_NAME_MAX 256u /* bytes of a member's name in a path */

/* Positive outcome of json_find(): there is no such member or element. */
#define JSON_ABSENT 2

/* Is it a path: members joined by ".", and elements of arrays by their number: "a.b[3].c"? A name that contains "." or
 * "[" is written ["a.b"]. "" is the whole value. Returns 0, or -EINVAL with `why`. */
int json_path_check(const char *path, struct why *why);

/* Finds the value at `path`, which json_path_check() has accepted. If an object has several members of one name, the
 * last one counts, as in Python. Returns 0 and the whole value; JSON_ABSENT; or an error. */
int json_find(const void *bytes, size_t n_bytes, const char *path, struct json_token *ret_value, struct why *why);

/* Is the string (or name of a member) equal to these n bytes of UTF-8? */
bool json_string_is(const struct json_token *token, const char *text, size_t n);

/* Turns a string literal, with its quotes, into UTF-8, which is never longer than n_bytes - 2. `into` has that much
 * room, or is NULL to learn the length only. Returns 0 and the length; -EINVAL for another value; -EILSEQ for an escape
 * that is half of a surrogate pair, which has no UTF-8. */
int json_string_read(const void *bytes, size_t n_bytes, uint8_t *into, size_t *ret_n, struct why *why);

/* A whole number that fits 64 bits with a sign. -ERANGE: it does not. */
int json_integer_read(const void *bytes, size_t n_bytes, int64_t *ret_number, struct why *why);

/* A whole number that fits 64 bits without a sign. -ERANGE: it does not, or is negative. */
int json_unsigned_read(const void *bytes, size_t n_bytes, uint64_t *ret_number, struct why *why);

/* Any number, rounded correctly to a double. -ERANGE: it is NaN or infinite, or too large to be finite. */
int json_float_read(const void *bytes, size_t n_bytes, double *ret_number, struct why *why);

/* A number (0 dimensions) or an array of numbers, whose rows all have the same length. */
struct json_numbers {
        enum json_kind
                kind; /* JSON_INTEGER: all of them are; JSON_FLOAT: at least one is not; JSON_TRUE: true and false */
        uint32_t n_dims;
        uint64_t shape[JSON_DIMS_MAX]; /* elements */
        uint64_t n;                    /* elements in all; the kind of none is JSON_INTEGER */
};

/* -EINVAL: something in it is not a number, rows differ in length, or it has more dimensions. -ERANGE: a whole number
 * that does not fit 64 bits, beside whole numbers only; or one that json_float_read() refuses. */
int json_numbers_measure(const void *bytes, size_t n_bytes, struct json_numbers *ret_numbers, struct why *why);

/* Writes the elements in C order, in the machine's byte order: as int64_t (`is_float` false; all must be whole; true
 * and false count as 1 and 0) or as double. `into` has room for `n` of 8 bytes and needs no alignment. -EINVAL if their
 * number is not `n`. */
int json_numbers_read(const void *bytes, size_t n_bytes, bool is_float, void *into, uint64_t n, struct why *why);
