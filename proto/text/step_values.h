/* proto/text/step_values.h: the arguments of a step as typed values, from the text and back to it.
 *
 * They are read in the same way for all kinds: which argument each value is for, whether it has the argument's type and
 * bounds, which argument is given twice or is missing, and the defaults of those that are left out. Every refusal has
 * the column, what was found there, what is expected, and what was probably meant. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/symbol.h"
#include "proto/base/why.h"
#include "proto/text/grammar.h"
#include "proto/text/kinds.h"

struct range {
        double from, to;
};

/* What is said of an array. */
struct value_form {
        bool has_dtype, has_dims;
        uint32_t dtype; /* index into argument.choices */
        uint32_t n_dims;
        const int64_t *dims; /* -N: "..N", up to N; 0: "-1", which does not say up to what */
        const char *at;      /* of ARGUMENT_FORMS: its name in the grammar's text */
};

/* Of one argument. Which members say it depends on its type (enum argument_type); all others are 0. */
struct value {
        bool is_set;   /* by the text or by default; else it is all zeroes */
        bool is_given; /* by the text */
        bool is_word;  /* argument.word stands in its place */
        bool flag;
        uint32_t choice; /* index into argument.choices */
        uint32_t height, width;
        uint64_t whole;
        double number;
        struct range range;
        const char *text;
        uint32_t n_list;
        const double *list;
        const char *const *names; /* of weights and forms: n_list of them */
        struct value_form form;
        const struct value_form *forms; /* n_list of them */
        struct grammar_word written;    /* in the grammar's text, while it is there; by default: nothing */
        struct grammar_steps inside;    /* of ARGUMENT_STEPS: likewise, for the family to read */
};

/* Memory for what values point to: numbers of lists, and words. It must outlive them. */
struct value_store {
        uint8_t *at;
        size_t n_left;
};

/* Enough for the values of a text of n bytes, defaults included, of up to n_steps steps. */
#define VALUE_STORE_BYTES(n_bytes, n_steps) (8u * (n_bytes) + 512u * (n_steps))

/* What a step is read with. */
struct values_reader {
        const struct kind_family *family;
        struct grammar *grammar;
        struct value_store *store;
        struct why *why; /* may be NULL */
};

/* Reads all arguments of a step, which is of this kind, into kind_n_arguments() values. -EINVAL; -ENOMEM: the store is
 * full. */
int values_read(const struct values_reader *reader, const struct kind *kind, const struct grammar_step *step,
                struct value *ret_values) DLP_SYMBOL(values_read);

/* Refuses a step whose kind or values do not fit what is around it: its column, its name, and a sentence. -EINVAL. */
int values_refuse(const struct values_reader *reader, const struct kind *kind, const struct grammar_step *step,
                  const struct why *reason) DLP_SYMBOL(values_refuse);

/* What is allowed as the value of an argument: "a whole number from 1 to 100". */
void values_describe(const struct kind *kind, const struct argument *argument, char *ret_text, size_t size)
        DLP_SYMBOL(values_describe);

/* Writes the steps within a value's brackets, as snprintf(). */
typedef size_t (*values_inside_fn)(const void *userdata, char *text, size_t size);

/* Writes a step in its one normal spelling, with all defaults. Returns its length, as snprintf(). `inside` is for kinds
 * that have ARGUMENT_STEPS. */
size_t values_print(const struct kind_family *family, const struct kind *kind, const struct value *values,
                    values_inside_fn inside, const void *userdata, char *text, size_t size) DLP_SYMBOL(values_print);
