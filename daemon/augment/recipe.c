#include "daemon/augment/recipe.h"

#include "daemon/augment/habits.h"
#include "daemon/augment/step.h"
#include "daemon/augment/torchvision.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One row for each step. */
static const struct step_type *const STEPS[] = {
        &step_random_resized_crop,
        &step_resize,
        &step_center_crop,
        &step_random_crop,
        &step_pad,
        &step_hflip,
        &step_vflip,
        &step_color_jitter,
        &step_grayscale,
        &step_random_grayscale,
        &step_invert,
        &step_posterize,
        &step_solarize,
        &step_autocontrast,
        &step_equalize,
        &step_sharpness,
        &step_sanitize,
        &step_to,
        &step_normalize,
        &step_layout,
};

#define NORMAL_TEXT_MAX (DLP_STEPS_MAX * 384u) /* bytes: a step with all its arguments has at most 260 */

struct step {
        const struct step_type *type;
        enum stage_id stage; /* of its own time */
        struct value values[ARGUMENTS_MAX];
};

struct recipe {
        enum recipe_kind kind;
        uint32_t n_steps;
        struct step steps[DLP_STEPS_MAX]; /* without `decode`, which does nothing */
        uint64_t max_pixels;              /* of `decode`; 0: not given */
        bool is_upright;                  /* decode(exif=transpose) */
        bool has_mask_dtype;              /* decode(mask=uint16) */
        uint32_t idx_mask_dtype;          /* of MASK_DTYPES */
        struct conversion conversion;
        struct conversion left; /* to the client; see has_left */
        bool has_left;
        bool has_left_operations;
        uint32_t idx_left; /* steps from this one on are left; without has_left_operations: none is */
        char text[NORMAL_TEXT_MAX];
};

/* ---- parsing ------------------------------------------------------------------------------------------------- */

/* For messages: "random_resized_crop, ..., decode, raw". */
static void list_steps(char *text, size_t size) {
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(STEPS); i++)
                n += (size_t)snprintf(text + n, size - n, "%s, ", STEPS[i]->name);
        snprintf(text + n, size - n, "decode, raw");
}

static const struct step_type *find_step(const char *word, size_t n) {
        for (size_t i = 0; i < ARRAY_SIZE(STEPS); i++)
                if (word_is(word, n, STEPS[i]->name))
                        return STEPS[i];
        return NULL;
}

/* Also by the name of torchvision's class. */
static const struct step_type *find_typed(const char *word, size_t n) {
        const struct step_type *type = find_step(word, n);
        const char *name = type ? NULL : torchvision_step(word, n);

        if (name)
                return find_step(name, strlen(name));
        for (size_t i = 0; i < ARRAY_SIZE(STEPS) && !type; i++)
                if (typed_is_class(word, n, STEPS[i]->name))
                        type = STEPS[i];
        return type;
}

/* Of a word as people write it, who do not know where "_" is right and where "-": random-resized-crop. */
static size_t dashed_length(const char *word) {
        size_t n = word_length(word);

        while (n > 0 && word[n] == '-' && word_length(word + n + 1) > 0)
                n += 1 + word_length(word + n + 1);
        return n;
}

bool recipe_means(const char *word, char ret_text[RECIPE_MEANT_MAX]) {
        size_t n = dashed_length(word);
        const struct step_type *type;
        char copy[64];

        if (n == 0 || n >= sizeof(copy))
                return false;
        for (size_t i = 0; i < n; i++)
                copy[i] = word[i];
        for (size_t i = 0; i < n; i++)
                if (copy[i] == '-')
                        copy[i] = '_';
        type = find_typed(copy, n);
        if (!type)
                return habit_step(copy, n, ret_text);
        snprintf(ret_text, RECIPE_MEANT_MAX, "%s", type->example);
        return n > word_length(word);
}

