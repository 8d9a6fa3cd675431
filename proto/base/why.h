/* proto/base/why.h: the sentence that goes with an error.
 *
 * A negative errno says which kind of error it is; a `why` names the problem and says what to do. It travels up
 * together with the errno, is written once by the function that knows most, and is logged or sent once by the function
 * that handles the error. */
#pragma once

#include <stdarg.h>

#include "proto/base/symbol.h"
#include "proto/limits.h"

struct why {
        char text[DLP_TEXT_MAX]; /* printable UTF-8; other bytes are replaced by '?' */
};

/* Writes the text. Names and other sentences are a bare %s in the format: if not all fits, the longest of them lose
 * their middles (proto/base/shown/shorten.h), so that the end, which says what to do, stays. `why` may be NULL if the
 * caller needs none. Returns `error` unchanged, so that a function can end with `return why_set(why, -EINVAL, "...")`.
 */
int why_set(struct why *why, int error, const char *format, ...) DLP_SYMBOL(why_set)
        __attribute__((format(printf, 3, 4)));

/* The same, with ": " and strerror(-error) after the text. */
int why_errno(struct why *why, int error, const char *format, ...) DLP_SYMBOL(why_errno)
        __attribute__((format(printf, 3, 4)));

/* What it writes for an error. A static text. */
const char *why_text(int error) DLP_SYMBOL(why_text);

/* As why_set(), for functions that take a format themselves. */
int why_set_list(struct why *why, int error, const char *format, va_list arguments) DLP_SYMBOL(why_set_list)
        __attribute__((format(printf, 3, 0)));
