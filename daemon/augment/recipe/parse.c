/* augment/recipe/parse.c: a recipe from its text. */
#include "daemon/augment/recipe/body.h"
#include "daemon/augment/recipe/names.h"
#include "daemon/augment/recipe/read_arguments.h"
#include "daemon/augment/torchvision.h"
#include "proto/base/cleanup.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last step that sets the form of the result; NULL: there is none yet. */
static const struct step_type *last_form(const struct recipe *recipe) {
        for (uint32_t i = recipe->n_steps; i-- > 0;)
                if (!step_touches_pixels(recipe->steps[i].type))
                        return recipe->steps[i].type;
        return NULL;
}

/* Steps that set the form of the result come after all steps that touch pixels, except those that may follow them. None
 * is for bands, of which there may be more than a pixel has channels. */
static int parse_check_place(const struct step_text *reader, const struct step_type *type, const char *word,
                             const struct recipe *recipe) {
        const struct step_type *form = last_form(recipe);

        if (recipe->conversion.format.is_bands)
                return why_set(
                        reader->why, -EINVAL,
                        "pipeline, column %zu: \"%s\": numbers as they are stored (decode with mode=F or bands=N) "
                        "are not changed; expected the end",
                        step_text_column(reader, word), type->name);
        if (!form || !step_touches_pixels(type) || type->may_follow_form)
                return 0;
        return why_set(reader->why, -EINVAL,
                       "pipeline, column %zu: \"%s\" after \"%s\", which sets the form of the pixels; expected to, "
                       "normalize, layout, erasing or the end",
                       step_text_column(reader, word), type->name, form->name);
}

static int parse_convert(const struct step_text *reader, const struct step *step, const char *word,
                         struct recipe *recipe) {
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

/* All samples have one form, so what sets it cannot depend on draws. */
static int check_form(const struct step_text *reader, const struct step *step, const char *word, uint32_t n_channels,
                      const struct recipe *recipe) {
        if (step->depth == 0)
                return 0;
        if (!step_touches_pixels(step->type))
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: \"%s\" sets the form of all samples, so it cannot be in a group; "
                               "write it after the group",
                               step_text_column(reader, word), step->type->name);
        if (recipe->conversion.format.n_channels != n_channels)
                return why_set(
                        reader->why, -EINVAL,
                        "pipeline, column %zu: %s would change the number of channels of some samples from %u to "
                        "%u, so it cannot be in a group; write it before or after the group",
                        step_text_column(reader, word), step->type->name, n_channels,
                        recipe->conversion.format.n_channels);
        return 0;
}

/* How many pictures a sample has must be the same for all, and clear from the text. */
static int parse_check_views(const struct step_text *reader, const struct step *step, const char *word,
                             const struct recipe *recipe) {
        if (step->type->n_views == 0)
                return 0;
        if (step->depth > 0)
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: \"%s\" makes %u pictures of each sample, so it cannot be in a "
                               "group; write it before or after the group",
                               step_text_column(reader, word), step->type->name, step->type->n_views);
        for (const struct step *other = recipe->steps; other < step; other++)
                if (other->type->n_views > 0)
                        return why_set(reader->why, -EINVAL,
                                       "pipeline, column %zu: \"%s\" after \"%s\": only one step of a part can make "
                                       "several pictures of each sample",
                                       step_text_column(reader, word), step->type->name, other->type->name);
        return 0;
}

static int parse_check_weights(const struct step_text *reader, const struct step *step, const char *word,
                               const struct recipe *recipe) {
        unsigned idx_weights = step->type->group->idx_weights;
        const struct value *weights = &step->values[idx_weights];
        uint32_t begins[LIST_MAX], ends[LIST_MAX], n;
        double sum = 0;

        if (idx_weights == 0 || weights->n_list == 0)
                return 0;
        n = group_branches(recipe, (uint32_t)(step - recipe->steps), begins, ends);
        for (uint32_t i = 0; i < weights->n_list; i++)
                sum += weights->list[i];
        if (weights->n_list == n && sum > 0)
                return 0;
        if (weights->n_list == n)
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: all weights of %s are 0, so none can be chosen",
                               step_text_column(reader, word), step->type->name);
        return why_set(reader->why, -EINVAL,
                       "pipeline, column %zu: %s=... of %s has %u number%s, and there are %u steps in its brackets; "
                       "expected one for each of them",
                       step_text_column(reader, word), step->type->arguments[idx_weights].name, step->type->name,
                       weights->n_list, weights->n_list == 1 ? "" : "s", n);
}

