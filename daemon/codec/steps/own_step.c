#include "daemon/codec/steps/own_step.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"

#define NAME    "python"
#define EXAMPLE NAME "(my) or " NAME "(my, dtype=float32, shape=3:224:224)"
#define SEVERAL NAME "(my, boxes=float32[100:4])"
#define VARYING "shape=..512 or boxes=float32[..100:4]"
#define UP_TO   ".."

/* What a function can be given and can deliver. */
static const enum dlp_dtype DTYPES[] = { DLP_DTYPE_UINT8,    DLP_DTYPE_INT32,   DLP_DTYPE_INT64,  DLP_DTYPE_FLOAT16,
                                         DLP_DTYPE_FLOAT32,  DLP_DTYPE_FLOAT64, DLP_DTYPE_BOOL,   DLP_DTYPE_INT8,
                                         DLP_DTYPE_INT16,    DLP_DTYPE_UINT16,  DLP_DTYPE_UINT32, DLP_DTYPE_UINT64,
                                         DLP_DTYPE_BFLOAT16, DLP_DTYPE_TEXT };

/* ---- the text -------------------------------------------------------------------------------------------------- */

static int own_step_expect(struct step_text *reader, char wanted, const char *expected) {
        if (*reader->at != wanted)
                return step_text_refuse_here(reader, expected);
        reader->at++;
        step_text_skip_blanks(reader);
        return 0;
}

static int read_function(struct step_text *reader, struct own_call *call) {
        size_t n = word_length(reader->at);

        if (n == 0 || isdigit((unsigned char)*reader->at))
                return step_text_refuse_here(reader, "the name of a function, as in " EXAMPLE);
        if (n >= sizeof(call->function))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: the name of a function has at most %zu characters",
                               step_text_column(reader, reader->at), sizeof(call->function) - 1);
        memcpy(call->function, reader->at, n);
        call->function[n] = '\0';
        reader->at += n;
        return 0;
}

/* ARRAY_SIZE(DTYPES): it is none. */
static size_t own_step_find_dtype(const char *value, size_t n) {
        size_t i = 0;

        while (i < ARRAY_SIZE(DTYPES) && !typed_is(value, n, dlp_dtype_name(DTYPES[i])))
                i++;
        return i;
}

static size_t own_step_value_length(const char *value) {
        return strcspn(value, ",)[ \t\r\n");
}

static int read_dtype(struct step_text *reader, struct own_form *form) {
        size_t n = own_step_value_length(reader->at), i = own_step_find_dtype(reader->at, n);

        if (i == ARRAY_SIZE(DTYPES))
                return step_text_refuse_here(reader, "a dtype: uint8, float32, int64, text, ...");
        form->dtype = DTYPES[i];
        form->has_dtype = true;
        reader->at += n;
        return 0;
}

static int own_step_refuse_size(const struct step_text *reader) {
        return why_set(reader->why, -EINVAL,
                       "pipeline, column %zu: " NAME ": up to %u dimensions of 1 to %d elements are allowed",
                       step_text_column(reader, reader->at), FIELD_DIMS_MAX, INT32_MAX);
}

static int own_step_read_size(struct step_text *reader, int64_t *ret_n) {
        unsigned long n;
        char *after;

        if (!isdigit((unsigned char)*reader->at))
                return step_text_refuse_here(reader, "the elements of a dimension, as in shape=3:224:224, or the most "
                                                     "of one that varies, as in " VARYING);
        errno = 0;
        n = strtoul(reader->at, &after, 10);
        if (errno != 0 || n == 0 || n > INT32_MAX)
                return own_step_refuse_size(reader);
        *ret_n = (int64_t)n;
        reader->at = after;
        return 0;
}

/* "224", "..512", or "-1", for which max= says the most. */
static int own_step_read_dimension(struct step_text *reader, struct own_form *form) {
        bool is_any = strncmp(reader->at, "-1", 2) == 0, varies = strncmp(reader->at, UP_TO, 2) == 0 || is_any;
        int64_t n = 0;
        int r = 0;

        if (form->n_dims == FIELD_DIMS_MAX)
                return own_step_refuse_size(reader);
        reader->at += varies ? 2 : 0;
        if (!is_any)
                r = own_step_read_size(reader, &n);
        if (r < 0)
                return r;
        form->most[form->n_dims] = varies ? n : 0;
        form->shape[form->n_dims++] = varies ? -1 : n;
        return 0;
}

