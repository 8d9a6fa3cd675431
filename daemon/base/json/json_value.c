#include "daemon/base/json/json_value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json/decimal.h"
#include "proto/base/cleanup.h"

static int refuse_kind(const struct json_token *token, const char *expected, struct why *why) {
        return why_set(why, -EINVAL, "\"%.*s\" where %s was expected", token->n_bytes > 32 ? 32 : (int)token->n_bytes,
                       (const char *)token->bytes, expected);
}

/* The one token of a text that holds nothing else. */
static int json_value_read_one(const void *bytes, size_t n_bytes, struct json_token *ret_token, struct why *why) {
        struct json_scan scan;
        struct json_token end;
        int r;

        json_scan_init(&scan, bytes, n_bytes);
        r = json_value(&scan, ret_token, why);
        return r < 0 ? r : json_next(&scan, &end, why);
}

/* ---- strings --------------------------------------------------------------------------------------------------- */

static uint32_t hex4(const uint8_t *at) {
        uint32_t value = 0;

        for (int i = 0; i < 4; i++)
                value = value << 4 | (at[i] <= '9' ? at[i] - (uint32_t)'0' : (at[i] | 0x20u) - 'a' + 10u);
        return value;
}

static size_t put_utf8(uint32_t point, uint8_t into[4]) {
        if (point < 0x80) {
                into[0] = (uint8_t)point;
                return 1;
        }
        if (point < 0x800) {
                into[0] = (uint8_t)(0xc0 | point >> 6);
                into[1] = (uint8_t)(0x80 | (point & 0x3f));
                return 2;
        }
        if (point < 0x10000) {
                into[0] = (uint8_t)(0xe0 | point >> 12);
                into[1] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
                into[2] = (uint8_t)(0x80 | (point & 0x3f));
                return 3;
        }
        into[0] = (uint8_t)(0xf0 | point >> 18);
        into[1] = (uint8_t)(0x80 | (point >> 12 & 0x3f));
        into[2] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        into[3] = (uint8_t)(0x80 | (point & 0x3f));
        return 4;
}

/* The character of an escape at `at`, in a string that was scanned. Returns the escape's length; 0: half of a pair. */
static size_t json_value_unescape(const uint8_t *at, const uint8_t *end, uint8_t into[4], size_t *ret_n) {
        static const char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";
        uint32_t point, low;

        if (at[1] != 'u') {
                into[0] = (uint8_t)TO[strchr(FROM, at[1]) - FROM];
                *ret_n = 1;
                return 2;
        }
        point = hex4(at + 2);
        if (point < 0xd800 || point > 0xdfff) {
                *ret_n = put_utf8(point, into);
                return 6;
        }
        if (point > 0xdbff || end - at < 12 || at[6] != '\\' || at[7] != 'u')
                return 0;
        low = hex4(at + 8);
        if (low < 0xdc00 || low > 0xdfff)
                return 0;
        *ret_n = put_utf8(0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00), into);
        return 12;
}

/* Unescapes the inside of a string that was scanned. */
static int unescape_all(const struct json_token *token, uint8_t *into, size_t *ret_n, struct why *why) {
        const uint8_t *at = token->bytes + 1, *end = token->bytes + token->n_bytes - 1;
        size_t n = 0;

        while (at < end) {
                const uint8_t *escape = memchr(at, '\\', (size_t)(end - at));
                size_t n_plain = (size_t)((escape ? escape : end) - at), n_escape, n_one = 0;
                uint8_t one[4];

                if (into)
                        memcpy(into + n, at, n_plain);
                n += n_plain;
                if (!escape)
                        break;
                n_escape = json_value_unescape(escape, end, one, &n_one);
                if (n_escape == 0)
                        return why_set(why, -EILSEQ,
                                       "the escape %.6s is half of a surrogate pair, not a character; write the text "
                                       "without it",
                                       (const char *)escape);
                if (into)
                        memcpy(into + n, one, n_one);
                n += n_one;
                at = escape + n_escape;
        }
        *ret_n = n;
        return 0;
}

int json_string_read(const void *bytes, size_t n_bytes, uint8_t *into, size_t *ret_n, struct why *why) {
        struct json_token token;
        int r = json_value_read_one(bytes, n_bytes, &token, why);

        if (r < 0)
                return r;
        if (token.kind != JSON_STRING)
                return refuse_kind(&token, "a string", why);
        return unescape_all(&token, into, ret_n, why);
}

