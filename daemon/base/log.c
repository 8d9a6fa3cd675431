#include "daemon/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/logging/log_limits.h"
#include "daemon/base/logging/writer.h"
#include "proto/base/clock.h"
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

static bool log_is_wanted(enum log_level level) {
        return (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

static void log_compose(struct log_text *ret_text, enum log_level level, const char *subsystem, const char *format,
                        va_list arguments) {
        bool journal = getenv("JOURNAL_STREAM") != NULL;
        bool terminal = !journal && isatty(STDERR_FILENO) && !getenv("NO_COLOR");
        char *line = ret_text->bytes, *message;
        size_t n, n_max = sizeof(ret_text->bytes);
        int r;

        if (journal)
                r = snprintf(line, n_max, "<%d>%s: ", LEVELS[level].priority, subsystem);
        else
                r = snprintf(line, n_max, "%s%-8s%s %s: ", terminal ? LEVELS[level].colour : "", LEVELS[level].name,
                             terminal && *LEVELS[level].colour ? "\033[0m" : "", subsystem);
        n = r > 0 ? (size_t)r : 0;
        message = line + n;

        r = vsnprintf(line + n, n_max - n - 1, format, arguments);
        if (r > 0)
                n = n + (size_t)r < n_max - 2 ? n + (size_t)r : n_max - 2;

        /* A file name may contain a newline, or what a terminal acts on; a line of the log may not. */
        for (char *c = message; *c; c++)
                if (*c == '\n')
                        *c = ' ';
        text_make_printable(message);
        line[n++] = '\n';
        ret_text->n = n;
}

__attribute__((format(printf, 4, 5))) static void compose_words(struct log_text *ret_text, enum log_level level,
                                                                const char *subsystem, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        log_compose(ret_text, level, subsystem, format, arguments);
        va_end(arguments);
}

void log_line(enum log_level level, const char *subsystem, const char *format, ...) {
        struct log_text text;
        va_list arguments;

        if (!log_is_wanted(level))
                return;
        va_start(arguments, format);
        log_compose(&text, level, subsystem, format, arguments);
        va_end(arguments);
        writer_take(&text);
}

static void compose_left_out(struct log_text *ret_text, const struct log_left_out *left_out) {
        const struct log_kind *kind = &left_out->kind;

        compose_words(ret_text, kind->level, kind->subsystem, "%llu more lines \"%.*s...\" were left out user=%u",
                      (unsigned long long)left_out->n, (int)strcspn(kind->format, "%"), kind->format,
                      (unsigned)kind->user);
}

void log_user_line(enum log_level level, uid_t user, const char *subsystem, const char *format, ...) {
        struct log_text text;
        va_list arguments;

        if (!log_is_wanted(level))
                return;
        if (!limits_allow(&(struct log_kind){ level, subsystem, format, user }, clock_now_ns())) {
                writer_wake();
                return;
        }
        va_start(arguments, format);
        log_compose(&text, level, subsystem, format, arguments);
        va_end(arguments);
        writer_take(&text);
}

/* What the writer says by itself: lines that nobody could take, and those that a user caused in excess. */
static bool log_say_own(uint64_t n_lost, uint64_t now_ns, struct log_text *ret_text) {
        struct log_left_out left_out;

        if (n_lost > 0)
                compose_words(ret_text, LOG_LEVEL_WARNING, "log", "%llu lines were left out: nobody read the log",
                              (unsigned long long)n_lost);
        else if (limits_take_left_out(now_ns, &left_out))
                compose_left_out(ret_text, &left_out);
        else
                return false;
        return true;
}

int log_start(struct why *why) {
        int r = writer_start(log_say_own);

        return r < 0 ? why_errno(why, r, "log: starting its thread") : 0;
}

void log_stop(void) {
        writer_stop();
}