static int parse_read_step(struct step_text *reader, const struct step_type *type, const char *word,
                           struct recipe *recipe) {
        uint32_t idx = recipe->n_steps, n_channels = recipe->conversion.format.n_channels;
        struct step *step = &recipe->steps[idx];
        unsigned given = 0;
        int r;

        if (idx == DLP_STEPS_MAX)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: more than %u steps, which is the limit",
                               step_text_column(reader, word), DLP_STEPS_MAX);
        r = parse_check_place(reader, type, word, recipe);
        if (r < 0)
                return r;
        step->type = type;
        step->stage = stage_named(type->name);
        step->is_formed = conversion_makes_floats(&recipe->conversion);
        step->depth = recipe->depth;
        recipe->n_steps++; /* those inside of it follow it */
        r = read_arguments(reader, type, step, recipe, &given);
        if (r == 0)
                r = fill_defaults(reader, word, step, given);
        step->n_inside = recipe->n_steps - idx - 1;
        if (r == 0 && type->group)
                r = parse_check_weights(reader, step, word, recipe);
        if (r == 0)
                r = parse_convert(reader, step, word, recipe);
        if (r == 0)
                r = check_form(reader, step, word, n_channels, recipe);
        if (r == 0)
                r = parse_check_views(reader, step, word, recipe);
        return r;
}

/* What is done with the orientation that a camera noted. */
static const char *const EXIF_NAMES[] = { "ignore", "transpose" };

/* `raw` and `decode` are not in the table of steps: they do not change any pixel. */
static const struct step_type DECODE = {
        .name = "decode",
        .example = "decode(max_pixels=1000000)",
        .arguments = { { ARGUMENT_LIST, "max_pixels", NULL, 1, RECIPE_MAX_PIXELS_MAX, .counts = 1u << 1,
                         .is_whole = true, .form = "N" },
                       { ARGUMENT_CHOICE, "exif", "ignore", .choices = EXIF_NAMES,
                         .n_choices = ARRAY_SIZE(EXIF_NAMES) },
                       { ARGUMENT_CHOICE, "mode", "RGB", .choices = PIXEL_MODE_NAMES, .n_choices = N_PIXEL_MODES },
                       { ARGUMENT_CHOICE, "mask", "uint8", .choices = MASK_DTYPE_NAMES, .n_choices = N_MASK_DTYPES },
                       { ARGUMENT_LIST, "bands", NULL, 1, RECIPE_BANDS_MAX, .counts = 1u << 1, .is_whole = true,
                         .form = "N" } },
};

/* Which numbers of a picture are delivered. */
static int read_channels(struct recipe *recipe, const struct step *step, unsigned given, struct why *why) {
        struct conversion *conversion = &recipe->conversion;

        conversion_set_mode(conversion, given & 4u ? (enum pixel_mode)step->values[2].choice : PIXELS_RGB);
        if (given & 16u && !conversion_set_bands(conversion, (uint32_t)step->values[4].list[0]))
                return why_set(
                        why, -EINVAL,
                        "pipeline: decode: bands=N needs mode=L for bands of 8 bits, I;16 for bands of 16 bits or F "
                        "for float32");
        if (conversion->format.is_bands && given & (2u | 8u))
                return why_set(
                        why, -EINVAL,
                        "pipeline: decode: exif and mask are for pictures, and with mode=F or bands=N numbers are "
                        "delivered as they are stored: leave them out");
        return 0;
}

static int read_decode(struct step_text *reader, struct recipe *recipe) {
        struct step step = { .type = &DECODE };
        unsigned given = 0;
        int r;

        r = read_arguments(reader, &DECODE, &step, recipe, &given);
        if (r < 0)
                return r;
        recipe->max_pixels = given & 1u ? (uint64_t)step.values[0].list[0] : 0;
        recipe->is_upright = given & 2u && step.values[1].choice == 1;
        recipe->has_mask_dtype = given & 8u;
        recipe->idx_mask_dtype = given & 8u ? step.values[3].choice : 0;
        return read_channels(recipe, &step, given, reader->why);
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
static int parse_read_steps(struct step_text *reader, const char *steps, const char *word, struct recipe *recipe) {
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
                const struct step_type *type = step_find(inner.at, n);
                struct why detail = {};

                assert(type);
                inner.at += n;
                inner.why = &detail;
                r = parse_read_step(&inner, type, steps, recipe);
                if (r < 0)
                        return why_set(reader->why, r, "pipeline, column %zu: in place of \"%.*s\": %s",
                                       step_text_column(reader, word), word_shown(word_length(word)), word,
                                       strstr(detail.text, ": ") + 2);
                step_text_skip_blanks(&inner);
        }
        return r;
}

