#include "proto/base/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/text.h"

static void write_text(struct why *why, const char *format, va_list arguments) {
        int n = vsnprintf(why->text, sizeof(why->text), format, arguments);

        if (n < 0)
                why->text[0] = '\0';
        else if ((size_t)n >= sizeof(why->text))
                memcpy(why->text + sizeof(why->text) - 4, "...", 4);
        text_make_printable(why->text);
}

int why_set_list(struct why *why, int error, const char *format, va_list arguments) {
        if (why)
                write_text(why, format, arguments);
        return error;
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
        const char *name = strerrordesc_np(-error); /* static text: strerror() may share a buffer between threads */
        size_t n;

        if (!why)
                return error;

        va_start(arguments, format);
        write_text(why, format, arguments);
        va_end(arguments);

        n = strlen(why->text);
        snprintf(why->text + n, sizeof(why->text) - n, ": %s", name ? name : "unknown error");
        return error;
}
