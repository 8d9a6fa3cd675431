#include "daemon/tokenize/vocabulary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/keyed_hash.h"
#include "daemon/base/work/errand.h"

#define LOOK_ENTRIES 4096u /* between two looks of an errand */

void vocabulary_fini(struct vocabulary *vocabulary) {
        grow_free(&vocabulary->bytes);
        grow_free(&vocabulary->entries);
        free(vocabulary->slots);
        *vocabulary = (struct vocabulary){ 0 };
}

uint64_t vocabulary_bytes(const struct vocabulary *vocabulary) {
        return vocabulary->bytes.n_room + vocabulary->entries.n_room + vocabulary->n_slots * sizeof(uint32_t);
}

const uint8_t *vocabulary_at(const struct vocabulary *vocabulary, uint32_t i, size_t *ret_n, uint32_t *ret_token) {
        const struct vocabulary_entry *entry = (const struct vocabulary_entry *)vocabulary->entries.items + i;

        *ret_n = entry->n;
        *ret_token = entry->token;
        return (const uint8_t *)vocabulary->bytes.items + entry->begin;
}

/* The slot of these bytes, or the empty one where they belong. */
static uint32_t *vocabulary_find_slot(const struct vocabulary *vocabulary, const void *bytes, size_t n_bytes) {
        uint32_t at = (uint32_t)keyed_hash(bytes, n_bytes) & (vocabulary->n_slots - 1);
        uint32_t token;
        size_t n;

        for (;; at = (at + 1) & (vocabulary->n_slots - 1)) {
                uint32_t *slot = &vocabulary->slots[at];

                const uint8_t *other = *slot ? vocabulary_at(vocabulary, *slot - 1, &n, &token) : NULL;

                if (!other || (n == n_bytes && memcmp(other, bytes, n_bytes) == 0))
                        return slot;
        }
}

/* At most half of the slots are used. */
static int vocabulary_widen(struct vocabulary *vocabulary) {
        uint32_t n_slots = vocabulary->n_slots ? 2 * vocabulary->n_slots : 64, token;
        uint32_t *slots = calloc(n_slots, sizeof(*slots));
        size_t n;

        if (!slots)
                return -ENOMEM;
        free(vocabulary->slots);
        vocabulary->slots = slots;
        vocabulary->n_slots = n_slots;
        for (uint32_t i = 0; i < vocabulary->n_entries; i++) {
                const uint8_t *bytes = vocabulary_at(vocabulary, i, &n, &token);

                if (i % LOOK_ENTRIES == 0 && errand_look() < 0)
                        return -ECANCELED;
                *vocabulary_find_slot(vocabulary, bytes, n) = i + 1;
        }
        return 0;
}

int vocabulary_add(struct vocabulary *vocabulary, const void *bytes, size_t n_bytes, uint32_t token) {
        struct vocabulary_entry *entry;
        uint32_t *slot;
        int r = 2 * (vocabulary->n_entries + 1) > vocabulary->n_slots ? vocabulary_widen(vocabulary) : 0;

        if (r < 0)
                return r;
        slot = vocabulary_find_slot(vocabulary, bytes, n_bytes);
        if (*slot > 0) {
                ((struct vocabulary_entry *)vocabulary->entries.items)[*slot - 1].token = token;
                return 0;
        }
        /* A byte more, so that a token without bytes has an address, too. */
        if (grow_more(&vocabulary->bytes, n_bytes + 1) < 0 || grow_more(&vocabulary->entries, sizeof(*entry)) < 0)
                return -ENOMEM;
        entry = (struct vocabulary_entry *)vocabulary->entries.items + vocabulary->n_entries;
        *entry = (struct vocabulary_entry){ (uint32_t)vocabulary->bytes.n, (uint32_t)n_bytes, token };
        memcpy((uint8_t *)vocabulary->bytes.items + vocabulary->bytes.n, bytes, n_bytes);
        vocabulary->bytes.n += n_bytes;
        vocabulary->entries.n += sizeof(*entry);
        *slot = ++vocabulary->n_entries;
        return 0;
}

uint32_t vocabulary_find(const struct vocabulary *vocabulary, const void *bytes, size_t n_bytes) {
        const uint32_t *slot;
        uint32_t token;
        size_t n;

        if (vocabulary->n_slots == 0)
                return TOKEN_NONE;
        slot = vocabulary_find_slot(vocabulary, bytes, n_bytes);
        if (*slot == 0)
                return TOKEN_NONE;
        vocabulary_at(vocabulary, *slot - 1, &n, &token);
        return token;
}

int vocabulary_read(const struct json_node *node, struct vocabulary *vocabulary, struct why *why) {
        struct json_token key, value;
        struct json_scan scan;
        struct why what;
        uint8_t *text;
        uint64_t token;
        size_t n;
        int r;

        if (node->value.kind != JSON_OBJECT)
                return json_node_refuse(node, -EINVAL, why, json_node_is_set(node) ? "is not an object" : "is missing");
        json_scan_init(&scan, node->value.bytes, node->value.n_bytes);
        r = json_next(&scan, &key, &what);
        text = malloc(node->value.n_bytes); /* no token is longer */
        if (!text)
                return why_errno(why, -ENOMEM, "tokenizer");
        while (r == 0) {
                r = json_next(&scan, &key, &what);
                if (r < 0 || key.kind == JSON_OBJECT_END)
                        break;
                r = json_node_next(&scan, &value, &what);
                if (r < 0)
                        break;
                if (value.kind != JSON_INTEGER || json_unsigned_read(value.bytes, value.n_bytes, &token, NULL) < 0 ||
                    token > TOKEN_MAX || json_string_read(key.bytes, key.n_bytes, text, &n, NULL) < 0) {
                        r = json_node_refuse(node, -EINVAL, &what, "%.*s is not a token with its number",
                                             (int)(key.n_bytes < 60 ? key.n_bytes : 60), key.bytes);
                        break;
                }
                r = vocabulary_add(vocabulary, text, n, (uint32_t)token);
                if (r < 0)
                        why_errno(&what, r, "tokenizer");
        }
        free(text);
        return r < 0 ? why_set(why, r, "%s", what.text) : 0;
}
