#include "daemon/base/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Length of the UTF-8 sequence that begins here; 0 if there is none, or one that the text's end cuts. */
static size_t sequence_length(const unsigned char *bytes) {
        size_t n = bytes[0] < 0x80   ? 1
                   : bytes[0] < 0xc2 ? 0
                   : bytes[0] < 0xe0 ? 2
                   : bytes[0] < 0xf0 ? 3
                   : bytes[0] < 0xf5 ? 4
                                     : 0;

        for (size_t i = 1; i < n; i++)
                if ((bytes[i] & 0xc0) != 0x80)
                        return 0;
        return n;
}

/* File names may hold anything: newlines would break the log, escapes a terminal, stray bytes the JSON of dlctl. */
static void make_printable(char *text) {
        unsigned char *at = (unsigned char *)text;

        while (*at) {
                size_t n = sequence_length(at);

                if (n == 0 || *at < ' ' || *at == 0x7f) {
                        *at = '?';
                        n = 1;
                }
                at += n;
        }
}

static void write_text(struct why *why, const char *format, va_list arguments) {
        int n = vsnprintf(why->text, sizeof(why->text), format, arguments);

        if (n < 0)
                why->text[0] = '\0';
        else if ((size_t)n >= sizeof(why->text))
                memcpy(why->text + sizeof(why->text) - 4, "...", 4);
        make_printable(why->text);
}

int why_set(struct why *why, int error, const char *format, ...) {
        va_list arguments;

        if (!why)
                return error;

        va_start(arguments, format);
        write_text(why, format, arguments);
        va_end(arguments);
        return error;
}

int why_errno(struct why *why, int error, const char *format, ...) {
        va_list arguments;
        char buffer[128];
        size_t n;

        if (!why)
                return error;

        va_start(arguments, format);
        write_text(why, format, arguments);
        va_end(arguments);

        n = strlen(why->text);
        snprintf(why->text + n, sizeof(why->text) - n, ": %s", strerror_r(-error, buffer, sizeof(buffer)));
        return error;
}
