#include "daemon/base/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/text.h"

static void write_text(struct why *why, const char *format, va_list arguments) {
        int n = vsnprintf(why->text, sizeof(why->text), format, arguments);

        if (n < 0)
                why->text[0] = '\0';
        else if ((size_t)n >= sizeof(why->text))
                memcpy(why->text + sizeof(why->text) - 4, "...", 4);
        text_make_printable(why->text);
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