static int refuse_step(const struct step_text *reader, const char *word, size_t n_word) {
        char names[32 * ARRAY_SIZE(STEPS) + 32], expected[sizeof(names) + 32];
        const char *answer = torchvision_answer(word, n_word);
        char meant[RECIPE_MEANT_MAX];
        struct nearest nearest;

        if (answer)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: %.*s %s", step_text_column(reader, word),
                               word_shown(n_word), word, answer);
        if (recipe_means(word, meant))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: \"%.*s\" is not the name of a step; it is "
                               "written as in %s",
                               step_text_column(reader, word), word_shown(dashed_length(word)), word, meant);
        list_steps(names, sizeof(names));
        if (n_word > 0)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: unknown step \"%.*s\"%s; the steps are %s",
                               step_text_column(reader, word), word_shown(n_word), word,
                               nearest_in(&nearest, word, n_word, names), names);
        snprintf(expected, sizeof(expected), "the name of a step: %s", names);
        return step_text_refuse_here(reader, expected);
}

static bool is_mode(const char *word, size_t n) {
        return word_is(word, n, "raw") || word_is(word, n, "decode");
}

bool recipe_is_step(const char *word, size_t n) {
        return find_step(word, n) || is_mode(word, n);
}

/* "transforms." and the like before a class. */
static const char *skip_module(const char *text) {
        static const char *const MODULES[] = { "torchvision.", "transforms.", "v2.", "T." };

        for (size_t i = 0; i < ARRAY_SIZE(MODULES); i++)
                if (strncmp(text, MODULES[i], strlen(MODULES[i])) == 0)
                        text += strlen(MODULES[i]);
        return text;
}

bool recipe_begins(const char *text) {
        const char *word = skip_module(text + strspn(text, " \t\r\n"));
        size_t n = word_length(word);

        return find_typed(word, n) || torchvision_steps(word, n) || is_mode(word, n);
}

/* ---- arguments of a step ------------------------------------------------------------------------------------- */

static unsigned count_arguments(const struct step_type *type) {
        unsigned n = 0;

        while (type->arguments[n].kind != ARGUMENT_END)
                n++;
        return n;
}

static bool is_argument(const struct argument *argument, const char *word, size_t n) {
        return word_is(word, n, argument->name) || (argument->other_name && word_is(word, n, argument->other_name));
}

static int refuse_key(const struct step_text *reader, const struct step_type *type, size_t n_word) {
        const char *reason = torchvision_left_out(reader->at, n_word);
        char names[160] = "";
        struct nearest nearest;

        for (unsigned i = 0; i < count_arguments(type); i++) {
                size_t n = strlen(names);

                snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", type->arguments[i].name);
        }
        if (reason)
                return why_set(
                        reader->why, -EINVAL, "pipeline, column %zu: %s has no argument \"%.*s\"; leave it out: %s",
                        step_text_column(reader, reader->at), type->name, word_shown(n_word), reader->at, reason);
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s has no argument \"%.*s\"%s; it has %s",
                       step_text_column(reader, reader->at), type->name, word_shown(n_word), reader->at,
                       nearest_in(&nearest, reader->at, n_word, names), names);
}

/* Reads the value of one argument, after its key if it has one. */
static int read_value(struct step_text *reader, const struct step_type *type, unsigned idx, struct step *step,
                      unsigned *given) {
        struct why detail = {};
        char habit[HABIT_MAX];
        int r;

        if (*given & 1u << idx)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s of %s is given twice",
                               step_text_column(reader, reader->at), type->arguments[idx].name, type->name);
        r = argument_parse(&type->arguments[idx], reader->at, &step->values[idx], &detail);
        if (r < 0) {
                habit_value(type, idx, &step->values[0], reader->at, habit);
                return why_set(reader->why, r, "pipeline, column %zu: %s%s", step_text_column(reader, reader->at),
                               detail.text, habit);
        }
        reader->at += r;
        *given |= 1u << idx;
        return 0;
}

