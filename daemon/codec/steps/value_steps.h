/* codec/steps/value_steps.h: the steps for fields that are not pictures: json, npy, text, to, raw.
 *
 * At most one of each, in this sequence; json and npy exclude each other, as do text and to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/schema.h"
#include "proto/base/why.h"
#include "proto/layout.h"
#include "proto/text/grammar.h"

/* Dtypes that a text can name. The last one is text, which is none of numbers. */
#define VALUE_DTYPES 14u
extern const char *const value_dtype_names[VALUE_DTYPES];
extern const enum dlp_dtype value_dtypes[VALUE_DTYPES];

struct value_steps {
        char *path; /* of a member; "": the whole value. NULL: no json */
        bool is_npy;
        bool is_text;
        bool is_raw;
        bool has_dtype;
        uint32_t dtype;
        bool has_shape;
        uint32_t n_dims;
        int64_t shape[SCHEMA_DIMS_MAX];
};

/* Is it such a step? */
bool value_steps_are(const struct grammar_step *step);

/* Reads the steps. -EINVAL with the column in the text; -ENOMEM. */
int value_steps_read(struct grammar *grammar, struct grammar_steps steps, struct value_steps *ret_steps,
                     struct why *why);

/* Takes a struct of zeroes. */
void value_steps_fini(struct value_steps *steps);

/* The steps in their one normal spelling; the caller frees it. NULL: no memory. */
char *value_steps_text(const struct value_steps *steps);
