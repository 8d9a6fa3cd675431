/* tokenize_texts TOKENIZER.json [REPEAT]: the tokens of texts, for comparisons with "tokenizers".
 *
 * Standard input: texts, each after its number of bytes (uint32). Standard output: for each text the number of its
 * tokens and the tokens (uint32), with those that the file puts around them. With REPEAT, all texts are encoded so
 * often, and the rate goes to stderr. */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tokenize/tokenizer.h"
#include "proto/base/clock.h"

static uint8_t *read_all(FILE *file, size_t *ret_n) {
        size_t n = 0, n_room = 1 << 20;
        uint8_t *bytes = malloc(n_room);

        while (bytes) {
                n += fread(bytes + n, 1, n_room - n, file);
                if (n < n_room)
                        break;
                n_room *= 2;
                bytes = realloc(bytes, n_room);
        }
        if (!bytes || ferror(file))
                err(1, "reading");
        *ret_n = n;
        return bytes;
}

static void put(const uint32_t *tokens, size_t n) {
        if (fwrite(tokens, sizeof(*tokens), n, stdout) != n)
                err(1, "writing");
}

static void encode(const struct tokenizer *tokenizer, struct token_encoder *encoder, const uint8_t *text, size_t n,
                   int prints) {
        const struct frame *frame = tokenizer_frame(tokenizer);
        const uint32_t *tokens;
        struct why why;
        uint32_t n_all;
        size_t n_tokens;

        if (tokenizer_encode(tokenizer, encoder, text, n, SIZE_MAX, &tokens, &n_tokens, &why) < 0)
                errx(1, "%s", why.text);
        if (!prints)
                return;
        n_all = frame->n_before + (uint32_t)n_tokens + frame->n_after;
        put(&n_all, 1);
        put(frame->before, frame->n_before);
        put(tokens, n_tokens);
        put(frame->after, frame->n_after);
}

int main(int argc, char **argv) {
        struct tokenizer *tokenizer;
        struct token_encoder *encoder;
        struct why why;
        size_t n_file, n;
        uint64_t begin_ns;
        FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
        int n_rounds = argc > 2 ? atoi(argv[2]) : 1;
        uint8_t *bytes, *texts;

        if (!file)
                err(1, "tokenize_texts TOKENIZER.json [REPEAT]");
        bytes = read_all(file, &n_file);
        fclose(file);
        begin_ns = clock_now_ns();
        if (tokenizer_new(bytes, n_file, &tokenizer, &why) < 0)
                errx(1, "%s: %s", argv[1], why.text);
        if (argc > 2)
                fprintf(stderr, "read in %.1f ms, %.1f MB\n", (double)(clock_now_ns() - begin_ns) / 1e6,
                        (double)tokenizer_bytes(tokenizer) / 1e6);
        if (token_encoder_new(NULL, &encoder) < 0)
                err(1, "encoder");
        texts = read_all(stdin, &n);
        begin_ns = clock_now_ns();
        for (int round = 0; round < n_rounds; round++)
                for (size_t at = 0; at + 4 <= n;) {
                        uint32_t n_text;

                        memcpy(&n_text, texts + at, 4);
                        if (n_text > n - at - 4)
                                errx(1, "a text is cut off");
                        encode(tokenizer, encoder, texts + at + 4, n_text, argc <= 2);
                        at += 4 + n_text;
                }
        if (argc > 2)
                fprintf(stderr, "%.1f MB/s\n",
                        (double)n * n_rounds / 1e6 / ((double)(clock_now_ns() - begin_ns) / 1e9));
        token_encoder_free(encoder);
        tokenizer_unref(tokenizer);
        free(bytes);
        free(texts);
        return 0;
}
