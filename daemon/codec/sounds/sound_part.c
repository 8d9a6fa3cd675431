#include "daemon/codec/sounds/sound_part.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/decode/sound.h"
#include "proto/order/making/column.h"

#define ROUNDING_S 0.1 /* of a manifest's durations */

static bool is_single_number(const struct schema_field *field) {
        return field->kind == FIELD_VALUE && !field->is_stored && field->n_dims == 0 && dlp_column_takes(field->dtype);
}

static uint32_t sound_part_find_column(const struct source *source, const char *name) {
        for (uint32_t i = 0; i < source->schema.n_fields; i++)
                if (strcmp(source->schema.fields[i].name, name) == 0 && is_single_number(&source->schema.fields[i]))
                        return i;
        return CODEC_NONE;
}

static int bind(const struct codec *codec, const struct source *source, const char *argument, const char *name,
                uint32_t *ret_idx, struct why *why) {
        *ret_idx = name[0] ? sound_part_find_column(source, name) : CODEC_NONE;
        if (!name[0] || *ret_idx != CODEC_NONE)
                return 0;
        return why_set(why, -EINVAL, "pipeline: field %s: audio(%s=%s): the dataset has no column %s of single numbers",
                       codec->name, argument, name, name);
}

int sound_part_bind(struct codec *codec, const struct source *source, struct why *why) {
        int r = bind(codec, source, "start", codec->sound.start, &codec->idx_start, why);

        if (r == 0)
                r = bind(codec, source, "duration", codec->sound.duration, &codec->idx_duration, why);
        if (r < 0 || codec->idx_start != CODEC_NONE || codec->sound.starts_at_zero ||
            sound_part_find_column(source, "offset") == CODEC_NONE)
                return r;
        return why_set(why, -EINVAL,
                       "pipeline: field %s: the dataset has a column offset, which says where in its file a sound "
                       "begins: write audio(start=offset%s), or audio(start=0) if it says something else",
                       codec->name,
                       sound_part_find_column(source, "duration") == CODEC_NONE ? "" : ", duration=duration");
}

static double sound_part_number_of(const struct source *source, uint64_t sample, uint32_t field) {
        union {
                double alignment;
                uint8_t bytes[16];
        } value = { 0 };
        const struct dlp_column column = { .dtype = (enum dlp_dtype)source->schema.fields[field].dtype,
                                           .values = value.bytes,
                                           .n_values = 1 };

        source_value(source, sample, field, value.bytes);
        return dlp_column_real(&column, 0);
}

struct codec_part codec_part(const struct codec *codec, const struct source *source, uint64_t sample) {
        const struct codec *sound = codec_before_plugins(codec);
        struct codec_part part = { .start_s = 0 };

        if (!sound || sound->type != &CODEC_SOUND)
                return part;
        if (sound->idx_start != CODEC_NONE && source_has(source, sample, sound->idx_start))
                part.start_s = sound_part_number_of(source, sample, sound->idx_start);
        part.has_duration = sound->idx_duration != CODEC_NONE && source_has(source, sample, sound->idx_duration);
        if (part.has_duration)
                part.duration_s = sound_part_number_of(source, sample, sound->idx_duration);
        return part;
}

int sound_part_span(const struct codec *codec, const struct codec_part *part, const struct sound_info *info,
                    struct sound_span *ret_span, struct why *why) {
        double file_s = (double)info->n_frames / info->rate;

        *ret_span = (struct sound_span){ 0, info->n_frames };
        if (!(part->start_s >= 0) || part->start_s > file_s)
                return why_set(why, -EBADMSG, "begins at %.15g s of its file by column %s, and the file has %.6g s",
                               part->start_s, codec->sound.start, file_s);
        ret_span->first = (uint64_t)rint(part->start_s * info->rate);
        if (ret_span->first > info->n_frames)
                ret_span->first = info->n_frames;
        ret_span->n_frames -= ret_span->first;
        if (!part->has_duration)
                return 0;
        if (!(part->duration_s > 0) || part->start_s + part->duration_s > file_s + ROUNDING_S)
                return why_set(why, -EBADMSG,
                               "has %.15g s from %.15g s of its file on by column %s, and the file has %.6g s",
                               part->duration_s, part->start_s, codec->sound.duration, file_s);
        if (rint(part->duration_s * info->rate) < (double)ret_span->n_frames)
                ret_span->n_frames = (uint64_t)rint(part->duration_s * info->rate);
        return 0;
}
