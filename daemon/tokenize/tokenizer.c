#include "daemon/tokenize/tokenizer.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/keyed_hash.h"
#include "daemon/tokenize/added.h"
#include "daemon/tokenize/model.h"
#include "daemon/tokenize/normalizer.h"
#include "daemon/tokenize/splitter.h"
#include "proto/base/cleanup.h"

#define ENOUGH 1 /* tokens have been found */

struct tokenizer {
        _Atomic unsigned n_refs;
        uint64_t serial; /* no other has it while the process lives */
        char digest[TOKENIZER_DIGEST_MAX];
        struct normalizer normalizer;
        struct splitter splitter;
        struct model model;
        struct added added;
        struct frame frame;
        struct budget *budget; /* NULL: its memory is not reserved */
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

static void tokenizer_free(struct tokenizer *tokenizer) {
        uint64_t n_bytes = tokenizer->budget ? tokenizer_bytes(tokenizer) : 0;
        struct budget *budget = tokenizer->budget;

        normalizer_fini(&tokenizer->normalizer);
        splitter_fini(&tokenizer->splitter);
        model_fini(&tokenizer->model);
        added_fini(&tokenizer->added);
        free(tokenizer);
        if (budget)
                budget_release(budget, n_bytes);
}

struct tokenizer *tokenizer_ref(struct tokenizer *tokenizer) {
        atomic_fetch_add_explicit(&tokenizer->n_refs, 1, memory_order_relaxed);
        return tokenizer;
}

void tokenizer_unref(struct tokenizer *tokenizer) {
        if (tokenizer && atomic_fetch_sub_explicit(&tokenizer->n_refs, 1, memory_order_acq_rel) == 1)
                tokenizer_free(tokenizer);
}

static void tokenizer_unrefp(struct tokenizer **tokenizer) {
        tokenizer_unref(*tokenizer);
}

static int set_digest(struct tokenizer *tokenizer, const void *bytes, size_t n_bytes, struct why *why) {
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        uint8_t digest[EVP_MAX_MD_SIZE];
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) &&
                      EVP_DigestUpdate(context, bytes, n_bytes) && EVP_DigestFinal_ex(context, digest, NULL);

        EVP_MD_CTX_free(context);
        if (!is_fine)
                return why_errno(why, -ENOMEM, "tokenizer");
        for (unsigned i = 0; i < TOKENIZER_DIGEST_MAX / 2; i++)
                snprintf(tokenizer->digest + (size_t)2 * i, 3, "%02x", digest[i]);
        return 0;
}

int tokenizer_new(const void *bytes, size_t n_bytes, struct tokenizer **ret_tokenizer, struct why *why) {
        static _Atomic uint64_t n_made;
        static const char *const NAMES[] = { "version",      "truncation",     "padding",
                                             "added_tokens", "normalizer",     "pre_tokenizer",
                                             "model",        "post_processor", "decoder" };
        _cleanup_(tokenizer_unrefp) struct tokenizer *tokenizer = calloc(1, sizeof(*tokenizer));
        struct json_node root, members[9];
        int r;

        if (!tokenizer)
                return why_errno(why, -ENOMEM, "tokenizer");
        tokenizer->n_refs = 1;
        tokenizer->serial = atomic_fetch_add_explicit(&n_made, 1, memory_order_relaxed) + 1;
        r = set_digest(tokenizer, bytes, n_bytes, why);
        if (r == 0)
                r = json_node_root(bytes, n_bytes, &root, why);
        if (r == 0)
                r = json_node_members(&root, NAMES, 9, members, why);
        if (r == 0)
                r = normalizer_read(&members[4], &tokenizer->normalizer, why);
        if (r == 0)
                r = splitter_read(&members[5], &tokenizer->splitter, why);
        if (r == 0)
                r = model_read(&members[6], tokenizer->splitter.is_byte_level, &tokenizer->model, why);
        if (r == 0)
                r = added_read(&members[3], &tokenizer->normalizer, &tokenizer->model.vocabulary, &tokenizer->added,
                               why);
        if (r == 0)
                r = frame_read(&members[7], &tokenizer->frame, why);
        if (r < 0)
                return r;
        *ret_tokenizer = TAKE_PTR(tokenizer);
        return 0;
}

const char *tokenizer_digest(const struct tokenizer *tokenizer) {
        return tokenizer->digest;
}

uint64_t tokenizer_bytes(const struct tokenizer *tokenizer) {
        return sizeof(*tokenizer) + model_bytes(&tokenizer->model) + added_bytes(&tokenizer->added);
}

int tokenizer_charge(struct tokenizer *tokenizer, struct budget *budget, struct why *why) {
        int r = budget_reserve(budget, tokenizer_bytes(tokenizer), "a tokenizer", why);

        if (r == 0)
                tokenizer->budget = budget;
        return r;
}

