#include "daemon/codec/steps/python_step.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "daemon/codec/steps/field_steps.h"
#include "daemon/codec/steps/value_steps.h"
#include "proto/base/nearest.h"
#include "proto/text/step_values.h"

#define NAME    "python"
#define SEVERAL NAME "(my, boxes=float32[100:4])"
#define VARYING "shape=..512 or boxes=float32[..100:4]"
#define UP_TO   ".."

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

enum {
        FUNCTION,
        DTYPE,
        SHAPE,
        MOST,
        BATCH,
        FIELDS,
        N_ARGUMENTS
};

#define OF_DTYPE .choices = value_dtype_names, .n_choices = VALUE_DTYPES
#define OF_SIZES .minimum = 1, .maximum = INT32_MAX
#define SHAPES   ((2u << FIELD_DIMS_MAX) - 1) /* a bit for each number of dimensions */

const struct kind field_step_python = {
        .name = NAME,
        .doc = "Applies a function of the trainer to each sample, or with `batch=true` to a whole batch. It gets what the "
               "steps before it deliver, of all fields of the part. What it delivers in another form is said: the `dtype` "
               "and the `shape` of a part with one field, else both with the name of the field.",
        .example = NAME "(my, dtype=float32, shape=3:224:224)",
        .arguments = ARGUMENTS([FUNCTION] = { ARGUMENT_NAME, "function", .form = "the name of a function" },
                               [DTYPE] = { ARGUMENT_CHOICE, "dtype", OF_DTYPE, .form = "D", .is_optional = true,
                                           .needs_key = true },
                               [SHAPE] = { ARGUMENT_FORM, "shape", OF_SIZES, .counts = SHAPES & ~1u,
                                           .form = "3:224:224", .is_optional = true, .needs_key = true },
                               [MOST] = { ARGUMENT_WHOLE, "max", OF_SIZES, .form = "N", .is_optional = true,
                                          .needs_key = true },
                               [BATCH] = { ARGUMENT_FLAG, "batch", "false", .needs_key = true },
                               [FIELDS] = { ARGUMENT_FORMS, "FIELD", OF_DTYPE, OF_SIZES, .counts = SHAPES,
                                            .form = "float32[3:224:224]", .is_optional = true, .needs_key = true }),
};

static const struct kind_family FUNCTIONS = { .noun = "function" };

/* ---- the text -------------------------------------------------------------------------------------------------- */

/* A dimension of -1 has as many elements as max= says, at most. */
static void python_step_keep_form(const struct value_form *said, uint64_t most, struct python_form *form,
                                  bool *uses_most) {
        form->has_dtype |= said->has_dtype;
        form->has_shape = said->has_dims;
        if (said->has_dtype)
                form->dtype = value_dtypes[said->dtype];
        form->n_dims = said->n_dims;
        for (uint32_t k = 0; k < said->n_dims; k++) {
                form->shape[k] = said->dims[k] > 0 ? said->dims[k] : -1;
                form->most[k] = said->dims[k] > 0 ? 0 : said->dims[k] < 0 ? -said->dims[k] : (int64_t)most;
                *uses_most |= said->dims[k] == 0;
        }
}

static int read_function(const struct values_reader *reader, const struct value *function, struct python_call *call) {
        const char *name = function->text;

        if (isdigit((unsigned char)*name) || name[strspn(name, NAME_CHARACTERS)] ||
            strlen(name) >= sizeof(call->function))
                return grammar_refuse(reader->grammar, function->written.at, reader->why,
                                      "\"%.*s\" is not allowed; expected the name of a function, of up to %zu letters, "
                                      "digits and \"_\", as in " NAME "(my)",
                                      grammar_shown(function->written), name, sizeof(call->function) - 1);
        strcpy(call->function, name);
        return 0;
}

