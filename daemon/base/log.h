/* base/log.h: one line for each event: level, subsystem, message, key=value.
 *
 * A line about an error that is not fatal says what happens next. Hot paths count instead of logging. Lines go to
 * stderr; under systemd each begins with its level as <N>, which the journal takes as the priority. */
#pragma once

enum log_level {
        LOG_LEVEL_ERROR,
        LOG_LEVEL_WARNING,
        LOG_LEVEL_INFO,
        LOG_LEVEL_DEBUG,
};

/* Lines above `level` are left out from now on. Any thread. */
void log_set_level(enum log_level level);

/* Writes one line with a single write(), so that lines of several threads do not mix. Any thread; blocks only as
 * stderr does. */
void log_line(enum log_level level, const char *subsystem, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

#define log_error(subsystem, ...)   log_line(LOG_LEVEL_ERROR, subsystem, __VA_ARGS__)
#define log_warning(subsystem, ...) log_line(LOG_LEVEL_WARNING, subsystem, __VA_ARGS__)
#define log_info(subsystem, ...)    log_line(LOG_LEVEL_INFO, subsystem, __VA_ARGS__)
#define log_debug(subsystem, ...)   log_line(LOG_LEVEL_DEBUG, subsystem, __VA_ARGS__)