/* No model makes more than a token of a byte, or of a character; what comes before it may make more of them. */
uint64_t tokenizer_most(const struct tokenizer *tokenizer, uint64_t n_bytes) {
        bool of_characters = tokenizer->model.type->is_of_characters;

        if (__builtin_mul_overflow(n_bytes, normalizer_growth(&tokenizer->normalizer, of_characters), &n_bytes) ||
            __builtin_mul_overflow(n_bytes, splitter_growth(&tokenizer->splitter), &n_bytes))
                return UINT64_MAX;
        return n_bytes;
}

const struct frame *tokenizer_frame(const struct tokenizer *tokenizer) {
        return &tokenizer->frame;
}

/* ---- words that came before ------------------------------------------------------------------------------------ */

#define KEPT_WORDS  8192u /* a power of two */
#define KEPT_BYTES  36u
#define KEPT_TOKENS 6u

/* Most words of a text came a moment ago. A new one takes the place of the one that was there. */
struct kept_word {
        uint8_t n_bytes, n_tokens; /* 0: empty */
        uint8_t bytes[KEPT_BYTES];
        uint32_t tokens[KEPT_TOKENS];
};

struct token_encoder {
        struct normal_memory normal;
        struct split_memory split;
        struct model_memory model;
        struct grow_account *account;
        uint64_t serial; /* of the tokenizer whose words are kept */
        struct kept_word kept[KEPT_WORDS];
};

static void count_in(struct token_encoder *encoder, struct grow_account *account) {
        struct normal_memory *normal = &encoder->normal;
        struct model_memory *model = &encoder->model;

        normal->texts[0].account = normal->texts[1].account = account;
        normal->points.account = normal->spare.account = normal->run.account = account;
        model->tokens.account = model->symbols.account = model->heap.account = account;
        for (unsigned i = 0; i < SPLIT_STEPS_MAX; i++)
                encoder->split.texts[i].account = account;
        encoder->account = account;
        if (account)
                account->n_bytes += sizeof(*encoder);
}

int token_encoder_new(struct grow_account *account, struct token_encoder **ret_encoder) {
        struct token_encoder *encoder = calloc(1, sizeof(*encoder));

        if (!encoder)
                return -ENOMEM;
        count_in(encoder, account);
        *ret_encoder = encoder;
        return 0;
}

void token_encoder_free(struct token_encoder *encoder) {
        if (!encoder)
                return;
        normal_memory_free(&encoder->normal);
        split_memory_free(&encoder->split);
        model_memory_free(&encoder->model);
        if (encoder->account)
                encoder->account->n_bytes -= sizeof(*encoder);
        free(encoder);
}

void token_encoder_swap(struct token_encoder *encoder, struct grow *tokens) {
        struct grow found = encoder->model.tokens;

        encoder->model.tokens = *tokens;
        *tokens = found;
}

void token_encoder_set_wanting(struct token_encoder *encoder, struct wanting *wanting) {
        encoder->normal.work.wanting = encoder->split.work.wanting = encoder->model.wanting = wanting;
}

/* ---- encoding -------------------------------------------------------------------------------------------------- */

struct encoding {
        const struct tokenizer *tokenizer;
        struct token_encoder *encoder;
        size_t n_max;     /* bytes of tokens */
        size_t n_word;    /* of the word that is too long */
        bool only_counts; /* tokens are forgotten, */
        size_t n_counted; /* bytes of them */
};

static int is_enough(struct encoding *encoding) {
        struct grow *tokens = &encoding->encoder->model.tokens;

        if (encoding->only_counts) {
                encoding->n_counted += tokens->n;
                tokens->n = 0;
        }
        return encoding->n_counted + tokens->n >= encoding->n_max ? ENOUGH : 0;
}

static int encode_kept(const struct encoding *encoding, const uint8_t *word, size_t n) {
        const struct model *model = &encoding->tokenizer->model;
        struct model_memory *memory = &encoding->encoder->model;
        struct kept_word *kept = &encoding->encoder->kept[keyed_hash(word, n) & (KEPT_WORDS - 1)];
        size_t n_before = memory->tokens.n, n_tokens;
        int r;

        if (kept->n_bytes == n && memcmp(kept->bytes, word, n) == 0) {
                n_tokens = kept->n_tokens * sizeof(uint32_t);
                if (n_tokens == 0) /* perhaps there are none at all yet, and no memory for them */
                        return 0;
                if (grow_more(&memory->tokens, n_tokens) < 0)
                        return -ENOMEM;
                memcpy((uint8_t *)memory->tokens.items + n_before, kept->tokens, n_tokens);
                memory->tokens.n += n_tokens;
                return 0;
        }
        r = model->type->encode(model, memory, word, n);
        n_tokens = memory->tokens.n - n_before;
        if (r < 0 || n_tokens > sizeof(kept->tokens))
                return r;
        kept->n_bytes = (uint8_t)n;
        kept->n_tokens = (uint8_t)(n_tokens / sizeof(uint32_t));
        memcpy(kept->bytes, word, n);
        if (n_tokens > 0)
                memcpy(kept->tokens, (uint8_t *)memory->tokens.items + n_before, n_tokens);
        return 0;
}

