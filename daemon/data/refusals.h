/* data/refusals.h: columns of a dataset that cannot be served, each with its reason.
 *
 * Nobody may ever ask for such a column, so it is left out and listed, and the dataset opens with the others. A format
 * that knows it before it reads rows adds the column (refusals_add()) and goes on without it. If only a row shows it,
 * the format marks the column (refusals_mark()) and returns the error: format_build() then adds the column with the
 * error's text, and builds again without it. Whoever names such a column, in the configuration or in a pipeline, is
 * told the reason. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/growing.h"
#include "daemon/data/schema.h"
#include "proto/base/why.h"

#define REFUSALS_MAX       4096u /* that are listed, */
#define REFUSALS_AGAIN_MAX 256u  /* and for which one begins again */

/* As an opened source lists it. */
struct refusal {
        const char *name, *reason;
};

struct refusals {
        struct growing texts; /* of each: name and reason, both with a NUL */
        uint32_t n;
        struct growing marked; /* like `texts`, of those that are to be left out the next time */
};

/* All of these take NULL: nothing is kept. Names are those of fields (data/field_name.h). */
void refusals_fini(struct refusals *refusals);

/* Is it among them? */
bool refusals_have(const struct refusals *refusals, const char *name);

/* Adds a column, once. Returns 0; or, if there is no place or memory for it, `error` as it is. */
int refusals_add(struct refusals *refusals, const char *name, int error, const struct why *why);

/* Is the error one of data, which speaks against its column and nothing else? */
bool refusals_are_for(int error);

/* `error` says something about this column and nothing else, if it is one of data: it is left out the next time.
 * Returns `error`. */
int refusals_mark(struct refusals *refusals, const char *name, int error);

/* The same where several columns are looked at, one after the other; `why` is about this one. Returns whether the
 * caller should look at the others before it returns the error, so that all columns that are damaged in one place cost
 * one more pass together. */
bool refusals_mark_of_several(struct refusals *refusals, const char *name, int error, const struct why *why);

/* After an error: adds the columns that were marked. Returns whether to begin again. */
bool refusals_settle(struct refusals *refusals, int error, const struct why *why);

/* One after the other, from a `refusal` of zeroes on; false after the last one. */
bool refusals_next(const struct refusals *refusals, struct refusal *refusal);

/* All of them as a source lists them: an array (free()), whose texts are the refusals'. -ENOMEM. */
int refusals_list(const struct refusals *refusals, struct refusal **ret_refused);

/* The reason of a column among the `n` of a source; NULL: it is not there. */
const char *refusal_of(const struct refusal *refused, uint32_t n, const char *name, size_t n_name);
