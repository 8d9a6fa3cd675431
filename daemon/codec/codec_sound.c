/* Sound: decoded, cropped, mixed and resampled as the step audio(...) says, and what the steps after it make of that.
 */

#include <errno.h>
#include <math.h>
#include <samplerate.h>
#include <string.h>

#include "daemon/codec/sounds/sound_part.h"
#include "daemon/decode/sound.h"
#include "daemon/sound/sound_recipe.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/amounts.h"
#include "proto/order/philox.h"

#define RATE_USUAL_MAX  48000u       /* of what room is made for, if the pipeline says no rate */
#define RESAMPLER_BYTES (256u << 10) /* of libsamplerate's state, at most */
#define RATIO_MAX       256.0        /* libsamplerate's limit, both ways */

#define RESAMPLED_AT_ONCE 4096 /* frames, between two looks whether the sound is still wanted: up to 50 ms */

static uint32_t n_channels_of(const struct codec *codec) {
        return codec->sound.is_mono ? 1 : 2;
}

static uint64_t codec_sound_frame_bytes(const struct codec *codec) {
        return n_channels_of(codec) * (codec->sound.is_int16 ? sizeof(int16_t) : sizeof(float));
}

/* The frames of every sample; 0: any number. */
static uint64_t fixed_frames(const struct codec *codec) {
        return (uint64_t)rint(codec->sound.seconds * codec->sound.rate);
}

/* Frames of the longest sound that there is room for. */
static uint64_t most_frames(const struct codec *codec) {
        uint64_t n_fixed = fixed_frames(codec);
        uint32_t rate = codec->sound.rate ? codec->sound.rate : RATE_USUAL_MAX;

        return n_fixed > 0 ? n_fixed : (uint64_t)ceil(codec->sound.max_seconds * rate);
}

/* If all sounds have one length, it is known now whether it is long enough. */
static int check_fixed(const struct codec *codec, struct why *why) {
        struct sound_shape shape;
        struct why detail;

        if (fixed_frames(codec) == 0 ||
            sound_recipe_shape(codec->sound_recipe, fixed_frames(codec), &shape, &detail) == 0)
                return 0;
        return why_set(why, -EINVAL, "pipeline: field %s: each sample %s", codec->name, detail.text);
}

/* Bytes of a frame or a column, and of what comes before it. */
static uint64_t codec_sound_unit_bytes(const struct codec *codec, const struct sound_shape *shape) {
        return shape->n_outer * shape->n_inner * (codec->sound.is_int16 ? sizeof(int16_t) : sizeof(float));
}

static int sound_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        struct sound_shape shape;
        bool is_fixed;
        int r = check_fixed(codec, why);

        (void)terms;
        if (r < 0)
                return r;
        sound_recipe_bound(codec->sound_recipe, most_frames(codec), &shape);
        is_fixed = fixed_frames(codec) > 0 || shape.n_fixed > 0;
        ret_form->dtype = codec->sound.is_int16 ? DLP_DTYPE_INT16 : DLP_DTYPE_FLOAT32;
        ret_form->n_dims = shape.n_dims;
        memcpy(ret_form->shape, shape.sizes, shape.n_dims * sizeof(*shape.sizes));
        if (!is_fixed)
                ret_form->shape[shape.idx_time] = -1;
        ret_form->padded_dim = shape.idx_time;
        ret_form->n_padded_dims = 1;
        ret_form->unit_bytes = codec_sound_unit_bytes(codec, &shape);
        ret_form->how = codec->field.may_be_absent || (!is_fixed && shape.idx_time == 0) ? COLLATE_RAGGED
                                                                                         : COLLATE_STACK;
        ret_form->max_bytes = shape.n_time * ret_form->unit_bytes;
        ret_form->fails_late = true; /* a sound that is shorter than its header claims */
        return 0;
}

/* ---- which part -------------------------------------------------------------------------------------------------- */

