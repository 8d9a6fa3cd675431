#include "daemon/tokenize/merges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

struct merging {
        const struct vocabulary *vocabulary;
        const uint8_t *mark;
        size_t n_mark;
        struct merges *merges;
        bool cuts;
};

void merges_fini(struct merges *merges) {
        free(merges->slots);
        *merges = (struct merges){ 0 };
}

static int merges_reserve(struct merges *merges, uint64_t n) {
        uint64_t n_slots = 64;

        while (n_slots < 2 * (n + 1))
                n_slots *= 2;
        if (n_slots > UINT32_C(1) << 30)
                return -ENOMEM;
        merges->slots = malloc(n_slots * sizeof(*merges->slots));
        if (!merges->slots)
                return -ENOMEM;
        memset(merges->slots, 0xff, n_slots * sizeof(*merges->slots));
        merges->n_slots = (uint32_t)n_slots;
        return 0;
}

/* Of a pair that comes twice the last place counts. */
static void merges_put(struct merges *merges, uint64_t pair, uint32_t rank, uint32_t token) {
        uint64_t hash = pair * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t at = (uint32_t)(hash >> 33) & (merges->n_slots - 1);

        while (merges->slots[at].pair != pair && merges->slots[at].pair != UINT64_MAX)
                at = (at + 1) & (merges->n_slots - 1);
        merges->slots[at] = (struct merge){ pair, rank, token };
}

static bool begins_with_mark(const struct merging *merging, const uint8_t *text, size_t n) {
        return n >= merging->n_mark && memcmp(text, merging->mark, merging->n_mark) == 0;
}

static int merges_add(struct merging *merging, const struct json_node *node, uint32_t rank, uint8_t *text,
                      size_t n_left, size_t n, struct why *why) {
        const uint8_t *right_text = text + n_left;
        uint32_t left = vocabulary_find(merging->vocabulary, text, n_left);
        uint32_t right = vocabulary_find(merging->vocabulary, right_text, n - n_left);
        uint32_t token = vocabulary_find(merging->vocabulary, text, n);

        if (left == TOKEN_NONE || right == TOKEN_NONE || token == TOKEN_NONE)
                return json_node_refuse(node, -EINVAL, why, "%s is not in the vocabulary",
                                        token == TOKEN_NONE && left != TOKEN_NONE && right != TOKEN_NONE
                                                ? "what it makes"
                                                : "one of its tokens");
        if (begins_with_mark(merging, right_text, n - n_left) &&
            !(n_left >= merging->n_mark && begins_with_mark(merging, right_text - merging->n_mark, merging->n_mark)))
                merging->cuts = false;
        merges_put(merging->merges, (uint64_t)left << 32 | right, rank, token);
        return 0;
}

/* Both tokens into one text, without the blank between them. */
static int merges_read_pair(const struct json_node *node, uint8_t *text, size_t *ret_n_left, size_t *ret_n,
                            struct why *why) {
        uint8_t *blank;
        size_t n;

        if (node->value.kind == JSON_STRING) {
                if (json_string_read(node->value.bytes, node->value.n_bytes, text, &n, NULL) < 0)
                        return json_node_refuse(node, -EINVAL, why, "is not text");
                blank = memchr(text, ' ', n);
                if (!blank || memchr(blank + 1, ' ', (size_t)(text + n - blank - 1)))
                        return json_node_refuse(node, -EINVAL, why, "is not two tokens with a blank between them");
                memmove(blank, blank + 1, (size_t)(text + n - blank - 1));
                *ret_n_left = (size_t)(blank - text);
                *ret_n = n - 1;
                return 0;
        }
        {
                struct json_elements elements;
                struct json_node parts[3];
                int r = json_elements_begin(&elements, node, why);

                for (unsigned i = 0; i < 3 && r == 0; i++) {
                        r = json_elements_next(&elements, &parts[i], why);
                        if (r < 0)
                                return r;
                        if ((r == 0) != (i < 2) || (i < 2 && parts[i].value.kind != JSON_STRING))
                                return json_node_refuse(node, -EINVAL, why, "is not two tokens");
                }
                if (json_string_read(parts[0].value.bytes, parts[0].value.n_bytes, text, ret_n_left, NULL) < 0 ||
                    json_string_read(parts[1].value.bytes, parts[1].value.n_bytes, text + *ret_n_left, &n, NULL) < 0)
                        return json_node_refuse(node, -EINVAL, why, "is not text");
                *ret_n = *ret_n_left + n;
                return 0;
        }
}

static int merges_count(const struct json_node *node, uint64_t *ret_n, struct why *why) {
        struct json_elements elements;
        struct json_node element;
        int r = json_elements_begin(&elements, node, why);

        while (r == 0)
                r = json_elements_next(&elements, &element, why);
        *ret_n = elements.n;
        return r < 0 ? r : 0;
}

int merges_read(const struct json_node *node, const struct vocabulary *vocabulary, const uint8_t *mark, size_t n_mark,
                struct merges *merges, bool *ret_cuts, struct why *why) {
        struct merging merging = { vocabulary, mark, n_mark, merges, true };
        _cleanup_(freep) uint8_t *text = NULL;
        struct json_elements elements;
        struct json_node element;
        size_t n_left = 0, n = 0;
        uint64_t n_all;
        int r = merges_count(node, &n_all, why);

        if (r < 0)
                return r;
        text = malloc(node->value.n_bytes);
        if (!text || merges_reserve(merges, n_all) < 0)
                return why_errno(why, -ENOMEM, "tokenizer");
        r = json_elements_begin(&elements, node, why);
        while (r == 0) {
                r = json_elements_next(&elements, &element, why);
                if (r == 0)
                        r = merges_read_pair(&element, text, &n_left, &n, why);
                if (r == 0)
                        r = merges_add(&merging, &element, (uint32_t)elements.n, text, n_left, n, why);
        }
        *ret_cuts = merging.cuts;
        return r < 0 ? r : 0;
}
