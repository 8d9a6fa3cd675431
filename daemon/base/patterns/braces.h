/* base/patterns/braces.h: texts with braces, as shells write them: "x-{000..127}.tar", "{train,val}-{0..9}", "{a,b{1..3}}".
 *
 * The first brace varies slowest. A list gives its alternatives in turn; they may hold braces themselves, and an
 * alternative may be empty. A range counts up or down in steps of one, or of its third number ("{0..90..10}"). If one
 * of its ends is written with a leading zero, all numbers have as many digits as the longer end. The ends may also be
 * two letters of one case ("{a..f}"). */
#pragma once

#include <stddef.h>

#include "proto/base/why.h"

#define BRACES_TEXTS_MAX  1000000u       /* that patterns may give */
#define BRACES_BYTES_MAX  (256ull << 20) /* of all texts together */
#define BRACES_NESTED_MAX 32u            /* braces in a pattern */

/* Where the texts go. The limits are for all that was given, so several patterns may be expanded into one place. */
struct braces_sink {
        int (*give)(void *userdata, const char *text, size_t n_bytes); /* with its NUL; 0 or a negative errno */
        void *userdata;
        size_t n_texts, n_bytes; /* given so far */
};

/* Gives the texts one after the other. Returns 0; -EINVAL with `why` if the braces do not balance, or if one holds
 * neither a list nor a range; -E2BIG if there are too many texts; -ENOMEM. On failure some may have been given. */
int braces_expand(const char *pattern, struct braces_sink *sink, struct why *why);
