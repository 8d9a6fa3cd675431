/* lib/reason.h: keeps the sentence that belongs to an error (proto/base/why.h), in the loader and in the thread.
 *
 * Public functions pass it to dli_report(), so that both dlc_error() and dlc_last_error() return it.
 *
 * Names that the library's files share begin with dli_: libdlclient.a shares one name space with the program that links
 * it. */
#pragma once

#include "proto/base/why.h"

/* Makes it the last error of the calling thread. Returns `error`. */
int dli_report(const struct why *reason, int error);

/* Formats and reports at once, if there is no loader or the loader must not be touched. A function that is called for
 * each batch keeps no text on its own stack: clearing that would be a quarter of its time. Returns `error`. */
int dli_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
