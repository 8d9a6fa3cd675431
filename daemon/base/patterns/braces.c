#include "daemon/base/patterns/braces.h"

/* A text with braces is the text before the first brace, the alternatives of that brace, and the rest. Each
 * alternative, put in place of the brace, gives a text with one brace fewer to expand. So the recursion ends, and needs
 * no more levels than there are braces. */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"

struct expansion {
        const char *pattern; /* the whole pattern, for messages */
        struct braces_sink *sink;
        struct why *why;
};

/* One brace of a text: its position, and what stands in it. */
struct brace {
        const char *begin, *end; /* of "{...}"; `end` is after the closing brace */
        bool is_list;            /* it has a comma that is not inside an inner brace */
};

struct brace_range {
        uint64_t first, last, step;
        unsigned n_digits; /* minimum; 0: as many as needed */
        bool is_letters;   /* the values are letters, of one case */
};

static int braces_refuse(const struct expansion *expansion, int error, const char *what) {
        return why_set(expansion->why, error, "%s: %s", expansion->pattern, what);
}

static int expand(struct expansion *expansion, const char *text);

/* Finds the first brace of a text. Returns false if no brace closes. */
static bool find_brace(const char *text, struct brace *ret_brace) {
        struct brace brace = { .begin = strchr(text, '{') };
        unsigned depth = 0;

        for (const char *at = brace.begin; *at; at++) {
                depth += *at == '{';
                brace.is_list |= *at == ',' && depth == 1;
                if (*at == '}' && --depth == 0) {
                        brace.end = at + 1;
                        *ret_brace = brace;
                        return true;
                }
        }
        return false;
}

/* Expands the text with `insert` in place of the brace. */
static int expand_with(struct expansion *expansion, const char *text, const struct brace *brace, const char *insert,
                       size_t n_insert) {
        size_t n_before = (size_t)(brace->begin - text), n_after = strlen(brace->end);
        _cleanup_(freep) char *next = malloc(n_before + n_insert + n_after + 1);

        if (!next)
                return braces_refuse(expansion, -ENOMEM, "no memory for the names that it stands for");
        memcpy(next, text, n_before);
        memcpy(next + n_before, insert, n_insert);
        memcpy(next + n_before + n_insert, brace->end, n_after + 1);
        return expand(expansion, next);
}

/* ---- lists ----------------------------------------------------------------------------------------------------- */

static int expand_list(struct expansion *expansion, const char *text, const struct brace *brace) {
        const char *begin = brace->begin + 1;
        unsigned depth = 0;
        int r = 0;

        for (const char *at = begin; at < brace->end && r == 0; at++) {
                bool is_end = at + 1 == brace->end;

                if (is_end || (*at == ',' && depth == 0)) {
                        r = expand_with(expansion, text, brace, begin, (size_t)(at - begin));
                        begin = at + 1;
                }
                depth += *at == '{';
                depth -= *at == '}' && !is_end;
        }
        return r;
}

/* ---- ranges ---------------------------------------------------------------------------------------------------- */

/* Reads decimal digits up to the end of the text or to "..": at most 18, so that nothing overflows. Returns NULL if
 * there are none. */
static const char *braces_read_number(const char *at, uint64_t *ret_number, unsigned *n_digits) {
        unsigned n = 0;
        bool has_zero = at[0] == '0' && at[1] >= '0' && at[1] <= '9';

        *ret_number = 0;
        while (at[n] >= '0' && at[n] <= '9' && n < 18)
                *ret_number = *ret_number * 10 + (uint64_t)(at[n++] - '0');
        if (has_zero && n > *n_digits)
                *n_digits = n;
        return n > 0 ? at + n : NULL;
}

static const char *skip_dots(const char *at) {
        return at && at[0] == '.' && at[1] == '.' ? at + 2 : NULL;
}

/* "..10}" or "}", after the ends of a range. */
static bool braces_read_step(const char *at, struct brace_range *range) {
        unsigned n_digits = 0;

        range->step = 1;
        if (at && *at == '.') {
                at = skip_dots(at);
                at = at ? braces_read_number(at, &range->step, &n_digits) : NULL;
        }
        return at && *at == '}' && range->step > 0;
}

static bool is_letter(char c, char first, char last) {
        return c >= first && c <= last;
}

/* "a..f", "A..Z..2". */
static bool read_letters(const char *at, struct brace_range *ret_range) {
        struct brace_range range = { .is_letters = true };
        const char *dots = at[0] ? skip_dots(at + 1) : NULL;

        if (!dots || !((is_letter(at[0], 'a', 'z') && is_letter(dots[0], 'a', 'z')) ||
                       (is_letter(at[0], 'A', 'Z') && is_letter(dots[0], 'A', 'Z'))))
                return false;
        range.first = (uint64_t)at[0];
        range.last = (uint64_t)dots[0];
        if (!braces_read_step(dots + 1, &range))
                return false;
        *ret_range = range;
        return true;
}

