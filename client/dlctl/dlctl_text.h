/* dlctl/dlctl_text.h: fast output of many short lines: a buffer, and one write() when it is full. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_BUFFER_BYTES 65536u /* what a pipe holds */
#define JSON_ESCAPED_MAX  13u    /* bytes with the NUL */

struct text {
        int fd;
        int error; /* negative errno of the first write that failed; all later text is discarded */
        size_t n;
        char bytes[TEXT_BUFFER_BYTES];
};

void text_init(struct text *text, int fd);

void text_bytes(struct text *text, const char *bytes, size_t n_bytes);
void text_string(struct text *text, const char *string);
void text_u64(struct text *text, uint64_t value);
void text_i64(struct text *text, int64_t value);
void text_double(struct text *text, double value); /* JSON has none: "NaN", "-Infinity" */

/* The character as JSON can always write it, for those that are not printable: "\u202e", above U+FFFF in two halves. */
void json_escape(uint32_t point, char ret_escaped[JSON_ESCAPED_MAX]);

/* With quotes. Bytes that are not UTF-8 are replaced, so that the line stays valid JSON for any file name. */
void text_json_string(struct text *text, const char *string);

/* Writes what is buffered. Returns 0 or the error. */
int text_flush(struct text *text);
