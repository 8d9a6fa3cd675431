/* augment/recipe/parse.c: a recipe from its text. */
#include "daemon/augment/recipe/body.h"
#include "daemon/augment/recipe/names.h"
#include "proto/base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A step of the text while it is read, for messages. */
struct text_place {
        struct values_reader *reader;
        const struct grammar_step *written;
};

__attribute__((format(printf, 2, 3))) static int refuse_step(const struct text_place *place, const char *format, ...) {
        va_list arguments;
        struct why reason;

        va_start(arguments, format);
        why_set_list(&reason, -EINVAL, format, arguments);
        va_end(arguments);
        return grammar_refuse(place->reader->grammar, place->written->name.at, place->reader->why, "%s", reason.text);
}

/* ---- what may stand where -------------------------------------------------------------------------------------- */

/* The last step that sets the form of the result; NULL: there is none yet. */
static const struct step_type *last_form(const struct recipe *recipe) {
        for (uint32_t i = recipe->n_steps; i-- > 0;)
                if (!step_touches_pixels(recipe->steps[i].type))
                        return recipe->steps[i].type;
        return NULL;
}

/* Steps that set the form of the result come after all steps that touch pixels, except those that may follow them. None
 * is for bands, of which there may be more than a pixel has channels. */
static int check_place(const struct text_place *place, const struct step_type *type, const struct recipe *recipe) {
        const struct step_type *form = last_form(recipe);

        if (recipe->conversion.format.is_bands)
                return refuse_step(
                        place,
                        "\"%s\": numbers as they are stored (decode with mode=F or bands=N) are not changed; "
                        "expected the end",
                        type->kind.name);
        if (!form || !step_touches_pixels(type) || type->may_follow_form)
                return 0;
        return refuse_step(place,
                           "\"%s\" after \"%s\", which sets the form of the pixels; expected to, normalize, layout, "
                           "erasing or the end",
                           type->kind.name, form->kind.name);
}

/* All samples have one form, so what sets it cannot depend on draws. */
static int parse_check_form(const struct text_place *place, const struct step *step, uint32_t n_channels,
                            const struct recipe *recipe) {
        if (step->depth == 0)
                return 0;
        if (!step_touches_pixels(step->type))
                return refuse_step(
                        place,
                        "\"%s\" sets the form of all samples, so it cannot be in a group; write it after the "
                        "group",
                        step->type->kind.name);
        if (recipe->conversion.format.n_channels != n_channels)
                return refuse_step(place,
                                   "%s would change the number of channels of some samples from %u to %u, so it cannot "
                                   "be in a group; write it before or after the group",
                                   step->type->kind.name, n_channels, recipe->conversion.format.n_channels);
        return 0;
}

/* How many pictures a sample has must be the same for all, and clear from the text. */
static int parse_check_views(const struct text_place *place, const struct step *step, const struct recipe *recipe) {
        if (step->type->n_views == 0)
                return 0;
        if (step->depth > 0)
                return refuse_step(
                        place,
                        "\"%s\" makes %u pictures of each sample, so it cannot be in a group; write it before "
                        "or after the group",
                        step->type->kind.name, step->type->n_views);
        for (const struct step *other = recipe->steps; other < step; other++)
                if (other->type->n_views > 0)
                        return refuse_step(place,
                                           "\"%s\" after \"%s\": only one step of a part can make several pictures of "
                                           "each sample",
                                           step->type->kind.name, other->type->kind.name);
        return 0;
}