static int python_step_read_values(const struct values_reader *reader, const struct value *values,
                                   struct python_call *call) {
        uint64_t most = values[MOST].whole;
        bool uses_most = false;
        int r = read_function(reader, &values[FUNCTION], call);

        if (r < 0)
                return r;
        call->is_whole = values[BATCH].flag;
        call->form.has_dtype = values[DTYPE].is_set;
        call->form.dtype = value_dtypes[values[DTYPE].choice];
        python_step_keep_form(&values[SHAPE].form, most, &call->form, &uses_most);
        for (uint32_t i = 0; i < values[FIELDS].n_list; i++) {
                struct python_named *named = &call->named[call->n_named++];

                snprintf(named->field, sizeof(named->field), "%s", values[FIELDS].names[i]);
                named->column = grammar_column(reader->grammar, values[FIELDS].forms[i].at);
                python_step_keep_form(&values[FIELDS].forms[i], most, &named->form, &uses_most);
        }
        if (uses_most == (most > 0))
                return 0;
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: " NAME "(%s): %s", call->column, call->function,
                       uses_most ? "-1 is a dimension that varies, and the room for it has to be known: say how many "
                                   "elements it has at most, as in " VARYING
                                 : "max= is for a dimension of -1, and no shape has one; the most that one may have is "
                                   "written as in " VARYING);
}

int python_step_read(struct grammar *grammar, struct grammar_steps steps, struct python_call *ret_call,
                     uint32_t *ret_n_before, struct why *why) {
        _Alignas(8) uint8_t memory[VALUE_STORE_BYTES(DLP_PIPELINE_MAX, 1)];
        struct value_store store = { memory, sizeof(memory) };
        const struct values_reader reader = { &FUNCTIONS, grammar, &store, why };
        uint32_t i = grammar_find(steps, NAME), other;
        struct value values[N_ARGUMENTS];
        int r;

        *ret_call = (struct python_call){ 0 };
        *ret_n_before = i;
        if (i == steps.n)
                return 0;
        ret_call->column = grammar_column(grammar, steps.at[i].name.at);
        r = values_read(&reader, &field_step_python, &steps.at[i], values);
        if (r == 0)
                r = python_step_read_values(&reader, values, ret_call);
        if (r < 0)
                return r;
        ret_call->after = (struct grammar_steps){ steps.at + i + 1, steps.n - i - 1 };
        other = grammar_find(ret_call->after, NAME);
        if (other < ret_call->after.n)
                return grammar_refuse(grammar, ret_call->after.at[other].name.at, why,
                                      NAME " is twice in one part; let one function call the other");
        return 0;
}

/* ---- the fields of its part ------------------------------------------------------------------------------------ */

