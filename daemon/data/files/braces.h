/* data/files/braces.h: texts with braces, as shells write them: "x-{000..127}.tar", "{train,val}-{0..9}", "{a,b{1..3}}".
 *
 * The first brace varies slowest. A list gives its alternatives in turn; they may hold braces themselves, and an
 * alternative may be empty. A range counts up or down in steps of one, or of its third number ("{0..90..10}"). If one
 * of its ends is written with a leading zero, all numbers have as many digits as the longer end. The ends may also be
 * two letters of one case ("{a..f}"). */
#pragma once

#include <stddef.h>

#include "daemon/data/growing.h"
#include "proto/base/why.h"

#define BRACES_TEXTS_MAX  1000000u       /* that patterns may give */
#define BRACES_BYTES_MAX  (256ull << 20) /* of all texts together */
#define BRACES_NESTED_MAX 32u            /* braces in a pattern */

/* Adds the texts one after the other, each with its NUL, and their number to *n_texts; the limits are for all that is
 * there then, so several patterns may be expanded into one place. Returns 0; -EINVAL with `why` if the braces do not
 * balance, or if one holds neither a list nor a range; -E2BIG if there are too many texts; -ENOMEM. On failure the
 * texts written so far stay in `texts`. */
int braces_expand(const char *pattern, struct growing *texts, size_t *n_texts, struct why *why);
