#include "daemon/tokenize/added.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tokenize/characters/characters.h"
#include "proto/base/cleanup.h"

#define ADDED_MAX  (1u << 16)
#define LENGTH_MAX 1024u /* bytes of one */

void added_fini(struct added *added) {
        grow_free(&added->plain.texts);
        grow_free(&added->plain.tokens);
        grow_free(&added->normalized.texts);
        grow_free(&added->normalized.tokens);
}

static uint64_t set_bytes(const struct added_set *set) {
        return set->texts.n_room + set->tokens.n_room;
}

uint64_t added_bytes(const struct added *added) {
        return set_bytes(&added->plain) + set_bytes(&added->normalized);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static struct added_token *token_at(const struct added_set *set, uint32_t i) {
        return (struct added_token *)set->tokens.items + i;
}

static const uint8_t *text_of(const struct added_set *set, const struct added_token *token) {
        return (const uint8_t *)set->texts.items + token->begin;
}

static int put(struct added_set *set, struct added_token token, const uint8_t *text, size_t n) {
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

static int check_number(struct numbering *numbering, const struct json_node *node, const uint8_t *text, size_t n,
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
        r = check_number(numbering, &members[0], content, n, id, why);
        if (r < 0)
                return r;
        token.token = (uint32_t)id;
        text = content;
        if (token.normalized)
                r = normalizer_apply(normalizer, memory, content, n, &text, &n);
        if (r == 0 && n > LENGTH_MAX)
                return json_node_refuse(&members[1], -EINVAL, why, "is normalized to more than %u bytes", LENGTH_MAX);
        if (r == 0 && n > 0)
                r = put(token.normalized ? &added->normalized : &added->plain, token, text, n);
        return r < 0 ? why_errno(why, r, "tokenizer") : 0;
}

/* Equal texts: the first one counts. */
static int compare(const void *one, const void *other, void *userdata) {
        const struct added_token *a = one, *b = other;
        const struct added_set *set = userdata;
        uint8_t first_a = *text_of(set, a), first_b = *text_of(set, b);

        if (first_a != first_b)
                return first_a < first_b ? -1 : 1;
        if (a->n != b->n)
                return a->n > b->n ? -1 : 1;
        return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void arrange(struct added_set *set) {
        if (set->n > 0)
                qsort_r(set->tokens.items, set->n, sizeof(struct added_token), compare, set);
        for (uint32_t i = 0; i < set->n; i++) {
                uint8_t byte = *text_of(set, token_at(set, i));

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
        arrange(&ret_added->plain);
        arrange(&ret_added->normalized);
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

static size_t skip_blanks(const uint8_t *text, size_t n, size_t at) {
        while (at < n) {
                uint32_t point;
                size_t length = character_read(text + at, &point);

                if (!(character_class(point) & CHARACTER_BLANK))
                        break;
                at += length;
        }
        return at;
}

static const struct added_token *match(const struct added_set *set, const uint8_t *text, size_t n) {
        for (uint32_t i = set->begins[text[0]]; i < set->begins[text[0] + 1]; i++) {
                const struct added_token *token = token_at(set, i);

                if (token->n <= n && memcmp(text, text_of(set, token), token->n) == 0)
                        return token;
        }
        return NULL;
}

bool added_find(const struct added_set *set, const uint8_t *text, size_t n, size_t at, size_t free_from,
                struct added_match *ret_match) {
        if (set->n == 0)
                return false;
        for (; at < n; at++) {
                const struct added_token *token = set->is_first[text[at]] ? match(set, text + at, n - at) : NULL;

                if (!token)
                        continue;
                if (token->single_word && (is_word_before(text, at) || is_word_after(text, n, at + token->n))) {
                        at += token->n - 1; /* what it covers is not looked at again */
                        continue;
                }
                ret_match->begin = token->lstrip ? skip_blanks_back(text, at, free_from) : at;
                ret_match->next = at + token->n;
                ret_match->end = token->rstrip ? skip_blanks(text, n, at + token->n) : at + token->n;
                ret_match->token = token->token;
                return true;
        }
        return false;
}
