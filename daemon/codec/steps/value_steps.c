#include "daemon/codec/steps/value_steps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json/json_value.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"
#include "proto/layout.h"

enum step {
        STEP_JSON,
        STEP_NPY,
        STEP_TEXT,
        STEP_TO,
        STEP_RAW
};

static const char *const NAMES[] = { "json", "npy", "text", "to", "raw" };

bool value_steps_are(const char *word, size_t n) {
        for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
                if (word_is(word, n, NAMES[i]))
                        return true;
        return false;
}

void value_steps_fini(struct value_steps *steps) {
        free(steps->path);
        *steps = (struct value_steps){ 0 };
}

/* ---- arguments ------------------------------------------------------------------------------------------------- */

/* The text in the parentheses that follow, without blanks around it; they may be left out. A path in JSON may have
 * quotes, and in them anything. */
static int take_arguments(struct step_text *reader, const char **ret_begin, size_t *ret_n) {
        const char *at = reader->at, *begin;
        bool is_quoted = false;

        *ret_begin = at;
        *ret_n = 0;
        if (*at != '(')
                return 0;
        for (begin = ++at; *at && (is_quoted || *at != ')'); at++) {
                if (*at == '"')
                        is_quoted = !is_quoted;
                if (is_quoted && *at == '\\' && at[1])
                        at++;
        }
        if (!*at) {
                reader->at = at;
                return step_text_refuse_here(reader, "\")\"");
        }
        reader->at = at + 1;
        begin += strspn(begin, " \t");
        while (at > begin && (at[-1] == ' ' || at[-1] == '\t'))
                at--;
        *ret_begin = begin;
        *ret_n = (size_t)(at - begin);
        return 0;
}

static int value_steps_refuse_argument(const struct step_text *reader, const char *argument, const char *what) {
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s", step_text_column(reader, argument), what);
}

static int value_steps_read_json(struct step_text *reader, struct value_steps *steps) {
        const char *argument;
        struct why detail;
        size_t n;
        int r = take_arguments(reader, &argument, &n);

        if (r < 0)
                return r;
        steps->path = strndup(argument, n);
        if (!steps->path)
                return why_errno(reader->why, -ENOMEM, "pipeline");
        r = json_path_check(steps->path, &detail);
        return r < 0 ? value_steps_refuse_argument(reader, argument, detail.text) : 0;
}

static int value_steps_read_shape(struct step_text *reader, const char *argument, size_t n, struct value_steps *steps) {
        const char *at = argument, *end = argument + n;

        while (at < end) {
                char *after;
                long long size = strtoll(at, &after, 10);

                if (after == at || after > end || size < -1 || size > INT32_MAX || size == 0 ||
                    (size == -1 && steps->n_dims > 0) || steps->n_dims == SCHEMA_DIMS_MAX)
                        break;
                steps->shape[steps->n_dims++] = size;
                at = after;
                if (at < end && *at++ != ':')
                        break;
        }
        steps->has_shape = true;
        if (at == end && n > 0 && end[-1] != ':')
                return 0;
        return value_steps_refuse_argument(reader, argument,
                                           "expected a shape such as 4, -1 or -1:4; only the first dimension may "
                                           "be -1, which varies");
}

static bool is_of_numbers(uint32_t dtype) {
        return dtype != DLP_DTYPE_BYTES && dtype != DLP_DTYPE_TEXT && dtype != DLP_DTYPE_TEXTS;
}

static int refuse_dtype(const struct step_text *reader, const char *word, size_t n) {
        struct nearest nearest;

        nearest_begin(&nearest, word, n);
        for (uint32_t i = 0; i < DLP_N_DTYPES; i++)
                if (is_of_numbers(i))
                        nearest_offer(&nearest, dlp_dtype_name(i));
        return why_set(reader->why, -EINVAL,
                       "pipeline, column %zu: \"%.*s\"%s; expected a dtype: bool, int8 to int64, uint8 to uint64, "
                       "float16, bfloat16, float32 or float64",
                       step_text_column(reader, word), word_shown(n), word, nearest_hint(&nearest));
}

