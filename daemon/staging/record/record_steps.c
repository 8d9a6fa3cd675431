#include "daemon/staging/record/record_steps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/step_text.h"

#define STEP_NAMES "resize, jpeg, gpu_jpeg"

/* In the sequence in which they are written. */
enum {
        RESIZE,
        JPEG,
        GPU_JPEG,
        N_STEPS
};

/* A step has one argument, a whole number that must be given, and whose key may be left out; or none. */
struct step_type {
        const char *name, *argument, *example; /* argument NULL: none */
        uint32_t maximum;                      /* the least is 1 */
};

static const struct step_type STEPS[N_STEPS] = {
        [RESIZE] = { "resize", "short", "resize(short=256)", STEPS_SHORT_MAX },
        [JPEG] = { "jpeg", "quality", "jpeg(90)", 100 },
        [GPU_JPEG] = { "gpu_jpeg", NULL, "gpu_jpeg", 0 },
};

static int refuse_word(const struct step_text *text, const char *word, size_t n_word) {
        struct nearest nearest;

        if (n_word == 0)
                return step_text_refuse_here(text, "the name of a step: " STEP_NAMES);
        return why_set(text->why, -EINVAL,
                       "prepare, column %zu: unknown step \"%.*s\"%s; the steps are " STEP_NAMES
                       "; or write convert, or command: and a shell command",
                       step_text_column(text, word), word_shown(n_word), word,
                       nearest_in(&nearest, word, n_word, "resize jpeg gpu_jpeg convert"));
}

static int refuse_missing(const struct step_text *text, const struct step_type *type, const char *word) {
        return why_set(text->why, -EINVAL, "prepare, column %zu: %s needs its %s, as in %s",
                       step_text_column(text, word), type->name, type->argument, type->example);
}

/* Reads the key and "=" if they are there. */
static int record_steps_read_key(struct step_text *text, const struct step_type *type) {
        size_t n_word = word_length(text->at);
        const char *equals = text->at + n_word + strspn(text->at + n_word, " \t");

        if (n_word == 0 || *equals != '=')
                return 0;
        if (!word_is(text->at, n_word, type->argument))
                return why_set(text->why, -EINVAL, "prepare, column %zu: %s has no argument \"%.*s\"; it has %s",
                               step_text_column(text, text->at), type->name, word_shown(n_word), text->at,
                               type->argument);
        text->at = equals + 1;
        step_text_skip_blanks(text);
        return 0;
}

static int record_steps_read_number(struct step_text *text, const struct step_type *type, uint32_t *ret_number) {
        size_t n_digits = strspn(text->at, "0123456789");
        char expected[64];
        uint32_t number = 0;

        snprintf(expected, sizeof(expected), "%s, a whole number from 1 to %u", type->argument, type->maximum);
        if (n_digits == 0)
                return step_text_refuse_here(text, expected);
        for (size_t i = 0; i < n_digits && number <= type->maximum; i++)
                number = number * 10 + (uint32_t)(text->at[i] - '0');
        if (number < 1 || number > type->maximum)
                return why_set(text->why, -EINVAL, "prepare, column %zu: \"%.*s\"; expected %s",
                               step_text_column(text, text->at), word_shown(n_digits), text->at, expected);
        text->at += n_digits;
        *ret_number = number;
        return 0;
}

/* Reads "(short=256)". */
static int record_steps_read_argument(struct step_text *text, const struct step_type *type, const char *word,
                                      uint32_t *ret_number) {
        int r;

        if (*text->at != '(')
                return refuse_missing(text, type, word);
        text->at++;
        step_text_skip_blanks(text);
        if (*text->at == ')')
                return refuse_missing(text, type, word);
        r = record_steps_read_key(text, type);
        if (r == 0)
                r = record_steps_read_number(text, type, ret_number);
        if (r < 0)
                return r;
        step_text_skip_blanks(text);
        if (*text->at != ')')
                return step_text_refuse_here(text, "\")\"");
        text->at++;
        return 0;
}

/* A picture is resized, then encoded, then transcoded, and each once. `given`: what was found so far, 0 for nothing. */
static int record_steps_check_place(const struct step_text *text, unsigned idx, const char *word,
                                    const uint32_t given[N_STEPS]) {
        if (given[idx])
                return why_set(text->why, -EINVAL, "prepare, column %zu: %s is given twice",
                               step_text_column(text, word), STEPS[idx].name);
        for (unsigned later = idx + 1; later < N_STEPS; later++)
                if (given[later])
                        return why_set(text->why, -EINVAL,
                                       "prepare, column %zu: \"%s\" after \"%s\"; the sequence is " STEP_NAMES,
                                       step_text_column(text, word), STEPS[idx].name, STEPS[later].name);
        return 0;
}

static int record_steps_read_step(struct step_text *text, uint32_t given[N_STEPS]) {
        const char *word = text->at;
        size_t n_word = word_length(word);
        unsigned idx = 0;
        int r;

        while (idx < N_STEPS && !word_is(word, n_word, STEPS[idx].name))
                idx++;
        if (idx == N_STEPS)
                return refuse_word(text, word, n_word);
        r = record_steps_check_place(text, idx, word, given);
        if (r < 0)
                return r;
        text->at += n_word;
        given[idx] = 1;
        r = STEPS[idx].argument ? record_steps_read_argument(text, &STEPS[idx], word, &given[idx]) : 0;
        if (r < 0)
                return r;
        if (*text->at && !strchr(" \t\r\n", *text->at))
                return step_text_refuse_here(text, "a blank and the next step, or the end");
        return 0;
}

static bool is_control(char c) {
        return (unsigned char)c < 32 || c == 127;
}

/* What is not about pictures stands alone. */
static int read_conversion(struct step_text *text, struct steps *ret_steps) {
        size_t n_word = word_length(text->at);
        const char *word = text->at, *after = word + n_word + strspn(word + n_word, " \t\r\n");

        if (word_is(word, n_word, "convert")) {
                text->at = after;
                ret_steps->converts = true;
                return *after ? step_text_refuse_here(text, "the end: convert stands alone") : 0;
        }
        if (word_is(word, n_word, "command") && *after == ':') {
                text->at = after + 1;
                step_text_skip_blanks(text);
                ret_steps->command = text->at;
                while (*text->at && !is_control(*text->at))
                        text->at++;
                if (*text->at || text->at == ret_steps->command)
                        return step_text_refuse_here(text, "a shell command in one line");
                return 0;
        }
        return 0;
}

int steps_parse(const char *text, struct steps *ret_steps, struct why *why) {
        struct step_text reader = { .what = "prepare", .text = text, .at = text, .why = why };
        uint32_t given[N_STEPS] = {};
        int r;

        *ret_steps = (struct steps){ 0 };
        step_text_skip_blanks(&reader);
        r = read_conversion(&reader, ret_steps);
        if (r < 0 || ret_steps->converts || ret_steps->command)
                return r;
        while (*reader.at) {
                r = record_steps_read_step(&reader, given);
                if (r < 0)
                        return r;
                step_text_skip_blanks(&reader);
        }
        *ret_steps = (struct steps){
                .packs_only = !given[RESIZE] && !given[JPEG] && !given[GPU_JPEG],
                .short_side = given[RESIZE],
                .quality = given[JPEG] ? given[JPEG] : STEPS_QUALITY_DEFAULT,
                .encodes_all = given[JPEG] > 0,
                .transcodes = given[GPU_JPEG] > 0,
        };
        return 0;
}

int steps_check(const char *steps, struct why *why) {
        struct steps parsed;

        return steps_parse(steps, &parsed, why);
}