static uint64_t draw_start(const struct codec *codec, const struct codec_input *input, uint64_t n_starts) {
        struct dlp_philox philox;

        dlp_philox_init(&philox, codec_seed(codec, input), input->epoch, input->sample, 0);
        return dlp_philox_below(&philox, (uint32_t)n_starts);
}

/* The crop is drawn in frames of the file; what it keeps is resampled on its own. */
static void plan_crop(const struct codec *codec, const struct codec_input *input, const struct sound_info *info,
                      const struct sound_span *span, struct sound_part *part) {
        uint64_t n_fixed = fixed_frames(codec), n_spare;

        part->first = span->first;
        part->n_frames = span->n_frames;
        if (n_fixed > 0) {
                uint64_t n_wanted = (n_fixed * info->rate + codec->sound.rate - 1) / codec->sound.rate;

                if (n_wanted < span->n_frames) {
                        n_spare = span->n_frames - n_wanted;
                        part->n_frames = n_wanted;
                        part->first += codec->sound.crop == SOUND_CROP_RANDOM   ? draw_start(codec, input, n_spare + 1)
                                       : codec->sound.crop == SOUND_CROP_CENTER ? n_spare / 2
                                                                                : 0;
                }
        }
        part->ratio = codec->sound.rate && codec->sound.rate != info->rate ? (double)codec->sound.rate / info->rate : 1;
        part->n_resampled = part->n_frames;
        if (part->ratio != 1)
                part->n_resampled = (part->n_frames * codec->sound.rate + info->rate - 1) / info->rate;
        if (n_fixed > 0 && part->n_resampled > n_fixed)
                part->n_resampled = n_fixed;
        part->n_out = n_fixed > 0 ? n_fixed : part->n_resampled;
}

/* Floats between the file and what is delivered. */
static uint64_t need_floats(const struct codec *codec, const struct sound_part *part) {
        uint64_t n = part->ratio != 1        ? part->n_frames + part->n_resampled
                     : codec->sound.is_int16 ? part->n_resampled
                                             : 0;

        return n * n_channels_of(codec);
}

/* Of a sound of which features are made, with room around it; else it is made where it is delivered. */
static uint64_t wave_bytes(const struct codec *codec, const struct sound_part *part) {
        uint64_t n = part->n_out * n_channels_of(codec) + 2 * (uint64_t)sound_recipe_margin(codec->sound_recipe);

        return sound_recipe_makes_features(codec->sound_recipe) ? n * sizeof(float) : 0;
}

static void sound_codec_close(struct codec_tools *tools) {
        sound_close(tools->sound);
        tools->sound = NULL;
}

static int check_fits(const struct codec *codec, const struct sound_info *info, struct why *why) {
        double ratio = codec->sound.rate ? (double)codec->sound.rate / info->rate : 1;

        if (!codec->sound.is_mono && info->n_channels != 2)
                return why_set(why, -ENOTSUP, "has %u channel%s, audio(mono=false) needs two; use mono=true",
                               info->n_channels, info->n_channels == 1 ? "" : "s");
        if (ratio > RATIO_MAX || ratio < 1 / RATIO_MAX)
                return why_set(why, -ENOTSUP, "has %u frames a second, which is too far from rate=%u", info->rate,
                               codec->sound.rate);
        return 0;
}

