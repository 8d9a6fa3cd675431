#include "client/lib/reason.h"

/* The only state that the library keeps outside its loaders: one text per thread. */

#include <stdarg.h>

#include "client/include/dlclient.h"

static _Thread_local struct why last_error;

int dli_report(const struct why *reason, int error) {
        last_error = *reason;
        return error;
}

int dli_refuse(int error, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        why_set_list(&last_error, error, format, arguments);
        va_end(arguments);
        return error;
}

const char *dlc_last_error(void) {
        return last_error.text;
}
