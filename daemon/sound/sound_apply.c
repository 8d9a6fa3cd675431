/* The steps of a recipe, one after the other, for one sound. */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/sound/recipe_type.h"

const struct sound_code *sound_code_best(void) {
        const struct sound_code *avx2 = sound_code_avx2();

        return avx2 ? avx2 : &SOUND_CODE_PLAIN;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* What is beyond the sound for a spectrum, on each side: silence, and what the edge says. */
static uint32_t n_beyond(const struct sound_step *maker) {
        return maker->n_silent + spectrum_margin(maker->spectrum);
}

/* Two channels lie in turns, and are taken apart one by one. */
uint32_t sound_recipe_margin(const struct sound_recipe *recipe) {
        uint32_t idx;
        const struct sound_step *maker = sound_recipe_maker(recipe, &idx);

        return maker && recipe->n_channels == 1 ? n_beyond(maker) : 0;
}

/* Floats of the scratch, in this sequence. */
struct rooms {
        uint64_t n_apart;    /* a channel with what is beyond it */
        uint64_t n_bands;    /* what MFCC are made of */
        uint64_t n_features; /* if the result is not made where it is delivered */
        uint64_t n_spectrum;
        uint64_t n_spare; /* of the wave */
};

static struct rooms plan_rooms(const struct sound_recipe *recipe, uint64_t n_frames) {
        uint32_t idx;
        const struct sound_step *maker = sound_recipe_maker(recipe, &idx);
        struct rooms rooms = { 0 };
        struct sound_columns columns;

        for (uint32_t i = 0; i < recipe->n_steps; i++)
                if (recipe->steps[i].type->needs_spare)
                        rooms.n_spare = n_frames * recipe->n_channels + NORMALS_AT_ONCE;
        if (!maker)
                return rooms;
        sound_recipe_columns(recipe, n_frames, &columns);
        if (recipe->n_channels > 1)
                rooms.n_apart = n_frames + 2 * (uint64_t)n_beyond(maker);
        if (maker->cosines)
                rooms.n_bands = recipe->n_channels * spectrum_n_rows(maker->spectrum) * columns.n_made;
        if (recipe->is_turned || columns.n_most > columns.n_last)
                rooms.n_features = recipe->n_channels * recipe->n_rows * columns.n_most;
        rooms.n_spectrum = spectrum_scratch_bytes(maker->spectrum) / sizeof(float);
        return rooms;
}

uint64_t sound_recipe_scratch(const struct sound_recipe *recipe, uint64_t n_frames) {
        struct rooms rooms = plan_rooms(recipe, n_frames);

        return (rooms.n_apart + rooms.n_bands + rooms.n_features + rooms.n_spectrum + rooms.n_spare) * sizeof(float);
}

/* ---- features of a wave ------------------------------------------------------------------------------------------ */

/* `sound` has n numbers; before and after them there is room. */
static void fill_edges(const struct sound_step *maker, float *sound, uint64_t n) {
        uint64_t n_silent = maker->n_silent, margin = spectrum_margin(maker->spectrum);
        float *first = sound - n_silent, *last = sound + n + n_silent - 1;

        memset(first, 0, n_silent * sizeof(*first));
        memset(sound + n, 0, n_silent * sizeof(*first));
        for (uint64_t i = 1; i <= margin; i++)
                switch (maker->edge) {
                case SOUND_EDGE_REFLECT:
                        *(first - i) = first[i];
                        last[i] = *(last - i);
                        break;
                case SOUND_EDGE_REPLICATE:
                        *(first - i) = *first;
                        last[i] = *last;
                        break;
                default:
                        *(first - i) = last[i] = 0;
                }
}

static void take_apart(const struct sound_wave *wave, uint32_t channel, float *to) {
        for (uint64_t i = 0; i < wave->n_frames; i++)
                to[i] = wave->at[i * wave->n_channels + channel];
}

/* Columns of each channel, in rows of the spectrum. */
static void sound_apply_make_rows(const struct sound_step *maker, const struct sound_wave *wave, float *apart,
                                  float *scratch, struct sound_features *features, struct wanting *wanting) {
        uint32_t beyond = n_beyond(maker);

        for (uint32_t c = 0; c < wave->n_channels; c++) {
                float *sound = wave->n_channels > 1 ? apart + beyond : wave->at;

                if (wave->n_channels > 1)
                        take_apart(wave, c, sound);
                fill_edges(maker, sound, wave->n_frames);
                spectrum_run(maker->spectrum, sound_code_best(), sound - beyond, features->n_columns, scratch,
                             sound_row(features, c, 0), features->stride, wanting);
        }
}

#define COLUMNS_AT_ONCE 256u /* each may have 4,096 bands, of which 4,096 numbers are made */

static void mix_columns(const struct sound_step *maker, const struct sound_features *bands, uint64_t first, uint64_t n,
                        struct sound_features *features) {
        for (uint32_t c = 0; c < features->n_channels; c++)
                sound_code_best()->mix(sound_row(bands, c, 0) + first, bands->stride, bands->n_rows, maker->cosines,
                                       maker->n_mfcc, n, sound_row(features, c, 0) + first, features->stride);
}

static void make_mfcc(const struct sound_step *maker, struct sound_features *bands, struct sound_features *features,
                      struct wanting *wanting) {
        if (maker->takes_log)
                sound_logarithms(bands, 1e-6f);
        else
                sound_decibels(bands, 10, 80);
        for (uint64_t t = 0; t < bands->n_columns && (!wanting || wanting_lasts(wanting)); t += COLUMNS_AT_ONCE)
                mix_columns(maker, bands, t,
                            bands->n_columns - t < COLUMNS_AT_ONCE ? bands->n_columns - t : COLUMNS_AT_ONCE, features);
}

static void make_features(const struct sound_step *maker, const struct rooms *rooms, const struct sound_wave *wave,
                          float *scratch, struct sound_features *features, struct wanting *wanting) {
        float *apart = scratch, *bands_at = apart + rooms->n_apart;
        float *spectrum = bands_at + rooms->n_bands + rooms->n_features;
        struct sound_features bands = { bands_at, features->n_columns, features->n_columns, features->n_channels,
                                        spectrum_n_rows(maker->spectrum) };

        if (!maker->cosines) {
                sound_apply_make_rows(maker, wave, apart, spectrum, features, wanting);
                return;
        }
        sound_apply_make_rows(maker, wave, apart, spectrum, &bands, wanting);
        make_mfcc(maker, &bands, features, wanting);
}

/* ---- numbers of features ----------------------------------------------------------------------------------------- */

static void take_logarithms(struct sound_features *features, float offset, float least, float scale) {
        for (uint32_t row = 0; row < features->n_channels * features->n_rows; row++)
                sound_code_best()->logarithms(sound_row(features, 0, row), features->n_columns, offset, least, scale);
}

void sound_logarithms(struct sound_features *features, float offset) {
        take_logarithms(features, offset, -INFINITY, 0);
}

/* torch's amax() and max() let a NaN through, to every number. */
void sound_decibels(struct sound_features *features, float factor, double top_db) {
        const struct sound_code *code = sound_code_best();
        uint32_t n_rows = features->n_channels * features->n_rows;
        float most = -INFINITY;

        take_logarithms(features, 0, 1e-10f, factor);
        for (uint32_t row = 0; row < n_rows && !isnan(top_db); row++) {
                float largest = code->largest(sound_row(features, 0, row), features->n_columns);

                most = largest > most || isnan(largest) ? largest : most;
        }
        for (uint32_t row = 0; row < n_rows && !isnan(top_db); row++)
                code->raise(sound_row(features, 0, row), features->n_columns, most - (float)top_db);
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

bool sound_happens(struct dlp_philox *philox, double p) {
        return (double)dlp_philox_f32(philox) < p;
}

double sound_draw(struct dlp_philox *philox, const struct range *range) {
        return range->from + (range->to - range->from) * dlp_philox_f64(philox);
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

/* Rows of `from` as columns, n_rows after one another; or rows that were too long. */
static void sound_apply_deliver(const struct sound_recipe *recipe, const struct sound_features *from, float *out,
                                uint64_t out_stride) {
        for (uint32_t c = 0; c < from->n_channels; c++)
                for (uint32_t row = 0; row < from->n_rows; row++) {
                        const float *at = sound_row(from, c, row);

                        if (!recipe->is_turned)
                                memcpy(out + ((uint64_t)c * from->n_rows + row) * out_stride, at,
                                       from->n_columns * sizeof(*at));
                        for (uint64_t t = 0; recipe->is_turned && t < from->n_columns; t++)
                                out[c * out_stride + t * from->n_rows + row] = at[t];
                }
}

int sound_recipe_run(const struct sound_recipe *recipe, const struct sound_draws *draws, float *wave, uint64_t n_frames,
                     float *scratch, float *out, uint64_t out_stride, struct wanting *wanting) {
        struct rooms rooms = plan_rooms(recipe, n_frames);
        bool is_apart = rooms.n_features > 0;
        uint64_t spare = rooms.n_apart + rooms.n_bands + rooms.n_features + rooms.n_spectrum;
        struct sound_wave sound = { wave, scratch + spare, n_frames, recipe->n_channels };
        struct sound_features features = { .n_channels = recipe->n_channels, .n_rows = recipe->n_rows };
        struct sound_columns columns;

        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                const struct sound_step *step = &recipe->steps[i];
                struct dlp_philox philox;

                dlp_philox_init(&philox, draws->seed, draws->epoch, draws->sample, (uint16_t)(i + 1));
                if (wanting && !wanting_lasts(wanting))
                        return -ECANCELED;
                if (step->type->wave)
                        step->type->wave(step, &philox, &sound);
                if (step->type->features)
                        step->type->features(step, &philox, &features);
                if (!step->spectrum)
                        continue;
                sound_recipe_columns(recipe, n_frames, &columns);
                features.n_columns = columns.n_made;
                features.stride = is_apart ? columns.n_most : out_stride;
                features.at = is_apart ? scratch + rooms.n_apart + rooms.n_bands : out;
                make_features(step, &rooms, &sound, scratch, &features, wanting);
        }
        if (wanting && wanting->is_over)
                return -ECANCELED;
        if (is_apart)
                sound_apply_deliver(recipe, &features, out, out_stride);
        return 0;
}
