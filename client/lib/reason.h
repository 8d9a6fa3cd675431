/* lib/reason.h: where the sentence that goes with an error (proto/base/why.h) ends up: with the loader and the thread.
 *
 * Public functions hand it on with dli_report(), so that both dlc_error() and dlc_last_error() have it.
 *
 * Names that are shared between the library's files begin with dli_: libdlclient.a has one name space with the program
 * that links it. */
#pragma once

#include "proto/base/why.h"

/* Makes it the calling thread's last error. Returns `error`. */
int dli_report(const struct why *reason, int error);

/* Both at once, where no loader is concerned or none may be touched. A call for each batch has no text of its own on
 * its stack: clearing that would be a quarter of its time. Returns `error`. */
int dli_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