static int parse_read_one(struct step_text *reader, unsigned place, struct recipe *recipe) {
        const char *word, *steps;
        const struct step_type *type;
        size_t n_word;

        reader->at = word = skip_module(reader->at);
        n_word = word_length(word);
        type = step_find_typed(word, n_word);
        steps = torchvision_steps(word, n_word);
        if (n_word == 0)
                return step_refuse(reader, word, 0);
        if (recipe->kind == RECIPE_RAW)
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: \"%.*s\" after \"raw\", which delivers the encoded bytes and"
                               " cannot be followed by other steps",
                               step_text_column(reader, word), word_shown(n_word), word);
        reader->at += n_word;
        if (type)
                return parse_read_step(reader, type, word, recipe);
        if (steps)
                return parse_read_steps(reader, steps, word, recipe);
        if (is_mode(word, n_word))
                return read_mode(reader, word, n_word, place, recipe);
        return step_refuse(reader, word, n_word);
}

/* Steps with blanks or commas between them, up to "]". */
static int parse_read_list(struct step_text *reader, struct recipe *recipe) {
        while (*reader->at != ']') {
                const char *after;
                int r = parse_read_one(reader, 1, recipe); /* decode and raw cannot be here */

                if (r < 0)
                        return r;
                after = reader->at;
                step_text_skip_blanks(reader);
                if (*reader->at == ',') {
                        reader->at++;
                        step_text_skip_blanks(reader);
                } else if (*reader->at != ']' && reader->at == after) {
                        return step_text_refuse_here(reader, "\",\" and the next step of the group, or \"]\"");
                }
        }
        reader->at++;
        return 0;
}

int read_inside(struct step_text *reader, const struct step_type *type, struct recipe *recipe) {
        uint32_t n_before = recipe->n_steps;
        const char *begin = reader->at;
        char expected[120];
        int r;

        snprintf(expected, sizeof(expected), "\"[\" and steps, as in %s", type->example);
        if (*reader->at != '[')
                return step_text_refuse_here(reader, expected);
        if (recipe->depth == GROUPS_DEEP_MAX)
                return why_set(reader->why, -EINVAL,
                               "pipeline, column %zu: %s is within %u other groups, which is the limit",
                               step_text_column(reader, begin), type->name, GROUPS_DEEP_MAX);
        reader->at++;
        step_text_skip_blanks(reader);
        recipe->depth++;
        r = parse_read_list(reader, recipe);
        recipe->depth--;
        if (r == 0 && recipe->n_steps == n_before)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: no step in the brackets of %s; expected %s",
                               step_text_column(reader, begin), type->name, expected);
        return r;
}

static int parse_read_all(struct step_text *reader, struct recipe *recipe) {
        step_text_skip_blanks(reader);
        if (*reader->at == '\0')
                return why_set(reader->why, -EINVAL,
                               "the pipeline is empty; write the steps to apply to a picture, for example"
                               " \"random_resized_crop(224) hflip(0.5)\", or \"decode\", or \"raw\"");

        for (unsigned place = recipe->goes_on; *reader->at; place++) {
                int r = parse_read_one(reader, place, recipe);

                if (r < 0)
                        return r;
                if (*reader->at && !strchr(" \t\r\n", *reader->at))
                        return step_text_refuse_here(reader, "a blank and the next step, or the end");
                step_text_skip_blanks(reader);
        }
        return 0;
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

static int parse_parse(const char *text, bool goes_on, enum pixel_mode mode, struct recipe **ret_recipe,
                       struct why *why) {
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
        recipe->goes_on = goes_on;
        conversion_init(&recipe->conversion);
        conversion_set_mode(&recipe->conversion, mode);
        r = parse_read_all(&reader, recipe);
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

int recipe_parse(const char *text, struct recipe **ret_recipe, struct why *why) {
        return parse_parse(text, false, PIXELS_RGB, ret_recipe, why);
}

int recipe_parse_after(const char *text, enum pixel_mode mode, struct recipe **ret_recipe, struct why *why) {
        return parse_parse(text, true, mode, ret_recipe, why);
}
