#include "daemon/base/json/json_scan.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/base/utf8.h"

enum {
        WANT_VALUE, /* zero: a struct of zeroes begins here */
        WANT_FIRST_VALUE,
        WANT_KEY,
        WANT_FIRST_KEY,
        WANT_COLON,
        WANT_COMMA,
        WANT_END,
};

void json_scan_init(struct json_scan *scan, const void *bytes, size_t n_bytes) {
        *scan = (struct json_scan){ .bytes = bytes, .n_bytes = n_bytes, .is_last = true };
}

void json_scan_feed(struct json_scan *scan, const void *bytes, size_t n_bytes, bool is_last) {
        scan->offset += scan->at;
        scan->at = 0;
        scan->bytes = bytes;
        scan->n_bytes = n_bytes;
        scan->is_last = is_last;
}

uint64_t json_scan_offset(const struct json_scan *scan) {
        return scan->offset + scan->at;
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

/* What is wrong at byte `at` of the piece. */
static int json_scan_refuse_at(const struct json_scan *scan, size_t at, const char *expected, struct why *why) {
        size_t n_left = scan->n_bytes - at;

        if (n_left == 0)
                return why_set(why, -EBADMSG, "byte %ju: the text ends where %s was expected",
                               (uintmax_t)(scan->offset + at), expected);
        return why_set(why, -EBADMSG, "byte %ju: \"%.*s\" where %s was expected", (uintmax_t)(scan->offset + at),
                       n_left > 16 ? 16 : (int)n_left, (const char *)scan->bytes + at, expected);
}

static int json_scan_refuse(const struct json_scan *scan, const char *expected, struct why *why) {
        return json_scan_refuse_at(scan, scan->at, expected, why);
}

/* The token reaches the end of the piece. */
static int json_scan_cut(const struct json_scan *scan, const char *expected, struct why *why) {
        return scan->is_last ? json_scan_refuse_at(scan, scan->n_bytes, expected, why) : JSON_MORE;
}

/* ---- strings --------------------------------------------------------------------------------------------------- */

#define EACH(byte) (0x0101010101010101ull * (byte))

/* The first byte from `at` on that is a quote, a backslash, a control character or not ASCII; eight at a time. */
static size_t find_special(const uint8_t *bytes, size_t at, size_t n_bytes) {
        for (; n_bytes - at >= 8; at += 8) {
                uint64_t word, quote, backslash, found;

                memcpy(&word, bytes + at, sizeof(word));
                quote = word ^ EACH('"');
                backslash = word ^ EACH('\\');
                /* A byte below n becomes negative when n is subtracted; the lowest mark is exact, higher ones may not
                 * be. */
                found = ((quote - EACH(1)) & ~quote) | ((backslash - EACH(1)) & ~backslash) |
                        ((word - EACH(0x20)) & ~word) | word;
                found &= EACH(0x80);
                if (found)
                        return at + (size_t)__builtin_ctzll(found) / 8;
        }
        while (at < n_bytes && bytes[at] != '"' && bytes[at] != '\\' && bytes[at] >= 0x20 && bytes[at] < 0x80)
                at++;
        return at;
}

static bool is_hex(uint8_t byte) {
        return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f');
}

/* An escape at `at`. Returns 0 and its end, or as json_next(). */
static int skip_escape(const struct json_scan *scan, size_t at, size_t *ret_end, struct why *why) {
        if (at + 1 == scan->n_bytes)
                return json_scan_cut(scan, "an escaped character", why);
        if (scan->bytes[at + 1] == 'u') {
                for (size_t i = at + 2; i < at + 6; i++) {
                        if (i == scan->n_bytes)
                                return json_scan_cut(scan, "four hexadecimal digits", why);
                        if (!is_hex(scan->bytes[i]))
                                return json_scan_refuse_at(scan, at, "\\u with four hexadecimal digits", why);
                }
                *ret_end = at + 6;
                return 0;
        }
        if (scan->bytes[at + 1] == '\0' || !strchr("\"\\/bfnrt", scan->bytes[at + 1]))
                return json_scan_refuse_at(scan, at, "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u", why);
        *ret_end = at + 2;
        return 0;
}

/* A character that is not ASCII. */
static int skip_character(const struct json_scan *scan, size_t at, size_t *ret_end, struct why *why) {
        uint32_t point;
        size_t n_left = scan->n_bytes - at;
        size_t n = utf8_decode((const char *)scan->bytes + at, n_left, &point);

        if (n == 0 && n_left < 4 && !scan->is_last) /* perhaps only cut */
                return JSON_MORE;
        if (n == 0)
                return why_set(why, -EBADMSG, "byte %ju: the string is not UTF-8", (uintmax_t)(scan->offset + at));
        *ret_end = at + n;
        return 0;
}

/* A string at scan->at, which is a quote. */
static int read_string(struct json_scan *scan, struct json_token *token, struct why *why) {
        size_t at = scan->at + 1;

        token->has_escapes = false;
        for (;;) {
                int r;

                at = find_special(scan->bytes, at, scan->n_bytes);
                if (at == scan->n_bytes)
                        return json_scan_cut(scan, "the closing \" of a string", why);
                if (scan->bytes[at] == '"')
                        break;
                if (scan->bytes[at] < 0x20)
                        return why_set(
                                why, -EBADMSG,
                                "byte %ju: a control character (%u) in a string; it must be written as an escape",
                                (uintmax_t)(scan->offset + at), scan->bytes[at]);
                token->has_escapes |= scan->bytes[at] == '\\';
                r = scan->bytes[at] == '\\' ? skip_escape(scan, at, &at, why) : skip_character(scan, at, &at, why);
                if (r != 0)
                        return r;
        }
        token->bytes = scan->bytes + scan->at;
        token->n_bytes = at + 1 - scan->at;
        scan->at = at + 1;
        return 0;
}

/* ---- numbers and words ----------------------------------------------------------------------------------------- */

static size_t skip_digits(const struct json_scan *scan, size_t at) {
        while (at < scan->n_bytes && scan->bytes[at] >= '0' && scan->bytes[at] <= '9')
                at++;
        return at;
}

static int json_scan_finish(struct json_scan *scan, enum json_kind kind, size_t end, struct json_token *token) {
        token->kind = kind;
        token->has_escapes = false;
        token->bytes = scan->bytes + scan->at;
        token->n_bytes = end - scan->at;
        scan->at = end;
        return 0;
}

/* A word that begins at `at`; the token begins at scan->at. */
static int json_scan_read_word(struct json_scan *scan, size_t at, const char *word, enum json_kind kind,
                               struct json_token *token, struct why *why) {
        size_t n = strlen(word), n_left = scan->n_bytes - at;

        if (memcmp(scan->bytes + at, word, n_left < n ? n_left : n) != 0)
                return json_scan_refuse(scan, "a value", why);
        return n_left < n ? json_scan_cut(scan, word, why) : json_scan_finish(scan, kind, at + n, token);
}

/* Digits of which there must be one, from `at` on. Returns 0 and their end, or as json_next(). */
static int need_digits(const struct json_scan *scan, size_t at, size_t *ret_end, struct why *why) {
        *ret_end = skip_digits(scan, at);
        if (*ret_end > at)
                return 0;
        return at == scan->n_bytes ? json_scan_cut(scan, "a digit", why)
                                   : json_scan_refuse_at(scan, at, "a digit", why);
}

static int json_scan_read_number(struct json_scan *scan, struct json_token *token, struct why *why) {
        enum json_kind kind = JSON_INTEGER;
        size_t begin = scan->at + (scan->bytes[scan->at] == '-'), at;
        int r;

        if (begin < scan->n_bytes && scan->bytes[begin] == 'I')
                return json_scan_read_word(scan, begin, "Infinity", JSON_FLOAT, token, why);
        r = need_digits(scan, begin, &at, why);
        if (r != 0)
                return r;
        if (scan->bytes[begin] == '0' && at > begin + 1)
                return json_scan_refuse_at(scan, begin, "a number without zeros before it", why);
        if (at < scan->n_bytes && scan->bytes[at] == '.') {
                kind = JSON_FLOAT;
                r = need_digits(scan, at + 1, &at, why);
                if (r != 0)
                        return r;
        }
        if (at < scan->n_bytes && (scan->bytes[at] == 'e' || scan->bytes[at] == 'E')) {
                kind = JSON_FLOAT;
                at++;
                if (at < scan->n_bytes && (scan->bytes[at] == '+' || scan->bytes[at] == '-'))
                        at++;
                r = need_digits(scan, at, &at, why);
                if (r != 0)
                        return r;
        }
        if (at - scan->at > JSON_NUMBER_MAX)
                return why_set(why, -E2BIG, "byte %ju: a number of more than %u characters",
                               (uintmax_t)json_scan_offset(scan), JSON_NUMBER_MAX);
        return at == scan->n_bytes && !scan->is_last ? JSON_MORE : json_scan_finish(scan, kind, at, token);
}

/* ---- structure ------------------------------------------------------------------------------------------------- */

static bool is_in_object(const struct json_scan *scan) {
        uint32_t top = scan->depth - 1;

        return scan->objects[top / 64] >> top % 64 & 1;
}

static void after_value(struct json_scan *scan) {
        scan->state = scan->depth == 0 ? WANT_END : WANT_COMMA;
}

static int open_container(struct json_scan *scan, bool is_object, struct json_token *token, struct why *why) {
        uint64_t bit = 1ull << scan->depth % 64;

        if (scan->depth == JSON_DEPTH_MAX)
                return why_set(why, -E2BIG, "byte %ju: more than %u arrays and objects within each other",
                               (uintmax_t)json_scan_offset(scan), JSON_DEPTH_MAX);
        if (is_object)
                scan->objects[scan->depth / 64] |= bit;
        else
                scan->objects[scan->depth / 64] &= ~bit;
        scan->depth++;
        scan->state = is_object ? WANT_FIRST_KEY : WANT_FIRST_VALUE;
        return json_scan_finish(scan, is_object ? JSON_OBJECT : JSON_ARRAY, scan->at + 1, token);
}

static int close_container(struct json_scan *scan, struct json_token *token) {
        bool is_object = is_in_object(scan);

        scan->depth--;
        after_value(scan);
        return json_scan_finish(scan, is_object ? JSON_OBJECT_END : JSON_ARRAY_END, scan->at + 1, token);
}

static int json_scan_read_value(struct json_scan *scan, struct json_token *token, struct why *why) {
        int r;

        switch (scan->bytes[scan->at]) {
        case '{':
        case '[':
                return open_container(scan, scan->bytes[scan->at] == '{', token, why);
        case '"':
                token->kind = JSON_STRING;
                r = read_string(scan, token, why);
                break;
        case 't':
                r = json_scan_read_word(scan, scan->at, "true", JSON_TRUE, token, why);
                break;
        case 'f':
                r = json_scan_read_word(scan, scan->at, "false", JSON_FALSE, token, why);
                break;
        case 'n':
                r = json_scan_read_word(scan, scan->at, "null", JSON_NULL, token, why);
                break;
        case 'N':
                r = json_scan_read_word(scan, scan->at, "NaN", JSON_FLOAT, token, why);
                break;
        case 'I':
                r = json_scan_read_word(scan, scan->at, "Infinity", JSON_FLOAT, token, why);
                break;
        case '-':
        case '0' ... '9':
                r = json_scan_read_number(scan, token, why);
                break;
        default:
                return json_scan_refuse(scan, "a value", why);
        }
        if (r == 0)
                after_value(scan);
        return r;
}

static int json_scan_read_key(struct json_scan *scan, struct json_token *token, struct why *why) {
        int r;

        if (scan->bytes[scan->at] != '"')
                return json_scan_refuse(scan, "the name of a member in quotes", why);
        token->kind = JSON_KEY;
        r = read_string(scan, token, why);
        if (r == 0)
                scan->state = WANT_COLON;
        return r;
}

static void json_scan_skip_blanks(struct json_scan *scan) {
        while (scan->at < scan->n_bytes) {
                uint8_t byte = scan->bytes[scan->at];

                if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t')
                        break;
                scan->at++;
        }
}

static int at_end(struct json_scan *scan, struct json_token *token, struct why *why) {
        if (!scan->is_last)
                return JSON_MORE;
        if (scan->state != WANT_END)
                return json_scan_refuse(scan, scan->depth == 0 ? "a value" : "the rest of an array or object", why);
        return json_scan_finish(scan, JSON_END, scan->at, token);
}

int json_next(struct json_scan *scan, struct json_token *ret_token, struct why *why) {
        for (;;) {
                uint8_t byte;

                json_scan_skip_blanks(scan);
                if (scan->at == scan->n_bytes)
                        return at_end(scan, ret_token, why);
                byte = scan->bytes[scan->at];
                switch (scan->state) {
                case WANT_COMMA:
                        if (byte == (is_in_object(scan) ? '}' : ']'))
                                return close_container(scan, ret_token);
                        if (byte != ',')
                                return json_scan_refuse(scan, is_in_object(scan) ? "\",\" or \"}\"" : "\",\" or \"]\"",
                                                        why);
                        scan->at++;
                        scan->state = is_in_object(scan) ? WANT_KEY : WANT_VALUE;
                        break;
                case WANT_COLON:
                        if (byte != ':')
                                return json_scan_refuse(scan, "\":\"", why);
                        scan->at++;
                        scan->state = WANT_VALUE;
                        break;
                case WANT_FIRST_KEY:
                        if (byte == '}')
                                return close_container(scan, ret_token);
                        return json_scan_read_key(scan, ret_token, why);
                case WANT_KEY:
                        return json_scan_read_key(scan, ret_token, why);
                case WANT_FIRST_VALUE:
                        if (byte == ']')
                                return close_container(scan, ret_token);
                        return json_scan_read_value(scan, ret_token, why);
                case WANT_VALUE:
                        return json_scan_read_value(scan, ret_token, why);
                default:
                        return json_scan_refuse(scan, "the end after the value", why);
                }
        }
}

int json_skip(struct json_scan *scan, uint32_t depth, struct why *why) {
        struct json_token token;

        while (scan->depth > depth) {
                int r = json_next(scan, &token, why);

                if (r != 0)
                        return r;
        }
        return 0;
}

int json_value(struct json_scan *scan, struct json_token *ret_token, struct why *why) {
        int r = json_next(scan, ret_token, why);

        assert(scan->is_last);
        if (r != 0 || (ret_token->kind != JSON_ARRAY && ret_token->kind != JSON_OBJECT))
                return r;
        r = json_skip(scan, scan->depth - 1, why);
        if (r == 0)
                ret_token->n_bytes = (size_t)(scan->bytes + scan->at - ret_token->bytes);
        return r;
}
