#include "daemon/codec/steps/value_steps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json/json_value.h"
#include "daemon/codec/steps/field_steps.h"
#include "proto/base/nearest.h"
#include "proto/text/step_values.h"

enum {
        DTYPE,
        SHAPE,
        N_ARGUMENTS
};

const char *const value_dtype_names[VALUE_DTYPES] = { "bool",     "int8",    "int16",   "int32",  "int64",
                                                      "uint8",    "uint16",  "uint32",  "uint64", "float16",
                                                      "bfloat16", "float32", "float64", "text" };
const enum dlp_dtype value_dtypes[VALUE_DTYPES] = { DLP_DTYPE_BOOL,    DLP_DTYPE_INT8,     DLP_DTYPE_INT16,
                                                    DLP_DTYPE_INT32,   DLP_DTYPE_INT64,    DLP_DTYPE_UINT8,
                                                    DLP_DTYPE_UINT16,  DLP_DTYPE_UINT32,   DLP_DTYPE_UINT64,
                                                    DLP_DTYPE_FLOAT16, DLP_DTYPE_BFLOAT16, DLP_DTYPE_FLOAT32,
                                                    DLP_DTYPE_FLOAT64, DLP_DTYPE_TEXT };

/* In the sequence in which they may follow each other. */
const struct kind field_step_json = {
        .name = "json",
        .doc = "A member of stored JSON, such as `json(width)`, `json(objects[0].name)`, or, if a name contains a "
               "dot, `json([\"a.b\"])`; `json` is all of it. Alone, it delivers the member as JSON text.",
        .example = "json(objects[0].name)",
        .arguments = ARGUMENTS({ ARGUMENT_ANYTHING, "path" }),
};
const struct kind field_step_npy = {
        .name = "npy",
        .doc = "A stored .npy file as its array, in either byte order; Fortran order is refused. A webdataset whose "
               ".npy files agree in dtype and shape has arrays in this field without any step. Of other bytes, a "
               "dtype has to follow, and a shape unless it is a single number: `npy to(float32, shape=-1:4)`.",
        .example = "npy",
};
const struct kind field_step_text = {
        .name = "text",
        .doc = "UTF-8 text, checked; a part of a file's name is that name's bytes, whatever they are. Python gets a "
               "list of str, and None for a sample without the field or the member. A list of texts, as Arrow "
               "files, Parquet, JSON and TFRecord have them, is delivered without a step or with this one, and "
               "takes no other except `raw`, if it is read from the file; Python gets a list of lists of str.",
        .example = "text",
};
const struct kind field_step_to = {
        .name = "to",
        .doc = "Numbers as numbers of this dtype: bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32 "
               "or float64. Of bytes, text and JSON it reads the number that they are, or with `shape` an array of "
               "this shape, of which only the first dimension may vary (-1), as in `to(float32, shape=-1:4)`. A "
               "number that the dtype cannot hold makes a damaged sample, and so does one of JSON that is not "
               "finite (NaN, 1e999); a float becomes a whole number without its fraction.",
        .example = "to(int64)",
        .arguments = ARGUMENTS([DTYPE] = { ARGUMENT_CHOICE, "dtype", .choices = value_dtype_names,
                                           .n_choices = VALUE_DTYPES - 1 },
                               [SHAPE] = { ARGUMENT_LIST, "shape", NULL, -1, INT32_MAX, .is_whole = true,
                                           .is_optional = true, .form = "N or N:M" }),
};
const struct kind field_step_raw = {
        .name = "raw",
        .doc = "The stored bytes.",
        .example = "raw",
};
static const struct kind *const KINDS[] = { &field_step_json, &field_step_npy, &field_step_text,
                                            &field_step_to,   &field_step_raw, NULL };
static const struct kind_family VALUE_STEPS = { .noun = "step", .kinds = KINDS };

bool value_steps_are(const struct grammar_step *step) {
        return kind_named(&VALUE_STEPS, step->name) != NULL;
}

void value_steps_fini(struct value_steps *steps) {
        free(steps->path);
        *steps = (struct value_steps){ 0 };
}