static int tokenizer_take_word(void *userdata, const uint8_t *word, size_t n) {
        struct encoding *encoding = userdata;
        const struct model *model = &encoding->tokenizer->model;

        while (n > 0) {
                size_t n_part = model->type->cut ? model->type->cut(model, word, n) : n;
                int r;

                if (n_part > MODEL_WORD_MAX) {
                        encoding->n_word = n_part;
                        return -EFBIG;
                }
                if (model_goes_on(&encoding->encoder->model, n_part) < 0)
                        return -ECANCELED;
                r = n_part <= KEPT_BYTES ? encode_kept(encoding, word, n_part)
                                         : model->type->encode(model, &encoding->encoder->model, word, n_part);
                if (r < 0)
                        return r;
                if (is_enough(encoding))
                        return ENOUGH;
                word += n_part;
                n -= n_part;
        }
        return 0;
}

/* Tokens of a set, and what lies between them, which goes on to `next`. */
static int cut_at_added(struct encoding *encoding, const struct added_set *set, const uint8_t *text, size_t n,
                        bool is_first, int (*next)(struct encoding *, const uint8_t *, size_t, bool)) {
        struct added_search search = { .wanting = encoding->encoder->model.wanting };
        size_t free_from = 0;
        struct added_match match;
        int r;

        while ((r = added_find(set, text, n, free_from, &search, &match)) > 0) {
                if (match.begin > free_from) {
                        r = next(encoding, text + free_from, match.begin - free_from, is_first && free_from == 0);
                        if (r != 0)
                                return r;
                }
                if (model_put(&encoding->encoder->model, match.token) < 0)
                        return -ENOMEM;
                if (is_enough(encoding))
                        return ENOUGH;
                free_from = match.end;
        }
        if (r < 0)
                return r;
        return free_from < n ? next(encoding, text + free_from, n - free_from, is_first && free_from == 0) : 0;
}

static int encode_words(struct encoding *encoding, const uint8_t *text, size_t n, bool is_first) {
        return splitter_run(&encoding->tokenizer->splitter, &encoding->encoder->split, text, n, is_first,
                            tokenizer_take_word, encoding);
}

static int encode_raw(struct encoding *encoding, const uint8_t *text, size_t n, bool is_first) {
        int r = normalizer_apply(&encoding->tokenizer->normalizer, &encoding->encoder->normal, text, n, &text, &n);

        if (r < 0)
                return r;
        encoding->encoder->split.work.n_steps_max += (uint64_t)PATTERN_STEPS_A_BYTE * n;
        return cut_at_added(encoding, &encoding->tokenizer->added.normalized, text, n, is_first, encode_words);
}

int tokenizer_encode(const struct tokenizer *tokenizer, struct token_encoder *encoder, const uint8_t *text, size_t n,
                     size_t n_max, const uint32_t **ret_tokens, size_t *ret_n, struct why *why) {
        struct encoding encoding = {
                .tokenizer = tokenizer, .encoder = encoder, .n_max = SIZE_MAX, .only_counts = !ret_tokens
        };
        int r;

        if (n_max < SIZE_MAX / sizeof(uint32_t))
                encoding.n_max = n_max * sizeof(uint32_t);
        if (encoder->serial != tokenizer->serial) {
                memset(encoder->kept, 0, sizeof(encoder->kept));
                encoder->serial = tokenizer->serial;
        }
        encoder->model.tokens.n = 0;
        pattern_work_begin(&encoder->normal.work, n);
        pattern_work_begin(&encoder->split.work, 0);
        r = cut_at_added(&encoding, &tokenizer->added.plain, text, n, true, encode_raw);
        if (r == -EFBIG)
                return why_set(why, r,
                               "has a piece of %zu bytes that its tokenizer does not cut; at most %u are possible",
                               encoding.n_word, MODEL_WORD_MAX);
        if (r == -E2BIG)
                return why_set(why, r, "its tokenizer's patterns take too long, or make it too large");
        if (r == -ECANCELED)
                return why_set(why, r, "nobody wants the sample any more");
        if (r < 0)
                return why_errno(why, r, "its tokens");
        if (ret_tokens)
                *ret_tokens = encoder->model.tokens.items;
        *ret_n = (encoding.n_counted + encoder->model.tokens.n) / sizeof(uint32_t);
        return 0;
}
