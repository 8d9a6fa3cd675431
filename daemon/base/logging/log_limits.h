/* base/logging/log_limits.h: how many lines of one kind one user may cause.
 *
 * A kind is the format of a log line. In LOG_USER_NS from its first line, a kind has LOG_USER_LINES for each user; what
 * comes beyond that is counted, and the writer says the count when the time is over. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/log.h"

#define LOG_USER_LINES 50u
#define LOG_USER_NS    10000000000u

struct log_kind {
        enum log_level level;
        const char *subsystem, *format; /* both constant */
        uid_t user;
};

struct log_left_out {
        struct log_kind kind;
        uint64_t n;
};

/* Counts the line. False: it is to be left out. */
bool limits_allow(const struct log_kind *kind, uint64_t now_ns);

/* A count whose time is over at `now_ns`; it is forgotten. False: there is none. */
bool limits_take_left_out(uint64_t now_ns, struct log_left_out *ret_left_out);

/* When the next count will be due. UINT64_MAX: there is none. */
uint64_t limits_due_ns(void);
