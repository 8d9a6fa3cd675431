/* tokenize/tokenizer.h: a tokenizer.json of Hugging Face, and the numbers that it gives a text.
 *
 * What happens to a text is what their library `tokenizers` does, and the numbers are equal:
 *
 *      added tokens are found (added.h)  ->  the rest is normalized (normalizer.h)  ->  further added tokens are found
 *        ->  the rest is cut into words (splitter.h)  ->  each word becomes tokens (model.h)
 *        ->  special tokens are put around them (tokenize_frame.h)
 *
 * What a file asks for and we cannot do is refused when it is read, with the path in the JSON. Truncation and padding
 * in the file are passed over: the pipeline says what is wanted. A tokenizer does not change: any number of threads
 * share it, each with an encoder of its own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/wanting.h"
#include "daemon/tokenize/tokenize_frame.h"
#include "proto/base/why.h"

#define TOKENIZER_FILE_MAX   (UINT64_C(256) << 20)
#define TOKENIZER_DIGEST_MAX 17u /* with NUL */

struct grow;
struct grow_account;
struct tokenizer;
struct token_encoder;

/* Reads the text of a tokenizer.json. -EBADMSG, -EINVAL with the path and what is wrong there; -ENOMEM. */
int tokenizer_new(const void *bytes, size_t n_bytes, struct tokenizer **ret_tokenizer, struct why *why);

/* Any thread. unref takes NULL. */
struct tokenizer *tokenizer_ref(struct tokenizer *tokenizer);
void tokenizer_unref(struct tokenizer *tokenizer);

/* Of the file's bytes: equal ones are the same tokenizer. */
const char *tokenizer_digest(const struct tokenizer *tokenizer);

/* The memory that it takes. */
uint64_t tokenizer_bytes(const struct tokenizer *tokenizer);

/* Reserves that memory until the last reference leaves. Once, by who made it. -ENOMEM with the numbers. */
int tokenizer_charge(struct tokenizer *tokenizer, struct budget *budget, struct why *why);

/* The most tokens that a text of n bytes can become, without those around it. */
uint64_t tokenizer_most(const struct tokenizer *tokenizer, uint64_t n_bytes);

const struct frame *tokenizer_frame(const struct tokenizer *tokenizer);

/* Of one thread: memory that is kept from text to text, and words that came before. `account` counts the memory, and
 * must live as long; NULL: nobody counts. -ENOMEM. */
int token_encoder_new(struct grow_account *account, struct token_encoder **ret_encoder);
void token_encoder_free(struct token_encoder *encoder); /* takes NULL */

/* From now on encoding asks after some work whether the text is still wanted. NULL: it does not ask. */
void token_encoder_set_wanting(struct token_encoder *encoder, struct wanting *wanting);

/* The tokens of a text of valid UTF-8, without those around it; n is at most NORMAL_BYTES_MAX. They are the encoder's
 * until the next call; ret_tokens NULL: they are only counted. Stops after n_max tokens or a few more; SIZE_MAX: all of
 * them. -ENOMEM; -EFBIG for a word longer than MODEL_WORD_MAX; -E2BIG for a pattern that takes too long; -ECANCELED. */
int tokenizer_encode(const struct tokenizer *tokenizer, struct token_encoder *encoder, const uint8_t *text, size_t n,
                     size_t n_max, const uint32_t **ret_tokens, size_t *ret_n, struct why *why);

/* The tokens that were found last as an array of the caller's; what that had is the encoder's to write to. */
void token_encoder_swap(struct token_encoder *encoder, struct grow *tokens);
