#include "daemon/codec/steps/own_step.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"

#define NAME    "python"
#define EXAMPLE NAME "(my) or " NAME "(my, dtype=float32, shape=3:224:224)"

/* What a function can be given and can deliver. */
static const enum dlp_dtype DTYPES[] = { DLP_DTYPE_UINT8,   DLP_DTYPE_INT32,   DLP_DTYPE_INT64,  DLP_DTYPE_FLOAT16,
                                         DLP_DTYPE_FLOAT32, DLP_DTYPE_FLOAT64, DLP_DTYPE_BOOL,   DLP_DTYPE_INT8,
                                         DLP_DTYPE_INT16,   DLP_DTYPE_UINT16,  DLP_DTYPE_UINT32, DLP_DTYPE_UINT64,
                                         DLP_DTYPE_BFLOAT16 };

/* ---- the text -------------------------------------------------------------------------------------------------- */

static int expect(struct step_text *reader, char wanted, const char *expected) {
        if (*reader->at != wanted)
                return step_text_refuse_here(reader, expected);
        reader->at++;
        step_text_skip_blanks(reader);
        return 0;
}

static int read_function(struct step_text *reader, struct own_step *step) {
        size_t n = word_length(reader->at);

        if (n == 0 || isdigit((unsigned char)*reader->at))
                return step_text_refuse_here(reader, "the name of a function, as in " EXAMPLE);
        if (n >= sizeof(step->function))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: the name of a function has at most %zu characters",
                               step_text_column(reader, reader->at), sizeof(step->function) - 1);
        memcpy(step->function, reader->at, n);
        step->function[n] = '\0';
        reader->at += n;
        return 0;
}

static int read_dtype(struct step_text *reader, struct own_step *step) {
        size_t n = strcspn(reader->at, ",) \t\r\n");

        for (size_t i = 0; i < ARRAY_SIZE(DTYPES); i++)
                if (typed_is(reader->at, n, dlp_dtype_name(DTYPES[i]))) {
                        step->dtype = DTYPES[i];
                        step->has_dtype = true;
                        reader->at += n;
                        return 0;
                }
        return step_text_refuse_here(reader, "a dtype: uint8, float32, int64, ...");
}

static int read_shape(struct step_text *reader, struct own_step *step) {
        for (;;) {
                unsigned long n;
                char *after;

                if (!isdigit((unsigned char)*reader->at))
                        return step_text_refuse_here(reader, "the elements of a dimension, as in shape=3:224:224");
                errno = 0;
                n = strtoul(reader->at, &after, 10);
                if (errno != 0 || n > INT32_MAX || step->n_dims == FIELD_DIMS_MAX)
                        return why_set(reader->why, -EINVAL,
                                       "pipeline, column %zu: " NAME ": up to %u dimensions of up to %d elements are "
                                       "allowed",
                                       step_text_column(reader, reader->at), FIELD_DIMS_MAX, INT32_MAX);
                step->shape[step->n_dims++] = (int64_t)n;
                reader->at = after;
                if (*reader->at != ':')
                        break;
                reader->at++;
        }
        step->has_shape = true;
        return 0;
}

static int read_option(struct step_text *reader, struct own_step *step) {
        const char *word = reader->at;
        size_t n = word_length(word);
        bool is_dtype = word_is(word, n, "dtype") && !step->has_dtype;
        bool is_shape = word_is(word, n, "shape") && !step->has_shape;
        int r;

        if (!is_dtype && !is_shape)
                return step_text_refuse_here(reader, "dtype= or shape=, each once, as in " EXAMPLE);
        reader->at += n;
        step_text_skip_blanks(reader);
        r = expect(reader, '=', "\"=\" and a value");
        if (r < 0)
                return r;
        return is_dtype ? read_dtype(reader, step) : read_shape(reader, step);
}

static int read_arguments(struct step_text *reader, struct own_step *step) {
        int r;

        step_text_skip_blanks(reader);
        r = expect(reader, '(', "\"(\" and the name of a function, as in " EXAMPLE);
        if (r == 0)
                r = read_function(reader, step);
        for (;;) {
                if (r < 0)
                        return r;
                step_text_skip_blanks(reader);
                if (*reader->at != ',')
                        return expect(reader, ')', "\",\" or \")\"");
                reader->at++;
                step_text_skip_blanks(reader);
                r = read_option(reader, step);
        }
}

