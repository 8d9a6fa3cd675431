/* BPE: a word begins as single characters or bytes, and the pair that was learned first becomes one token, until no two
 * neighbours are a pair. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tokenize/byte_level.h"
#include "daemon/tokenize/characters/characters.h"
#include "daemon/tokenize/merges.h"
#include "daemon/tokenize/model.h"
#include "proto/base/cleanup.h"

#define SHORT_WORD 24u /* symbols, up to which looking at all pairs is faster than a heap */
#define NO_SYMBOL  UINT32_MAX
#define SUFFIX_MAX 256u /* bytes */

static const uint8_t MARK[] = { 0xe2, 0x96, 0x81 }; /* what a blank becomes: U+2581 */

struct bpe {
        struct merges merges;
        struct vocabulary bytes; /* byte level: tokens by the bytes they stand for */
        uint32_t of_byte[256];   /* of a single byte: byte level, or byte_fallback; or TOKEN_NONE */
        bool is_byte_level, has_fallback, fuses_unknown, ignores_merges, cuts;
        uint32_t unknown; /* or TOKEN_NONE */
        uint8_t *suffix;  /* of a word's last character */
        size_t n_suffix;
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int bpe_add_bytes(struct bpe *bpe, const struct model *model) {
        uint8_t *bytes = NULL;
        size_t n_room = 0;
        int r = 0;

        for (uint32_t i = 0; i < model->vocabulary.n_entries && r == 0; i++) {
                uint32_t token;
                size_t n;
                const uint8_t *text = vocabulary_at(&model->vocabulary, i, &n, &token);

                if (n > n_room) {
                        free(bytes);
                        n_room = 2 * n;
                        bytes = malloc(n_room);
                        if (!bytes)
                                return -ENOMEM;
                }
                n = byte_level_read(text, n, bytes);
                if (n != SIZE_MAX && n > 0)
                        r = vocabulary_add(&bpe->bytes, bytes, n, token);
        }
        free(bytes);
        for (unsigned byte = 0; byte < 256 && r == 0; byte++) {
                uint8_t one = (uint8_t)byte;

                bpe->of_byte[byte] = vocabulary_find(&bpe->bytes, &one, 1);
        }
        return r;
}

/* With byte_fallback, a byte is written <0x0A>. */
static void find_fallback(struct bpe *bpe, const struct model *model) {
        for (unsigned byte = 0; byte < 256; byte++) {
                char name[8];

                snprintf(name, sizeof(name), "<0x%02X>", byte);
                bpe->of_byte[byte] = vocabulary_find(&model->vocabulary, name, 6);
        }
}

static int read_unknown(const struct json_node *node, const struct model *model, struct bpe *bpe, struct why *why) {
        _cleanup_(freep) uint8_t *text = NULL;
        size_t n;
        int r;

        bpe->unknown = TOKEN_NONE;
        if (!json_node_is_set(node))
                return 0;
        r = json_node_text(node, &text, &n, why);
        if (r < 0)
                return r;
        bpe->unknown = vocabulary_find(&model->vocabulary, text, n);
        return bpe->unknown == TOKEN_NONE ? json_node_refuse(node, -EINVAL, why, "is not in the vocabulary") : 0;
}

/* What changes what the text becomes from time to time, or is not in use. */
static int check_absent(const struct json_node *dropout, const struct json_node *prefix, struct why *why) {
        double rate = 0;

        if (json_node_is_set(dropout) &&
            (json_float_read(dropout->value.bytes, dropout->value.n_bytes, &rate, NULL) < 0 || rate != 0))
                return json_node_refuse(dropout, -EINVAL, why, "is not supported: tokens would be drawn");
        if (json_node_is_set(prefix) && prefix->value.n_bytes != 2)
                return json_node_refuse(prefix, -EINVAL, why, "is not supported for BPE");
        return 0;
}

static int read_suffix(const struct json_node *node, struct bpe *bpe, struct why *why) {
        int r;

        if (!json_node_is_set(node))
                return 0;
        r = json_node_text(node, &bpe->suffix, &bpe->n_suffix, why);
        if (r < 0)
                return r;
        if (bpe->n_suffix > SUFFIX_MAX)
                return json_node_refuse(node, -EINVAL, why, "is longer than %u bytes", SUFFIX_MAX);
        if (bpe->is_byte_level) /* it is written as the bytes are, and so never longer than before */
                bpe->n_suffix = byte_level_read(bpe->suffix, bpe->n_suffix, bpe->suffix);
        if (bpe->n_suffix == SIZE_MAX)
                return json_node_refuse(node, -EINVAL, why, "is not written in ByteLevel's characters");
        return 0;
}

static int bpe_read(const struct json_node *node, bool is_byte_level, struct model *model, struct why *why) {
        static const char *const NAMES[] = { "type",
                                             "dropout",
                                             "unk_token",
                                             "continuing_subword_prefix",
                                             "end_of_word_suffix",
                                             "fuse_unk",
                                             "byte_fallback",
                                             "ignore_merges",
                                             "vocab",
                                             "merges" };
        struct json_node members[10];
        struct bpe *bpe = calloc(1, sizeof(*bpe));
        int r;

        if (!bpe)
                return why_errno(why, -ENOMEM, "tokenizer");
        model->own = bpe;
        bpe->is_byte_level = is_byte_level;
        r = json_node_members(node, NAMES, 10, members, why);
        if (r == 0)
                r = check_absent(&members[1], &members[3], why);
        if (r == 0)
                r = read_suffix(&members[4], bpe, why);
        if (r == 0)
                r = json_node_bool(&members[5], false, &bpe->fuses_unknown, why);
        if (r == 0)
                r = json_node_bool(&members[6], false, &bpe->has_fallback, why);
        if (r == 0)
                r = json_node_bool(&members[7], false, &bpe->ignores_merges, why);
        if (r == 0)
                r = vocabulary_read(&members[8], &model->vocabulary, why);
        if (r == 0)
                r = read_unknown(&members[2], model, bpe, why);
        if (r == 0)
                r = merges_read(&members[9], &model->vocabulary, MARK, sizeof(MARK), &bpe->merges, &bpe->cuts, why);
        if (r < 0)
                return r;
        bpe->cuts = bpe->cuts && !is_byte_level && !bpe->ignores_merges && bpe->n_suffix == 0 &&
                    vocabulary_find(&model->vocabulary, MARK, sizeof(MARK)) != TOKEN_NONE;
        if (is_byte_level && bpe->has_fallback)
                return json_node_refuse(&members[6], -EINVAL, why, "is not supported with ByteLevel");
        if (bpe->n_suffix > 0 && bpe->has_fallback)
                return json_node_refuse(&members[6], -EINVAL, why, "is not supported with end_of_word_suffix");
        if (!is_byte_level)
                find_fallback(bpe, model);
        else
                r = bpe_add_bytes(bpe, model);
        return r < 0 ? why_errno(why, r, "tokenizer") : 0;
}

static void bpe_free(struct model *model) {
        struct bpe *bpe = model->own;

        if (!bpe)
                return;
        merges_fini(&bpe->merges);
        vocabulary_fini(&bpe->bytes);
        free(bpe->suffix);
        free(bpe);
}

static uint64_t bpe_bytes(const struct model *model) {
        const struct bpe *bpe = model->own;

        return sizeof(*bpe) + bpe->merges.n_slots * sizeof(struct merge) + vocabulary_bytes(&bpe->bytes);
}

/* ---- symbols --------------------------------------------------------------------------------------------------- */

struct symbol {
        uint32_t token;
        uint32_t previous, next; /* NO_SYMBOL at the ends */
        uint32_t rank;           /* of the pair with the next; RANK_NONE: it is none */
};

struct symbols {
        struct symbol *items;
        uint32_t n;
};

static void put_symbol(struct symbols *symbols, uint32_t token) {
        symbols->items[symbols->n++].token = token;
}

/* The token of a character, the word's last one with the suffix; TOKEN_NONE: there is none. */
static uint32_t token_of(const struct vocabulary *vocabulary, const struct bpe *bpe, const uint8_t *bytes, size_t n,
                         bool is_last) {
        uint8_t with[4 + SUFFIX_MAX];

        if (!is_last || bpe->n_suffix == 0)
                return vocabulary_find(vocabulary, bytes, n);
        memcpy(with, bytes, n);
        memcpy(with + n, bpe->suffix, bpe->n_suffix);
        return vocabulary_find(vocabulary, with, n + bpe->n_suffix);
}

static bool put_fallback(const struct bpe *bpe, struct symbols *symbols, const uint8_t *bytes, size_t n) {
        if (!bpe->has_fallback)
                return false;
        for (size_t i = 0; i < n; i++)
                if (bpe->of_byte[bytes[i]] == TOKEN_NONE)
                        return false;
        for (size_t i = 0; i < n; i++)
                put_symbol(symbols, bpe->of_byte[bytes[i]]);
        return true;
}

/* Unknown characters are noted, and written when the next known one comes: several in a row may be one. */
static void put_characters(const struct model *model, struct symbols *symbols, const uint8_t *word, size_t n) {
        const struct bpe *bpe = model->own;
        bool is_pending = false;

        for (size_t at = 0; at < n;) {
                size_t length = character_length(word[at]);
                bool is_last = at + length == n;
                uint32_t token = token_of(&model->vocabulary, bpe, word + at, length, is_last);

                if (token != TOKEN_NONE) {
                        if (is_pending)
                                put_symbol(symbols, bpe->unknown);
                        is_pending = false;
                        put_symbol(symbols, token);
                } else if (!put_fallback(bpe, symbols, word + at, length) && bpe->unknown != TOKEN_NONE) {
                        if (is_pending && !bpe->fuses_unknown)
                                put_symbol(symbols, bpe->unknown);
                        is_pending = true;
                }
                at += length;
        }
        if (is_pending)
                put_symbol(symbols, bpe->unknown);
}

/* As above; each byte is written as a character of its own there, so a byte without a token is an unknown character. */
static void bpe_put_bytes(const struct bpe *bpe, struct symbols *symbols, const uint8_t *word, size_t n) {
        bool is_pending = false;

        for (size_t i = 0; i < n; i++) {
                uint32_t token = i + 1 < n || bpe->n_suffix == 0 ? bpe->of_byte[word[i]]
                                                                 : token_of(&bpe->bytes, bpe, word + i, 1, true);

                if (token == TOKEN_NONE && bpe->unknown == TOKEN_NONE)
                        continue;
                if (is_pending && (token != TOKEN_NONE || !bpe->fuses_unknown))
                        put_symbol(symbols, bpe->unknown);
                is_pending = token == TOKEN_NONE;
                if (!is_pending)
                        put_symbol(symbols, token);
        }
        if (is_pending)
                put_symbol(symbols, bpe->unknown);
}

/* ---- merging --------------------------------------------------------------------------------------------------- */

static uint32_t bpe_rank_of(const struct bpe *bpe, const struct symbol *left, const struct symbol *right) {
        const struct merge *merge = merges_find(&bpe->merges, left->token, right->token);

        return merge ? merge->rank : RANK_NONE;
}

/* Looks at all pairs again after each merge. The symbols move together. */
static void merge_short(const struct bpe *bpe, struct symbols *symbols) {
        struct symbol *items = symbols->items;
        uint32_t n = symbols->n;

        for (uint32_t i = 0; i + 1 < n; i++)
                items[i].rank = bpe_rank_of(bpe, &items[i], &items[i + 1]);
        while (n > 1) {
                uint32_t best = 0;

                for (uint32_t i = 1; i + 1 < n; i++)
                        if (items[i].rank < items[best].rank)
                                best = i;
                if (items[best].rank == RANK_NONE)
                        break;
                items[best].token = merges_find(&bpe->merges, items[best].token, items[best + 1].token)->token;
                memmove(items + best + 1, items + best + 2, (n - best - 2) * sizeof(*items));
                n--;
                items[best].rank = best + 1 < n ? bpe_rank_of(bpe, &items[best], &items[best + 1]) : RANK_NONE;
                if (best > 0)
                        items[best - 1].rank = bpe_rank_of(bpe, &items[best - 1], &items[best]);
        }
        symbols->n = n;
}

/* Pairs by rank, then by place: rank << 32 | symbol. Those that are no longer so are passed over. */
struct heap {
        uint64_t *items;
        size_t n;
};

static void heap_push(struct heap *heap, uint64_t item) {
        size_t i = heap->n++;

        for (; i > 0 && heap->items[(i - 1) / 2] > item; i = (i - 1) / 2)
                heap->items[i] = heap->items[(i - 1) / 2];
        heap->items[i] = item;
}

static uint64_t heap_pop(struct heap *heap) {
        uint64_t top = heap->items[0], item = heap->items[--heap->n];
        size_t i = 0;

        for (;;) {
                size_t child = 2 * i + 1;

                if (child >= heap->n)
                        break;
                if (child + 1 < heap->n && heap->items[child + 1] < heap->items[child])
                        child++;
                if (heap->items[child] >= item)
                        break;
                heap->items[i] = heap->items[child];
                i = child;
        }
        heap->items[i] = item;
        return top;
}

static void push_pair(const struct bpe *bpe, struct symbols *symbols, struct heap *heap, uint32_t left) {
        struct symbol *items = symbols->items;

        items[left].rank = items[left].next == NO_SYMBOL ? RANK_NONE
                                                         : bpe_rank_of(bpe, &items[left], &items[items[left].next]);
        if (items[left].rank != RANK_NONE)
                heap_push(heap, (uint64_t)items[left].rank << 32 | left);
}

/* A pair is in the heap at most three times for each symbol: once at first, and twice for each merge. */
static int merge_long(const struct bpe *bpe, struct model_memory *memory, struct symbols *symbols, struct heap *heap) {
        struct symbol *items = symbols->items;
        uint32_t n_left = 0;

        for (uint32_t i = 0; i < symbols->n; i++) {
                items[i].previous = i > 0 ? i - 1 : NO_SYMBOL;
                items[i].next = i + 1 < symbols->n ? i + 1 : NO_SYMBOL;
        }
        for (uint32_t i = 0; i < symbols->n; i++)
                push_pair(bpe, symbols, heap, i);
        while (heap->n > 0) {
                uint64_t top = heap_pop(heap);
                uint32_t left = (uint32_t)top, right = items[left].next;

                if (model_goes_on(memory, 1) < 0)
                        return -ECANCELED;
                if (items[left].rank != top >> 32) /* it has merged meanwhile */
                        continue;
                items[left].token = merges_find(&bpe->merges, items[left].token, items[right].token)->token;
                items[left].next = items[right].next;
                if (items[left].next != NO_SYMBOL)
                        items[items[left].next].previous = left;
                items[right].rank = RANK_NONE;
                items[right].token = TOKEN_NONE;
                push_pair(bpe, symbols, heap, left);
                if (items[left].previous != NO_SYMBOL)
                        push_pair(bpe, symbols, heap, items[left].previous);
        }
        for (uint32_t i = 0; i < symbols->n; i++)
                if (items[i].token != TOKEN_NONE)
                        items[n_left++] = items[i];
        symbols->n = n_left;
        return 0;
}

static int bpe_encode(const struct model *model, struct model_memory *memory, const uint8_t *word, size_t n) {
        const struct bpe *bpe = model->own;
        struct symbols symbols = { 0 };
        uint32_t whole = !bpe->ignores_merges ? TOKEN_NONE
                         : bpe->is_byte_level ? vocabulary_find(&bpe->bytes, word, n)
                                              : vocabulary_find(&model->vocabulary, word, n);
        int r = 0;

        if (whole != TOKEN_NONE)
                return model_put(memory, whole);
        if (grow_reserve(&memory->symbols, n * sizeof(*symbols.items)) < 0) /* at most one for each byte */
                return -ENOMEM;
        symbols.items = memory->symbols.items;
        if (bpe->is_byte_level)
                bpe_put_bytes(bpe, &symbols, word, n);
        else
                put_characters(model, &symbols, word, n);
        if (symbols.n <= SHORT_WORD) {
                merge_short(bpe, &symbols);
        } else {
                struct heap heap = { 0 };

                if (grow_reserve(&memory->heap, 3 * (size_t)symbols.n * sizeof(*heap.items)) < 0)
                        return -ENOMEM;
                heap.items = memory->heap.items;
                r = merge_long(bpe, memory, &symbols, &heap);
        }
        for (uint32_t i = 0; i < symbols.n && r == 0; i++)
                r = model_put(memory, symbols.items[i].token);
        return r;
}

/* Before a mark that follows something else. */
static size_t bpe_cut(const struct model *model, const uint8_t *word, size_t n) {
        const struct bpe *bpe = model->own;
        size_t at = 0;

        if (!bpe->cuts)
                return n;
        while (at + sizeof(MARK) <= n && memcmp(word + at, MARK, sizeof(MARK)) == 0)
                at += sizeof(MARK);
        if (at < n) {
                const uint8_t *next = memmem(word + at, n - at, MARK, sizeof(MARK));

                return next ? (size_t)(next - word) : n;
        }
        return n;
}

const struct model_type MODEL_BPE = {
        .name = "BPE",
        .read = bpe_read,
        .free = bpe_free,
        .bytes = bpe_bytes,
        .encode = bpe_encode,
        .cut = bpe_cut,
};