/* Finds the next argument: the named one, or the next in sequence. Leaves the reader at its value. */
static int read_key(struct step_text *reader, const struct step_type *type, unsigned *next, bool *named,
                    unsigned *ret_idx) {
        unsigned n_arguments = count_arguments(type);
        size_t n_word = word_length(reader->at);
        const char *equals = reader->at + n_word + strspn(reader->at + n_word, " \t");

        if (n_word > 0 && *equals == '=') {
                for (unsigned i = 0; i < n_arguments; i++)
                        if (is_argument(&type->arguments[i], reader->at, n_word)) {
                                reader->at = equals + 1;
                                step_text_skip_blanks(reader);
                                *named = true;
                                *ret_idx = i;
                                return 0;
                        }
                return refuse_key(reader, type, n_word);
        }
        if (*named && *reader->at && strchr("+-.0123456789", *reader->at))
                return step_text_refuse_here(
                        reader, "key=value, as after another key=value; a list is written mean=[0.5, 0.4, 0.4], or "
                                "mean=0.5:0.4:0.4");
        if (*named)
                return step_text_refuse_here(reader, "key=value, as after another key=value");
        if (*next >= n_arguments)
                return step_text_refuse_here(reader, "\")\": the step has no more arguments");
        *ret_idx = (*next)++;
        return 0;
}

/* Reads "(...)" if it is present. */
static int read_arguments(struct step_text *reader, const struct step_type *type, struct step *step, unsigned *given) {
        unsigned next = 0, idx = 0;
        bool named = false;
        int r;

        if (*reader->at != '(')
                return 0;
        reader->at++;
        step_text_skip_blanks(reader);
        if (*reader->at == ')') {
                reader->at++;
                return 0;
        }
        for (;;) {
                r = read_key(reader, type, &next, &named, &idx);
                if (r < 0)
                        return r;
                r = read_value(reader, type, idx, step, given);
                if (r < 0)
                        return r;
                step_text_skip_blanks(reader);
                if (*reader->at != ',' && *reader->at != ')')
                        return step_text_refuse_here(reader, "\",\" or \")\"");
                if (*reader->at++ == ')')
                        return 0;
                step_text_skip_blanks(reader);
        }
}

static int fill_defaults(const struct step_text *reader, const char *word, struct step *step, unsigned given) {
        const struct step_type *type = step->type;

        for (unsigned i = 0; i < count_arguments(type); i++) {
                int r;

                if (given & 1u << i || type->arguments[i].is_optional)
                        continue;
                if (!type->arguments[i].by_default)
                        return why_set(reader->why, -EINVAL, "pipeline, column %zu: %s needs its %s, as in %s",
                                       step_text_column(reader, word), type->name, type->arguments[i].name,
                                       type->example);
                r = argument_parse(&type->arguments[i], type->arguments[i].by_default, &step->values[i], NULL);
                assert(r > 0);
        }
        return 0;
}

/* ---- steps --------------------------------------------------------------------------------------------------- */

/* Steps that set the form of the result come after all steps that touch pixels. */
static int check_place(const struct step_text *reader, const struct step_type *type, const char *word,
                       const struct recipe *recipe) {
        const struct step_type *before = recipe->n_steps ? recipe->steps[recipe->n_steps - 1].type : NULL;

        if (!before || before->plan || !type->plan)
                return 0;
        return why_set(reader->why, -EINVAL,
                       "pipeline, column %zu: \"%s\" after \"%s\", which sets the form of the pixels; expected to, "
                       "normalize, layout or the end",
                       step_text_column(reader, word), type->name, before->name);
}

static int convert(const struct step_text *reader, const struct step *step, const char *word, struct recipe *recipe) {
        struct why detail = {};
        int r;

        if (!step->type->convert)
                return 0;
        r = step->type->convert(step->values, &recipe->conversion, &detail);
        if (r < 0)
                return why_set(reader->why, r, "pipeline, column %zu: %s: %s", step_text_column(reader, word),
                               step->type->name, detail.text);
        return 0;
}

static int read_step(struct step_text *reader, const struct step_type *type, const char *word, struct recipe *recipe) {
        struct step *step = &recipe->steps[recipe->n_steps];
        unsigned given = 0;
        int r;

        if (recipe->n_steps == DLP_STEPS_MAX)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: more than %u steps, which is the limit",
                               step_text_column(reader, word), DLP_STEPS_MAX);
        r = check_place(reader, type, word, recipe);
        if (r < 0)
                return r;
        step->type = type;
        step->stage = stage_named(type->name);
        r = read_arguments(reader, type, step, &given);
        if (r < 0)
                return r;
        r = fill_defaults(reader, word, step, given);
        if (r < 0)
                return r;
        r = convert(reader, step, word, recipe);
        if (r < 0)
                return r;
        recipe->n_steps++;
        return 0;
}

