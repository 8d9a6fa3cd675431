/* tokenize/normalizer.h: what is done to a text before it is cut: the member "normalizer" of tokenizer.json.
 *
 * BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Replace, Prepend, and a Sequence of them. A
 * normalizer does not change once it is read; memory is one thread's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/tokenize/grow.h"
#include "daemon/tokenize/json_node.h"
#include "daemon/tokenize/patterns/token_pattern.h"

#define NORMAL_STEPS_MAX 16u
#define NORMAL_BYTES_MAX (UINT64_C(1) << 30) /* of a text, before and after */

#define NORMAL_A_LOOK (256u << 10) /* characters, between two looks whether the text is still wanted */

enum normal_kind {
        NORMAL_BERT,
        NORMAL_FORM, /* of Unicode */
        NORMAL_LOWERCASE,
        NORMAL_STRIP,
        NORMAL_STRIP_ACCENTS,
        NORMAL_REPLACE,
        NORMAL_PREPEND,
};

struct normal_step {
        enum normal_kind kind;
        bool cleans, spaces_chinese, strips_accents, lowers; /* BERT */
        bool composes, more;                                 /* a form: NFC and NFKC; NFKC and NFKD */
        bool left, right;                                    /* strip */
        struct token_pattern *pattern;                       /* replace */
        uint8_t *text;                                       /* replace, prepend: what is put there */
        size_t n_text;
};

struct normalizer {
        struct normal_step steps[NORMAL_STEPS_MAX];
        unsigned n_steps;
};

struct normal_memory {
        struct grow texts[2];
        struct grow points, spare, run; /* uint32_t */
        struct pattern_work work;       /* of the text: pattern_work_begin() */
        size_t n_done;                  /* since the last look */
};

/* After so many characters: 0, or -ECANCELED. */
static inline int normal_goes_on(struct normal_memory *memory, size_t n) {
        return wanting_goes_on(memory->work.wanting, &memory->n_done, n, NORMAL_A_LOOK) ? 0 : -ECANCELED;
}

/* The node may be absent: nothing is done. Errors as in json_node.h; then there is nothing to be freed. */
int normalizer_read(const struct json_node *node, struct normalizer *ret_normalizer, struct why *why);
void normalizer_fini(struct normalizer *normalizer);

/* The text is valid UTF-8; what becomes of it is in `memory`, or the text itself, until the next call. Returns 0;
 * -ENOMEM; -E2BIG: a pattern takes too long, or the text grows beyond NORMAL_BYTES_MAX; -ECANCELED. */
int normalizer_apply(const struct normalizer *normalizer, struct normal_memory *memory, const uint8_t *text, size_t n,
                     const uint8_t **ret_text, size_t *ret_n);

/* How many bytes a byte of a text becomes at most; `of_characters`: how many characters. */
uint64_t normalizer_growth(const struct normalizer *normalizer, bool of_characters);
void normal_memory_free(struct normal_memory *memory);

/* normal_form.c: appends the text in a normal form. Memory as above. -ENOMEM, -ECANCELED. */
int normal_form_append(const uint8_t *text, size_t n, bool composes, bool more, struct normal_memory *memory,
                       struct grow *into);

/* Puts the decomposed points into memory->points, in their one order. -ENOMEM, -ECANCELED. */
int normal_form_decompose(struct normal_memory *memory, const uint32_t *points, size_t n, bool more);

/* normal_bert.c: the same for BERT's. */
int normal_bert_append(const struct normal_step *step, const uint8_t *text, size_t n, struct normal_memory *memory,
                       struct grow *into);

/* Appends a character. -ENOMEM. */
int normal_put(struct grow *into, uint32_t point);