static int sound_codec_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                            struct codec_opened *ret_opened, struct why *why) {
        struct sound_shape shape;
        struct sound_info info;
        struct sound_span span;
        int r;

        sound_codec_close(tools);
        r = sound_open(input->bytes, input->n_bytes, &tools->sound, &info, why);
        if (r == 0)
                r = check_fits(codec, &info, why);
        if (r == 0)
                r = sound_part_span(codec, &input->part, &info, &span, why);
        if (r < 0) {
                sound_codec_close(tools);
                return r;
        }
        plan_crop(codec, input, &info, &span, &tools->sound_part);
        r = sound_recipe_shape(codec->sound_recipe, tools->sound_part.n_out, &shape, why);
        if (r < 0) {
                sound_codec_close(tools);
                return r;
        }
        tools->n_time = shape.n_time;
        memcpy(ret_opened->shape, shape.sizes, shape.n_dims * sizeof(*shape.sizes));
        ret_opened->n_bytes = shape.n_time * codec_sound_unit_bytes(codec, &shape);
        ret_opened->need_bytes = SOUND_BYTES + RESAMPLER_BYTES +
                                 need_floats(codec, &tools->sound_part) * sizeof(float) +
                                 wave_bytes(codec, &tools->sound_part) +
                                 sound_recipe_scratch(codec->sound_recipe, tools->sound_part.n_out);
        return 0;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static void state_freep(SRC_STATE **state) {
        if (*state)
                src_delete(*state);
}

/* libsamplerate gives a frame more or less than the ratio says: the rest is zero. src_simple() is the same with all
 * frames at once, which may take minutes. */
static int resample(const struct sound_part *part, uint32_t n_channels, struct wanting *wanting, const float *from,
                    float *to, struct why *why) {
        SRC_DATA data = { .data_in = from,
                          .data_out = to,
                          .input_frames = (long)part->n_frames,
                          .src_ratio = part->ratio,
                          .end_of_input = 1 };
        uint64_t n_left = part->n_resampled;
        _cleanup_(state_freep) SRC_STATE *state = NULL;
        int r = 0;

        memset(to, 0, part->n_resampled * n_channels * sizeof(*to));
        if (part->n_frames > 0 && n_left > 0)
                state = src_new(SRC_SINC_MEDIUM_QUALITY, (int)n_channels, &r);
        while (state && n_left > 0) {
                if (!wanting_lasts(wanting))
                        return why_set(why, -ECANCELED, "nobody wants the sample any more");
                data.output_frames = n_left < RESAMPLED_AT_ONCE ? (long)n_left : RESAMPLED_AT_ONCE;
                r = src_process(state, &data);
                if (r != 0 || data.output_frames_gen == 0)
                        break;
                data.data_in += data.input_frames_used * (long)n_channels;
                data.input_frames -= data.input_frames_used;
                data.data_out += data.output_frames_gen * (long)n_channels;
                n_left -= (uint64_t)data.output_frames_gen;
        }
        return r == 0 ? 0 : why_set(why, -EBADMSG, "cannot be resampled: %s", src_strerror(r));
}

static int16_t int16_of(float sample) {
        float scaled = sample * 32768.0f;

        if (!(scaled > -32768.0f)) /* NaN is silence */
                return isnan(scaled) ? 0 : INT16_MIN;
        return scaled >= 32767.0f ? INT16_MAX : (int16_t)lrintf(scaled);
}

/* Writes all frames that are delivered, as samples of the codec. */
static int render_wave(const struct codec *codec, struct codec_tools *tools, uint8_t *out, struct why *why) {
        const struct sound_part *part = &tools->sound_part;
        uint64_t n_samples = part->n_resampled * n_channels_of(codec);
        uint32_t n_channels = n_channels_of(codec);
        float *last = (float *)(void *)out, *first;
        int r = codec_memory_reserve(&tools->elements, need_floats(codec, part) * sizeof(float), why);

        if (r < 0)
                return r;
        if (codec->sound.is_int16)
                last = (float *)(void *)tools->elements.bytes;
        first = part->ratio == 1        ? last
                : codec->sound.is_int16 ? last + n_samples
                                        : (float *)(void *)tools->elements.bytes;
        sound_set_wanting(tools->sound, &tools->wanting);
        r = sound_read(tools->sound, part->first, part->n_frames, n_channels, first, why);
        if (r == 0 && part->ratio != 1)
                r = resample(part, n_channels, &tools->wanting, first, last, why);
        if (r < 0)
                return r;
        for (uint64_t i = 0; codec->sound.is_int16 && i < n_samples; i++)
                ((int16_t *)(void *)out)[i] = int16_of(last[i]);
        memset(out + part->n_resampled * codec_sound_frame_bytes(codec), 0,
               (part->n_out - part->n_resampled) * codec_sound_frame_bytes(codec));
        return 0;
}

/* Features go to `out` from a wave in the memory of the tools; the scratch of the steps follows it there. */
static int sound_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        uint8_t *out, struct why *why) {
        struct sound_draws draws = { codec_seed(codec, input), input->sample, input->epoch };
        uint64_t n_frames = tools->sound_part.n_out, n_wave_bytes = wave_bytes(codec, &tools->sound_part);
        uint64_t n_scratch_bytes = sound_recipe_scratch(codec->sound_recipe, n_frames);
        float *wave = (float *)(void *)out;
        struct sound_shape shape;
        int r;

        if (sound_recipe_is_empty(codec->sound_recipe))
                return render_wave(codec, tools, out, why);
        r = codec_memory_reserve(&tools->wave, n_wave_bytes + n_scratch_bytes, why);
        if (r < 0)
                return r;
        if (n_wave_bytes > 0)
                wave = (float *)(void *)tools->wave.bytes + sound_recipe_margin(codec->sound_recipe);
        r = render_wave(codec, tools, (uint8_t *)wave, why);
        if (r < 0)
                return r;
        stage_enter(&tools->clock, STAGE_FEATURES);
        sound_recipe_bound(codec->sound_recipe, n_frames, &shape);
        r = sound_recipe_run(codec->sound_recipe, &draws, wave, n_frames,
                             (float *)(void *)(tools->wave.bytes + n_wave_bytes), (float *)(void *)out,
                             input->plane_stride > 0 ? input->plane_stride / sizeof(float)
                                                     : shape.n_time * shape.n_inner,
                             &tools->wanting);
        return r == 0 ? 0 : why_set(why, r, "nobody wants the sample any more");
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static int sound_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                             struct why *why) {
        struct sound_shape shape;

        sound_recipe_bound(codec->sound_recipe, most_frames(codec), &shape);
        return why_set(why, -EFBIG,
                       "has %lld %s, there is room for %llu; raise audio(max_seconds=%g), or use seconds=... to "
                       "take a part",
                       (long long)opened->shape[shape.idx_time],
                       sound_recipe_makes_features(codec->sound_recipe) ? "columns" : "frames",
                       (unsigned long long)(room_bytes / codec_sound_unit_bytes(codec, &shape)),
                       codec->sound.max_seconds);
}

