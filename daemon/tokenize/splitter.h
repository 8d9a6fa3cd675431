/* tokenize/splitter.h: how a text is cut into words: the member "pre_tokenizer" of tokenizer.json.
 *
 * BertPreTokenizer, WhitespaceSplit, Punctuation, Digits, Split, Metaspace, ByteLevel, and a
 * Sequence of them. Each step cuts the pieces of the step before it, and the words of the last step are handed on one
 * by one, from left to right: who has enough of them can end it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/tokenize/grow.h"
#include "daemon/tokenize/json_node.h"
#include "daemon/tokenize/patterns/token_pattern.h"

#define SPLIT_STEPS_MAX 8u

enum split_kind {
        SPLIT_BERT,
        SPLIT_BLANKS,  /* WhitespaceSplit */
        SPLIT_CLASS,   /* characters of a class, and what is between them: Punctuation, Digits */
        SPLIT_PATTERN, /* Split, ByteLevel */
        SPLIT_META,    /* Metaspace */
        SPLIT_PREFIX,  /* ByteLevel that adds a blank */
};

enum split_behavior {
        SPLIT_REMOVED,
        SPLIT_ISOLATED,
        SPLIT_CONTIGUOUS,
        SPLIT_WITH_PREVIOUS,
        SPLIT_WITH_NEXT,
};

enum split_prepend {
        SPLIT_PREPEND_FIRST,
        SPLIT_PREPEND_ALWAYS,
        SPLIT_PREPEND_NEVER,
};

struct split_step {
        enum split_kind kind;
        enum split_behavior behavior;
        uint32_t classes;
        struct token_pattern *pattern;
        bool inverts;
        enum split_prepend prepends; /* SPLIT_META */
        bool splits;                 /* SPLIT_META */
        uint8_t mark[4];             /* SPLIT_META: what a blank becomes */
        size_t n_mark;
};

struct splitter {
        struct split_step steps[SPLIT_STEPS_MAX];
        unsigned n_steps;
        bool is_byte_level; /* the vocabulary writes bytes as characters of their own */
};

/* Of one thread. */
struct split_memory {
        struct grow texts[SPLIT_STEPS_MAX]; /* pieces that a step changed */
        struct pattern_work work;           /* of the text: pattern_work_begin() */
};

/* The node may be absent: a text is one word. Errors as in json_node.h; then there is nothing to be freed. */
int splitter_read(const struct json_node *node, struct splitter *ret_splitter, struct why *why);
void splitter_fini(struct splitter *splitter);

/* Calls `take` with each word. It returns 0 to go on; anything else ends it, and is returned. `is_first`: the text's
 * beginning is here. -ENOMEM; -E2BIG, -ECANCELED as pattern_find(). */
typedef int (*split_take)(void *userdata, const uint8_t *word, size_t n);
int splitter_run(const struct splitter *splitter, struct split_memory *memory, const uint8_t *text, size_t n,
                 bool is_first, split_take take, void *userdata);

/* How many bytes a byte becomes at most, of a text that is not empty. */
uint64_t splitter_growth(const struct splitter *splitter);
void split_memory_free(struct split_memory *memory);
