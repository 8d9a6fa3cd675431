/* proto/base/plain_locale.h: numbers in texts have a point, whatever the process has chosen with setlocale().
 *
 * The library lives in trainers' processes. Where one of them asked for German numbers, strtod() would end at the point
 * of "0.7", and printf() write commas into digests. Between begin and end the calling thread has C's numbers. */
#pragma once

#include <locale.h>

#include "proto/base/symbol.h"

/* Returns what the thread had. */
locale_t plain_locale_begin(void) DLP_SYMBOL(plain_locale_begin);

void plain_locale_end(locale_t before) DLP_SYMBOL(plain_locale_end);
static inline void plain_locale_endp(const locale_t *before) {
        plain_locale_end(*before);
}
