/* tokenize/model.h: from a word to the numbers of its tokens: the member "model" of tokenizer.json.
 *
 * A model does not change once it is read: any number of threads use it, each with memory of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/wanting.h"
#include "daemon/tokenize/grow.h"
#include "daemon/tokenize/json_node.h"
#include "daemon/tokenize/vocabulary.h"

#define MODEL_WORD_MAX (UINT32_C(4) << 20) /* bytes of a word, or of a text that is not cut */
#define MODEL_A_LOOK   (128u << 10)        /* bytes, between two looks whether the text is still wanted */

/* Of one thread. */
struct model_memory {
        struct grow tokens; /* uint32_t: what has been found so far */
        struct grow symbols, heap;
        struct wanting *wanting; /* NULL: they are wanted */
        size_t n_done;           /* since the last look */
};

/* After so many bytes, or as much work: 0, or -ECANCELED. */
static inline int model_goes_on(struct model_memory *memory, size_t n) {
        return wanting_goes_on(memory->wanting, &memory->n_done, n, MODEL_A_LOOK) ? 0 : -ECANCELED;
}

struct model;

struct model_type {
        const char *name;
        bool is_of_characters; /* at most a token for each character, else for each byte */
        /* Reads the members; what it has made so far is freed by free(). Errors as in json_node.h. */
        int (*read)(const struct json_node *node, bool is_byte_level, struct model *model, struct why *why);
        void (*free)(struct model *model);
        uint64_t (*bytes)(const struct model *model);
        /* Appends the tokens of a word, n from 1 to MODEL_WORD_MAX, to memory->tokens. -ENOMEM, -ECANCELED.
         */
        int (*encode)(const struct model *model, struct model_memory *memory, const uint8_t *word, size_t n);
        /* Where a word may be cut without a change of its tokens: the end of its first part, at most n. NULL: nowhere.
         */
        size_t (*cut)(const struct model *model, const uint8_t *word, size_t n);
};

struct model {
        const struct model_type *type;
        struct vocabulary vocabulary; /* as it is written */
        void *own;                    /* of the type */
};

int model_read(const struct json_node *node, bool is_byte_level, struct model *ret_model, struct why *why);
void model_fini(struct model *model);
uint64_t model_bytes(const struct model *model);
void model_memory_free(struct model_memory *memory);

/* Appends a token. -ENOMEM. */
static inline int model_put(struct model_memory *memory, uint32_t token) {
        if (grow_more(&memory->tokens, sizeof(token)) < 0)
                return -ENOMEM;
        *(uint32_t *)(void *)((uint8_t *)memory->tokens.items + memory->tokens.n) = token;
        memory->tokens.n += sizeof(token);
        return 0;
}

extern const struct model_type MODEL_WORDPIECE;
extern const struct model_type MODEL_BPE;