static int refuse_more(const struct step_text *reader, size_t at, size_t end) {
        struct step_word word;

        if (!step_text_next_word(reader->text, at, end, &word))
                return step_text_refuse_here(reader, "the end: the step before is the last one of its part");
        return why_set(reader->why, -EINVAL,
                       "pipeline, column %zu: \"%.*s\" after " NAME
                       ", which is the last step of its part: let the function do that, too",
                       word.begin + 1, word_shown(word.n), reader->text + word.begin);
}

int own_step_take(const char *text, size_t begin, size_t end, struct own_step *ret_step, size_t *ret_steps_end,
                  struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .why = why };
        struct step_word word = { .end = begin };
        struct own_step step = { 0 };
        int r;

        *ret_step = (struct own_step){ 0 };
        *ret_steps_end = end;
        do {
                if (!step_text_next_word(text, word.end, end, &word))
                        return 0;
        } while (!word_is(text + word.begin, word.n, NAME));
        step.column = word.begin + 1;
        reader.at = text + word.begin + word.n;
        r = read_arguments(&reader, &step);
        if (r < 0)
                return r;
        if (reader.at < text + end)
                return refuse_more(&reader, (size_t)(reader.at - text), end);
        *ret_step = step;
        *ret_steps_end = word.begin;
        return 0;
}

void own_step_print(const struct own_step *step, FILE *stream) {
        fprintf(stream, NAME "(%s", step->function);
        if (step->has_dtype)
                fprintf(stream, ", dtype=%s", dlp_dtype_name(step->dtype));
        for (uint32_t i = 0; step->has_shape && i < step->n_dims; i++)
                fprintf(stream, "%s%lld", i == 0 ? ", shape=" : ":", (long long)step->shape[i]);
        fputs(")", stream);
}

/* ---- the form -------------------------------------------------------------------------------------------------- */

static int refuse(const struct own_step *step, const struct field_form *form, const char *what, struct why *why) {
        return why_set(why, -EINVAL, "pipeline, column %zu: " NAME "(%s): field %s %s", step->column, step->function,
                       form->name, what);
}

static bool is_fixed(const struct field_form *form) {
        if (form->how != COLLATE_STACK)
                return false;
        for (uint32_t i = 0; i < form->n_dims; i++)
                if (form->shape[i] < 0)
                        return false;
        return true;
}

/* What is stored as bytes or text is given as an array of bytes. */
static enum dlp_dtype input_dtype(const struct field_form *form) {
        return form->dtype == DLP_DTYPE_BYTES || form->dtype == DLP_DTYPE_TEXT ? DLP_DTYPE_UINT8 : form->dtype;
}

static bool is_same(const struct own_step *step, const struct field_form *form) {
        return (!step->has_dtype || step->dtype == form->dtype) &&
               (!step->has_shape || (step->n_dims == form->n_dims &&
                                     memcmp(step->shape, form->shape, form->n_dims * sizeof(*form->shape)) == 0));
}

/* The most bytes that a sample of the input has; 0: that is not known. */
static uint64_t input_bytes(const struct field_form *form) {
        if (is_fixed(form))
                return field_form_bytes(form, form->shape);
        if (form->how == COLLATE_RAGGED)
                return form->takes_share ? 0 : form->max_bytes;
        return form->asked_bytes < form->max_bytes ? form->asked_bytes : form->max_bytes;
}

int own_step_apply(const struct own_step *step, struct field_form *form, struct why *why) {
        struct field_input input = { .n_dims = form->n_dims };
        struct field_form made = { .how = COLLATE_STACK };

        if (form->is_gathered)
                return refuse(step, form, "is put together from several places: no function can be applied to it", why);
        if (form->dtype == DLP_DTYPE_TEXTS)
                return refuse(step, form, "is a list of texts: no function can be applied to it", why);
        if (is_fixed(form) && is_same(step, form))
                return 0;
        if (!is_fixed(form) && !step->has_shape)
                return refuse(
                        step, form,
                        "has samples of several shapes: say which shape the function delivers, as in dtype=uint8, "
                        "shape=224:224:3, or let steps before it give them one",
                        why);
        input.dtype = input_dtype(form);
        input.n_bytes = input_bytes(form);
        if (input.n_bytes == 0)
                return refuse(
                        step, form,
                        "can be of any size: let steps before the function give it one, or say how large a picture "
                        "may be with decode(max_pixels=N)",
                        why);
        memcpy(input.shape, form->shape, sizeof(input.shape));
        memcpy(made.name, form->name, sizeof(made.name));
        made.dtype = step->has_dtype ? step->dtype : input.dtype;
        made.n_dims = step->has_shape ? step->n_dims : form->n_dims;
        memcpy(made.shape, step->has_shape ? step->shape : form->shape, sizeof(made.shape));
        made.input = input;
        *form = made;
        return 0;
}
