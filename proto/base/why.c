#include "proto/base/why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/shown/shorten.h"
#include "proto/base/text.h"

/* "Invalid cross-device link" would tell nobody that a dataset's links are meant (daemon/base/machine/beneath.h). */
#define LEADS_OUT                                                                                                         \
        "a link leads out of the dataset's folder, or is absolute; put the file there, make the link relative (ln -sr), " \
        "or write links = \"follow\" for the dataset"

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

/* strerror() may share a buffer between threads. */
const char *why_text(int error) {
        const char *text = error == -EXDEV ? LEADS_OUT : strerrordesc_np(-error);

        return text ? text : "unknown error";
}

int why_errno(struct why *why, int error, const char *format, ...) {
        va_list arguments;
        const char *name = why_text(error);
        size_t n;

        if (!why)
                return error;

        va_start(arguments, format);
        n = write_text(why, strlen(": ") + strlen(name), format, arguments);
        va_end(arguments);
        snprintf(why->text + n, sizeof(why->text) - n, ": %s", name);
        return error;
}