static int value_steps_read_to(struct step_text *reader, struct value_steps *steps) {
        const char *argument, *comma, *equals;
        size_t n, n_dtype;
        int r = take_arguments(reader, &argument, &n);

        if (r < 0)
                return r;
        comma = memchr(argument, ',', n);
        n_dtype = comma ? (size_t)(comma - argument) : n;
        while (n_dtype > 0 && argument[n_dtype - 1] == ' ')
                n_dtype--;
        for (uint32_t i = 0; i < DLP_N_DTYPES && !steps->has_dtype; i++)
                if (is_of_numbers(i) && typed_is(argument, n_dtype, dlp_dtype_name(i))) {
                        steps->dtype = i;
                        steps->has_dtype = true;
                }
        if (!steps->has_dtype)
                return refuse_dtype(reader, argument, n_dtype);
        if (!comma)
                return 0;
        comma += 1 + strspn(comma + 1, " ");
        equals = memchr(comma, '=', (size_t)(argument + n - comma));
        if (!equals || !word_is(comma, (size_t)(equals - comma), "shape"))
                return value_steps_refuse_argument(reader, comma, "expected shape=...");
        return value_steps_read_shape(reader, equals + 1, (size_t)(argument + n - equals - 1), steps);
}

static int value_steps_read_bare(struct step_text *reader, bool *flag) {
        const char *argument;
        size_t n;
        int r = take_arguments(reader, &argument, &n);

        if (r < 0)
                return r;
        if (n > 0)
                return value_steps_refuse_argument(reader, argument, "this step has no arguments");
        *flag = true;
        return 0;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

/* The steps before it have a smaller number; which of them exclude it? */
static bool may_follow(unsigned step, unsigned n_done, const struct value_steps *steps) {
        if (step < n_done || (step == STEP_RAW && n_done > 0) || (step == STEP_TO && steps->is_text))
                return false;
        return !(step == STEP_NPY && steps->path) && !(step == STEP_TEXT && steps->is_npy);
}

/* Which step it is; the steps before it must have a smaller number. */
static int value_steps_read_step(struct step_text *reader, struct value_steps *steps, unsigned *n_done) {
        size_t n = word_length(reader->at);
        const char *word = reader->at;
        struct nearest nearest;
        unsigned i = 0;

        while (i < ARRAY_SIZE(NAMES) && !word_is(word, n, NAMES[i]))
                i++;
        if (i == ARRAY_SIZE(NAMES))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: this field has no step \"%.*s\"%s; expected json(PATH), npy, "
                               "text, to(DTYPE) or raw",
                               step_text_column(reader, word), word_shown(n), word,
                               nearest_in(&nearest, word, n, "json npy text to raw"));
        if (!may_follow(i, *n_done, steps))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: %s cannot follow here; the sequence is json(PATH) or npy, then "
                               "text or to(DTYPE); raw stands alone, text does not follow npy",
                               step_text_column(reader, word), NAMES[i]);
        *n_done = i + 1;
        reader->at += n;
        switch (i) {
        case STEP_JSON:
                return value_steps_read_json(reader, steps);
        case STEP_NPY:
                return value_steps_read_bare(reader, &steps->is_npy);
        case STEP_TEXT:
                return value_steps_read_bare(reader, &steps->is_text);
        case STEP_TO:
                return value_steps_read_to(reader, steps);
        default:
                return value_steps_read_bare(reader, &steps->is_raw);
        }
}

int value_steps_parse(const char *text, struct value_steps *ret_steps, struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .at = text, .why = why };
        struct value_steps steps = { 0 };
        unsigned n_done = 0;
        int r;

        step_text_skip_blanks(&reader);
        do {
                r = value_steps_read_step(&reader, &steps, &n_done);
                step_text_skip_blanks(&reader);
        } while (r == 0 && *reader.at);
        if (r < 0)
                value_steps_fini(&steps);
        else
                *ret_steps = steps;
        return r;
}

char *value_steps_text(const struct value_steps *steps) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        if (steps->path)
                fprintf(stream, "json(%s)%s", steps->path, steps->is_text || steps->has_dtype ? " " : "");
        if (steps->is_npy)
                fprintf(stream, "npy%s", steps->has_dtype ? " " : "");
        if (steps->is_text)
                fputs("text", stream);
        if (steps->is_raw)
                fputs("raw", stream);
        if (steps->has_dtype) {
                fprintf(stream, "to(%s", dlp_dtype_name(steps->dtype));
                for (uint32_t i = 0; i < steps->n_dims; i++)
                        fprintf(stream, "%s%lld", i ? ":" : ", shape=", (long long)steps->shape[i]);
                fputs(")", stream);
        }
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