/* "0..9", "000..127", "0..90..10". If either end begins with a zero, the longer end gives the number of digits. */
static bool braces_read_range(const char *at, struct brace_range *ret_range) {
        struct brace_range range = { .n_digits = 0 };
        const char *first = at, *last;
        size_t n_first, n_last;

        at = braces_read_number(at, &range.first, &range.n_digits);
        n_first = at ? (size_t)(at - first) : 0;
        last = at = skip_dots(at);
        if (at)
                at = braces_read_number(at, &range.last, &range.n_digits);
        n_last = at ? (size_t)(at - last) : 0;
        if (range.n_digits > 0)
                range.n_digits = (unsigned)(n_first > n_last ? n_first : n_last);
        if (!braces_read_step(at, &range))
                return false;
        *ret_range = range;
        return true;
}

static int expand_range(struct expansion *expansion, const char *text, const struct brace *brace,
                        const struct brace_range *range) {
        bool is_up = range->first <= range->last;
        uint64_t n = (is_up ? range->last - range->first : range->first - range->last) / range->step + 1;
        int r = 0;

        for (uint64_t i = 0; i < n && r == 0; i++) {
                uint64_t value = is_up ? range->first + i * range->step : range->first - i * range->step;
                char digits[32];
                int n_bytes = range->is_letters
                                      ? snprintf(digits, sizeof(digits), "%c", (int)value)
                                      : snprintf(digits, sizeof(digits), "%0*" PRIu64, (int)range->n_digits, value);

                r = expand_with(expansion, text, brace, digits, (size_t)n_bytes);
        }
        return r;
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

static int braces_give(struct expansion *expansion, const char *text) {
        struct braces_sink *sink = expansion->sink;
        size_t n = strlen(text) + 1;

        if (sink->n_texts == BRACES_TEXTS_MAX || sink->n_bytes > BRACES_BYTES_MAX - n)
                return why_set(expansion->why, -E2BIG,
                               "%s: it stands for more than %u names, or for names of more than %llu MiB; write a "
                               "smaller range",
                               expansion->pattern, BRACES_TEXTS_MAX, BRACES_BYTES_MAX >> 20);
        if (sink->give(sink->userdata, text, n) < 0)
                return braces_refuse(expansion, -ENOMEM, "no memory for the names that it stands for");
        sink->n_texts++;
        sink->n_bytes += n;
        return 0;
}

static int expand(struct expansion *expansion, const char *text) {
        struct brace brace = { 0 };
        struct brace_range range;

        if (!strchr(text, '{'))
                return braces_give(expansion, text);
        if (!find_brace(text, &brace)) /* cannot happen: check_balance() has passed */
                return braces_refuse(expansion, -EINVAL, "a brace that is not closed");
        if (brace.is_list)
                return expand_list(expansion, text, &brace);
        if (braces_read_range(brace.begin + 1, &range) || read_letters(brace.begin + 1, &range))
                return expand_range(expansion, text, &brace, &range);
        return why_set(
                expansion->why, -EINVAL,
                "%s: \"%.*s\" is neither a list such as {a,b} nor a range such as {000..127}, {0..90..10} or {a..f}",
                expansion->pattern, (int)(brace.end - brace.begin < 60 ? brace.end - brace.begin : 60), brace.begin);
}

static int check_balance(const struct expansion *expansion) {
        unsigned depth = 0, n = 0;

        for (const char *at = expansion->pattern; *at; at++) {
                if (*at == '{' && ++n > BRACES_NESTED_MAX)
                        return why_set(expansion->why, -E2BIG, "%s: more than %u braces", expansion->pattern,
                                       BRACES_NESTED_MAX);
                depth += *at == '{';
                if (*at == '}' && depth-- == 0)
                        return why_set(expansion->why, -EINVAL, "%s: the brace at character %zu closes nothing",
                                       expansion->pattern, (size_t)(at - expansion->pattern) + 1);
        }
        return depth == 0 ? 0 : braces_refuse(expansion, -EINVAL, "a brace is not closed");
}

int braces_expand(const char *pattern, struct braces_sink *sink, struct why *why) {
        struct expansion expansion = { .pattern = pattern, .sink = sink, .why = why };
        int r = check_balance(&expansion);

        return r == 0 ? expand(&expansion, pattern) : r;
}