/* What is done with the orientation that a camera noted. */
static const char *const EXIF_NAMES[] = { "ignore", "transpose" };

/* The types of masks. torch's losses want int64, and the others have room for what files hold. */
static const char *const MASK_DTYPE_NAMES[] = { "uint8", "uint16", "int32", "int64" };
static const enum dlp_dtype MASK_DTYPES[] = { DLP_DTYPE_UINT8, DLP_DTYPE_UINT16, DLP_DTYPE_INT32, DLP_DTYPE_INT64 };

/* `raw` and `decode` are not in the table of steps: they do not change any pixel. */
static const struct step_type DECODE = {
        .name = "decode",
        .example = "decode(max_pixels=1000000)",
        .arguments = { { ARGUMENT_LIST, "max_pixels", NULL, 1, RECIPE_MAX_PIXELS_MAX, .counts = 1u << 1,
                         .is_whole = true, .form = "N" },
                       { ARGUMENT_CHOICE, "exif", "ignore", .choices = EXIF_NAMES,
                         .n_choices = ARRAY_SIZE(EXIF_NAMES) },
                       { ARGUMENT_CHOICE, "mode", "RGB", .choices = PIXEL_MODE_NAMES, .n_choices = N_PIXEL_MODES },
                       { ARGUMENT_CHOICE, "mask", "uint8", .choices = MASK_DTYPE_NAMES,
                         .n_choices = ARRAY_SIZE(MASK_DTYPE_NAMES) } },
};

static int read_decode(struct step_text *reader, struct recipe *recipe) {
        struct step step = { .type = &DECODE };
        unsigned given = 0;
        int r;

        r = read_arguments(reader, &DECODE, &step, &given);
        if (r < 0)
                return r;
        recipe->max_pixels = given & 1u ? (uint64_t)step.values[0].list[0] : 0;
        recipe->is_upright = given & 2u && step.values[1].choice == 1;
        conversion_set_mode(&recipe->conversion, given & 4u ? (enum pixel_mode)step.values[2].choice : PIXELS_RGB);
        recipe->has_mask_dtype = given & 8u;
        recipe->idx_mask_dtype = given & 8u ? step.values[3].choice : 0;
        return 0;
}

/* `place` is the position of the word in the text, from 0. */
static int read_mode(struct step_text *reader, const char *word, size_t n_word, unsigned place, struct recipe *recipe) {
        bool is_raw = word_is(word, n_word, "raw");

        if (is_raw && place > 0)
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: \"raw\" delivers the encoded bytes and cannot follow other steps",
                               step_text_column(reader, word));
        if (!is_raw && place > 0)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: \"decode\" can only be the first step",
                               step_text_column(reader, word));
        recipe->kind = is_raw ? RECIPE_RAW : RECIPE_PIXELS;
        if (!is_raw)
                return read_decode(reader, recipe);
        if (*reader->at == '(') {
                reader->at++;
                step_text_skip_blanks(reader);
                if (*reader->at != ')')
                        return step_text_refuse_here(reader, "\")\": raw has no arguments");
                reader->at++;
        }
        return 0;
}

/* Steps that one class of torchvision stands for. Their text has no mistakes; where they may stand is said of the
 * word. */
static int read_steps(struct step_text *reader, const char *steps, const char *word, struct recipe *recipe) {
        struct step_text inner = { .what = "pipeline", .text = steps, .at = steps };
        int r = 0;

        if (*reader->at == '(') {
                reader->at++;
                step_text_skip_blanks(reader);
                if (*reader->at++ != ')') {
                        reader->at--;
                        return step_text_refuse_here(reader, "\")\": it has no arguments");
                }
        }
        while (r == 0 && *inner.at) {
                size_t n = word_length(inner.at);
                const struct step_type *type = find_step(inner.at, n);
                struct why detail = {};

                assert(type);
                inner.at += n;
                inner.why = &detail;
                r = read_step(&inner, type, steps, recipe);
                if (r < 0)
                        return why_set(reader->why, r, "pipeline, column %zu: in place of \"%.*s\": %s",
                                       step_text_column(reader, word), word_shown(word_length(word)), word,
                                       strstr(detail.text, ": ") + 2);
                step_text_skip_blanks(&inner);
        }
        return r;
}

