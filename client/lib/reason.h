/* lib/reason.h: the sentence that goes with an error, inside the client.
 *
 * A negative errno travels up; the reason beside it names the thing and what to do. Public functions hand it on with
 * dli_report(), so that both dlc_error() and dlc_last_error() have it.
 *
 * Names that are shared between the library's files begin with dli_: libdlclient.a has one name space with the program
 * that links it. */
#pragma once

#include "proto/limits.h"

struct dli_reason {
        char text[DLP_TEXT_MAX]; /* NUL-terminated */
};

/* Writes the text, cut with "..." where it does not fit. Returns `error`, so that a function can end with it. */
int dli_reason_set(struct dli_reason *reason, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same, with ": " and the errno's own text behind it. */
int dli_reason_errno(struct dli_reason *reason, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Makes it the calling thread's last error. Returns `error`. */
int dli_report(const struct dli_reason *reason, int error);

/* Both at once, where no loader is concerned or none may be touched. A call for each batch has no text of its own on
 * its stack: clearing that would be a quarter of its time. Returns `error`. */
int dli_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
