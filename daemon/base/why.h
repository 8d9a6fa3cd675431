/* base/why.h: the sentence that goes with an error.
 *
 * A negative errno says what kind of thing went wrong; a `why` names the thing and what to do. It travels up beside the
 * errno, is written once by whoever knows most, and is logged or sent once by whoever ends the travel. */
#pragma once

#include "proto/limits.h"

struct why {
        char text[DLP_TEXT_MAX]; /* printable UTF-8: what is neither became '?' */
};

/* Writes the text, cut with "..." at its end where it does not fit. `why` may be NULL: the caller did not ask. Returns
 * `error` unchanged, so that a function can end with `return why_set(why, -EINVAL, "...")`. */
int why_set(struct why *why, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same, with ": " and strerror(-error) behind the text. */
int why_errno(struct why *why, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
