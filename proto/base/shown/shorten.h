/* proto/base/shown/shorten.h: a text out of a format, whose strings give way if not all of it fits.
 *
 * A sentence about a file has the file's name somewhere in it, and at its end what to do. If it were cut at its end,
 * the advice would be lost. If each name were cut to a fixed length, two files could look alike, also in a sentence
 * that fits. So names are written with a bare %s. Only if the whole is too long, the longest of the strings lose their
 * middles. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "proto/base/symbol.h"

/* As vsnprintf(): at most `size` bytes with NUL. If that is too little, the strings that were given for a %s are cut to
 * one length, the largest at which all fits: of each the beginning and the end stay, with "..." between them, and
 * shorter strings stay whole. If the text between the strings is too long by itself, its end is cut to "...". Letters
 * of UTF-8 stay whole. `text` may not be one of the arguments. Returns the length of the text. */
size_t shorten_format(char *text, size_t size, const char *format, va_list arguments) DLP_SYMBOL(shorten_format)
        __attribute__((format(printf, 3, 0)));

/* The same with its arguments in the call. */
size_t shorten(char *text, size_t size, const char *format, ...) DLP_SYMBOL(shorten)
        __attribute__((format(printf, 3, 4)));
