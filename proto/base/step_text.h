/* proto/base/step_text.h: a text of steps while it is read: name(argument, key=value) and blanks between them.
 *
 * What is not read by proto/text/grammar.h yet: the fields that a pipeline names, python(...) and views(...). Errors
 * say the column, what was found there and what was expected. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/symbol.h"
#include "proto/base/why.h"

struct step_text {
        const char *what; /* that is read, for messages: "pipeline" */
        const char *text; /* from its beginning, for columns */
        const char *at;
        struct why *why; /* may be NULL */
};

/* Of a place in the text, from 1. */
size_t step_text_column(const struct step_text *steps, const char *at) DLP_SYMBOL(step_text_column);

void step_text_skip_blanks(struct step_text *steps) DLP_SYMBOL(step_text_skip_blanks);

/* -EINVAL: what was found here, or that the text ends, and what was expected. */
int step_text_refuse_here(const struct step_text *steps, const char *expected) DLP_SYMBOL(step_text_refuse_here);

/* What follows an argument, after blanks: 1 for a comma and another argument, at which the text then is; 0 for the end
 * of the parentheses, after which it then is. -EINVAL for anything else, a comma before the end included. */
int step_text_after_argument(struct step_text *steps) DLP_SYMBOL(step_text_after_argument);

/* Letters, digits and underscores that the text begins with. */
size_t word_length(const char *text) DLP_SYMBOL(word_length);

/* Is there a word of n characters, and is it this one? */
bool word_is(const char *word, size_t n, const char *name) DLP_SYMBOL(word_is);

/* A step of a text: its name, and the parentheses after it, if it has some. */
struct step_word {
        size_t begin, n; /* its name */
        size_t end;      /* after the parentheses */
};

/* The first step of text[at] to text[end - 1], whatever its name is. Returns false at the end, and where there is no
 * step; `begin` then says where. */
bool step_text_next_word(const char *text, size_t at, size_t end, struct step_word *ret_word)
        DLP_SYMBOL(step_text_next_word);

/* How much of a word of n characters is shown in a message, for "%.*s". */
int word_shown(size_t n) DLP_SYMBOL(word_shown);
