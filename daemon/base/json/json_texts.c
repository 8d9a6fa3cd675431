#include "daemon/base/json/json_texts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int json_texts_begin(struct json_scan *scan, const void *bytes, size_t n_bytes, struct why *why) {
        struct json_token token;
        int r;

        json_scan_init(scan, bytes, n_bytes);
        r = json_next(scan, &token, why);
        if (r == 0 && token.kind != JSON_ARRAY)
                return why_set(why, -EINVAL, "is not an array of strings");
        return r;
}

/* The next string; positive at the end of the array. `into` NULL: its length only. */
static int json_texts_next(struct json_scan *scan, uint64_t i, uint8_t *into, size_t *ret_n, struct why *why) {
        struct json_token token;
        struct why detail;
        int r = json_next(scan, &token, why);

        if (r < 0)
                return r;
        if (token.kind == JSON_ARRAY_END) {
                r = json_next(scan, &token, why);
                return r < 0 ? r : JSON_ABSENT;
        }
        if (token.kind != JSON_STRING)
                return why_set(why, -EINVAL, "element %" PRIu64 " is not a string", i);
        r = json_string_read(token.bytes, token.n_bytes, into, ret_n, &detail);
        return r < 0 ? why_set(why, r, "element %" PRIu64 ": %s", i, detail.text) : 0;
}

int json_texts_measure(const void *bytes, size_t n_bytes, uint64_t *ret_n, uint64_t *ret_n_text_bytes,
                       struct why *why) {
        uint64_t n = 0, n_text_bytes = 0;
        struct json_scan scan;
        size_t n_one;
        int r = json_texts_begin(&scan, bytes, n_bytes, why);

        while (r == 0) {
                r = json_texts_next(&scan, n, NULL, &n_one, why);
                if (r == 0) {
                        n++;
                        n_text_bytes += n_one;
                }
        }
        if (r < 0)
                return r;
        *ret_n = n;
        *ret_n_text_bytes = n_text_bytes;
        return 0;
}

int json_texts_read(const void *bytes, size_t n_bytes, uint8_t *into, uint64_t n, struct why *why) {
        uint64_t end = 0, i = 0;
        struct json_scan scan;
        size_t n_one;
        int r = json_texts_begin(&scan, bytes, n_bytes, why);

        memcpy(into, &n, sizeof(n));
        for (; r == 0 && i < n; i++) {
                r = json_texts_next(&scan, i, into + 8 + 8 * n + end, &n_one, why);
                if (r != 0)
                        break;
                end += n_one;
                memcpy(into + 8 + 8 * i, &end, sizeof(end));
        }
        if (r == 0)
                r = json_texts_next(&scan, i, NULL, &n_one, why);
        if (r < 0)
                return r;
        return r == JSON_ABSENT && i == n ? 0 : why_set(why, -EINVAL, "has another number of strings than before");
}