static int own_step_read_shape(struct step_text *reader, struct own_form *form) {
        int r = own_step_read_dimension(reader, form);

        while (r == 0 && *reader->at == ':') {
                reader->at++;
                r = own_step_read_dimension(reader, form);
        }
        form->has_shape = true;
        return r;
}

/* "[3:224:224]", or as Python has it; "[]" is one number. */
static int read_brackets(struct step_text *reader, struct own_form *form) {
        bool is_first = true;

        form->has_shape = true;
        reader->at++;
        for (;;) {
                int r;

                step_text_skip_blanks(reader);
                if (*reader->at == ']') {
                        reader->at++;
                        return 0;
                }
                if (!is_first && *reader->at != ':' && *reader->at != ',')
                        return step_text_refuse_here(reader, "\":\" or \"]\"");
                reader->at += !is_first;
                is_first = false;
                step_text_skip_blanks(reader);
                r = own_step_read_dimension(reader, form);
                if (r < 0)
                        return r;
        }
}

/* "float32", "float32[3:224:224]", "[3:224:224]" or "3:224:224". */
static int own_step_read_form(struct step_text *reader, struct own_form *form) {
        int r = 0;

        if (isdigit((unsigned char)*reader->at) || *reader->at == '.' || *reader->at == '-')
                return own_step_read_shape(reader, form);
        if (*reader->at != '[')
                r = read_dtype(reader, form);
        return r == 0 && *reader->at == '[' ? read_brackets(reader, form) : r;
}

/* The characters of a field's name, as program/program_fields.c has them. */
static size_t field_length(const char *text) {
        size_t n = 0;

        while (isalnum((unsigned char)text[n]) || (text[n] && strchr("_.-/", text[n])))
                n++;
        return n;
}

/* A new place for what is said of the field with this name. */
static int own_step_name_field(struct step_text *reader, size_t n, struct own_call *call) {
        struct own_named *named = &call->named[call->n_named];

        if (n == 0 || n >= sizeof(named->field))
                return step_text_refuse_here(reader, "dtype=, shape=, batch= or the name of a field, as in " EXAMPLE
                                                     " or " SEVERAL);
        for (uint32_t i = 0; i < call->n_named; i++)
                if (word_is(reader->at, n, call->named[i].field))
                        return step_text_refuse_here(reader, "each field once");
        if (call->n_named == DLP_TENSORS_MAX)
                return step_text_refuse_here(reader, "fewer fields");
        memcpy(named->field, reader->at, n);
        named->field[n] = '\0';
        named->column = step_text_column(reader, reader->at);
        named->form = (struct own_form){ 0 };
        call->n_named++;
        return 0;
}

/* Is it batch=true or false? A field may have that name, and then a form follows. */
static bool is_of_batches(const struct step_text *reader, size_t n) {
        const char *value = reader->at + n + strspn(reader->at + n, " \t\r\n");

        if (!word_is(reader->at, n, "batch"))
                return false;
        value += *value == '=';
        value += strspn(value, " \t\r\n");
        return *value != '[' && !isdigit((unsigned char)*value) &&
               own_step_find_dtype(value, own_step_value_length(value)) == ARRAY_SIZE(DTYPES);
}

static int read_batch(struct step_text *reader, struct own_call *call) {
        size_t n = own_step_value_length(reader->at);

        call->is_whole = typed_is(reader->at, n, "true");
        if (!call->is_whole && !typed_is(reader->at, n, "false"))
                return step_text_refuse_here(reader, "true or false, as in " NAME "(my, batch=true)");
        call->has_batch = true;
        reader->at += n;
        return 0;
}

static int own_step_read_option(struct step_text *reader, struct own_call *call) {
        size_t n = field_length(reader->at);
        bool is_dtype = word_is(reader->at, n, "dtype"), is_shape = word_is(reader->at, n, "shape");
        bool is_most = word_is(reader->at, n, "max"), is_batch = is_of_batches(reader, n);
        int r = 0;

        if (is_batch && call->has_batch)
                return step_text_refuse_here(reader, "batch= once");
        if ((is_dtype && call->form.has_dtype) || (is_shape && call->form.has_shape) || (is_most && call->most > 0))
                return step_text_refuse_here(reader, "dtype=, shape= and max= once each, as in " EXAMPLE);
        if (!is_dtype && !is_shape && !is_most && !is_batch)
                r = own_step_name_field(reader, n, call);
        if (r < 0)
                return r;
        reader->at += n;
        step_text_skip_blanks(reader);
        r = own_step_expect(reader, '=', "\"=\" and a value");
        if (r < 0)
                return r;
        return is_most    ? own_step_read_size(reader, &call->most)
               : is_dtype ? read_dtype(reader, &call->form)
               : is_shape ? own_step_read_shape(reader, &call->form)
               : is_batch ? read_batch(reader, call)
                          : own_step_read_form(reader, &call->named[call->n_named - 1].form);
}

