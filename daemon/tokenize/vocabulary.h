/* tokenize/vocabulary.h: from the bytes of a token to its number. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/tokenize/grow.h"
#include "daemon/tokenize/json_node.h"

#define TOKEN_MAX  INT32_MAX /* the highest number */
#define TOKEN_NONE UINT32_MAX

struct vocabulary_entry {
        uint32_t begin, n; /* of the bytes */
        uint32_t token;
};

/* Zeroes are an empty one. */
struct vocabulary {
        struct grow bytes;
        struct grow entries;
        uint32_t *slots; /* 1 + index of an entry; 0: none */
        uint32_t n_slots, n_entries;
};

void vocabulary_fini(struct vocabulary *vocabulary);
uint64_t vocabulary_bytes(const struct vocabulary *vocabulary);

/* A token that is there already gets the new number. -ENOMEM; -ECANCELED: nobody wants the vocabulary any more. */
int vocabulary_add(struct vocabulary *vocabulary, const void *bytes, size_t n_bytes, uint32_t token);

/* TOKEN_NONE: there is none. */
uint32_t vocabulary_find(const struct vocabulary *vocabulary, const void *bytes, size_t n_bytes);

/* Reads an object of tokens and their numbers. */
int vocabulary_read(const struct json_node *node, struct vocabulary *vocabulary, struct why *why);

/* The bytes of an entry, i < n_entries. */
const uint8_t *vocabulary_at(const struct vocabulary *vocabulary, uint32_t i, size_t *ret_n, uint32_t *ret_token);
