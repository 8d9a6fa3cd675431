/* codec/steps/token_steps.h: the step that makes tokens of text: tokens(NAME, max_length=512) to(int32). Its kind
 * says what its arguments mean. Before it may come what makes text of the field: json(PATH), text.
 *
 * A text that is cut without a word is a loss that nobody sees, so max_length has no default. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/tokenize/tokenizers.h"
#include "proto/base/why.h"
#include "proto/text/grammar.h"

#define TOKENS_LENGTH_MAX (1u << 24)

enum token_truncation {
        TOKENS_RIGHT,
        TOKENS_LEFT,
        TOKENS_WHOLE,
        N_TOKEN_TRUNCATIONS,
};

enum token_window {
        TOKENS_FIRST,
        TOKENS_RANDOM,
        N_TOKEN_WINDOWS,
};

struct token_steps {
        char name[TOKENIZER_NAME_MAX];
        size_t column;                     /* of the name, for messages */
        char digest[TOKENIZER_DIGEST_MAX]; /* "": any */
        uint32_t max_length;               /* 0: any */
        uint32_t stride;
        enum token_truncation truncation;
        enum token_window window;
        bool has_special;
        bool is_int32;
};

/* Reads the step, which is the first of these, and what follows it. -EINVAL with the column in the text; -ENOMEM. */
int token_steps_read(struct grammar *grammar, struct grammar_steps steps, struct token_steps *ret_steps,
                     struct why *why);

/* Writes it in its one normal spelling. The caller frees it. NULL: no memory. */
char *token_steps_text(const struct token_steps *steps);