/* A dimension of -1 has as many elements as max= says, at most. */
static bool settle_most(struct own_form *form, int64_t most, bool *ret_used) {
        for (uint32_t k = 0; k < form->n_dims; k++)
                if (form->shape[k] < 0 && form->most[k] == 0) {
                        form->most[k] = most;
                        *ret_used = true;
                }
        return !*ret_used || most > 0;
}

static int own_step_settle_all(struct step_text *reader, struct own_call *call) {
        bool is_used = false, is_known = settle_most(&call->form, call->most, &is_used);

        for (uint32_t i = 0; i < call->n_named; i++)
                is_known &= settle_most(&call->named[i].form, call->most, &is_used);
        if (is_known && (is_used || call->most == 0))
                return 0;
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: " NAME "(%s): %s", call->column, call->function,
                       is_used ? "-1 is a dimension that varies, and the room for it has to be known: say how many "
                                 "elements it has at most, as in " VARYING
                               : "max= is for a dimension of -1, and no shape has one; the most that one may have is "
                                 "written as in " VARYING);
}

static int own_step_read_arguments(struct step_text *reader, struct own_call *call) {
        int r;

        step_text_skip_blanks(reader);
        r = own_step_expect(reader, '(', "\"(\" and the name of a function, as in " EXAMPLE);
        if (r == 0)
                r = read_function(reader, call);
        for (;;) {
                if (r == 0)
                        r = step_text_after_argument(reader);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                r = own_step_read_option(reader, call);
        }
        step_text_skip_blanks(reader);
        return own_step_settle_all(reader, call);
}

/* Steps may follow, but no other function. */
static int take_after(const struct step_text *reader, size_t end, struct own_call *call) {
        struct step_word word = { .end = (size_t)(reader->at - reader->text) };

        call->after_begin = call->after_end = word.end;
        if (word.end >= end)
                return 0;
        if (!isspace((unsigned char)*(reader->at - 1)))
                return step_text_refuse_here(reader, "a blank and the next step, or the end");
        call->after_end = end;
        while (step_text_next_word(reader->text, word.end, end, &word))
                if (word_is(reader->text + word.begin, word.n, NAME))
                        return why_set(reader->why, -EINVAL,
                                       "pipeline, column %zu: " NAME " is twice in one part; let one function call the "
                                       "other",
                                       word.begin + 1);
        return 0;
}

int own_step_take(const char *text, size_t begin, size_t end, struct own_call *ret_call, size_t *ret_steps_end,
                  struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .why = why };
        struct step_word word = { .end = begin };
        int r;

        *ret_call = (struct own_call){ 0 };
        *ret_steps_end = end;
        do {
                if (!step_text_next_word(text, word.end, end, &word))
                        return 0;
        } while (!word_is(text + word.begin, word.n, NAME));
        ret_call->column = word.begin + 1;
        reader.at = text + word.begin + word.n;
        r = own_step_read_arguments(&reader, ret_call);
        if (r < 0)
                return r;
        *ret_steps_end = word.begin;
        return take_after(&reader, end, ret_call);
}

/* ---- the fields of its part ------------------------------------------------------------------------------------ */

static int check_named(const struct own_call *call, const char *const *fields, uint32_t n_fields, struct why *why) {
        for (uint32_t k = 0; k < call->n_named; k++) {
                const struct own_named *named = &call->named[k];
                struct nearest nearest;
                uint32_t i = 0;

                nearest_begin(&nearest, named->field, strlen(named->field));
                while (i < n_fields && strcmp(fields[i], named->field) != 0)
                        nearest_offer(&nearest, fields[i++]);
                if (i == n_fields)
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: " NAME "(%s): \"%s\" is not the name of a field of its "
                                       "part%s; expected dtype= or shape=, or a field of the part, as in %s",
                                       named->column, call->function, named->field, nearest_hint(&nearest), SEVERAL);
        }
        return 0;
}

static const struct own_form *own_step_form_of(const struct own_call *call, const char *field) {
        for (uint32_t k = 0; k < call->n_named; k++)
                if (strcmp(call->named[k].field, field) == 0)
                        return &call->named[k].form;
        return &call->form;
}