/* Only features are stacked though they vary; their time is the last dimension, or comes before their rows. The first
 * dimension of ragged ones is not compared: -1. */
static int sound_refuse_shape(const struct codec_opened *opened, const int64_t *other, struct why *why) {
        unsigned i = 0;

        while (i + 1 < SOUND_DIMS && (other[i] < 0 || opened->shape[i] == other[i]))
                i++;
        return why_set(why, -EMEDIUMTYPE,
                       "has %lld columns, another sample of its batch has %lld: end the steps with pad, or give all "
                       "sounds one length, with audio(seconds=...) or columns(N)",
                       (long long)opened->shape[i], (long long)other[i]);
}

static int sound_refuse_memory(const struct codec_tools *tools, const struct codec_opened *opened,
                               uint64_t allowed_bytes, struct why *why) {
        char need[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

        format_compared(need, opened->need_bytes, allowed, allowed_bytes);
        return why_set(why, -EFBIG,
                       "%llu frames need %s to be decoded, %s are allowed (a quarter of memory_limit); take a part "
                       "with audio(seconds=...)",
                       (unsigned long long)tools->sound_part.n_frames, need, allowed);
}

const struct codec_type CODEC_SOUND = {
        .name = "sound",
        .interprets = INTERPRETS_ALL,
        .opening = STAGE_HEADER,
        .rendering = STAGE_AUDIO,
        .form = sound_form,
        .open = sound_codec_open,
        .render = sound_render,
        .close = sound_codec_close,
        .refuse_room = sound_refuse_room,
        .refuse_memory = sound_refuse_memory,
        .refuse_shape = sound_refuse_shape,
};
