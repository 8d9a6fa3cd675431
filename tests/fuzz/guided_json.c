/* Any bytes as JSON, whole and in pieces: both give the same tokens, tokens lie within the text and follow each other,
 * text is UTF-8 and no longer than its literal, and what was measured can be read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json/json_texts.h"
#include "proto/base/cleanup.h"
#include "proto/base/texts.h"
#include "proto/base/utf8.h"

#define N_VALUE_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: JSON %s\n", what);
        abort();
}

static void check_string(const struct json_token *token) {
        uint8_t into[N_VALUE_MAX];
        size_t n = 0, n_counted = 0;
        struct why why = { 0 };
        int r;

        if (token->n_bytes > sizeof(into))
                return;
        r = json_string_read(token->bytes, token->n_bytes, into, &n, &why);
        if (json_string_read(token->bytes, token->n_bytes, NULL, &n_counted, NULL) != r || n_counted != n)
                find("text has two lengths");
        if (r != 0 && r != -EILSEQ)
                find("text was scanned and is not read");
        if (r == 0 && n + 2 > token->n_bytes)
                find("text became longer");
        for (size_t at = 0; r == 0 && at < n;) {
                uint32_t point;
                size_t n_one = utf8_decode((const char *)into + at, n - at, &point);

                if (n_one == 0)
                        find("text is not UTF-8");
                at += n_one;
        }
        if (r == 0 && !json_string_is(token, (const char *)into, n))
                find("text is not equal to itself");
}

static void check_numbers(const uint8_t *bytes, size_t n_bytes) {
        struct json_numbers numbers = { 0 };
        uint64_t into[N_VALUE_MAX], n = 1;

        if (json_numbers_measure(bytes, n_bytes, &numbers, NULL) < 0 || numbers.n > N_VALUE_MAX)
                return;
        for (uint32_t i = 0; i < numbers.n_dims; i++)
                n *= numbers.shape[i];
        if (n != numbers.n)
                find("array has another shape than number of elements");
        if (json_numbers_read(bytes, n_bytes, true, into, n, NULL) < 0)
                find("array was measured and is not read");
        if (numbers.kind != JSON_FLOAT && json_numbers_read(bytes, n_bytes, false, into, n, NULL) < 0)
                find("array of whole numbers is not read");
}

/* A list of texts takes at most four times the bytes of its JSON: that is the room that it is given. */
static void check_texts(const uint8_t *bytes, size_t n_bytes) {
        _cleanup_(freep) uint8_t *into = NULL;
        uint64_t n, n_text_bytes, n_into;
        struct texts texts;

        if (json_texts_measure(bytes, n_bytes, &n, &n_text_bytes, NULL) < 0)
                return;
        n_into = 8 + 8 * n + n_text_bytes;
        if (n_into > 4 * (uint64_t)n_bytes)
                find("list of texts takes more room than it is given");
        into = malloc(n_into);
        if (!into)
                _exit(2);
        if (json_texts_read(bytes, n_bytes, into, n, NULL) < 0)
                find("list of texts was measured and is not read");
        if (!texts_open(into, n_into, &texts) || texts.n != n)
                find("list of texts cannot be opened");
}

/* Pieces whose sizes come from the text itself. */
static void check_pieces(const uint8_t *data, size_t n_bytes) {
        struct json_scan whole, pieces = { .bytes = NULL };
        struct json_token one, other;
        size_t n_seen = 0;

        json_scan_init(&whole, data, n_bytes);
        for (;;) {
                int r = json_next(&whole, &one, NULL), r2 = json_next(&pieces, &other, NULL);

                while (r2 == JSON_MORE) {
                        uint64_t at = json_scan_offset(&pieces);

                        if (n_seen == n_bytes && pieces.is_last)
                                find("asks for more after the end");
                        n_seen += n_seen < n_bytes ? 1u + data[n_seen] % 5u : 0;
                        n_seen = n_seen < n_bytes ? n_seen : n_bytes;
                        json_scan_feed(&pieces, data + at, n_seen - at, n_seen == n_bytes);
                        r2 = json_next(&pieces, &other, NULL);
                }
                if (r != r2 || (r == 0 && (one.kind != other.kind || one.bytes != other.bytes ||
                                           one.n_bytes != other.n_bytes || whole.depth != pieces.depth)))
                        find("differs when it comes in pieces");
                if (r != 0 || one.kind == JSON_END)
                        return;
                if (one.bytes + one.n_bytes != data + whole.at)
                        find("token does not end where the scan stands");
                if (one.kind == JSON_STRING || one.kind == JSON_KEY)
                        check_string(&one);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static const char *const PATHS[] = { "", "a", "a.b", "[0]", "a[1].b", "[\"a b\"]", "[2][0]" };
        char path[64] = "";
        struct json_scan scan;
        struct json_token token;
        struct why why = { 0 };
        int r;

        check_pieces(data, n_bytes);
        check_numbers(data, n_bytes);
        check_texts(data, n_bytes);
        json_scan_init(&scan, data, n_bytes);
        r = json_value(&scan, &token, &why);
        if (r < 0 && !why.text[0])
                find("was refused without a word");
        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++)
                if (json_find(data, n_bytes, PATHS[i], &token, NULL) == 0 &&
                    (token.bytes < data || token.bytes + token.n_bytes > data + n_bytes || token.n_bytes == 0))
                        find("value lies outside");
        memcpy(path, data, n_bytes < sizeof(path) - 1 ? n_bytes : sizeof(path) - 1);
        if (json_path_check(path, NULL) == 0)
                json_find("{\"a\":[{\"b\":1},[2]]}", 19, path, &token, NULL);
        return 0;
}