static int read_one(struct step_text *reader, unsigned place, struct recipe *recipe) {
        const char *word, *steps;
        const struct step_type *type;
        size_t n_word;

        reader->at = word = skip_module(reader->at);
        n_word = word_length(word);
        type = find_typed(word, n_word);
        steps = torchvision_steps(word, n_word);
        if (n_word == 0)
                return refuse_step(reader, word, 0);
        if (recipe->kind == RECIPE_RAW)
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: \"%.*s\" after \"raw\", which delivers the encoded bytes and"
                               " cannot be followed by other steps",
                               step_text_column(reader, word), word_shown(n_word), word);
        reader->at += n_word;
        if (type)
                return read_step(reader, type, word, recipe);
        if (steps)
                return read_steps(reader, steps, word, recipe);
        if (is_mode(word, n_word))
                return read_mode(reader, word, n_word, place, recipe);
        return refuse_step(reader, word, n_word);
}

static int read_all(struct step_text *reader, struct recipe *recipe) {
        step_text_skip_blanks(reader);
        if (*reader->at == '\0')
                return why_set(reader->why, -EINVAL,
                               "the pipeline is empty; write the steps to apply to a picture, for example"
                               " \"random_resized_crop(224) hflip(0.5)\", or \"decode\", or \"raw\"");

        for (unsigned place = 0; *reader->at; place++) {
                int r = read_one(reader, place, recipe);

                if (r < 0)
                        return r;
                if (*reader->at && !strchr(" \t\r\n", *reader->at))
                        return step_text_refuse_here(reader, "a blank and the next step, or the end");
                step_text_skip_blanks(reader);
        }
        return 0;
}

/* ---- the normal text ----------------------------------------------------------------------------------------- */

static bool is_left_out(const struct argument *argument, const struct value *value) {
        return argument->is_optional && value->height == 0 && value->n_list == 0;
}

static void print_step(const struct step *step, char *text, size_t size) {
        const struct step_type *type = step->type;
        size_t n = (size_t)snprintf(text, size, "%s(", type->name);

        for (unsigned i = 0; i < count_arguments(type); i++) {
                char value[160];

                if (is_left_out(&type->arguments[i], &step->values[i]))
                        continue;
                argument_print(&type->arguments[i], &step->values[i], value, sizeof(value));
                if (i == 0)
                        n += (size_t)snprintf(text + n, size - n, "%s", value);
                else
                        n += (size_t)snprintf(text + n, size - n, ", %s=%s", type->arguments[i].name, value);
        }
        snprintf(text + n, size - n, ")");
}

/* `decode` with those arguments that are not as by default. Returns its length; 0: there are none. */
static size_t print_decode(const struct recipe *recipe, char *text, size_t size) {
        enum pixel_mode mode = recipe->conversion.format.mode;
        char max_pixels[40] = "";
        const char *arguments[] = { max_pixels, recipe->is_upright ? "exif=transpose" : "",
                                    mode == PIXELS_RGB ? "" : "mode=", recipe->has_mask_dtype ? "mask=" : "" };
        const char *values[] = { "", "", PIXEL_MODE_NAMES[mode], MASK_DTYPE_NAMES[recipe->idx_mask_dtype] };
        size_t n = 0;

        if (recipe->max_pixels > 0)
                snprintf(max_pixels, sizeof(max_pixels), "max_pixels=%" PRIu64, recipe->max_pixels);
        for (size_t i = 0; i < ARRAY_SIZE(arguments); i++)
                if (arguments[i][0])
                        n += (size_t)snprintf(text + n, size - n, "%s%s%s", n > 0 ? ", " : "decode(", arguments[i],
                                              values[i]);
        if (n > 0)
                n += (size_t)snprintf(text + n, size - n, ")%s", recipe->n_steps > 0 ? " " : "");
        return n;
}