/* Only the first dimension may vary. */
static int keep_shape(const struct values_reader *reader, const struct value *shape, struct value_steps *steps) {
        bool is_good = shape->n_list <= SCHEMA_DIMS_MAX;

        for (uint32_t i = 0; i < shape->n_list && is_good; i++) {
                is_good = shape->list[i] >= 1 || (i == 0 && shape->list[i] == -1);
                steps->shape[i] = (int64_t)shape->list[i];
        }
        steps->n_dims = shape->n_list;
        steps->has_shape = shape->is_set;
        return is_good ? 0
                       : grammar_refuse(reader->grammar, shape->written.at, reader->why,
                                        "expected a shape such as 4, -1 or -1:4; only the first dimension may be -1, "
                                        "which varies");
}

static int keep_path(const struct values_reader *reader, const struct value *path, struct value_steps *steps) {
        struct why detail;

        steps->path = strdup(path->text);
        if (!steps->path)
                return why_errno(reader->why, -ENOMEM, "pipeline");
        return json_path_check(steps->path, &detail) < 0
                       ? grammar_refuse(reader->grammar, path->written.at, reader->why, "%s", detail.text)
                       : 0;
}

/* The steps before it come earlier in the list; which of them exclude it? */
static bool may_follow(const struct kind *kind, const struct kind *before, const struct value_steps *steps) {
        for (const struct kind *const *other = KINDS; before && *other != before; other++)
                if (*other == kind)
                        return false;
        if (kind == before || (kind == &field_step_raw && before) || (kind == &field_step_to && steps->is_text))
                return false;
        return !(kind == &field_step_npy && steps->path) && !(kind == &field_step_text && steps->is_npy);
}

static int value_steps_refuse(const struct values_reader *reader, struct grammar_word name) {
        struct nearest nearest;

        return grammar_refuse(reader->grammar, name.at, reader->why,
                              "this field has no step \"%.*s\"%s; expected json(PATH), npy, text, to(DTYPE) or raw",
                              grammar_shown(name), name.at,
                              nearest_in(&nearest, name.at, name.n, "json npy text to raw"));
}

static int value_steps_read_step(const struct values_reader *reader, const struct grammar_step *step,
                                 const struct kind **before, struct value_steps *steps) {
        const struct kind *kind = kind_named(&VALUE_STEPS, step->name);
        struct value values[N_ARGUMENTS];
        int r;

        if (!kind)
                return value_steps_refuse(reader, step->name);
        if (!may_follow(kind, *before, steps))
                return grammar_refuse(reader->grammar, step->name.at, reader->why,
                                      "%s cannot follow here; the sequence is json(PATH) or npy, then text or "
                                      "to(DTYPE); raw stands alone, text does not follow npy",
                                      kind->name);
        *before = kind;
        r = values_read(reader, kind, step, values);
        if (r < 0)
                return r;
        steps->is_npy |= kind == &field_step_npy;
        steps->is_text |= kind == &field_step_text;
        steps->is_raw |= kind == &field_step_raw;
        if (kind == &field_step_json)
                return keep_path(reader, &values[0], steps);
        if (kind != &field_step_to)
                return 0;
        steps->has_dtype = true;
        steps->dtype = value_dtypes[values[DTYPE].choice];
        return keep_shape(reader, &values[SHAPE], steps);
}

int value_steps_read(struct grammar *grammar, struct grammar_steps steps, struct value_steps *ret_steps,
                     struct why *why) {
        _Alignas(8) uint8_t memory[VALUE_STORE_BYTES(DLP_PIPELINE_MAX, 5)];
        struct value_store store = { memory, sizeof(memory) };
        const struct values_reader reader = { &VALUE_STEPS, grammar, &store, why };
        const struct kind *before = NULL;
        struct value_steps read = { 0 };
        int r = 0;

        if (steps.n == 0)
                return grammar_expect(grammar, grammar_all(grammar).at + grammar_all(grammar).n,
                                      "json(PATH), npy, text, to(DTYPE) or raw", why);
        for (uint32_t i = 0; i < steps.n && r == 0; i++)
                r = value_steps_read_step(&reader, &steps.at[i], &before, &read);
        if (r < 0)
                value_steps_fini(&read);
        else
                *ret_steps = read;
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
