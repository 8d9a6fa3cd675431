/* Coverage-guided (libFuzzer): any text as a pipeline. What is accepted must be accepted again as it is printed, and
 * must plan every size of picture without a crop outside of it, and boxes with it. The same for the steps of sounds,
 * which are run, for the collation at the end of a text, for a function and for views. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "daemon/codec/steps/python_step.h"
#include "daemon/codec/steps/sound_steps.h"
#include "daemon/codec/steps/views_step.h"
#include "daemon/sound/sound_recipe.h"
#include "proto/base/cleanup.h"
#include "tests/support/collation_of.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void plan(const struct recipe *recipe, uint32_t width, uint32_t height) {
        static const float boxes[2][4] = { { 0, 0, 1, 1 }, { 100, 7, 70000, 3 } };
        uint8_t bytes[sizeof(boxes)], kept = 0;
        const struct recipe_boxes given = { (const uint8_t *)boxes, sizeof(boxes) / (4 * sizeof(float)) };
        struct geometry geometry, plain;
        struct motions motions;
        const struct box *box = &geometry.source;
        struct why why;

        geometry.boxes = plain.boxes = &given;
        if (recipe_plan(recipe, width, height, 1, 2, 3, &plain, &why) < 0)
                return;
        why.text[0] = '\0';
        if (recipe_plan_motions(recipe, width, height, 1, 2, 3, &geometry, &motions, &why) < 0) {
                if (!why.text[0])
                        abort();
                return; /* not for pictures with boxes */
        }
        if (geometry.width != plain.width || geometry.height != plain.height)
                abort();
        memcpy(bytes, boxes, sizeof(bytes));
        motions_apply(&motions, bytes, 2, &kept);
        if (!recipe_drops_boxes(recipe) && kept != 3)
                abort();
        if (box->width == 0 || box->height == 0 || box->width > width || box->x > width - box->width ||
            box->height > height || box->y > height - box->height || geometry.width == 0 || geometry.height == 0)
                abort();
}

#define N_FRAMES       300u
#define WORK_BYTES_MAX (1u << 17)

/* Writes what it announced, into memory that is not larger. */
static void run_sound_steps(const struct sound_recipe *recipe, uint32_t n_channels) {
        uint64_t margin = sound_recipe_margin(recipe), n_scratch = sound_recipe_scratch(recipe, N_FRAMES), n_out;
        struct sound_draws draws = { .seed = 1, .epoch = 2, .sample = 3 };
        struct sound_shape shape;
        float *wave, *scratch, *out;

        if (sound_recipe_shape(recipe, N_FRAMES, &shape, NULL) < 0)
                return;
        n_out = shape.n_outer * shape.n_time * shape.n_inner;
        if (n_out > WORK_BYTES_MAX || n_scratch > WORK_BYTES_MAX || margin > WORK_BYTES_MAX)
                return;
        wave = calloc(N_FRAMES * n_channels + 2 * margin, sizeof(*wave));
        scratch = malloc(n_scratch + 1);
        out = malloc(n_out * sizeof(*out));
        if (!wave || !scratch || !out)
                abort();
        for (uint32_t i = 0; i < N_FRAMES * n_channels; i++)
                wave[margin + i] = (float)(i * i % 101) / 101;
        sound_recipe_run(recipe, &draws, wave + margin, N_FRAMES, scratch, out, shape.n_time * shape.n_inner, NULL);
        free(wave);
        free(scratch);
        free(out);
}

/* audio and the steps after it; NULL: they are refused. The caller frees it. */
static char *print_sound_steps(const char *text, bool runs) {
        struct sound_recipe *recipe = NULL;
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct grammar_steps all_steps;
        struct sound_input input;
        struct sound_steps steps;
        char *first, *others, *all;

        if (grammar_new("pipeline", text, &grammar, NULL) < 0 ||
            grammar_steps(grammar, grammar_all(grammar), &all_steps) < 0)
                abort();
        if (all_steps.n == 0 || !sound_steps_are(&all_steps.at[0]) ||
            sound_steps_read(grammar, &all_steps.at[0], &steps, NULL) < 0)
                return NULL;
        input = (struct sound_input){ .rate = steps.rate, .n_channels = steps.is_mono ? 1 : 2 };
        if (sound_recipe_read(grammar, (struct grammar_steps){ all_steps.at + 1, all_steps.n - 1 }, &input, &recipe,
                              NULL) < 0)
                return NULL;
        if (runs)
                run_sound_steps(recipe, input.n_channels);
        first = sound_steps_text(&steps);
        others = sound_recipe_text(recipe);
        if (!first || !others || asprintf(&all, "%s%s", first, others) < 0)
                abort();
        free(first);
        free(others);
        sound_recipe_free(recipe);
        return all;
}

static void read_sound_steps(const char *text) {
        char *printed = print_sound_steps(text, true), *twice;

        if (!printed)
                return;
        twice = print_sound_steps(printed, false);
        if (!twice || strcmp(printed, twice) != 0)
                abort();
        free(printed);
        free(twice);
}

