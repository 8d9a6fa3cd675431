#include "daemon/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/text.h"

static const struct {
        const char *name;
        int priority; /* syslog's */
        const char *colour;
} LEVELS[] = {
        [LOG_LEVEL_ERROR] = { "error", 3, "\033[31m" },
        [LOG_LEVEL_WARNING] = { "warning", 4, "\033[33m" },
        [LOG_LEVEL_INFO] = { "info", 6, "" },
        [LOG_LEVEL_DEBUG] = { "debug", 7, "\033[2m" },
};

static _Atomic int max_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level) {
        atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

void log_line(enum log_level level, const char *subsystem, const char *format, ...) {
        char line[2048], *message;
        va_list arguments;
        bool journal, terminal;
        size_t n;
        int r;

        if ((int)level > atomic_load_explicit(&max_level, memory_order_relaxed))
                return;

        journal = getenv("JOURNAL_STREAM") != NULL;
        terminal = !journal && isatty(STDERR_FILENO) && !getenv("NO_COLOR");
        if (journal)
                r = snprintf(line, sizeof(line), "<%d>%s: ", LEVELS[level].priority, subsystem);
        else
                r = snprintf(line, sizeof(line), "%s%-8s%s %s: ", terminal ? LEVELS[level].colour : "",
                             LEVELS[level].name, terminal && *LEVELS[level].colour ? "\033[0m" : "", subsystem);
        n = r > 0 ? (size_t)r : 0;
        message = line + n;

        va_start(arguments, format);
        r = vsnprintf(line + n, sizeof(line) - n - 1, format, arguments);
        va_end(arguments);
        if (r > 0)
                n = n + (size_t)r < sizeof(line) - 2 ? n + (size_t)r : sizeof(line) - 2;

        /* A file name may contain a newline, or what a terminal acts on; a line of the log may not. */
        for (char *c = message; *c; c++)
                if (*c == '\n')
                        *c = ' ';
        text_make_printable(message);
        line[n++] = '\n';
        if (write(STDERR_FILENO, line, n) < 0)
                return; /* there is nowhere left to report it */
}
