/* proto/text/grammar.h: the one grammar of pipelines, samplers, collations and preparations.
 *
 *      NAME(VALUE, KEY=VALUE, KEY=[NAME(VALUE), NAME]) NAME ...
 *      FIELD, KEY=FIELD: NAME(VALUE) NAME; FIELD
 *
 * Here a text is cut into parts, steps and their arguments, once. The kinds (proto/text/kinds.h) say what a name means
 * and which type a value has, and step_values.h reads the values by them. All other code gets values, and never looks
 * at characters. Words point into the grammar's own copy of the text, so any later message can say the column.
 *
 * What users of Python are used to type is accepted: [0.5, 0.4] and (0.5, 0.4) are the value 0.5:0.4, "T." and the
 * other names of torchvision's modules before a class do not count, and a comma may follow a step's parentheses.
 *
 * A text with a mistake has the steps before the mistake, and a last one that is not whole, which is refused when its
 * values are read. So the first mistake is the one that is reported, be it a comma, a name or a value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/symbol.h"
#include "proto/base/why.h"

#define GRAMMAR_ARGUMENTS_MAX 96u /* of a step: a mixture has 64 parts */

struct grammar;

/* n characters of the text, without NUL. Where n is 0 something is missing, and `at` is where. */
struct grammar_word {
        const char *at;
        size_t n;
};

struct grammar_argument {
        struct grammar_word key; /* n = 0: none is written */
        struct grammar_word value;
};

struct grammar_step {
        struct grammar_word name;   /* n = 0: there is no name where one must be; then it is the last step */
        struct grammar_word inside; /* whatever is between its parentheses, without blanks around it, as it was typed */
        bool has_parentheses;
        uint32_t n_arguments;
        const struct grammar_argument *arguments;
        const char *comma;    /* the ")" that follows a last comma; NULL: there is no such comma */
        const char *stop;     /* where its mistake is, and then it is the last step; NULL: it is whole */
        const char *expected; /* what should stand at `stop` */
};

/* Some steps of a text, one after the other. They belong to the grammar. */
struct grammar_steps {
        const struct grammar_step *at;
        uint32_t n;
};

/* A part of a text, up to a ";": fields, and steps for them after a ":". */
struct grammar_part {
        uint32_t n_fields;
        const struct grammar_argument *fields; /* each is a value; its key is the name that it gets */
        const char *stop;                      /* where a name or a comma is missing; NULL: nowhere */
        const char *expected;                  /* there */
        const char *colon;                     /* NULL: there is none */
        struct grammar_steps steps;            /* after the colon */
        const char *end;                       /* its ";", or the end of the text */
};

/* A text to read. `what` it is, for messages: "pipeline"; static. -ENOMEM. */
int grammar_new(const char *what, const char *text, struct grammar **ret_grammar, struct why *why)
        DLP_SYMBOL(grammar_new);

/* Takes NULL. */
void grammar_free(struct grammar *grammar) DLP_SYMBOL(grammar_free);
void grammar_freep(struct grammar **grammar) DLP_SYMBOL(grammar_freep);

/* All of the text. */
struct grammar_word grammar_all(const struct grammar *grammar) DLP_SYMBOL(grammar_all);

/* The steps of a part of the text, with blanks between them. -ENOMEM, and nothing else. */
int grammar_steps(struct grammar *grammar, struct grammar_word part, struct grammar_steps *ret_steps)
        DLP_SYMBOL(grammar_steps);

/* The next part, which begins at *at, from grammar_all().at on; *at is then where the one after it begins, or NULL. A
 * ";" at the end is not followed by one. -ENOMEM, and nothing else. */
int grammar_next_part(struct grammar *grammar, const char **at, struct grammar_part *ret_part)
        DLP_SYMBOL(grammar_next_part);

/* The steps within brackets, [NAME(VALUE), NAME], which are a value. A bracket that is not closed is a mistake of its
 * last step, or of a step without name. -ENOMEM, and nothing else. */
int grammar_inside(struct grammar *grammar, struct grammar_word value, struct grammar_steps *ret_steps)
        DLP_SYMBOL(grammar_inside);

/* ---- words ----------------------------------------------------------------------------------------------------- */

bool grammar_is(struct grammar_word word, const char *name) DLP_SYMBOL(grammar_is);

/* The first step with this name; steps.n: there is none. */
uint32_t grammar_find(struct grammar_steps steps, const char *name) DLP_SYMBOL(grammar_find);

/* How many characters of the word a message shows, for "%.*s". */
int grammar_shown(struct grammar_word word) DLP_SYMBOL(grammar_shown);

/* ---- messages -------------------------------------------------------------------------------------------------- */

/* From 1. */
size_t grammar_column(const struct grammar *grammar, const char *at) DLP_SYMBOL(grammar_column);

/* "pipeline, column 7: " and a sentence. -EINVAL. */
int grammar_refuse(const struct grammar *grammar, const char *at, struct why *why, const char *format, ...)
        DLP_SYMBOL(grammar_refuse) __attribute__((format(printf, 4, 5)));

/* What is found there, or that the text ends, and what was expected. -EINVAL. */
int grammar_expect(const struct grammar *grammar, const char *at, const char *expected, struct why *why)
        DLP_SYMBOL(grammar_expect);
