#include "daemon/tokenize/added.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tokenize/characters/characters.h"
#include "proto/base/cleanup.h"

#define ADDED_MAX    (1u << 16)
#define LENGTH_MAX   1024u       /* bytes of one */
#define FINDS_A_LOOK (64u << 10) /* places where one may begin, between two looks whether the text is still wanted */

void added_fini(struct added *added) {
        grow_free(&added->plain.texts);
        grow_free(&added->plain.tokens);
        grow_free(&added->normalized.texts);
        grow_free(&added->normalized.tokens);
}

static uint64_t added_set_bytes(const struct added_set *set) {
        return set->texts.n_room + set->tokens.n_room;
}

uint64_t added_bytes(const struct added *added) {
        return added_set_bytes(&added->plain) + added_set_bytes(&added->normalized);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static struct added_token *token_at(const struct added_set *set, uint32_t i) {
        return (struct added_token *)set->tokens.items + i;
}

static const uint8_t *added_text_of(const struct added_set *set, const struct added_token *token) {
        return (const uint8_t *)set->texts.items + token->begin;
}

static int added_put(struct added_set *set, struct added_token token, const uint8_t *text, size_t n) {
        if (grow_more(&set->texts, n) < 0 || grow_more(&set->tokens, sizeof(token)) < 0)
                return -ENOMEM;
        token.begin = (uint32_t)set->texts.n;
        token.n = (uint32_t)n;
        memcpy((uint8_t *)set->texts.items + set->texts.n, text, n);
        set->texts.n += n;
        memcpy((uint8_t *)set->tokens.items + set->tokens.n, &token, sizeof(token));
        set->tokens.n += sizeof(token);
        set->n++;
        return 0;
}

/* What "tokenizers" would number it: as the model does, or behind all that are there. */
struct numbering {
        const struct vocabulary *vocabulary;
        struct vocabulary seen; /* added before */
        uint64_t next;
};

static int added_check_number(struct numbering *numbering, const struct json_node *node, const uint8_t *text, size_t n,
                              uint64_t is, struct why *why) {
        uint32_t known = vocabulary_find(numbering->vocabulary, text, n);
        uint64_t wanted;
        int r;

        if (known == TOKEN_NONE)
                known = vocabulary_find(&numbering->seen, text, n);
        wanted = known == TOKEN_NONE ? numbering->next : known;
        if (is != wanted)
                return json_node_refuse(node, -EINVAL, why, "is %" PRIu64 ", and its content is token %" PRIu64, is,
                                        wanted);
        if (wanted == numbering->next)
                numbering->next++;
        r = vocabulary_add(&numbering->seen, text, n, (uint32_t)is);
        return r < 0 ? why_errno(why, r, "tokenizer") : 0;
}

static int read_token(const struct json_node *node, const struct normalizer *normalizer, struct normal_memory *memory,
                      struct numbering *numbering, struct added *added, struct why *why) {
        static const char *const NAMES[] = {
                "id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"
        };
        _cleanup_(freep) uint8_t *content = NULL;
        struct json_node members[7];
        struct added_token token = { 0 };
        const uint8_t *text;
        bool is_special;
        uint64_t id;
        size_t n;
        int r = json_node_members(node, NAMES, 7, members, why);

        if (r == 0 && !json_node_is_set(&members[0]))
                r = json_node_refuse(&members[0], -EINVAL, why, "is missing");
        if (r == 0)
                r = json_node_unsigned(&members[0], 0, TOKEN_MAX, &id, why);
        if (r == 0)
                r = json_node_text(&members[1], &content, &n, why);
        if (r == 0)
                r = json_node_bool(&members[2], false, &token.single_word, why);
        if (r == 0)
                r = json_node_bool(&members[3], false, &token.lstrip, why);
        if (r == 0)
                r = json_node_bool(&members[4], false, &token.rstrip, why);
        if (r == 0)
                r = json_node_bool(&members[6], false, &is_special, why);
        if (r == 0)
                r = json_node_bool(&members[5], !is_special, &token.normalized, why);
        if (r < 0 || n == 0) /* a token without text is never found */
                return r;
        if (n > LENGTH_MAX)
                return json_node_refuse(&members[1], -EINVAL, why, "is longer than %u bytes", LENGTH_MAX);
        r = added_check_number(numbering, &members[0], content, n, id, why);
        if (r < 0)
                return r;
        token.token = (uint32_t)id;
        text = content;
        pattern_work_begin(&memory->work, n);
        if (token.normalized)
                r = normalizer_apply(normalizer, memory, content, n, &text, &n);
        if (r == 0 && n > LENGTH_MAX)
                return json_node_refuse(&members[1], -EINVAL, why, "is normalized to more than %u bytes", LENGTH_MAX);
        if (r == 0 && n > 0)
                r = added_put(token.normalized ? &added->normalized : &added->plain, token, text, n);
        return r < 0 ? why_errno(why, r, "tokenizer") : 0;
}

/* Equal texts: the first one counts, so it comes last. */
static int added_compare(const void *one, const void *other, void *userdata) {
        const struct added_token *a = one, *b = other;
        const struct added_set *set = userdata;
        int r = memcmp(added_text_of(set, a), added_text_of(set, b), a->n < b->n ? a->n : b->n);

        if (r != 0 || a->n != b->n)
                return r != 0 ? r : a->n < b->n ? -1 : 1;
        return a->begin > b->begin ? -1 : a->begin < b->begin;
}

static bool added_begins_with(const struct added_set *set, const struct added_token *token,
                              const struct added_token *other) {
        return other->n < token->n && memcmp(added_text_of(set, token), added_text_of(set, other), other->n) == 0;
}

/* Those that a token begins with come before it: the one before it, or one that this begins with. The far ones are
 * such that any of them is found in a few hops. */
static void find_shorter(struct added_set *set, uint32_t i) {
        struct added_token *token = token_at(set, i), *shorter;
        uint32_t k = i > 0 ? i - 1 : NO_ADDED;

        while (k != NO_ADDED && !added_begins_with(set, token, token_at(set, k)))
                k = token_at(set, k)->shorter;
        token->shorter = token->far = k;
        token->n_shorter = 0;
        if (k == NO_ADDED)
                return;
        shorter = token_at(set, k);
        token->n_shorter = shorter->n_shorter + 1;
        if (shorter->far != NO_ADDED) {
                const struct added_token *far = token_at(set, shorter->far);

                if (far->far != NO_ADDED &&
                    shorter->n_shorter - far->n_shorter == far->n_shorter - token_at(set, far->far)->n_shorter)
                        token->far = far->far;
        }
}

static void added_arrange(struct added_set *set) {
        if (set->n > 0)
                qsort_r(set->tokens.items, set->n, sizeof(struct added_token), added_compare, set);
        for (uint32_t i = 0; i < set->n; i++) {
                uint8_t byte = *added_text_of(set, token_at(set, i));

                find_shorter(set, i);
                set->is_first[byte] = true;
                set->begins[byte + 1] = i + 1;
        }
        for (unsigned byte = 0; byte < 256; byte++)
                if (set->begins[byte + 1] < set->begins[byte])
                        set->begins[byte + 1] = set->begins[byte];
}

int added_read(const struct json_node *node, const struct normalizer *normalizer, const struct vocabulary *vocabulary,
               struct added *ret_added, struct why *why) {
        struct numbering numbering = { .vocabulary = vocabulary, .next = vocabulary->n_entries };
        struct normal_memory memory = { 0 };
        struct json_elements elements;
        struct json_node element;
        int r;

        *ret_added = (struct added){ 0 };
        if (!json_node_is_set(node))
                return 0;
        r = json_elements_begin(&elements, node, why);
        while (r == 0) {
                r = json_elements_next(&elements, &element, why);
                if (r == 0 && elements.n > ADDED_MAX)
                        r = json_node_refuse(node, -EINVAL, why, "has more than %u tokens", ADDED_MAX);
                if (r == 0)
                        r = read_token(&element, normalizer, &memory, &numbering, ret_added, why);
        }
        normal_memory_free(&memory);
        vocabulary_fini(&numbering.seen);
        if (r < 0) {
                added_fini(ret_added);
                return r;
        }
        added_arrange(&ret_added->plain);
        added_arrange(&ret_added->normalized);
        return 0;
}

/* ---- finding --------------------------------------------------------------------------------------------------- */

static bool is_word_before(const uint8_t *text, size_t at) {
        uint32_t point;

        if (at == 0)
                return false;
        do
                at--;
        while ((text[at] & 0xc0) == 0x80);
        character_read(text + at, &point);
        return character_class(point) & CHARACTER_WORD;
}

static bool is_word_after(const uint8_t *text, size_t n, size_t at) {
        uint32_t point;

        if (at >= n)
                return false;
        character_read(text + at, &point);
        return character_class(point) & CHARACTER_WORD;
}

static size_t skip_blanks_back(const uint8_t *text, size_t at, size_t least) {
        while (at > least) {
                size_t before = at;
                uint32_t point;

                do
                        before--;
                while ((text[before] & 0xc0) == 0x80);
                character_read(text + before, &point);
                if (before < least || !(character_class(point) & CHARACTER_BLANK))
                        break;
                at = before;
        }
        return at;
}

/* A token may be a blank itself, and the blanks after each of many are the same. */
static size_t added_skip_blanks(struct added_search *search, const uint8_t *text, size_t n, size_t at) {
        size_t from = at;

        if (at >= search->blanks_from && at < search->blanks_to)
                return search->blanks_to;
        while (at < n) {
                uint32_t point;
                size_t length = character_read(text + at, &point);

                if (!(character_class(point) & CHARACTER_BLANK))
                        break;
                at += length;
        }
        search->blanks_from = from;
        search->blanks_to = at;
        return at;
}

/* How many bytes the text and the token have in common from the beginning on; the first `n_same` they have. */
static size_t n_common(const uint8_t *text, size_t n, const uint8_t *other, size_t n_other, size_t n_same) {
        size_t n_most = n < n_other ? n : n_other;

        while (n_same < n_most && text[n_same] == other[n_same])
                n_same++;
        return n_same;
}

/* The last token that is not behind the text in the order; NO_ADDED: all are. *ret_common: of it and the text. What
 * both ends of the range have in common with the text, all between them have, too. */
static uint32_t last_before(const struct added_set *set, const uint8_t *text, size_t n, size_t *ret_common) {
        uint32_t low = set->begins[text[0]], high = set->begins[text[0] + 1], found = NO_ADDED;
        size_t n_low = 0, n_high = 0;

        while (low < high) {
                uint32_t i = low + (high - low) / 2;
                const struct added_token *token = token_at(set, i);
                const uint8_t *other = added_text_of(set, token);
                size_t n_same = n_common(text, n, other, token->n, n_low < n_high ? n_low : n_high);

                if (n_same == token->n || (n_same < n && other[n_same] < text[n_same])) {
                        found = i;
                        low = i + 1;
                        n_low = *ret_common = n_same;
                } else {
                        high = i;
                        n_high = n_same;
                }
        }
        return found;
}

static const struct added_token *added_match(const struct added_set *set, const uint8_t *text, size_t n) {
        size_t n_same = 0;
        uint32_t i = last_before(set, text, n, &n_same);

        while (i != NO_ADDED && token_at(set, i)->n > n_same) {
                const struct added_token *token = token_at(set, i);

                i = token->far != NO_ADDED && token_at(set, token->far)->n > n_same ? token->far : token->shorter;
        }
        return i == NO_ADDED ? NULL : token_at(set, i);
}

int added_find(const struct added_set *set, const uint8_t *text, size_t n, size_t free_from,
               struct added_search *search, struct added_match *ret_match) {
        size_t at = search->at;

        for (; set->n > 0 && at < n; at++) {
                const struct added_token *token = NULL;

                if (set->is_first[text[at]]) {
                        if (!wanting_goes_on(search->wanting, &search->n_done, 1, FINDS_A_LOOK))
                                return -ECANCELED;
                        token = added_match(set, text + at, n - at);
                }
                if (!token)
                        continue;
                if (token->single_word && (is_word_before(text, at) || is_word_after(text, n, at + token->n))) {
                        at += token->n - 1; /* what it covers is not looked at again */
                        continue;
                }
                search->at = at + token->n;
                ret_match->begin = token->lstrip ? skip_blanks_back(text, at, free_from) : at;
                ret_match->end = token->rstrip ? added_skip_blanks(search, text, n, search->at) : search->at;
                ret_match->token = token->token;
                return 1;
        }
        return 0;
}