static int check_named(const struct python_call *call, const char *const *fields, uint32_t n_fields, struct why *why) {
        for (uint32_t k = 0; k < call->n_named; k++) {
                const struct python_named *named = &call->named[k];
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

static const struct python_form *python_step_form_of(const struct python_call *call, const char *field) {
        for (uint32_t k = 0; k < call->n_named; k++)
                if (strcmp(call->named[k].field, field) == 0)
                        return &call->named[k].form;
        return &call->form;
}

int python_step_bind(const struct python_call *call, const char *const *fields, uint32_t n_fields,
                     struct python_step *ret_steps, struct why *why) {
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
                struct python_step *step = &ret_steps[i];

                *step = (struct python_step){ .column = call->column,
                                              .form = *python_step_form_of(call, fields[i]),
                                              .goes_on = i > 0,
                                              .is_whole = call->is_whole };
                memcpy(step->function, call->function, sizeof(step->function));
                snprintf(step->parameter, sizeof(step->parameter), "%s", fields[i]);
        }
        return 0;
}

static void python_step_print_shape(const struct python_form *form, FILE *stream) {
        for (uint32_t k = 0; k < form->n_dims; k++) {
                bool varies = form->shape[k] < 0;

                fprintf(stream, "%s%s%lld", k > 0 ? ":" : "", varies ? UP_TO : "",
                        (long long)(varies ? form->most[k] : form->shape[k]));
        }
}

/* Of one field, whose name needs not be said unless it is a single number. */
static void python_step_print_plain(const struct python_form *form, FILE *stream) {
        if (form->has_dtype)
                fprintf(stream, ", dtype=%s", dlp_dtype_name(form->dtype));
        if (form->has_shape)
                fputs(", shape=", stream);
        python_step_print_shape(form, stream);
}

void python_step_print(const struct python_step *const *steps, uint32_t n_steps, FILE *stream) {
        fprintf(stream, NAME "(%s", steps[0]->function);
        for (uint32_t i = 0; i < n_steps; i++) {
                const struct python_form *form = &steps[i]->form;

                if (n_steps == 1 && (form->n_dims > 0 || !form->has_shape)) {
                        python_step_print_plain(form, stream);
                } else if (form->has_dtype || form->has_shape) {
                        fprintf(stream, ", %s=%s%s", steps[i]->parameter,
                                form->has_dtype ? dlp_dtype_name(form->dtype) : "", form->has_shape ? "[" : "");
                        python_step_print_shape(form, stream);
                        fputs(form->has_shape ? "]" : "", stream);
                }
        }
        fputs(steps[0]->is_whole ? ", batch=true)" : ")", stream);
}

/* ---- the form -------------------------------------------------------------------------------------------------- */

static int python_step_refuse(const struct python_step *step, const struct field_form *form, const char *what,
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

static bool python_step_is_same(const struct python_step *step, const struct field_form *form) {
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

bool python_step_varies(const struct python_step *step) {
        for (uint32_t k = 0; k < step->form.n_dims; k++)
                if (step->form.shape[k] < 0)
                        return true;
        return false;
}

/* A sample's size is known when the function has delivered it: until then it lies in a place of its own, with room for
 * the largest. Only the first dimension: it is ragged; else the first sample of a batch decides, unless it is padded.
 */
static int make_varying(const struct python_step *step, struct field_form *made, struct why *why) {
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
                        return python_step_refuse(step, made, "is declared larger than a batch may be", why);
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
static int python_step_check_text(const struct python_step *step, const struct field_form *form, struct why *why) {
        bool is_text = step->form.has_dtype && step->form.dtype == DLP_DTYPE_TEXT;

        if (!is_text || (step->form.n_dims == 1 && step->form.shape[0] < 0))
                return 0;
        return python_step_refuse(step, form,
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

int python_step_apply(const struct python_step *step, struct field_form *form, struct why *why) {
        struct field_input input = { .n_dims = form->n_dims };
        struct field_form made = { .how = COLLATE_STACK };
        int r;

        if (form->is_gathered)
                return python_step_refuse(step, form,
                                          "is put together from several places: no function can be applied to it", why);
        if (form->dtype == DLP_DTYPE_TEXTS)
                return python_step_refuse(step, form, "is a list of texts: no function can be applied to it", why);
        r = python_step_check_text(step, form, why);
        if (r < 0)
                return r;
        if (step->is_whole && python_step_varies(step))
                return python_step_refuse(
                        step, form,
                        "varies from sample to sample, and with batch=true it is one array of all of them: declare "
                        "one shape, and pad to it",
                        why);
        form->is_whole = made.is_whole = step->is_whole;
        if (is_fixed(form) && python_step_is_same(step, form))
                return 0;
        if (!is_fixed(form) && !step->form.has_shape && step->is_whole)
                return python_step_refuse(
                        step, form,
                        "has samples of several shapes: say which shape the function delivers of each, as in "
                        "shape=224:224:3, or with the field's name, as in image=uint8[224:224:3] or label=int64[], or "
                        "let steps before it give them one",
                        why);
        if (!is_fixed(form) && !step->form.has_shape)
                return python_step_refuse(
                        step, form,
                        "has samples of several shapes: say which shape the function delivers, as in dtype=uint8, "
                        "shape=224:224:3, or with the field's name, as in image=uint8[224:224:3], or how large it may "
                        "be, as in " VARYING ", or let steps before it give them one",
                        why);
        input.dtype = input_dtype(form);
        input.n_bytes = input_bytes(form);
        if (input.n_bytes == 0)
                return python_step_refuse(
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
        if (python_step_varies(step))
                r = make_varying(step, &made, why);
        else if (form->n_padded_dims == 2)
                find_sides(&made);
        if (r < 0)
                return r;
        *form = made;
        return 0;
}
