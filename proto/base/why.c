#include "proto/base/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/shorten.h"
#include "proto/base/text.h"

/* Leaves room for n_after bytes. Returns the length. */
static size_t write_text(struct why *why, size_t n_after, const char *format, va_list arguments)
        __attribute__((format(printf, 3, 0)));
static size_t write_text(struct why *why, size_t n_after, const char *format, va_list arguments) {
        size_t n = shorten_format(why->text, sizeof(why->text) - n_after, format, arguments);

        text_make_printable(why->text);
        return n;
}

int why_set_list(struct why *why, int error, const char *format, va_list arguments) {
        if (why)
                write_text(why, 0, format, arguments);
        return error;
}

int why_set(struct why *why, int error, const char *format, ...) {
        va_list arguments;

        if (!why)
                return error;

        va_start(arguments, format);
        write_text(why, 0, format, arguments);
        va_end(arguments);
        return error;
}

int why_errno(struct why *why, int error, const char *format, ...) {
        va_list arguments;
        const char *name = strerrordesc_np(-error); /* static text: strerror() may share a buffer between threads */
        size_t n;

        if (!why)
                return error;

        if (!name)
                name = "unknown error";
        va_start(arguments, format);
        n = write_text(why, strlen(": ") + strlen(name), format, arguments);
        va_end(arguments);
        snprintf(why->text + n, sizeof(why->text) - n, ": %s", name);
        return error;
}
