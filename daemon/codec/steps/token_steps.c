#include "daemon/codec/steps/token_steps.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"

static const char *const TRUNCATIONS[N_TOKEN_TRUNCATIONS] = { "right", "left", "none" };
static const char *const WINDOWS[N_TOKEN_WINDOWS] = { "first", "random" };
static const char *const BOOLS[] = { "false", "true" };

/* A word of its own, and not in parentheses or quotes. */
const char *token_steps_find(const char *text) {
        unsigned depth = 0;
        bool is_quoted = false;

        for (const char *at = text; *at; at++) {
                if (is_quoted && *at == '\\' && at[1])
                        at++;
                else if (*at == '"')
                        is_quoted = !is_quoted;
                else if (!is_quoted && *at == '(')
                        depth++;
                else if (!is_quoted && *at == ')')
                        depth -= depth > 0;
                else if (!is_quoted && depth == 0 && (at == text || strchr(" \t\r\n", at[-1])) &&
                         word_is(at, word_length(at), "tokens"))
                        return at;
        }
        return NULL;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static size_t token_steps_value_length(const char *text) {
        return strcspn(text, ",) \t\r\n");
}

static int token_steps_refuse_value(const struct step_text *reader, const char *expected) {
        size_t n = token_steps_value_length(reader->at);

        return why_set(reader->why, -EINVAL, "pipeline, column %zu: \"%.*s\" is not allowed here; expected %s",
                       step_text_column(reader, reader->at), word_shown(n), reader->at, expected);
}

static int token_steps_read_number(struct step_text *reader, uint32_t least, uint32_t *ret_number) {
        size_t n = token_steps_value_length(reader->at);
        uint32_t number = 0;
        char expected[64];

        snprintf(expected, sizeof(expected), "a whole number from %u to %u", least, TOKENS_LENGTH_MAX);
        if (n == 0 || n > 8 || strspn(reader->at, "0123456789") < n)
                return token_steps_refuse_value(reader, expected);
        for (size_t i = 0; i < n; i++)
                number = number * 10 + (uint32_t)(reader->at[i] - '0');
        if (number < least || number > TOKENS_LENGTH_MAX)
                return token_steps_refuse_value(reader, expected);
        reader->at += n;
        *ret_number = number;
        return 0;
}

static int token_steps_read_choice(struct step_text *reader, const char *const *names, unsigned n_names,
                                   const char *expected, unsigned *ret_choice) {
        size_t n = token_steps_value_length(reader->at), i = typed_find(reader->at, n, names, n_names);
        struct nearest nearest;

        if (i < n_names) {
                *ret_choice = (unsigned)i;
                reader->at += n;
                return 0;
        }
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: \"%.*s\" is not allowed here%s; expected %s",
                       step_text_column(reader, reader->at), word_shown(n), reader->at,
                       nearest_in(&nearest, reader->at, n, expected), expected);
}

static int read_digest(struct step_text *reader, struct token_steps *steps) {
        size_t n = token_steps_value_length(reader->at);

        if (n != TOKENIZER_DIGEST_MAX - 1 || strspn(reader->at, "0123456789abcdef") < n)
                return token_steps_refuse_value(reader, "the 16 digits of the tokenizer's digest");
        memcpy(steps->digest, reader->at, n);
        reader->at += n;
        return 0;
}

/* ---- arguments ------------------------------------------------------------------------------------------------- */

enum argument {
        MAX_LENGTH,
        TRUNCATION,
        STRIDE,
        WINDOW,
        SPECIAL,
        DIGEST,
        N_ARGUMENTS
};

static const char *const NAMES[N_ARGUMENTS] = { "max_length", "truncation", "stride", "window", "special", "digest" };

static int token_steps_read_value(struct step_text *reader, unsigned idx, struct token_steps *steps) {
        unsigned choice = 0;
        int r;

        switch (idx) {
        case MAX_LENGTH:
                return token_steps_read_number(reader, 1, &steps->max_length);
        case TRUNCATION:
                r = token_steps_read_choice(reader, TRUNCATIONS, N_TOKEN_TRUNCATIONS, "right, left or none", &choice);
                steps->truncation = (enum token_truncation)choice;
                return r;
        case STRIDE:
                return token_steps_read_number(reader, 0, &steps->stride);
        case WINDOW:
                r = token_steps_read_choice(reader, WINDOWS, N_TOKEN_WINDOWS, "first or random", &choice);
                steps->window = (enum token_window)choice;
                return r;
        case SPECIAL:
                r = token_steps_read_choice(reader, BOOLS, 2, "true or false", &choice);
                steps->has_special = choice;
                return r;
        default:
                return read_digest(reader, steps);
        }
}

