/* WordPiece: of a word the longest beginning that is a token, then the longest of what follows, written with "##". */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tokenize/characters/characters.h"
#include "daemon/tokenize/model.h"
#include "proto/base/cleanup.h"

#define ROOT 0u

/* The tokens as a tree: node and byte lead to the next node. Open addressing; at most half of the slots are used. */
struct edge {
        uint32_t from_and_byte; /* node << 8 | byte, plus 1; 0: empty */
        uint32_t to;
        uint32_t token; /* that ends there, or TOKEN_NONE */
};

struct wordpiece {
        struct edge *edges;
        uint32_t n_edges, n_slots, n_nodes;
        uint32_t after; /* the node that the words' other parts begin at: behind "##"; UINT32_MAX: there is none */
        uint32_t unknown;
        uint64_t n_chars_max;
};

static struct edge *find_edge(const struct wordpiece *wordpiece, uint32_t from, uint8_t byte) {
        uint32_t key = (from << 8 | byte) + 1;
        uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t at = (uint32_t)(hash >> 32) & (wordpiece->n_slots - 1);

        while (wordpiece->edges[at].from_and_byte && wordpiece->edges[at].from_and_byte != key)
                at = (at + 1) & (wordpiece->n_slots - 1);
        return &wordpiece->edges[at];
}

static int wordpiece_widen(struct wordpiece *wordpiece) {
        struct edge *old = wordpiece->edges;
        uint32_t n_old = wordpiece->n_slots;

        wordpiece->n_slots = n_old ? 2 * n_old : 1024;
        wordpiece->edges = calloc(wordpiece->n_slots, sizeof(*old));
        if (!wordpiece->edges) {
                wordpiece->edges = old;
                wordpiece->n_slots = n_old;
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < n_old; i++)
                if (old[i].from_and_byte)
                        *find_edge(wordpiece, (old[i].from_and_byte - 1) >> 8,
                                   (uint8_t)(old[i].from_and_byte - 1)) = old[i];
        free(old);
        return 0;
}

/* -EFBIG: too many nodes for their numbers. */
static int add_token(struct wordpiece *wordpiece, const uint8_t *bytes, size_t n, uint32_t token) {
        uint32_t node = ROOT;

        for (size_t i = 0; i < n; i++) {
                struct edge *edge;

                if (2 * (wordpiece->n_edges + 1) > wordpiece->n_slots && wordpiece_widen(wordpiece) < 0)
                        return -ENOMEM;
                edge = find_edge(wordpiece, node, bytes[i]);
                if (!edge->from_and_byte) {
                        if (wordpiece->n_nodes >= (1u << 24) - 2)
                                return -EFBIG;
                        *edge = (struct edge){ (node << 8 | bytes[i]) + 1, ++wordpiece->n_nodes, TOKEN_NONE };
                        wordpiece->n_edges++;
                }
                if (i + 1 == n)
                        edge->token = token;
                node = edge->to;
        }
        return 0;
}

/* UINT32_MAX: no token begins so. */
static uint32_t node_behind(const struct wordpiece *wordpiece, const uint8_t *bytes, size_t n) {
        uint32_t node = ROOT;

        for (size_t i = 0; i < n; i++) {
                const struct edge *edge = find_edge(wordpiece, node, bytes[i]);

                if (!edge->from_and_byte)
                        return UINT32_MAX;
                node = edge->to;
        }
        return node;
}

static int wordpiece_build(struct model *model, struct wordpiece *wordpiece, const struct json_node *prefix,
                           struct why *why) {
        _cleanup_(freep) uint8_t *bytes = NULL;
        size_t n = 2;
        int r = wordpiece_widen(wordpiece);

        for (uint32_t i = 0; i < model->vocabulary.n_entries && r == 0; i++) {
                uint32_t token;
                const uint8_t *text = vocabulary_at(&model->vocabulary, i, &n, &token);

                r = add_token(wordpiece, text, n, token);
        }
        if (r == -EFBIG)
                return json_node_refuse(prefix->parent, -EINVAL, why, "its vocabulary is too large");
        if (r < 0)
                return why_errno(why, r, "tokenizer");
        n = 2;
        if (json_node_is_set(prefix))
                r = json_node_text(prefix, &bytes, &n, why);
        if (r == 0)
                wordpiece->after = node_behind(wordpiece, bytes ? bytes : (const uint8_t *)"##", n);
        return r;
}