int own_step_bind(const struct own_call *call, const char *const *fields, uint32_t n_fields, struct own_step *ret_steps,
                  struct why *why) {
        bool is_plain = call->form.has_dtype || call->form.has_shape;
        int r;

        if (call->function[0] == '\0')
                return 0;
        r = check_named(call, fields, n_fields, why);
        if (r < 0)
                return r;
        if (is_plain && (n_fields > 1 || call->n_named > 0))
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: " NAME "(%s): dtype= and shape= are for a part that names one "
                               "field; write the name of the field, as in %s",
                               call->column, call->function, SEVERAL);
        for (uint32_t i = 0; i < n_fields; i++) {
                struct own_step *step = &ret_steps[i];

                *step = (struct own_step){ .column = call->column,
                                           .form = *own_step_form_of(call, fields[i]),
                                           .goes_on = i > 0,
                                           .is_whole = call->is_whole };
                memcpy(step->function, call->function, sizeof(step->function));
                snprintf(step->parameter, sizeof(step->parameter), "%s", fields[i]);
        }
        return 0;
}

static void own_step_print_shape(const struct own_form *form, FILE *stream) {
        for (uint32_t k = 0; k < form->n_dims; k++) {
                bool varies = form->shape[k] < 0;

                fprintf(stream, "%s%s%lld", k > 0 ? ":" : "", varies ? UP_TO : "",
                        (long long)(varies ? form->most[k] : form->shape[k]));
        }
}

/* Of one field, whose name needs not be said unless it is a single number. */
static void own_step_print_plain(const struct own_form *form, FILE *stream) {
        if (form->has_dtype)
                fprintf(stream, ", dtype=%s", dlp_dtype_name(form->dtype));
        if (form->has_shape)
                fputs(", shape=", stream);
        own_step_print_shape(form, stream);
}

void own_step_print(const struct own_step *const *steps, uint32_t n_steps, FILE *stream) {
        fprintf(stream, NAME "(%s", steps[0]->function);
        for (uint32_t i = 0; i < n_steps; i++) {
                const struct own_form *form = &steps[i]->form;

                if (n_steps == 1 && (form->n_dims > 0 || !form->has_shape)) {
                        own_step_print_plain(form, stream);
                } else if (form->has_dtype || form->has_shape) {
                        fprintf(stream, ", %s=%s%s", steps[i]->parameter,
                                form->has_dtype ? dlp_dtype_name(form->dtype) : "", form->has_shape ? "[" : "");
                        own_step_print_shape(form, stream);
                        fputs(form->has_shape ? "]" : "", stream);
                }
        }
        fputs(steps[0]->is_whole ? ", batch=true)" : ")", stream);
}

/* ---- the form -------------------------------------------------------------------------------------------------- */