static void print_recipe(struct recipe *recipe) {
        size_t n = print_decode(recipe, recipe->text, sizeof(recipe->text));

        if (n == 0 && recipe->n_steps == 0)
                strcpy(recipe->text, recipe->kind == RECIPE_RAW ? "raw" : "decode");
        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                char text[NORMAL_TEXT_MAX / DLP_STEPS_MAX - 1];

                print_step(&recipe->steps[i], text, sizeof(text));
                n += (size_t)snprintf(recipe->text + n, sizeof(recipe->text) - n, "%s%s", i ? " " : "", text);
        }
}

/* A conversion needs its pixels in a worker's memory first. Limits that depend on the picture are checked when it is
 * planned. */
static int check_output(const struct recipe *recipe, struct why *why) {
        uint32_t height, width;

        if (recipe->max_pixels > 0 && recipe_output(recipe, &height, &width) != RECIPE_VARIES)
                return why_set(why, -EINVAL,
                               "pipeline: max_pixels is for results of varying size, and all results of this"
                               " pipeline are %u x %u: leave it out",
                               width, height);
        if (recipe->kind == RECIPE_RAW || conversion_is_none(&recipe->conversion) ||
            recipe_output(recipe, &height, &width) == RECIPE_VARIES ||
            (uint64_t)height * width <= RECIPE_BETWEEN_PIXELS_MAX)
                return 0;
        return why_set(why, -EINVAL,
                       "pipeline: %u x %u pixels exceed the limit of %llu for conversions; make the picture smaller, or"
                       " leave out to, normalize, layout and grayscale(1)",
                       width, height, RECIPE_BETWEEN_PIXELS_MAX);
}

/* ---- public functions ---------------------------------------------------------------------------------------- */

int recipe_parse(const char *text, struct recipe **ret_recipe, struct why *why) {
        _cleanup_(recipe_freep) struct recipe *recipe = NULL;
        struct step_text reader = { .what = "pipeline", .why = why };
        char typed[DLP_PIPELINE_MAX];
        int r;

        if (strnlen(text, DLP_PIPELINE_MAX) == DLP_PIPELINE_MAX)
                return why_set(why, -EINVAL, "the pipeline's text is longer than %u bytes, which is the limit",
                               DLP_PIPELINE_MAX - 1);
        recipe = calloc(1, sizeof(*recipe));
        if (!recipe)
                return why_set(why, -ENOMEM, "no memory for a pipeline");
        strcpy(typed, text);
        typed_lists(typed);
        reader.text = reader.at = typed;

        recipe->kind = RECIPE_PIXELS;
        conversion_init(&recipe->conversion);
        r = read_all(&reader, recipe);
        if (r < 0)
                return r;
        conversion_finish(&recipe->conversion);
        r = check_output(recipe, why);
        if (r < 0)
                return r;
        print_recipe(recipe);
        *ret_recipe = TAKE_PTR(recipe);
        return 0;
}

void recipe_free(struct recipe *recipe) {
        free(recipe);
}

void recipe_freep(struct recipe **recipe) {
        recipe_free(*recipe);
}

enum recipe_kind recipe_kind(const struct recipe *recipe) {
        return recipe->kind;
}

const char *recipe_text(const struct recipe *recipe) {
        return recipe->text;
}

bool recipe_can_leave_form(const struct recipe *recipe) {
        const struct pixel_format *format = &recipe->conversion.format;

        return recipe->kind == RECIPE_PIXELS && (format->mode == PIXELS_RGB || format->mode == PIXELS_L) &&
               (format->dtype != DLP_DTYPE_UINT8 || format->channels_first);
}

void recipe_leave_form(struct recipe *recipe) {
        enum pixel_mode mode = recipe->conversion.format.mode;

        recipe->left = recipe->conversion;
        recipe->has_left = true;
        conversion_init(&recipe->conversion);
        conversion_set_mode(&recipe->conversion, mode);
        recipe->conversion.format.n_channels = recipe->left.format.n_channels; /* one, of grayscale(1) */
        conversion_finish(&recipe->conversion);
}

/* ---- operations that are left ---------------------------------------------------------------------------------- */

