#include "daemon/sound/sound_recipe.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sound/recipe_type.h"
#include "proto/base/cleanup.h"

#define SOUND_STEP_TEXT_MAX 1024u /* of a step, with all defaults */

#define KIND(name) extern const struct sound_step_type sound_step_##name;
#include "kinds/sounds.h"
#undef KIND

static const struct kind *const SOUNDS[] = {
#define KIND(name) &sound_step_##name.kind,
#include "kinds/sounds.h"
#undef KIND
        NULL,
};

static const struct kind_word LEFT_OUT[] = { { "sample_rate", "it is the rate of audio(rate=...)" }, {} };

const struct kind_family sound_kinds = { .noun = "sound step",
                                         .kinds = SOUNDS,
                                         .numbers = FAMILY_FIFTEEN,
                                         .keys = FAMILY_OF_DEFAULTS,
                                         .left_out = LEFT_OUT };

static void sound_recipe_freep(struct sound_recipe **recipe) {
        sound_recipe_free(*recipe);
}

/* Frees what settle() has made. */
static void sound_step_fini(struct sound_step *step) {
        spectrum_free(step->spectrum);
        free(step->cosines);
}

void sound_recipe_free(struct sound_recipe *recipe) {
        if (!recipe)
                return;
        for (uint32_t i = 0; i < recipe->n_steps; i++)
                sound_step_fini(&recipe->steps[i]);
        free(recipe);
}

bool sound_recipe_is_empty(const struct sound_recipe *recipe) {
        return recipe->n_steps == 0;
}

