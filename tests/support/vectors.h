/* tests/support/vectors.h: golden vectors out of tests/vectors/, one JSON object a line.
 *
 * cJSON keeps every number as a double, which spoils integers above 2^53 (seeds go up to 2^64-1). So a line is handed
 * out twice: parsed, for lists, words and small numbers, and as text, from which vector_u64() reads integers exactly.
 * Paths are relative to the project's root, where the tests are started. Whatever is wrong with a vector file ends the
 * test through ck_abort_msg(): a broken vector must never look like a passed test. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct vectors {
        FILE *file;
        char *text; /* the current line, without its newline; valid until the next vectors_next() */
        size_t text_size;
        cJSON *line;     /* the same, parsed; valid as long */
        unsigned number; /* of the current line, from 1 */
        char path[256];
};

/* Opens tests/vectors/NAME. */
void vectors_open(struct vectors *vectors, const char *name);

/* Steps to the next line. False at the end of the file; then everything is released. */
bool vectors_next(struct vectors *vectors);

/* Releases everything, for those who stop before the end. May be called at any time after vectors_open(). */
void vectors_close(struct vectors *vectors);

/* Is the current line's `kind` this one? */
bool vectors_kind(const struct vectors *vectors, const char *kind);

/* Reads the integer after the first "key": of a line's text, exactly. A negative one comes out modulo 2^64, as torch
 * takes a negative seed. Absent, null or not an integer: the test ends. */
uint64_t vector_u64(const char *text, const char *key);
int64_t vector_i64(const char *text, const char *key);

/* Does the line have this key, and is it something else than null? */
bool vector_has(const cJSON *line, const char *key);

/* Values of the parsed line; the test ends where one is absent or of another type. */
double vector_number(const cJSON *line, const char *key);
int vector_int(const cJSON *line, const char *key);
bool vector_bool(const cJSON *line, const char *key);
const char *vector_string(const cJSON *line, const char *key);
const cJSON *vector_array(const cJSON *line, const char *key, size_t *ret_n);

/* Element `idx` of an array as an integer. Exact below 2^53, and the test ends for one above. */
int64_t vector_item(const cJSON *array, size_t idx);

/* Reads hexadecimal digits ("37f2dd47") into an integer. */
uint64_t vector_hex(const char *digits);

/* Decodes base64 into fresh memory; the caller frees it. */
uint8_t *vector_base64(const char *text, size_t *ret_n_bytes);

/* FNV-1a, 64 bits, over bytes. Lists of indices are hashed as little-endian int64. `hash` continues an earlier one:
 * begin with FNV1A_BEGIN. */
#define FNV1A_BEGIN 0xcbf29ce484222325ull
uint64_t fnv1a_more(uint64_t hash, const void *bytes, size_t n_bytes);
uint64_t fnv1a(const void *bytes, size_t n_bytes);

/* Reads a whole file into fresh memory, with a NUL after it; the caller frees it. The test ends if it cannot. */
uint8_t *read_whole_file(const char *path, size_t *ret_n_bytes);