bool step_leaves_none(const struct value *values, uint32_t *ret_n_operations) {
        (void)values;
        *ret_n_operations = 0;
        return true;
}

bool step_leaves_one(const struct value *values, uint32_t *ret_n_operations) {
        (void)values;
        *ret_n_operations = 1;
        return true;
}

/* The first of the steps at the end that can be left; n_steps: none can. Steps that touch no pixels are not looked at:
 * they are done by the table. */
static uint32_t first_left(const struct recipe *recipe) {
        uint32_t idx_left = recipe->n_steps, n_operations = 0, n;

        for (uint32_t i = recipe->n_steps; i-- > 0;) {
                const struct step *step = &recipe->steps[i];

                if (!step->type->plan)
                        continue;
                if (!step->type->can_be_left || !step->type->can_be_left(step->values, &n) ||
                    n_operations + n > DLP_LEFT_OPERATIONS_MAX)
                        break;
                n_operations += n;
                idx_left = i;
        }
        return idx_left;
}

/* Where a sample has its operations, after its pixels. */
static uint64_t operations_at(const struct recipe *recipe, uint64_t *ret_pixel_bytes) {
        uint32_t height, width;

        recipe_output(recipe, &height, &width);
        *ret_pixel_bytes = (uint64_t)height * width * recipe->conversion.format.n_channels;
        return (*ret_pixel_bytes + DLP_LEFT_ALIGN - 1) / DLP_LEFT_ALIGN * DLP_LEFT_ALIGN;
}

bool recipe_can_leave_operations(const struct recipe *recipe) {
        enum pixel_mode mode = recipe->conversion.format.mode;
        uint32_t height, width;

        return recipe->kind == RECIPE_PIXELS && !recipe->has_left && (mode == PIXELS_RGB || mode == PIXELS_L) &&
               recipe_output(recipe, &height, &width) != RECIPE_VARIES &&
               (uint64_t)height * width <= DLP_LEFT_PIXELS_MAX && first_left(recipe) < recipe->n_steps;
}

void recipe_leave_operations(struct recipe *recipe) {
        recipe->idx_left = first_left(recipe);
        recipe->has_left_operations = true;
        recipe_leave_form(recipe);
}

uint64_t recipe_left_bytes(const struct recipe *recipe) {
        uint64_t pixel_bytes, at, end;

        if (!recipe->has_left_operations)
                return 0;
        at = operations_at(recipe, &pixel_bytes);
        end = at + sizeof(struct dlp_left_operations);
        return (end + DLP_LEFT_ALIGN - 1) / DLP_LEFT_ALIGN * DLP_LEFT_ALIGN - pixel_bytes;
}

void recipe_write_left(const struct recipe *recipe, const struct geometry *geometry, uint8_t *bytes) {
        uint64_t pixel_bytes, at = operations_at(recipe, &pixel_bytes) - pixel_bytes;

        memset(bytes, 0, recipe_left_bytes(recipe));
        memcpy(bytes + at, &geometry->left, sizeof(geometry->left));
}

bool recipe_left_form(const struct recipe *recipe, struct picture_form *ret_form) {
        const struct pixel_format *format = &recipe->left.format;
        uint64_t pixel_bytes;

        if (!recipe->has_left)
                return false;
        *ret_form = (struct picture_form){ .dtype = format->dtype,
                                           .n_channels = format->n_channels,
                                           .channels_first = format->channels_first };
        conversion_table(&recipe->left, &ret_form->table, &ret_form->table_bytes);
        if (recipe->has_left_operations)
                ret_form->operations_at = operations_at(recipe, &pixel_bytes);
        return true;
}

int recipe_output(const struct recipe *recipe, uint32_t *ret_height, uint32_t *ret_width) {
        uint32_t height = 0, width = 0;

        for (uint32_t i = 0; i < recipe->n_steps; i++)
                if (recipe->steps[i].type->output)
                        recipe->steps[i].type->output(recipe->steps[i].values, &height, &width);
        if (height == 0)
                return RECIPE_VARIES;
        *ret_height = height;
        *ret_width = width;
        return 0;
}

