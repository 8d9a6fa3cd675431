#include "daemon/sound/sound_recipe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sound/recipe_type.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/typed.h"

#define NAMES_MAX 256u

static const struct sound_step_type *const TYPES[] = {
        &sound_step_gain,      &sound_step_noise,           &sound_step_spectrogram,  &sound_step_mel_spectrogram,
        &sound_step_mfcc,      &sound_step_amplitude_to_db, &sound_step_log,          &sound_step_normalize,
        &sound_step_time_mask, &sound_step_freq_mask,       &sound_step_spec_augment, &sound_step_columns,
        &sound_step_transpose,
};

static void sound_recipe_freep(struct sound_recipe **recipe) {
        sound_recipe_free(*recipe);
}

void sound_step_fini(struct sound_step *step) {
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

static const struct sound_step_type *sound_recipe_find_type(const char *word, size_t n) {
        for (size_t i = 0; i < ARRAY_SIZE(TYPES); i++)
                if (word_is(word, n, TYPES[i]->name))
                        return TYPES[i];
        for (size_t i = 0; i < ARRAY_SIZE(TYPES); i++)
                if (n > 0 && typed_is_class(word, n, TYPES[i]->name))
                        return TYPES[i];
        return NULL;
}

static int refuse_step(const struct step_text *reader, size_t n) {
        char names[NAMES_MAX] = "";
        struct nearest nearest;
        size_t length = 0;

        if (n == 0)
                return step_text_refuse_here(reader, "a step for sound, or the end");
        for (size_t i = 0; i < ARRAY_SIZE(TYPES) && length < sizeof(names); i++)
                length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", i > 0 ? ", " : "",
                                           TYPES[i]->name);
        return why_set(reader->why, -EINVAL,
                       "pipeline, column %zu: \"%.*s\" is not a step for sound%s; after audio there "
                       "may be %s",
                       step_text_column(reader, reader->at), word_shown(n), reader->at,
                       nearest_in(&nearest, reader->at, n, names), names);
}

static int sound_recipe_refuse_form(const struct step_text *reader, const struct sound_step_type *type,
                                    const struct sound_state *state, struct why *why) {
        static const char *const MADE[] = { "the sound itself", "a spectrogram", "features" };
        static const char *const NEEDED[] = { "the sound itself, and comes before the step that makes a spectrogram",
                                              "a spectrogram: write spectrogram or mel_spectrogram before it",
                                              "features" };
        unsigned needed = type->forms & SOUND_IN(SOUND_WAVE) ? SOUND_WAVE : SOUND_POWERS;

        return why_set(why, -EINVAL, "pipeline, column %zu: %s needs %s; the steps before it make %s",
                       step_text_column(reader, reader->at), type->name, NEEDED[needed], MADE[state->form]);
}

static int sound_recipe_read_step(struct step_text *reader, struct sound_recipe *recipe, struct sound_state *state) {
        size_t n = word_length(reader->at), column = step_text_column(reader, reader->at);
        const struct sound_step_type *type = sound_recipe_find_type(reader->at, n);
        struct sound_step *step = &recipe->steps[recipe->n_steps];
        struct why detail = { .text = "" };
        int r;

        if (!type)
                return refuse_step(reader, n);
        if (recipe->n_steps == SOUND_STEPS_MAX)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: more than %u steps after audio", column,
                               SOUND_STEPS_MAX);
        if (state->is_turned)
                return why_set(reader->why, -EINVAL, "pipeline, column %zu: transpose is the last step", column);
        if (!(type->forms & SOUND_IN(state->form)))
                return sound_recipe_refuse_form(reader, type, state, reader->why);
        reader->at += n;
        step->type = type;
        r = sound_arguments_read(reader, step);
        if (r < 0)
                return r;
        recipe->n_steps++;
        r = type->settle ? type->settle(step, state, &detail) : 0;
        return r < 0 ? why_set(reader->why, r, "pipeline, column %zu: %s: %s", column, type->name, detail.text) : 0;
}

int sound_recipe_parse(struct step_text *reader, const struct sound_input *input, struct sound_recipe **ret_recipe) {
        _cleanup_(sound_recipe_freep) struct sound_recipe *recipe = calloc(1, sizeof(*recipe));
        struct sound_state state = { .rate = input->rate, .n_channels = input->n_channels, .form = SOUND_WAVE };

        if (!recipe)
                return why_errno(reader->why, -ENOMEM, "pipeline");
        step_text_skip_blanks(reader);
        while (*reader->at) {
                int r = sound_recipe_read_step(reader, recipe, &state);

                if (r < 0)
                        return r;
                step_text_skip_blanks(reader);
        }
        recipe->n_channels = input->n_channels;
        recipe->is_wave = state.form == SOUND_WAVE;
        recipe->is_turned = state.is_turned;
        recipe->n_rows = state.n_rows;
        *ret_recipe = TAKE_PTR(recipe);
        return 0;
}

char *sound_recipe_text(const struct sound_recipe *recipe) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                fputc(' ', stream);
                sound_arguments_print(&recipe->steps[i], stream);
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
                               (unsigned long long)n_frames, maker->type->name, maker->spectrum->fft.n, margin,
                               margin + 1);
        if (n_made(maker, n_frames) == 0 || (n == 0 && margin > 0 && maker->edge == SOUND_EDGE_REPLICATE))
                return why_set(why, -EBADMSG,
                               "has %llu frames, which %s(n_fft=%u) makes no column of; make all sounds as long with "
                               "audio(seconds=...)",
                               (unsigned long long)n_frames, maker->type->name, maker->spectrum->fft.n);
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
