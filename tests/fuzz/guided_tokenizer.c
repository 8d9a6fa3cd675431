/* Any bytes as a tokenizer.json, and a text after a NUL: what is read gives each text the same tokens twice, the same
 * beginning if fewer are asked for, and no memory is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tokenize/tokenizer.h"
#include "proto/base/cleanup.h"
#include "proto/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: tokenizer %s\n", what);
        abort();
}

static int encode(const struct tokenizer *tokenizer, const uint8_t *text, size_t n, size_t n_max, uint32_t *into,
                  size_t n_room, size_t *ret_n) {
        struct token_encoder *encoder;
        const uint32_t *tokens;
        struct why why = { 0 };
        int r;

        if (token_encoder_new(NULL, &encoder) < 0)
                _exit(2);
        r = tokenizer_encode(tokenizer, encoder, text, n, n_max, &tokens, ret_n, &why);
        if (r < 0 && !why.text[0])
                find("refuses a text without a word");
        if (r == 0 && *ret_n > 0)
                memcpy(into, tokens, (*ret_n < n_room ? *ret_n : n_room) * sizeof(*into));
        token_encoder_free(encoder);
        return r;
}

static void check_text(const struct tokenizer *tokenizer, const uint8_t *text, size_t n) {
        static uint32_t one[65536], other[65536];
        size_t n_one = 0, n_other = 0, n_same;
        int r = encode(tokenizer, text, n, SIZE_MAX, one, ARRAY_SIZE(one), &n_one);

        if (encode(tokenizer, text, n, SIZE_MAX, other, ARRAY_SIZE(other), &n_other) != r || n_one != n_other)
                find("gives a text two numbers of tokens");
        if (r < 0 || n_one > ARRAY_SIZE(one))
                return;
        if (memcmp(one, other, n_one * sizeof(*one)) != 0)
                find("gives a text other tokens");
        if (encode(tokenizer, text, n, n_one / 2, other, ARRAY_SIZE(other), &n_other) < 0)
                find("refuses the beginning of a text that it takes");
        n_same = n_other < n_one ? n_other : n_one;
        if (n_other < n_one / 2 || n_other > n_one || memcmp(one, other, n_same * sizeof(*one)) != 0)
                find("begins otherwise if fewer tokens are asked for");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        const uint8_t *nul = memchr(data, 0, n_bytes), *text = nul ? nul + 1 : data + n_bytes;
        size_t n = nul ? (size_t)(nul - data) : n_bytes, n_text = (size_t)(data + n_bytes - text);
        struct tokenizer *tokenizer = NULL;
        struct why why = { 0 };

        if (tokenizer_new(data, n, &tokenizer, &why) < 0) {
                if (!why.text[0])
                        find("is refused without a word");
                return 0;
        }
        if (strlen(tokenizer_digest(tokenizer)) != TOKENIZER_DIGEST_MAX - 1 || tokenizer_bytes(tokenizer) == 0)
                find("has no digest");
        check_text(tokenizer, text, utf8_valid(text, n_text));
        tokenizer_unref(tokenizer_ref(tokenizer));
        tokenizer_unref(tokenizer);
        return 0;
}