static int parse_check_weights(const struct text_place *place, const struct step *step, const struct recipe *recipe) {
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
                return refuse_step(place, "all weights of %s are 0, so none can be chosen", step->type->kind.name);
        return refuse_step(
                place,
                "%s=... of %s has %u number%s, and there are %u steps in its brackets; expected one for each "
                "of them",
                step->type->kind.arguments[idx_weights].name, step->type->kind.name, weights->n_list,
                weights->n_list == 1 ? "" : "s", n);
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

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static int parse_one(struct values_reader *reader, const struct grammar_step *written, bool is_first,
                     struct recipe *recipe);

/* The steps in the brackets of a group. */
static int read_inside(const struct text_place *place, const struct step_type *type, const struct value *inside,
                       struct recipe *recipe) {
        const char *bracket = inside->written.at;
        int r = 0;

        if (recipe->depth == GROUPS_DEEP_MAX)
                return grammar_refuse(place->reader->grammar, bracket, place->reader->why,
                                      "%s is within %u other groups, which is the limit", type->kind.name,
                                      GROUPS_DEEP_MAX);
        if (inside->inside.n == 0)
                return grammar_refuse(place->reader->grammar, bracket, place->reader->why,
                                      "no step in the brackets of %s; expected \"[\" and steps, as in %s",
                                      type->kind.name, type->kind.example);
        recipe->depth++;
        for (uint32_t i = 0; i < inside->inside.n && r == 0; i++)
                r = parse_one(place->reader, &inside->inside.at[i], false, recipe);
        recipe->depth--;
        return r;
}

static int parse_step(struct values_reader *reader, const struct grammar_step *written, const struct step_type *type,
                      struct recipe *recipe) {
        uint32_t idx = recipe->n_steps, n_channels = recipe->conversion.format.n_channels;
        const struct text_place place = { reader, written };
        struct step *step = &recipe->steps[idx];
        struct why reason;
        int r;

        if (idx == DLP_STEPS_MAX)
                return refuse_step(&place, "more than %u steps, which is the limit", DLP_STEPS_MAX);
        r = check_place(&place, type, recipe);
        if (r < 0)
                return r;
        step->type = type;
        step->stage = type->stage;
        step->is_formed = conversion_makes_floats(&recipe->conversion);
        step->depth = recipe->depth;
        recipe->n_steps++; /* those inside of it follow it */
        r = values_read(reader, &type->kind, written, step->values);
        if (r == 0 && type->group)
                r = read_inside(&place, type, &step->values[0], recipe);
        step->n_inside = recipe->n_steps - idx - 1;
        if (r == 0 && type->group)
                r = parse_check_weights(&place, step, recipe);
        if (r == 0 && type->convert && type->convert(step->values, &recipe->conversion, &reason) < 0)
                r = values_refuse(reader, &type->kind, written, &reason);
        if (r == 0)
                r = parse_check_form(&place, step, n_channels, recipe);
        if (r == 0)
                r = parse_check_views(&place, step, recipe);
        return r;
}

static int read_mode(struct values_reader *reader, const struct grammar_step *written, const struct step_type *type,
                     bool is_first, struct recipe *recipe) {
        const struct text_place place = { reader, written };
        struct value values[ARGUMENTS_MAX];
        int r;

        if (!is_first)
                return refuse_step(&place, type == &step_raw
                                                   ? "\"raw\" delivers the encoded bytes and cannot follow other steps"
                                                   : "\"decode\" can only be the first step");
        recipe->kind = type == &step_raw ? RECIPE_RAW : RECIPE_PIXELS;
        r = values_read(reader, &type->kind, written, values);
        return r == 0 && type == &step_decode ? step_decode_read(recipe, values, reader->why) : r;
}

/* Steps that one class of torchvision stands for. Their text has no mistakes; where they may stand is said of the
 * word. */
static int parse_replaced(const struct values_reader *reader, const struct grammar_step *written, const char *text,
                          struct recipe *recipe) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct why detail;
        struct values_reader inner = { reader->family, NULL, reader->store, &detail };
        struct grammar_steps steps;
        int r;

        if (written->n_arguments > 0)
                return grammar_expect(reader->grammar, written->arguments[0].value.at, "\")\": it has no arguments",
                                      reader->why);
        r = grammar_new("pipeline", text, &grammar, reader->why);
        if (r == 0)
                r = grammar_steps(grammar, grammar_all(grammar), &steps);
        inner.grammar = grammar;
        for (uint32_t i = 0; r == 0 && i < steps.n; i++) {
                r = parse_step(&inner, &steps.at[i], step_find(steps.at[i].name), recipe);
                if (r < 0)
                        return grammar_refuse(reader->grammar, written->name.at, reader->why,
                                              "in place of \"%.*s\": %s", grammar_shown(written->name),
                                              written->name.at, strstr(detail.text, ": ") + 2);
        }
        return r == 0 && written->stop ? grammar_expect(reader->grammar, written->stop, written->expected, reader->why)
                                       : r;
}

static int parse_one(struct values_reader *reader, const struct grammar_step *written, bool is_first,
                     struct recipe *recipe) {
        const struct step_type *type = step_find(written->name);
        const char *texts = written->name.n > 0 ? names_texts(written->name) : NULL;
        const struct text_place place = { reader, written };

        if (written->name.n > 0 && recipe->kind == RECIPE_RAW)
                return refuse_step(&place,
                                   "\"%.*s\" after \"raw\", which delivers the encoded bytes and cannot be followed by "
                                   "other steps",
                                   grammar_shown(written->name), written->name.at);
        if (type == &step_raw || type == &step_decode)
                return read_mode(reader, written, type, is_first, recipe);
        if (type)
                return parse_step(reader, written, type, recipe);
        if (texts)
                return parse_replaced(reader, written, texts, recipe);
        return names_refuse(reader->grammar, written->name, reader->why);
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

int recipe_read(struct grammar *grammar, struct grammar_steps steps, const enum pixel_mode *goes_on,
                struct recipe **ret_recipe, struct why *why) {
        _cleanup_(recipe_freep) struct recipe *recipe = calloc(1, sizeof(*recipe));
        struct value_store store;
        struct values_reader reader = { &picture_steps, grammar, &store, why };
        int r = 0;

        if (!recipe)
                return why_set(why, -ENOMEM, "no memory for a pipeline");
        if (steps.n == 0)
                return why_set(why, -EINVAL,
                               "the pipeline is empty; write the steps to apply to a picture, for example"
                               " \"random_resized_crop(224) hflip(0.5)\", or \"decode\", or \"raw\"");
        store = (struct value_store){ recipe->store, sizeof(recipe->store) };
        recipe->kind = RECIPE_PIXELS;
        recipe->goes_on = goes_on != NULL;
        conversion_init(&recipe->conversion);
        conversion_set_mode(&recipe->conversion, goes_on ? *goes_on : PIXELS_RGB);
        for (uint32_t i = 0; i < steps.n && r == 0; i++)
                r = parse_one(&reader, &steps.at[i], i == 0 && !goes_on, recipe);
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
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct grammar_steps steps;
        int r;

        if (strnlen(text, DLP_PIPELINE_MAX) == DLP_PIPELINE_MAX)
                return why_set(why, -EINVAL, "the pipeline's text is longer than %u bytes, which is the limit",
                               DLP_PIPELINE_MAX - 1);
        r = grammar_new("pipeline", text, &grammar, why);
        if (r == 0 && grammar_steps(grammar, grammar_all(grammar), &steps) < 0)
                r = why_set(why, -ENOMEM, "no memory for a pipeline");
        return r < 0 ? r : recipe_read(grammar, steps, NULL, ret_recipe, why);
}
