/* time_mask, freq_mask: torchaudio.transforms.TimeMasking and FrequencyMasking: columns or rows next to each other get
 * one value. spec_augment: torchaudio.transforms.SpecAugment: several of both.
 *
 * What each mask draws is written at struct sound_mask (sound_step.h); spec_augment draws for one mask after the other,
 * those of time first. */

#include <math.h>

#include "daemon/sound/sound_step.h"

/* As mask_along_axis(): all in float32. */
static uint32_t masks_longest_of(const struct sound_mask *mask, uint64_t size) {
        double part = (double)size * mask->p;

        return mask->p < 1 && part < mask->longest ? (uint32_t)part : mask->longest;
}

static void masks_fill(struct sound_features *features, uint32_t channel, bool is_of_time, uint64_t begin, uint64_t end,
                       float value) {
        uint64_t first_row = is_of_time ? 0 : begin, end_row = is_of_time ? features->n_rows : end;
        uint64_t first = is_of_time ? begin : 0, last = is_of_time ? end : features->n_columns;

        for (uint64_t row = first_row; row < end_row; row++)
                for (uint64_t t = first; t < last; t++)
                        sound_row(features, channel, (uint32_t)row)[t] = value;
}

void sound_mask(struct sound_features *features, const struct sound_mask *mask, struct dlp_philox *philox) {
        uint64_t size = mask->is_of_time ? features->n_columns : features->n_rows;
        uint32_t n_masks = mask->is_own ? features->n_channels : 1, longest = masks_longest_of(mask, size);
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
                        masks_fill(features, c, mask->is_of_time, (uint64_t)first, (uint64_t)end, mask->value);
        }
}

/* ---- one mask ---------------------------------------------------------------------------------------------------- */

enum {
        LONGEST,
        IS_OWN,
        PART,
        VALUE,
        VALUE_OF_FREQ = PART
};

static void mask_time(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        struct sound_mask mask = { true, step->values[IS_OWN].from != 0, (uint32_t)step->values[LONGEST].from,
                                   step->values[PART].from, (float)step->values[VALUE].from };

        sound_mask(features, &mask, philox);
}

static void mask_rows(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        struct sound_mask mask = { false, step->values[IS_OWN].from != 0, (uint32_t)step->values[LONGEST].from, 1,
                                   (float)step->values[VALUE_OF_FREQ].from };

        sound_mask(features, &mask, philox);
}

const struct sound_step_type sound_step_time_mask = {
        .name = "time_mask",
        .arguments = { [LONGEST] = { SOUND_ARGUMENT_WHOLE, "time_mask_param", NULL, 0, 1e9 },
                       [IS_OWN] = SOUND_ARGUMENT_BOOL("iid_masks", "false"),
                       [PART] = { SOUND_ARGUMENT_NUMBER, "p", "1", 0, 1 },
                       [VALUE] = { SOUND_ARGUMENT_NUMBER, "mask_value", "0", -1e30, 1e30 } },
        .forms = SOUND_IN(SOUND_POWERS) | SOUND_IN(SOUND_FEATURES),
        .features = mask_time,
};

const struct sound_step_type sound_step_freq_mask = {
        .name = "freq_mask",
        .arguments = { [LONGEST] = { SOUND_ARGUMENT_WHOLE, "freq_mask_param", NULL, 0, 1e9 },
                       [IS_OWN] = SOUND_ARGUMENT_BOOL("iid_masks", "false"),
                       [VALUE_OF_FREQ] = { SOUND_ARGUMENT_NUMBER, "mask_value", "0", -1e30, 1e30 } },
        .forms = SOUND_IN(SOUND_POWERS) | SOUND_IN(SOUND_FEATURES),
        .features = mask_rows,
};

/* ---- several ----------------------------------------------------------------------------------------------------- */

enum {
        N_TIME,
        TIME,
        N_FREQ,
        FREQ,
        IS_OWN_OF_ALL,
        PART_OF_ALL,
        IS_ZERO
};

static float mean_of(const struct sound_features *features) {
        uint32_t n_rows = features->n_channels * features->n_rows;
        double sum = 0;

        for (uint32_t row = 0; row < n_rows; row++)
                for (uint64_t t = 0; t < features->n_columns; t++)
                        sum += (double)sound_row(features, 0, row)[t];
        return (float)(sum / ((double)n_rows * (double)features->n_columns));
}

static void augment(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features) {
        const struct sound_value *values = step->values;
        struct sound_mask mask = { true, values[IS_OWN_OF_ALL].from != 0, (uint32_t)values[TIME].from,
                                   values[PART_OF_ALL].from, 0 };

        if (values[IS_ZERO].from == 0)
                mask.value = mean_of(features);
        for (double i = 0; i < values[N_TIME].from; i++)
                sound_mask(features, &mask, philox);
        mask.is_of_time = false;
        mask.longest = (uint32_t)values[FREQ].from;
        for (double i = 0; i < values[N_FREQ].from; i++)
                sound_mask(features, &mask, philox);
}

const struct sound_step_type sound_step_spec_augment = {
        .name = "spec_augment",
        .arguments = { [N_TIME] = { SOUND_ARGUMENT_WHOLE, "n_time_masks", NULL, 0, 100 },
                       [TIME] = { SOUND_ARGUMENT_WHOLE, "time_mask_param", NULL, 0, 1e9 },
                       [N_FREQ] = { SOUND_ARGUMENT_WHOLE, "n_freq_masks", NULL, 0, 100 },
                       [FREQ] = { SOUND_ARGUMENT_WHOLE, "freq_mask_param", NULL, 0, 1e9 },
                       [IS_OWN_OF_ALL] = SOUND_ARGUMENT_BOOL("iid_masks", "true"),
                       [PART_OF_ALL] = { SOUND_ARGUMENT_NUMBER, "p", "1", 0, 1 },
                       [IS_ZERO] = SOUND_ARGUMENT_BOOL("zero_masking", "false") },
        .forms = SOUND_IN(SOUND_POWERS) | SOUND_IN(SOUND_FEATURES),
        .features = augment,
};