bool sound_recipe_makes_features(const struct sound_recipe *recipe) {
        return !recipe->is_wave;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct value *sound_step_value(struct sound_step *step, const char *name) {
        uint32_t i = 0, n = kind_n_arguments(&step->type->kind);

        while (i < n && strcmp(step->type->kind.arguments[i].name, name) != 0)
                i++;
        assert(i < n);
        return &step->values[i];
}

int sound_settle_features(struct sound_step *step, struct sound_state *state, struct why *why) {
        (void)step;
        (void)why;
        state->form = SOUND_FEATURES;
        return 0;
}

static int sound_recipe_check_form(const struct sound_step_type *type, const struct sound_state *state,
                                   struct why *why) {
        static const char *const MADE[] = { "the sound itself", "a spectrogram", "features" };
        static const char *const NEEDED[] = { "the sound itself, and comes before the step that makes a spectrogram",
                                              "a spectrogram: write spectrogram or mel_spectrogram before it",
                                              "features" };
        unsigned needed = type->forms & SOUND_IN(SOUND_WAVE) ? SOUND_WAVE : SOUND_POWERS;

        if (state->is_turned)
                return why_set(why, -EINVAL, "transpose is the last step");
        if (!(type->forms & SOUND_IN(state->form)))
                return why_set(why, -EINVAL, "it needs %s; the steps before it make %s", NEEDED[needed],
                               MADE[state->form]);
        return 0;
}

static int sound_recipe_read_step(const struct values_reader *reader, const struct grammar_step *written,
                                  struct sound_recipe *recipe, struct sound_state *state) {
        const struct kind *kind = kind_find(&sound_kinds, written->name);
        const struct sound_step_type *type = (const struct sound_step_type *)kind;
        struct sound_step *step = &recipe->steps[recipe->n_steps];
        struct why reason = { .text = "" };
        int r;

        if (!kind)
                return kind_refuse(&sound_kinds, reader->grammar, written->name, reader->why);
        if (recipe->n_steps == SOUND_STEPS_MAX)
                return grammar_refuse(reader->grammar, written->name.at, reader->why, "more than %u steps after audio",
                                      SOUND_STEPS_MAX);
        if (sound_recipe_check_form(type, state, &reason) < 0)
                return values_refuse(reader, kind, written, &reason);
        step->type = type;
        r = values_read(reader, kind, written, step->values);
        if (r < 0)
                return r;
        recipe->n_steps++;
        r = type->settle ? type->settle(step, state, &reason) : 0;
        return r == -EINVAL ? values_refuse(reader, kind, written, &reason) : r;
}

int sound_recipe_read(struct grammar *grammar, struct grammar_steps steps, const struct sound_input *input,
                      struct sound_recipe **ret_recipe, struct why *why) {
        _cleanup_(sound_recipe_freep) struct sound_recipe *recipe = calloc(1, sizeof(*recipe));
        struct sound_state state = { .rate = input->rate, .n_channels = input->n_channels, .form = SOUND_WAVE };
        struct value_store store = { 0 }; /* numbers and choices need none */
        struct values_reader reader = { &sound_kinds, grammar, &store, why };

        if (!recipe)
                return why_errno(why, -ENOMEM, "pipeline");
        for (uint32_t i = 0; i < steps.n; i++) {
                int r = sound_recipe_read_step(&reader, &steps.at[i], recipe, &state);

                if (r < 0)
                        return r == -ENOMEM ? why_errno(why, r, "pipeline") : r;
        }
        recipe->n_channels = input->n_channels;
        recipe->is_wave = state.form == SOUND_WAVE;
        recipe->is_turned = state.is_turned;
        recipe->n_rows = state.n_rows;
        *ret_recipe = TAKE_PTR(recipe);
        return 0;
}

char *sound_recipe_text(const struct sound_recipe *recipe) {
        char *text = NULL, step[SOUND_STEP_TEXT_MAX];
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                values_print(&sound_kinds, &recipe->steps[i].type->kind, recipe->steps[i].values, NULL, NULL, step,
                             sizeof(step));
                fprintf(stream, " %s", step);
        }
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

const struct sound_step *sound_recipe_maker(const struct sound_recipe *recipe, uint32_t *ret_idx) {
        uint32_t i = 0;

        while (i < recipe->n_steps && !recipe->steps[i].spectrum)
                i++;
        *ret_idx = i;
        return i < recipe->n_steps ? &recipe->steps[i] : NULL;
}

/* Of the sound with its silence. */
static uint64_t n_made(const struct sound_step *maker, uint64_t n_frames) {
        return spectrum_n_columns(maker->spectrum, n_frames + 2 * (uint64_t)maker->n_silent);
}

/* What the step after it cuts off at once is not made. */
void sound_recipe_columns(const struct sound_recipe *recipe, uint64_t n_frames, struct sound_columns *ret_columns) {
        uint32_t idx;
        const struct sound_step *maker = sound_recipe_maker(recipe, &idx);
        struct sound_columns columns = { .n_made = n_made(maker, n_frames) };

        for (uint32_t i = idx + 1; i < recipe->n_steps; i++) {
                const struct sound_step *step = &recipe->steps[i];

                if (!step->type->n_columns)
                        continue;
                columns.n_last = columns.n_fixed = step->type->n_columns(step);
                if (i == idx + 1 && columns.n_made > columns.n_fixed)
                        columns.n_made = columns.n_fixed;
                if (columns.n_most < columns.n_fixed)
                        columns.n_most = columns.n_fixed;
        }
        if (columns.n_most < columns.n_made)
                columns.n_most = columns.n_made;
        if (columns.n_fixed == 0)
                columns.n_last = columns.n_made;
        *ret_columns = columns;
}

static void shape_of_wave(const struct sound_recipe *recipe, uint64_t n_frames, struct sound_shape *shape) {
        *shape = (struct sound_shape){ .n_dims = recipe->n_channels == 1 ? 1 : 2,
                                       .n_time = n_frames,
                                       .n_outer = 1,
                                       .n_inner = recipe->n_channels,
                                       .sizes = { (int64_t)n_frames, recipe->n_channels } };
}

void sound_recipe_bound(const struct sound_recipe *recipe, uint64_t n_frames, struct sound_shape *ret_shape) {
        struct sound_columns columns;
        uint32_t begin = recipe->n_channels > 1;

        if (recipe->is_wave) {
                shape_of_wave(recipe, n_frames, ret_shape);
                return;
        }
        sound_recipe_columns(recipe, n_frames, &columns);
        *ret_shape = (struct sound_shape){
                .n_dims = 2 + begin,
                .idx_time = begin + !recipe->is_turned,
                .n_time = columns.n_last,
                .n_outer = (uint64_t)recipe->n_channels * (recipe->is_turned ? 1 : recipe->n_rows),
                .n_inner = recipe->is_turned ? recipe->n_rows : 1,
                .n_fixed = columns.n_fixed,
                .sizes = { recipe->n_channels },
        };
        ret_shape->sizes[begin + recipe->is_turned] = recipe->n_rows;
        ret_shape->sizes[ret_shape->idx_time] = (int64_t)columns.n_last;
}

static int sound_recipe_check_length(const struct sound_step *maker, uint64_t n_frames, struct why *why) {
        uint64_t n = n_frames + 2 * (uint64_t)maker->n_silent;
        uint32_t margin = spectrum_margin(maker->spectrum);

        if (margin > 0 && maker->edge == SOUND_EDGE_REFLECT && n <= margin)
                return why_set(why, -EBADMSG,
                               "has %llu frames, and %s(n_fft=%u) mirrors %u at each end, for which it needs %u at "
                               "least; use pad_mode=constant, or make all sounds as long with audio(seconds=...)",
                               (unsigned long long)n_frames, maker->type->kind.name, maker->spectrum->fft.n, margin,
                               margin + 1);
        if (n_made(maker, n_frames) == 0 || (n == 0 && margin > 0 && maker->edge == SOUND_EDGE_REPLICATE))
                return why_set(why, -EBADMSG,
                               "has %llu frames, which %s(n_fft=%u) makes no column of; make all sounds as long with "
                               "audio(seconds=...)",
                               (unsigned long long)n_frames, maker->type->kind.name, maker->spectrum->fft.n);
        return 0;
}

int sound_recipe_shape(const struct sound_recipe *recipe, uint64_t n_frames, struct sound_shape *ret_shape,
                       struct why *why) {
        uint32_t idx;
        const struct sound_step *maker = sound_recipe_maker(recipe, &idx);
        int r = maker ? sound_recipe_check_length(maker, n_frames, why) : 0;

        if (r < 0)
                return r;
        sound_recipe_bound(recipe, n_frames, ret_shape);
        return 0;
}