bool json_string_is(const struct json_token *token, const char *text, size_t n) {
        const uint8_t *at = token->bytes + 1, *end = token->bytes + token->n_bytes - 1;

        if (!token->has_escapes)
                return token->n_bytes == n + 2 && memcmp(at, text, n) == 0;
        while (at < end) {
                size_t n_escape = 1, n_one = 1;
                uint8_t one[4] = { *at };

                if (*at == '\\')
                        n_escape = json_value_unescape(at, end, one, &n_one);
                if (n_escape == 0 || n < n_one || memcmp(one, text, n_one) != 0)
                        return false;
                at += n_escape;
                text += n_one;
                n -= n_one;
        }
        return n == 0;
}

/* ---- paths ----------------------------------------------------------------------------------------------------- */

/* One step of a path: a member, or an element. */
struct path_step {
        bool is_element;
        uint64_t element;
        const char *name;
        size_t n_name;
};

static bool json_value_take_element(const char **at, struct path_step *step) {
        const char *digit = *at;
        uint64_t number = 0;

        for (; *digit >= '0' && *digit <= '9'; digit++)
                if (__builtin_mul_overflow(number, 10u, &number) ||
                    __builtin_add_overflow(number, (uint64_t)(*digit - '0'), &number))
                        return false;
        if (digit == *at || *digit != ']')
                return false;
        *step = (struct path_step){ .is_element = true, .element = number };
        *at = digit + 1;
        return true;
}

/* Takes the next step from the front of the path. False: it is wrong there. */
static bool take_step(const char **at, bool is_first, struct path_step *step) {
        const char *end;

        if ((*at)[0] == '[' && (*at)[1] == '"') {
                *at += 2;
                end = strstr(*at, "\"]");
                if (!end || (size_t)(end - *at) > JSON_NAME_MAX)
                        return false;
                *step = (struct path_step){ .name = *at, .n_name = (size_t)(end - *at) };
                *at = end + 2;
                return true;
        }
        if (**at == '[') {
                (*at)++;
                return json_value_take_element(at, step);
        }
        if (!is_first && *(*at)++ != '.')
                return false;
        *step = (struct path_step){ .name = *at, .n_name = strcspn(*at, ".[") };
        *at += step->n_name;
        return step->n_name > 0 && step->n_name <= JSON_NAME_MAX;
}

int json_path_check(const char *path, struct why *why) {
        struct path_step step;
        const char *at = path;

        while (*at) {
                const char *before = at;

                if (!take_step(&at, before == path, &step))
                        return why_set(why, -EINVAL,
                                       "\"%s\" is not the path of a member, at \"%.30s\"; a path is written like "
                                       "a.b[3].c or [\"name with . in it\"]",
                                       path, before);
        }
        return 0;
}

/* The value of the last member of this name, or of this element. */
static int find_step(const struct json_token *container, const struct path_step *step, struct json_token *ret_value,
                     struct why *why) {
        struct json_token token, found = { .bytes = NULL };
        struct json_scan scan;
        uint64_t element = 0;
        int r;

        if (container->kind != (step->is_element ? JSON_ARRAY : JSON_OBJECT))
                return JSON_ABSENT;
        json_scan_init(&scan, container->bytes, container->n_bytes);
        r = json_next(&scan, &token, why);
        while (r == 0) {
                bool is_it;

                if (!step->is_element) {
                        r = json_next(&scan, &token, why);
                        if (r < 0 || token.kind == JSON_OBJECT_END)
                                break;
                        is_it = json_string_is(&token, step->name, step->n_name);
                } else {
                        is_it = element++ == step->element;
                }
                r = json_value(&scan, &token, why);
                if (r == 0 && token.kind == JSON_ARRAY_END)
                        break;
                if (r == 0 && is_it)
                        found = token;
        }
        if (r == 0 && found.bytes)
                *ret_value = found;
        return r < 0 ? r : found.bytes ? 0 : JSON_ABSENT;
}

