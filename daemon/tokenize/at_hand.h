/* tokenize/at_hand.h: the tokenizers that a pipeline may name while it is parsed.
 *
 * A pipeline is parsed on the main thread, which must not wait for a file, and which tokenizers it names is known only
 * then. So whoever parses tries, learns which one is missing, has it read elsewhere (tokenizers.h), puts it here, and
 * tries again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/tokenize/tokenizer.h"

#define TOKENIZER_NAME_MAX 128u /* with NUL */
#define AT_HAND_MAX        16u  /* of one pipeline */

/* Zeroed at first. */
struct at_hand {
        /* The tokens are made by another process: here a pipeline that names tokenizers can be read, and its codecs of
         * tokens are never opened. */
        bool are_elsewhere;

        char missing[TOKENIZER_NAME_MAX]; /* "": none, or that which could not be read */
        int result;                       /* why it could not be; 0: it was not tried */
        struct why why;

        uint32_t n;
        struct {
                char name[TOKENIZER_NAME_MAX];
                struct tokenizer *tokenizer; /* a reference */
        } items[AT_HAND_MAX];
};

void at_hand_fini(struct at_hand *at_hand);

/* A reference to the tokenizer of this name, or why there is none. -EAGAIN: it is missing, and was not tried yet. */
int at_hand_get(struct at_hand *at_hand, const char *name, struct tokenizer **ret_tokenizer, struct why *why);

/* Is one missing that was not tried yet? */
bool at_hand_lacks(const struct at_hand *at_hand);

/* How reading the one that is missing ended: 0 with the tokenizer, a reference that is taken over, or an errno. */
void at_hand_put(struct at_hand *at_hand, int result, struct tokenizer *tokenizer, const struct why *why);