static void read_collation(const char *text) {
        struct collation collation, again;
        size_t n = strlen(text), begin = 0, begin_again = 0;
        char *printed, *twice;
        struct why why;

        if (collation_of(text, &collation, &begin, &why) < 0 || !collation.type)
                return;
        printed = collation_text(&collation);
        if (begin > n || collation_of(printed, &again, &begin_again, &why) < 0 || begin_again != 0)
                abort();
        twice = collation_text(&again);
        if (strcmp(printed, twice) != 0)
                abort();
        for (uint32_t n_dims = 0; n_dims < 4; n_dims++) {
                struct field_form form = { .name = "f",
                                           .dtype = DLP_DTYPE_INT16,
                                           .n_dims = n_dims,
                                           .shape = { -1, 2, 3 },
                                           .max_bytes = 100,
                                           .unit_bytes = 2,
                                           .how = n_dims ? COLLATE_RAGGED : COLLATE_STACK };
                struct layout_limits limits = { .batch_size = 4, .n_slots = 2, .memory_limit = 1u << 30 };
                struct layout layout;

                if (collation_apply(&collation, &form, &why) == 0)
                        (void)layout_plan(&form, 1, &limits, &layout, &why);
        }
        free(printed);
        free(twice);
}

static void read_views(const char *text) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct grammar_steps steps;
        struct views views, again;
        uint32_t n, n_again;

        if (grammar_new("pipeline", text, &grammar, NULL) < 0 ||
            grammar_steps(grammar, grammar_all(grammar), &steps) < 0)
                abort();
        if (views_read(grammar, steps, &views, &n, NULL) < 0)
                return;
        if (n > steps.n || (!views.is_crops && (views.n == 0) != (n == steps.n)) ||
            (views.n > 0 && (views.n < 2 || views.n > VIEWS_MAX)))
                abort();
        steps.n = n;
        if (views_read(grammar, steps, &again, &n_again, NULL) < 0 || n_again != n ||
            again.is_crops != views.is_crops || (again.n > 0 && !again.is_crops))
                abort();
}

/* A function of a part with one field, "x"; NULL: it is refused, or there is none. The caller frees it. */
static char *print_function(const char *text) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        static const char *const FIELDS[] = { "x" };
        static struct python_call call;
        struct grammar_steps steps;
        struct python_step step, *const first = &step;
        char *printed = NULL;
        size_t size;
        FILE *stream;
        uint32_t n;

        if (grammar_new("pipeline", text, &grammar, NULL) < 0 ||
            grammar_steps(grammar, grammar_all(grammar), &steps) < 0)
                abort();
        if (python_step_read(grammar, steps, &call, &n, NULL) < 0 || !call.function[0] ||
            python_step_bind(&call, FIELDS, 1, &step, NULL) < 0)
                return NULL;
        stream = open_memstream(&printed, &size);
        if (n + 1 + call.after.n != steps.n || !stream)
                abort();
        python_step_print((const struct python_step *const *)&first, 1, stream);
        fclose(stream);
        return printed;
}

static void read_function(const char *text) {
        char *printed = print_function(text), *twice;

        if (!printed)
                return;
        twice = print_function(printed);
        if (!twice || strcmp(printed, twice) != 0)
                abort();
        free(printed);
        free(twice);
}

/* What is a name, a part or a step lies in the text, one after the other. */
static void read_parts(const char *text) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        const char *at, *next, *end;

        if (grammar_new("pipeline", text, &grammar, NULL) < 0)
                abort();
        at = next = grammar_all(grammar).at;
        for (end = at + grammar_all(grammar).n; next; at = next) {
                struct grammar_part part;

                if (grammar_next_part(grammar, &next, &part) < 0)
                        abort();
                for (uint32_t i = 0; i < part.n_fields; at = part.fields[i++].value.at)
                        if (part.fields[i].value.at < at || part.fields[i].key.at < at || part.fields[i].value.n == 0)
                                abort();
                if ((part.colon && part.colon < at) || (part.stop && part.stop < at) || part.end < at ||
                    part.end > end || (next && next <= part.end))
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static const uint32_t sides[] = { 1, 2, 7, 224, 500, 65535 };
        char *text = strndup((const char *)data, n_bytes);
        struct recipe *recipe = NULL, *again = NULL;
        struct why why;

        if (recipe_parse(text, &recipe, &why) == 0) {
                if (recipe_parse(recipe_text(recipe), &again, &why) < 0 ||
                    strcmp(recipe_text(recipe), recipe_text(again)) != 0)
                        abort();
                for (size_t i = 0; recipe_kind(recipe) == RECIPE_PIXELS && i < sizeof(sides) / sizeof(sides[0]); i++)
                        for (size_t k = 0; k < sizeof(sides) / sizeof(sides[0]); k++)
                                plan(recipe, sides[i], sides[k]);
        }
        read_sound_steps(text);
        read_collation(text);
        read_views(text);
        read_function(text);
        read_parts(text);
        recipe_free(recipe);
        recipe_free(again);
        free(text);
        return 0;
}
