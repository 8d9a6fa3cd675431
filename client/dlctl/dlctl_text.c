#include "client/dlctl/dlctl_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/dlctl_ending.h"
#include "proto/base/text.h"
#include "proto/base/utf8.h"

void text_init(struct text *text, int fd) {
        text->fd = fd;
        text->error = 0;
        text->n = 0;
}

int text_flush(struct text *text) {
        size_t done = 0;

        while (done < text->n && text->error == 0) {
                ssize_t n = write(text->fd, text->bytes + done, text->n - done);

                if (n >= 0)
                        done += (size_t)n;
                else if (errno != EINTR)
                        text->error = -errno;
        }
        if (text->error < 0 && text->fd == STDOUT_FILENO)
                output_failed(-text->error);
        text->n = 0;
        return text->error;
}

void text_bytes(struct text *text, const char *bytes, size_t n_bytes) {
        while (n_bytes > 0) {
                size_t room = sizeof(text->bytes) - text->n, n = n_bytes < room ? n_bytes : room;

                memcpy(text->bytes + text->n, bytes, n);
                text->n += n;
                bytes += n;
                n_bytes -= n;
                if (text->n == sizeof(text->bytes))
                        text_flush(text);
        }
}

void text_string(struct text *text, const char *string) {
        text_bytes(text, string, strlen(string));
}

void text_u64(struct text *text, uint64_t value) {
        char digits[20], *first = digits + sizeof(digits);

        do
                *--first = (char)('0' + value % 10);
        while ((value /= 10) != 0);
        text_bytes(text, first, (size_t)(digits + sizeof(digits) - first));
}

void text_i64(struct text *text, int64_t value) {
        if (value < 0)
                text_bytes(text, "-", 1);
        text_u64(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void text_double(struct text *text, double value) {
        char digits[40];

        if (!isfinite(value)) {
                text_string(text, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
                return;
        }
        snprintf(digits, sizeof(digits), "%.17g", value);
        text_string(text, digits);
}

/* ---- JSON strings -------------------------------------------------------------------------------------------- */

void json_escape(uint32_t point, char ret_escaped[JSON_ESCAPED_MAX]) {
        if (point < 0x10000)
                snprintf(ret_escaped, JSON_ESCAPED_MAX, "\\u%04x", point & 0xffff);
        else
                snprintf(ret_escaped, JSON_ESCAPED_MAX, "\\u%04x\\u%04x", 0xd7c0 + ((point >> 10) & 0x7ff),
                         0xdc00 + (point & 0x3ff));
}

void text_json_string(struct text *text, const char *string) {
        text_bytes(text, "\"", 1);
        while (*string) {
                uint32_t point;
                size_t n = utf8_decode(string, SIZE_MAX, &point);
                char escaped[JSON_ESCAPED_MAX];

                if (n == 0) {
                        text_string(text, "\xef\xbf\xbd"); /* U+FFFD: replaced */
                        n = 1;
                } else if (*string == '"' || *string == '\\') {
                        escaped[0] = '\\';
                        escaped[1] = *string;
                        text_bytes(text, escaped, 2);
                } else if (text_printable_length(string) == 0) {
                        json_escape(point, escaped);
                        text_string(text, escaped);
                } else {
                        text_bytes(text, string, n);
                }
                string += n;
        }
        text_bytes(text, "\"", 1);
}