static int token_steps_refuse_key(const struct step_text *reader, size_t n) {
        static const char KEYS[] = "max_length, truncation, stride, window, special, digest";
        struct nearest nearest;

        return why_set(reader->why, -EINVAL, "pipeline, column %zu: tokens has no argument \"%.*s\"%s; it has %s",
                       step_text_column(reader, reader->at), word_shown(n), reader->at,
                       nearest_in(&nearest, reader->at, n, KEYS), KEYS);
}

static int token_steps_read_argument(struct step_text *reader, struct token_steps *steps, unsigned *seen) {
        size_t n = word_length(reader->at);
        unsigned i = 0;

        while (i < N_ARGUMENTS && !word_is(reader->at, n, NAMES[i]))
                i++;
        if (i == N_ARGUMENTS && n > 0 && reader->at[n] == '=')
                return token_steps_refuse_key(reader, n);
        if (i == N_ARGUMENTS || *seen & 1u << i || reader->at[n] != '=')
                return step_text_refuse_here(reader, "max_length=, truncation=, stride=, window=, special= or digest=, "
                                                     "each at most once");
        *seen |= 1u << i;
        reader->at += n + 1;
        return token_steps_read_value(reader, i, steps);
}

static int token_steps_read_name(struct step_text *reader, struct token_steps *steps) {
        size_t n = token_steps_value_length(reader->at);

        if (!tokenizers_is_name(reader->at, n))
                return step_text_refuse_here(reader,
                                             "the name of a tokenizer: letters, digits, \"_\", \"-\", \".\" and "
                                             "\"/\", no part of which begins with \".\"");
        memcpy(steps->name, reader->at, n);
        steps->column = step_text_column(reader, reader->at);
        reader->at += n;
        return 0;
}

static int token_steps_read_arguments(struct step_text *reader, struct token_steps *steps, unsigned *seen) {
        int r;

        if (*reader->at != '(')
                return step_text_refuse_here(reader, "\"(\" and the name of a tokenizer");
        reader->at++;
        step_text_skip_blanks(reader);
        r = token_steps_read_name(reader, steps);
        while (r == 0) {
                r = step_text_after_argument(reader);
                if (r <= 0)
                        return r;
                r = token_steps_read_argument(reader, steps, seen);
        }
        return r;
}

/* ---- the step -------------------------------------------------------------------------------------------------- */

/* What contradicts each other. */
static int token_steps_check(const struct token_steps *steps, unsigned seen, struct why *why) {
        bool is_whole = steps->truncation == TOKENS_WHOLE;

        if (!is_whole && steps->max_length == 0)
                return why_set(why, -EINVAL,
                               "pipeline: tokens(%s) does not say what becomes of long texts: write max_length=N (a "
                               "longer text loses its end), or truncation=none (every text stays whole)",
                               steps->name);
        if (steps->window == TOKENS_RANDOM && is_whole)
                return why_set(why, -EINVAL, "pipeline: tokens(window=random) needs truncation=right or left");
        if (seen & 1u << STRIDE && steps->window != TOKENS_RANDOM)
                return why_set(why, -EINVAL, "pipeline: tokens(stride=...) is for window=random");
        return 0;
}

static int token_steps_read_to(struct step_text *reader, struct token_steps *steps) {
        static const char *const DTYPES[] = { "int64", "int32" };

        step_text_skip_blanks(reader);
        if (strncmp(reader->at, "to(", 3) == 0) {
                size_t n = token_steps_value_length(reader->at + 3), i = typed_find(reader->at + 3, n, DTYPES, 2);

                if (i < 2 && reader->at[3 + n] == ')') {
                        reader->at += 3 + n + 1;
                        steps->is_int32 = i == 1;
                }
        }
        step_text_skip_blanks(reader);
        return *reader->at
                       ? step_text_refuse_here(reader, "to(int32), to(int64), how samples become a batch, or the end")
                       : 0;
}

int token_steps_parse(const char *text, const char *at, struct token_steps *ret_steps, struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .at = at, .why = why };
        struct token_steps steps = { .has_special = true };
        unsigned seen = 0;
        int r;

        reader.at += word_length(reader.at);
        r = token_steps_read_arguments(&reader, &steps, &seen);
        if (r == 0)
                r = token_steps_read_to(&reader, &steps);
        if (r == 0)
                r = token_steps_check(&steps, seen, why);
        if (r < 0)
                return r;
        *ret_steps = steps;
        return 0;
}

char *token_steps_text(const struct token_steps *steps) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        fprintf(stream, "tokens(%s", steps->name);
        if (steps->max_length > 0)
                fprintf(stream, ", max_length=%u", steps->max_length);
        fprintf(stream, ", truncation=%s", TRUNCATIONS[steps->truncation]);
        if (steps->window == TOKENS_RANDOM)
                fprintf(stream, ", stride=%u, window=random", steps->stride);
        fprintf(stream, ", special=%s, digest=%s)%s", BOOLS[steps->has_special], steps->digest,
                steps->is_int32 ? " to(int32)" : "");
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