static int wordpiece_read(const struct json_node *node, bool is_byte_level, struct model *model, struct why *why) {
        static const char *const NAMES[] = { "type", "unk_token", "continuing_subword_prefix",
                                             "max_input_chars_per_word", "vocab" };
        _cleanup_(freep) uint8_t *unknown = NULL;
        struct json_node members[5];
        struct wordpiece *wordpiece = calloc(1, sizeof(*wordpiece));
        size_t n;
        int r;

        if (!wordpiece)
                return why_errno(why, -ENOMEM, "tokenizer");
        model->own = wordpiece;
        r = json_node_members(node, NAMES, 5, members, why);
        if (r == 0 && is_byte_level)
                r = json_node_refuse(node, -EINVAL, why,
                                     "WordPiece after the pre_tokenizer ByteLevel is not supported");
        if (r == 0)
                r = json_node_unsigned(&members[3], 100, UINT32_MAX, &wordpiece->n_chars_max, why);
        if (r == 0)
                r = vocabulary_read(&members[4], &model->vocabulary, why);
        if (r == 0)
                r = json_node_text(&members[1], &unknown, &n, why);
        if (r < 0)
                return r;
        wordpiece->unknown = vocabulary_find(&model->vocabulary, unknown, n);
        if (wordpiece->unknown == TOKEN_NONE)
                return json_node_refuse(&members[1], -EINVAL, why, "is not in the vocabulary");
        return wordpiece_build(model, wordpiece, &members[2], why);
}

static void wordpiece_free(struct model *model) {
        struct wordpiece *wordpiece = model->own;

        if (wordpiece)
                free(wordpiece->edges);
        free(wordpiece);
}

static uint64_t wordpiece_bytes(const struct model *model) {
        const struct wordpiece *wordpiece = model->own;

        return sizeof(*wordpiece) + wordpiece->n_slots * sizeof(*wordpiece->edges);
}

/* Characters of the word, up to one more than are allowed. */
static bool wordpiece_is_too_long(const struct wordpiece *wordpiece, const uint8_t *word, size_t n) {
        uint64_t n_chars = 0;

        if (n <= wordpiece->n_chars_max)
                return false;
        for (size_t i = 0; i < n && n_chars <= wordpiece->n_chars_max; i++)
                n_chars += (word[i] & 0xc0) != 0x80;
        return n_chars > wordpiece->n_chars_max;
}

/* The length of the longest token that the bytes begin with; 0: none. */
static size_t longest(const struct wordpiece *wordpiece, uint32_t node, const uint8_t *bytes, size_t n,
                      uint32_t *ret_token) {
        size_t found = 0;

        for (size_t i = 0; i < n; i++) {
                const struct edge *edge = find_edge(wordpiece, node, bytes[i]);

                if (!edge->from_and_byte)
                        break;
                if (edge->token != TOKEN_NONE) {
                        *ret_token = edge->token;
                        found = i + 1;
                }
                node = edge->to;
        }
        return found;
}

static int wordpiece_encode(const struct model *model, struct model_memory *memory, const uint8_t *word, size_t n) {
        const struct wordpiece *wordpiece = model->own;
        size_t n_before = memory->tokens.n;
        uint32_t node = ROOT, token = 0;
        int r = 0;

        if (wordpiece_is_too_long(wordpiece, word, n))
                return model_put(memory, wordpiece->unknown);
        for (size_t at = 0; at < n && r == 0; node = wordpiece->after) {
                size_t length = node == UINT32_MAX ? 0 : longest(wordpiece, node, word + at, n - at, &token);

                if (length == 0) { /* then nothing of the word is known */
                        memory->tokens.n = n_before;
                        return model_put(memory, wordpiece->unknown);
                }
                r = model_put(memory, token);
                at += length;
        }
        return r;
}

const struct model_type MODEL_WORDPIECE = {
        .name = "WordPiece",
        .is_of_characters = true,
        .read = wordpiece_read,
        .free = wordpiece_free,
        .bytes = wordpiece_bytes,
        .encode = wordpiece_encode,
};
