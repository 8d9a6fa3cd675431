/* codec/texts/token_tools.h: a thread's memory for making tokens of texts (codec/texts/tokens.h). Private to this floor. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/tokenize/grow.h"

struct token_encoder;

/* What a text became; `serial` says to which codec, 0: to none. */
struct token_text {
        uint64_t serial;
        struct grow bytes;
        struct grow tokens; /* uint32_t */

        /* Kept when the memory is given back. */
        uint64_t newest;    /* the last codec that began to use this place */
        uint64_t n_cut;     /* texts since then of which a part was delivered */
        unsigned n_doubled; /* how often texts since then took more memory than was thought */
};

#define TOKEN_TEXTS_KEPT 8u /* as many fields of a pipeline are encoded once for each sample */

/* Zeroes are empty. */
struct token_tools {
        struct grow_account account;   /* of the encoder, and of all texts here */
        struct token_encoder *encoder; /* NULL until it is needed */
        struct token_text texts[TOKEN_TEXTS_KEPT];
        struct grow fresh; /* the text that is being read, */
        size_t n_fresh;    /* and how long it is, if there is no memory for it, too */
};

size_t token_tools_bytes(const struct token_tools *tools);
void token_tools_trim(struct token_tools *tools);
