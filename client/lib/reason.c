#include "client/lib/reason.h"

/* The only state that the library keeps outside its loaders is here: one text for each thread. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/include/dlclient.h"

static _Thread_local struct dli_reason last_error;

/* Appends at `used`; returns how much of the text is used now. */
static size_t append(struct dli_reason *reason, size_t used, const char *format, va_list arguments) {
        size_t room = sizeof(reason->text) - used;
        int n = vsnprintf(reason->text + used, room, format, arguments);

        if (n < 0)
                return used;
        if ((size_t)n < room)
                return used + (size_t)n;
        strcpy(reason->text + sizeof(reason->text) - sizeof("..."), "...");
        return sizeof(reason->text) - 1;
}

static size_t append_text(struct dli_reason *reason, size_t used, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static size_t append_text(struct dli_reason *reason, size_t used, const char *format, ...) {
        va_list arguments;
        size_t n;

        va_start(arguments, format);
        n = append(reason, used, format, arguments);
        va_end(arguments);
        return n;
}

int dli_reason_set(struct dli_reason *reason, int error, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        append(reason, 0, format, arguments);
        va_end(arguments);
        return error;
}

int dli_reason_errno(struct dli_reason *reason, int error, const char *format, ...) {
        const char *name;
        va_list arguments;
        size_t used;

        va_start(arguments, format);
        used = append(reason, 0, format, arguments);
        va_end(arguments);
        name = strerrordesc_np(-error); /* static text: strerror() may share a buffer between threads */
        append_text(reason, used, ": %s", name ? name : "unknown error");
        return error;
}

int dli_report(const struct dli_reason *reason, int error) {
        last_error = *reason;
        return error;
}

int dli_refuse(int error, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        append(&last_error, 0, format, arguments);
        va_end(arguments);
        return error;
}

const char *dlc_last_error(void) {
        return last_error.text;
}
