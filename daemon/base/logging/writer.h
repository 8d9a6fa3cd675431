/* base/logging/writer.h: the thread that writes the log, so that stderr holds up nobody else.
 *
 * A fixed number of lines can wait for it. A thread that logs waits for the writer, so normally a line is written
 * when log_line() returns. If that takes longer than LOG_WAIT_NS, no thread waits until the writer has caught up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_TEXTS    128u
#define LOG_TEXT_MAX 2048u
#define LOG_WAIT_NS  20000000u
#define LOG_END_NS   500000000u /* for what is left at the end */

struct log_text {
        size_t n;
        char bytes[LOG_TEXT_MAX]; /* with a newline at its end */
};

/* Makes a line of what the writer has to say by itself at this time: first of `n_lost` lines. False: nothing. */
typedef bool (*writer_say)(uint64_t n_lost, uint64_t now_ns, struct log_text *ret_text);

int writer_start(writer_say say);

/* Writes what is left. A thread that hangs in a write is left behind, and no further line is taken. */
void writer_stop(void);

/* Has the line written: by the thread; without one, and in a forked child, at once. */
void writer_take(const struct log_text *text);

/* There is something new to say. */
void writer_wake(void);
