/* base/log.h: one line for each event: level, subsystem, message, key=value.
 *
 * A line about an error that is not fatal says what happens next. Hot paths count instead of logging. Lines go to
 * stderr; under systemd each begins with its level as <N>, which the journal takes as the priority.
 *
 * stderr may be a pipe that nobody reads, and it belongs to whoever started the program, so it cannot be made
 * non-blocking. Therefore the daemon has a thread that writes (log_start()). Without it, as in the staging program,
 * lines are written where they are logged. */
#pragma once

#include <sys/types.h>

#include "proto/base/why.h"

enum log_level {
        LOG_LEVEL_ERROR,
        LOG_LEVEL_WARNING,
        LOG_LEVEL_INFO,
        LOG_LEVEL_DEBUG,
};

/* Lines above `level` are left out from now on. Any thread. */
void log_set_level(enum log_level level);

/* From now on a thread of its own writes. */
int log_start(struct why *why);

/* Writes what is left, for a limited time, and ends the thread. If stderr blocks, later lines are dropped. */
void log_stop(void);

/* Writes one line with a single write(), so that lines of several threads do not mix. Any thread. With log_start() it
 * waits for the writer, which is a moment, and no longer than LOG_WAIT_NS; while the writer is held up it does not wait
 * at all, and when its memory is full as well, the line is counted and left out. */
void log_line(enum log_level level, const char *subsystem, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* A line that this user causes. Of one format, which is the kind of the line, a user may cause LOG_USER_LINES in
 * LOG_USER_NS; further ones are counted, and one line says how many there were and quotes the format up to its first
 * value. So a format begins with words. */
void log_user_line(enum log_level level, uid_t user, const char *subsystem, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

#define log_error(subsystem, ...)   log_line(LOG_LEVEL_ERROR, subsystem, __VA_ARGS__)
#define log_warning(subsystem, ...) log_line(LOG_LEVEL_WARNING, subsystem, __VA_ARGS__)
#define log_info(subsystem, ...)    log_line(LOG_LEVEL_INFO, subsystem, __VA_ARGS__)
#define log_debug(subsystem, ...)   log_line(LOG_LEVEL_DEBUG, subsystem, __VA_ARGS__)

#define log_user_error(user, subsystem, ...)   log_user_line(LOG_LEVEL_ERROR, user, subsystem, __VA_ARGS__)
#define log_user_warning(user, subsystem, ...) log_user_line(LOG_LEVEL_WARNING, user, subsystem, __VA_ARGS__)
#define log_user_info(user, subsystem, ...)    log_user_line(LOG_LEVEL_INFO, user, subsystem, __VA_ARGS__)
