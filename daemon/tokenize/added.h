/* tokenize/added.h: tokens that are found in a text before it is cut: the member "added_tokens" of tokenizer.json.
 *
 * Tokens with "normalized": false are looked for in the text as it is, the others in what the normalizer made of it
 * (and of the token). At each place the longest one counts. There may be thousands that begin alike (<unused0>, ...),
 * so they are in the order of their bytes: of those that a text begins with the longest is the last one that is not
 * behind the text, or the beginning of that one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/wanting.h"
#include "daemon/tokenize/json_node.h"
#include "daemon/tokenize/normalizer.h"
#include "daemon/tokenize/vocabulary.h"

struct added_token {
        uint32_t token;
        bool single_word, lstrip, rstrip, normalized;
        uint32_t begin, n; /* of its text, in `texts` of its set */
        /* The longest other one that it begins with, or NO_ADDED; how many there are of these; a far one among them. */
        uint32_t shorter, n_shorter, far;
};

#define NO_ADDED UINT32_MAX

/* Those that are looked for together. */
struct added_set {
        struct grow texts;
        struct grow tokens;   /* struct added_token, in the order of their texts */
        uint32_t begins[257]; /* which tokens begin with a byte: begins[byte] .. begins[byte + 1] - 1 */
        bool is_first[256];   /* some begin with it */
        uint32_t n;
};

struct added {
        struct added_set plain, normalized;
};

/* Of one text: where the search goes on; zeroes are its beginning. */
struct added_search {
        size_t at;
        size_t blanks_from, blanks_to; /* the blanks that were seen last after a token */
        struct wanting *wanting;       /* NULL: the text is wanted */
        size_t n_done;                 /* since the last look */
};

/* A token as it was found. */
struct added_match {
        size_t begin, end; /* with the blanks that go with it */
        uint32_t token;
};

/* The node may be absent. Tokens that the model has keep its number, which the file must say, too. */
int added_read(const struct json_node *node, const struct normalizer *normalizer, const struct vocabulary *vocabulary,
               struct added *ret_added, struct why *why);
void added_fini(struct added *added);
uint64_t added_bytes(const struct added *added);

/* The next token; blanks before `free_from` belong to something else. Returns 1; 0: there is none; -ECANCELED. */
int added_find(const struct added_set *set, const uint8_t *text, size_t n, size_t free_from,
               struct added_search *search, struct added_match *ret_match);