int json_find(const void *bytes, size_t n_bytes, const char *path, struct json_token *ret_value, struct why *why) {
        struct json_token value;
        const char *at = path;
        int r = json_value_read_one(bytes, n_bytes, &value, why);

        while (r == 0 && *at) {
                struct path_step step;

                if (!take_step(&at, at == path, &step))
                        return json_path_check(path, why);
                r = find_step(&value, &step, &value, why);
        }
        if (r == 0)
                *ret_value = value;
        return r;
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

static int integer_of(const struct json_token *token, int64_t *ret_number, struct why *why) {
        bool is_negative = token->bytes[0] == '-';
        int64_t number = 0;

        if (token->kind != JSON_INTEGER)
                return refuse_kind(token, "a whole number", why);
        for (size_t i = is_negative; i < token->n_bytes; i++) {
                int digit = token->bytes[i] - '0';

                if (__builtin_mul_overflow(number, 10, &number) ||
                    __builtin_add_overflow(number, is_negative ? -digit : digit, &number))
                        return why_set(why, -ERANGE, "the number %.*s%s does not fit 64 bits with a sign",
                                       token->n_bytes > 40 ? 40 : (int)token->n_bytes, (const char *)token->bytes,
                                       token->n_bytes > 40 ? "..." : "");
        }
        *ret_number = number;
        return 0;
}

static int refuse_infinite(const struct json_token *token, struct why *why) {
        bool is_word = token->bytes[token->n_bytes - 1] > '9';

        return why_set(why, -ERANGE, is_word ? "%.*s%s is not a finite number" : "the number %.*s%s exceeds float64",
                       token->n_bytes > 40 ? 40 : (int)token->n_bytes, (const char *)token->bytes,
                       token->n_bytes > 40 ? "..." : "");
}

static int json_value_float_of(const struct json_token *token, double *ret_number, struct why *why) {
        char text[JSON_NUMBER_MAX + 1];
        double number;

        if (token->kind != JSON_FLOAT && token->kind != JSON_INTEGER)
                return refuse_kind(token, "a number", why);
        if (decimal_read(token->bytes, token->n_bytes, ret_number))
                return 0;
        memcpy(text, token->bytes, token->n_bytes);
        text[token->n_bytes] = '\0';
        number = strtod(text, NULL); /* no locale is ever set */
        if (!isfinite(number))
                return refuse_infinite(token, why);
        *ret_number = number;
        return 0;
}

int json_integer_read(const void *bytes, size_t n_bytes, int64_t *ret_number, struct why *why) {
        struct json_token token;
        int r = json_value_read_one(bytes, n_bytes, &token, why);

        return r < 0 ? r : integer_of(&token, ret_number, why);
}

int json_unsigned_read(const void *bytes, size_t n_bytes, uint64_t *ret_number, struct why *why) {
        struct json_token token;
        uint64_t number = 0;
        int r = json_value_read_one(bytes, n_bytes, &token, why);

        if (r < 0)
                return r;
        if (token.kind != JSON_INTEGER)
                return refuse_kind(&token, "a whole number", why);
        for (size_t i = 0; i < token.n_bytes; i++)
                if (token.bytes[i] == '-' || __builtin_mul_overflow(number, 10u, &number) ||
                    __builtin_add_overflow(number, (uint64_t)(token.bytes[i] - '0'), &number))
                        return why_set(why, -ERANGE, "the number %.*s%s does not fit 64 bits",
                                       token.n_bytes > 40 ? 40 : (int)token.n_bytes, (const char *)token.bytes,
                                       token.n_bytes > 40 ? "..." : "");
        *ret_number = number;
        return 0;
}

int json_float_read(const void *bytes, size_t n_bytes, double *ret_number, struct why *why) {
        struct json_token token;
        int r = json_value_read_one(bytes, n_bytes, &token, why);

        return r < 0 ? r : json_value_float_of(&token, ret_number, why);
}

/* ---- arrays of numbers ----------------------------------------------------------------------------------------- */

struct measuring {
        struct json_numbers numbers;
        uint64_t counts[JSON_DIMS_MAX]; /* elements so far of the array that is open in each dimension */
        bool has_shape[JSON_DIMS_MAX];  /* an array of this dimension was closed */
        bool has_huge, has_floats, has_integers, has_booleans;
};

static int json_value_refuse_rows(struct why *why) {
        return why_set(why, -EINVAL, "the rows of this array differ in length or depth");
}

/* Can the number be one that json_value_float_of() refuses? Most cannot, and need not be converted to know it. */
static bool may_be_infinite(const struct json_token *token) {
        if (token->n_bytes > 300 || token->bytes[token->n_bytes - 1] > '9')
                return true;
        for (size_t i = token->n_bytes; i-- > 0 && token->bytes[i] != '.';)
                if (token->bytes[i] == 'e' || token->bytes[i] == 'E')
                        return true;
        return false;
}

static int measure_element(struct measuring *measuring, const struct json_token *token, uint32_t depth,
                           struct why *why) {
        int64_t number;
        double real;

        if (measuring->numbers.n == 0)
                measuring->numbers.n_dims = depth > measuring->numbers.n_dims ? depth : measuring->numbers.n_dims;
        if (depth != measuring->numbers.n_dims)
                return json_value_refuse_rows(why);
        switch (token->kind) {
        case JSON_TRUE:
        case JSON_FALSE:
                measuring->has_booleans = true;
                break;
        case JSON_FLOAT:
                measuring->has_floats = true;
                break;
        case JSON_INTEGER:
                measuring->has_integers = true;
                if (token->n_bytes > 18 && integer_of(token, &number, NULL) < 0)
                        measuring->has_huge = true;
                break;
        default:
                return refuse_kind(token, "a number", why);
        }
        measuring->numbers.n++;
        if ((token->kind != JSON_FLOAT && token->kind != JSON_INTEGER) || !may_be_infinite(token))
                return 0;
        return json_value_float_of(token, &real, why);
}

static int measure_open(struct measuring *measuring, uint32_t depth, struct why *why) {
        if (depth > JSON_DIMS_MAX)
                return why_set(why, -EINVAL, "an array of more than %u dimensions", JSON_DIMS_MAX);
        if (measuring->numbers.n == 0 && depth > measuring->numbers.n_dims)
                measuring->numbers.n_dims = depth;
        if (depth > measuring->numbers.n_dims)
                return json_value_refuse_rows(why);
        measuring->counts[depth - 1] = 0;
        return 0;
}

/* An array that lay at dimension `dim` ends. */
static int measure_close(struct measuring *measuring, uint32_t dim, struct why *why) {
        if (measuring->has_shape[dim] && measuring->numbers.shape[dim] != measuring->counts[dim])
                return json_value_refuse_rows(why);
        measuring->has_shape[dim] = true;
        measuring->numbers.shape[dim] = measuring->counts[dim];
        return 0;
}

static int measure_token(struct measuring *measuring, const struct json_token *token, uint32_t depth, struct why *why) {
        int r;

        if (token->kind == JSON_ARRAY_END) {
                r = measure_close(measuring, depth, why);
        } else if (token->kind == JSON_ARRAY) {
                r = measure_open(measuring, depth, why);
                depth--;
        } else {
                r = measure_element(measuring, token, depth, why);
        }
        if (r == 0 && depth > 0)
                measuring->counts[depth - 1] += token->kind != JSON_ARRAY_END;
        return r;
}

static int finish_measuring(struct measuring *measuring, struct json_numbers *ret_numbers, struct why *why) {
        if (measuring->has_booleans && (measuring->has_integers || measuring->has_floats))
                return why_set(why, -EINVAL, "an array of numbers and of true or false");
        if (measuring->has_huge && !measuring->has_floats)
                return why_set(why, -ERANGE, "a whole number that does not fit 64 bits with a sign");
        measuring->numbers.kind = measuring->has_booleans ? JSON_TRUE
                                  : measuring->has_floats ? JSON_FLOAT
                                                          : JSON_INTEGER;
        *ret_numbers = measuring->numbers;
        return 0;
}

int json_numbers_measure(const void *bytes, size_t n_bytes, struct json_numbers *ret_numbers, struct why *why) {
        struct measuring measuring = { .numbers.n_dims = 0 };
        struct json_scan scan;

        json_scan_init(&scan, bytes, n_bytes);
        for (;;) {
                struct json_token token;
                int r = json_next(&scan, &token, why);

                if (r < 0)
                        return r;
                if (token.kind == JSON_END)
                        return finish_measuring(&measuring, ret_numbers, why);
                r = measure_token(&measuring, &token, scan.depth, why);
                if (r < 0)
                        return r;
        }
}

static int json_value_read_element(const struct json_token *token, bool is_float, uint8_t *into, struct why *why) {
        bool is_boolean = token->kind == JSON_TRUE || token->kind == JSON_FALSE;
        int64_t integer = token->kind == JSON_TRUE;
        double number = (double)integer;
        int r = 0;

        if (!is_boolean)
                r = is_float ? json_value_float_of(token, &number, why) : integer_of(token, &integer, why);
        if (r < 0)
                return r;
        if (is_float)
                memcpy(into, &number, sizeof(number));
        else
                memcpy(into, &integer, sizeof(integer));
        return 0;
}

int json_numbers_read(const void *bytes, size_t n_bytes, bool is_float, void *into, uint64_t n, struct why *why) {
        struct json_scan scan;
        uint64_t n_read = 0;

        json_scan_init(&scan, bytes, n_bytes);
        for (;;) {
                struct json_token token;
                int r = json_next(&scan, &token, why);

                if (r < 0)
                        return r;
                if (token.kind == JSON_END)
                        break;
                if (token.kind == JSON_ARRAY || token.kind == JSON_ARRAY_END)
                        continue;
                if (n_read == n)
                        return why_set(why, -EINVAL, "more than %ju numbers", (uintmax_t)n);
                r = json_value_read_element(&token, is_float, (uint8_t *)into + 8 * n_read++, why);
                if (r < 0)
                        return r;
        }
        if (n_read < n)
                return why_set(why, -EINVAL, "%ju numbers where %ju were expected", (uintmax_t)n_read, (uintmax_t)n);
        return 0;
}
