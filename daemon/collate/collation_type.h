/* collate/collation_type.h: what a collation is made of. Private to this floor.
 *
 * Its arguments are a table: collation_arguments.c reads, checks and prints them in the same way for all collations. */
#pragma once

#include <stdio.h>

#include "daemon/collate/collation.h"
#include "proto/base/step_text.h"

enum collation_argument_kind {
        COLLATION_NUMBER, /* double: any finite number; not a number: it is not given */
        COLLATION_COUNT,  /* uint32_t: 1 or more */
        COLLATION_WHOLE,  /* uint32_t: 0 or more */
        COLLATION_LIST,   /* uint32_t n, uint32_t[MLM_SPECIAL_MAX]: whole numbers with ":" between them */
        COLLATION_SIZE,   /* uint32_t[2]: N = N:N, or N:M; 0:0 is `word`, or not given if there is none */
        COLLATION_CHOICE, /* uint32_t: which of `choices` */
        COLLATION_NAME,   /* char[1 + DLP_TENSOR_NAME_MAX]: COLLATION_WHOLE_NAME and the name of a tensor */
        COLLATION_SHARES, /* double[2]: A:B, 0 <= A <= B <= 1, B more than 0; not given: 0 and 0 */
};

struct collation_argument {
        const char *name;
        enum collation_argument_kind kind;
        size_t offset; /* of its value in struct collation */
        const char *word;
        const char *const *choices;
        uint32_t n_choices;
        bool is_optional; /* as long as it is 0, the normal text does not show it */
};

#define COLLATION_ARGUMENTS_MAX 10u

struct collation_type {
        const char *name;
        struct collation_argument arguments[COLLATION_ARGUMENTS_MAX + 1]; /* up to the first one without a name */

        bool first_needs_no_name; /* pack(4096) is pack(size=4096) */
        bool mixes;               /* collation_mixes() */

        /* Arguments of a step for pictures with the same name, NULL-terminated: if the text has one of them, or one
         * without a name, that step is meant. NULL: there is no such step. */
        const char *const *of_step;

        void (*init)(struct collation *collation); /* what is not 0 by default; NULL: nothing */

        /* Arguments that exclude each other: -EINVAL with a sentence. NULL: there are none. */
        int (*check)(const struct collation *collation, struct why *why);

        /* As collation_added(); NULL after the last one. NULL: adds nothing. */
        const char *(*added)(const struct collation *collation, unsigned idx);

        int (*apply)(const struct collation *collation, struct field_form *form, struct why *why);
};

/* What a field is filled with where a sample has nothing: the value of the text, else LABEL_IGNORED for a field that is
 * called labels, which losses leave out, and 0 for any other. -EINVAL: its dtype cannot hold it. */
int collation_fill(const struct field_form *form, double value, double *ret_fill, struct why *why);

/* The step before pad that hides tokens; it is not in the table of collations. */
extern const struct collation_type COLLATION_MLM;

/* Reads "(key=value, ...)" if it is there. */
int collation_read_arguments(struct step_text *reader, const struct collation_type *type, struct collation *collation);

/* Prints "name(key=value, ...)". */
void collation_print(const struct collation_type *type, const struct collation *collation, FILE *stream);

/* Is it a dtype of whole numbers, and which can it hold? */
bool collation_is_whole(enum dlp_dtype dtype, double *ret_minimum, double *ret_maximum);

extern const struct collation_type COLLATION_STACK;
extern const struct collation_type COLLATION_RAGGED;
extern const struct collation_type COLLATION_PAD;
extern const struct collation_type COLLATION_PACK;
extern const struct collation_type COLLATION_MIXUP;
extern const struct collation_type COLLATION_CUTMIX;
extern const struct collation_type COLLATION_MIX;
