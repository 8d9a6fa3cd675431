/* proto/base/shown/shorten.h: a text out of a format, whose strings give way if not all of it fits.
 *
 * A sentence about a file has the file's name somewhere in it and at its end what to do. Cutting it at its end loses
 * the advice, and cutting each name to a number of bytes loses what tells two files apart, for nothing, as most
 * sentences fit. So names are written with a bare %s. Only if the whole is too long, the longest of the strings lose
 * their middles. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "proto/base/symbol.h"

/* As vsnprintf(): at most `size` bytes with NUL. If that is too little, of each string that was given for a %s no more
 * is kept than fits for all of them, its beginning and its end, with "..." in its middle; short strings stay whole. If
 * what stands between the strings is too long by itself, the end is cut and "..." stands there. Letters of UTF-8 stay
 * whole. `text` may not be one of the arguments. Returns the length of the text. */
size_t shorten_format(char *text, size_t size, const char *format, va_list arguments) DLP_SYMBOL(shorten_format)
        __attribute__((format(printf, 3, 0)));

/* The same with its arguments in the call. */
size_t shorten(char *text, size_t size, const char *format, ...) DLP_SYMBOL(shorten)
        __attribute__((format(printf, 3, 4)));