bool recipe_bound(const struct recipe *recipe, uint32_t *ret_height, uint32_t *ret_width) {
        uint32_t height = 0, width = 0;

        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                const struct step_type *type = recipe->steps[i].type;

                if (type->bound) {
                        type->bound(recipe->steps[i].values, &height, &width);
                } else if (type->output) { /* a bound before it is not the size that it asks for */
                        height = width = 0;
                        type->output(recipe->steps[i].values, &height, &width);
                }
        }
        if (height == 0)
                return false;
        *ret_height = height;
        *ret_width = width;
        return true;
}

bool recipe_drops_boxes(const struct recipe *recipe) {
        for (uint32_t i = 0; i < recipe->n_steps; i++)
                if (recipe->steps[i].type->drops_boxes)
                        return true;
        return false;
}

bool recipe_is_upright(const struct recipe *recipe) {
        return recipe->is_upright;
}

bool recipe_mask_dtype(const struct recipe *recipe, enum dlp_dtype *ret_dtype) {
        if (recipe->has_mask_dtype)
                *ret_dtype = MASK_DTYPES[recipe->idx_mask_dtype];
        return recipe->has_mask_dtype;
}

uint64_t recipe_max_pixels(const struct recipe *recipe) {
        return recipe->max_pixels;
}

const struct pixel_format *recipe_format(const struct recipe *recipe) {
        return &recipe->conversion.format;
}

/* Steps from idx_left on are left to the client. */
static int plan_steps(const struct recipe *recipe, uint32_t idx_left, struct fold *fold, uint64_t seed, uint32_t epoch,
                      uint64_t sample, struct why *why) {
        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                const struct step *step = &recipe->steps[i];
                struct dlp_philox philox;
                int r;

                if (!step->type->plan)
                        continue;
                dlp_philox_init(&philox, seed, epoch, sample,
                                (uint16_t)(i + 1)); /* number 0 is `decode`, written or not */
                fold->step = step->stage;
                fold->is_left = i >= idx_left;
                r = step->type->plan(step->values, &philox, fold, why);
                if (r < 0)
                        return r;
        }
        return fold_finish(fold, why);
}

int recipe_plan(const struct recipe *recipe, uint32_t width, uint32_t height, uint64_t seed, uint32_t epoch,
                uint64_t sample, struct geometry *ret_geometry, struct why *why) {
        struct fold fold;

        assert(recipe->kind == RECIPE_PIXELS && width > 0 && height > 0);

        fold_init(&fold, ret_geometry, width, height, &recipe->conversion);
        return plan_steps(recipe, recipe->has_left_operations ? recipe->idx_left : recipe->n_steps, &fold, seed, epoch,
                          sample, why);
}

int recipe_plan_motions(const struct recipe *recipe, uint32_t width, uint32_t height, uint64_t seed, uint32_t epoch,
                        uint64_t sample, struct geometry *ret_geometry, struct motions *ret_motions, struct why *why) {
        struct fold fold;

        assert(recipe->kind == RECIPE_PIXELS && width > 0 && height > 0);

        ret_motions->n = 0;
        fold_init(&fold, ret_geometry, width, height, &recipe->conversion);
        fold.motions = ret_motions;
        return plan_steps(recipe, recipe->n_steps, &fold, seed, epoch, sample, why);
}

int recipe_plan_mask(const struct recipe *recipe, uint32_t width, uint32_t height, bool is_wide, uint64_t seed,
                     uint32_t epoch, uint64_t sample, struct geometry *ret_geometry, struct why *why) {
        static const struct conversion UNCHANGED = { .format = { .dtype = DLP_DTYPE_UINT8,
                                                                 .n_channels = PIXEL_BYTES } },
                                       WIDE = { .format = { .dtype = DLP_DTYPE_UINT16,
                                                            .mode = PIXELS_I16,
                                                            .n_channels = 1 } };
        struct fold fold;

        assert(recipe->kind == RECIPE_PIXELS && width > 0 && height > 0);

        fold_init(&fold, ret_geometry, width, height, is_wide ? &WIDE : &UNCHANGED);
        fold.is_mask = true;
        return plan_steps(recipe, recipe->n_steps, &fold, seed, epoch, sample, why);
}