static int own_step_refuse(const struct own_step *step, const struct field_form *form, const char *what,
                           struct why *why) {
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

static bool own_step_is_same(const struct own_step *step, const struct field_form *form) {
        return (!step->form.has_dtype || step->form.dtype == form->dtype) &&
               (!step->form.has_shape ||
                (step->form.n_dims == form->n_dims &&
                 memcmp(step->form.shape, form->shape, form->n_dims * sizeof(*form->shape)) == 0));
}

/* The most bytes that a sample of the input has; 0: that is not known. */
static uint64_t input_bytes(const struct field_form *form) {
        if (is_fixed(form))
                return field_form_bytes(form, form->shape);
        if (form->how == COLLATE_RAGGED)
                return form->takes_share ? 0 : form->max_bytes;
        return form->asked_bytes < form->max_bytes ? form->asked_bytes : form->max_bytes;
}

bool own_step_varies(const struct own_step *step) {
        for (uint32_t k = 0; k < step->form.n_dims; k++)
                if (step->form.shape[k] < 0)
                        return true;
        return false;
}

/* A sample's size is known when the function has delivered it: until then it lies in a place of its own, with room for
 * the largest. Only the first dimension: it is ragged; else the first sample of a batch decides, unless it is padded.
 */
static int make_varying(const struct own_step *step, struct field_form *made, struct why *why) {
        uint32_t n_varying = 0, first = 0, last = 0;

        made->unit_bytes = made->max_bytes = dlp_dtype_bytes(made->dtype);
        made->result = (struct field_input){ .dtype = made->dtype, .n_dims = made->n_dims };
        for (uint32_t k = 0; k < made->n_dims; k++) {
                bool varies = made->shape[k] < 0;
                uint64_t most = (uint64_t)(varies ? step->form.most[k] : made->shape[k]);

                made->result.shape[k] = made->shape[k];
                made->result.most[k] = (int64_t)most;
                if (!varies)
                        made->unit_bytes *= most;
                if (__builtin_mul_overflow(made->max_bytes, most, &made->max_bytes) ||
                    made->max_bytes > DLP_PAYLOAD_MAX)
                        return own_step_refuse(step, made, "is declared larger than a batch may be", why);
                if (!varies)
                        continue;
                first = n_varying++ == 0 ? k : first;
                last = k;
        }
        made->result.n_bytes = made->asked_bytes = made->max_bytes;
        made->fails_late = true; /* the process says its size, and may say anything */
        made->how = first == 0 && last == 0 ? COLLATE_RAGGED : COLLATE_STACK;
        if (last - first + 1 != n_varying || n_varying > PADDED_DIMS_MAX)
                return 0;
        made->padded_dim = first;
        made->n_padded_dims = n_varying;
        for (uint32_t k = 0; k < n_varying; k++)
                made->bounds[k] = (uint64_t)made->result.most[first + k];
        return 0;
}

/* Text has one length, and no function can be told how it is to fill what is left of a fixed one. */
static int own_step_check_text(const struct own_step *step, const struct field_form *form, struct why *why) {
        bool is_text = step->form.has_dtype && step->form.dtype == DLP_DTYPE_TEXT;

        if (!is_text || (step->form.n_dims == 1 && step->form.shape[0] < 0))
                return 0;
        return own_step_refuse(step, form,
                               "is text, whose length varies: say how many bytes it has at most, as in dtype=text, "
                               "shape=..1000, or with the field's name, as in caption=text[..1000]",
                               why);
}

/* Which dimensions of what is made of a picture are its height and width, if it is one. */
static void find_sides(struct field_form *made) {
        bool first = made->n_dims == 3 && made->shape[0] <= 4 && made->shape[2] > 4;

        if (made->n_dims != 3 || (!first && made->shape[2] > 4))
                return;
        made->padded_dim = first;
        made->n_padded_dims = 2;
}

int own_step_apply(const struct own_step *step, struct field_form *form, struct why *why) {
        struct field_input input = { .n_dims = form->n_dims };
        struct field_form made = { .how = COLLATE_STACK };
        int r;

        if (form->is_gathered)
                return own_step_refuse(step, form,
                                       "is put together from several places: no function can be applied to it", why);
        if (form->dtype == DLP_DTYPE_TEXTS)
                return own_step_refuse(step, form, "is a list of texts: no function can be applied to it", why);
        r = own_step_check_text(step, form, why);
        if (r < 0)
                return r;
        if (step->is_whole && own_step_varies(step))
                return own_step_refuse(
                        step, form,
                        "varies from sample to sample, and with batch=true it is one array of all of them: declare "
                        "one shape, and pad to it",
                        why);
        form->is_whole = made.is_whole = step->is_whole;
        if (is_fixed(form) && own_step_is_same(step, form))
                return 0;
        if (!is_fixed(form) && !step->form.has_shape && step->is_whole)
                return own_step_refuse(
                        step, form,
                        "has samples of several shapes: say which shape the function delivers of each, as in "
                        "shape=224:224:3, or with the field's name, as in image=uint8[224:224:3] or label=int64[], or "
                        "let steps before it give them one",
                        why);
        if (!is_fixed(form) && !step->form.has_shape)
                return own_step_refuse(
                        step, form,
                        "has samples of several shapes: say which shape the function delivers, as in dtype=uint8, "
                        "shape=224:224:3, or with the field's name, as in image=uint8[224:224:3], or how large it may "
                        "be, as in " VARYING ", or let steps before it give them one",
                        why);
        input.dtype = input_dtype(form);
        input.n_bytes = input_bytes(form);
        if (input.n_bytes == 0)
                return own_step_refuse(
                        step, form,
                        "can be of any size: let steps before the function give it one, or say how large a picture "
                        "may be with decode(max_pixels=N)",
                        why);
        memcpy(input.shape, form->shape, sizeof(input.shape));
        memcpy(made.name, form->name, sizeof(made.name));
        made.dtype = step->form.has_dtype ? step->form.dtype : input.dtype;
        made.n_dims = step->form.has_shape ? step->form.n_dims : form->n_dims;
        memcpy(made.shape, step->form.has_shape ? step->form.shape : form->shape, sizeof(made.shape));
        made.input = input;
        if (own_step_varies(step))
                r = make_varying(step, &made, why);
        else if (form->n_padded_dims == 2)
                find_sides(&made);
        if (r < 0)
                return r;
        *form = made;
        return 0;
}
