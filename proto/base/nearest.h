/* proto/base/nearest.h: "did you mean": the allowed name that is nearest to a word which is not allowed.
 *
 * Whoever searches a list of names in vain offers the same names here, and puts the hint into its message:
 *
 *      struct nearest nearest;
 *
 *      nearest_begin(&nearest, word, strlen(word));
 *      for each name: nearest_offer(&nearest, name);
 *      why_set(why, -EINVAL, "unknown step \"%s\"%s; the steps are ...", word, nearest_hint(&nearest));
 *
 * Near means: few letters are inserted, left out, replaced or swapped with their neighbour, at most a third of them; or
 * the name begins with the word. Case does not count, and "-" and "_" are the same. Works on bytes, needs no memory. */
#pragma once

#include <stddef.h>

#include "proto/base/symbol.h"

#define NEAREST_NAME_MAX 64u /* bytes with NUL: longer words get no suggestion, longer names are never suggested */

struct nearest {
        const char *word;
        size_t n_word;
        unsigned cost;               /* of the best one so far */
        char name[NEAREST_NAME_MAX]; /* a copy of it; "": there is none */
        char hint[NEAREST_NAME_MAX + 24];
};

/* The word has n characters and must stay valid until the last name has been offered. */
void nearest_begin(struct nearest *nearest, const char *word, size_t n) DLP_SYMBOL(nearest_begin);

/* Of names that are equally near, the first one stays. */
void nearest_offer(struct nearest *nearest, const char *name) DLP_SYMBOL(nearest_offer);

/* " (did you mean \"name\"?)", or "" if no name is near. Valid as long as `nearest` is. */
const char *nearest_hint(struct nearest *nearest) DLP_SYMBOL(nearest_hint);

/* All of it for a text of names with blanks, commas, bars or "or" between them. */
const char *nearest_in(struct nearest *nearest, const char *word, size_t n, const char *names) DLP_SYMBOL(nearest_in);
