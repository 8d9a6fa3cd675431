/* A mask of rows or columns: what time_mask, freq_mask and spec_augment have in common. */
#include "daemon/sound/sound_step.h"

/* As mask_along_axis(): all in float32. */
static uint32_t sound_mask_longest(const struct sound_mask *mask, uint64_t size) {
        double part = (double)size * mask->p;

        return mask->p < 1 && part < mask->longest ? (uint32_t)part : mask->longest;
}

static void sound_mask_fill(struct sound_features *features, uint32_t channel, bool is_of_time, uint64_t begin,
                            uint64_t end, float value) {
        uint64_t first_row = is_of_time ? 0 : begin, end_row = is_of_time ? features->n_rows : end;
        uint64_t first = is_of_time ? begin : 0, last = is_of_time ? end : features->n_columns;

        for (uint64_t row = first_row; row < end_row; row++)
                for (uint64_t t = first; t < last; t++)
                        sound_row(features, channel, (uint32_t)row)[t] = value;
}

void sound_mask(struct sound_features *features, const struct sound_mask *mask, struct dlp_philox *philox) {
        uint64_t size = mask->is_of_time ? features->n_columns : features->n_rows;
        uint32_t n_masks = mask->is_own ? features->n_channels : 1, longest = sound_mask_longest(mask, size);
        float lengths[SOUND_N_CHANNELS_MAX];

        for (uint32_t i = 0; i < n_masks; i++)
                lengths[i] = dlp_philox_f32(philox) * (float)longest;
        for (uint32_t i = 0; i < n_masks; i++) {
                /* Below zero if the mask is longer than the axis. */
                int64_t first = (int64_t)(dlp_philox_f32(philox) * ((float)size - lengths[i]));
                int64_t end = first + (int64_t)lengths[i];

                first = first < 0 ? 0 : first;
                end = end < 0 ? 0 : end > (int64_t)size ? (int64_t)size : end;
                for (uint32_t c = mask->is_own ? i : 0; c < (mask->is_own ? i + 1 : features->n_channels); c++)
                        sound_mask_fill(features, c, mask->is_of_time, (uint64_t)first, (uint64_t)end, mask->value);
        }
}
