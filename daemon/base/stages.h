/* base/stages.h: what a worker may be doing with a sample, each stage defined once: id, name, what it is.
 *
 * Steps of a pipeline that take time of their own have their own name, so that the heavy one can be named. The others
 * (crops, hflip) only say which pixels the stages before and after them read and write, and cost nothing alone. */
#pragma once

#include <stdint.h>

#define STAGES(ROW)                                                                                                    \
        ROW(OTHER, "other", "what is between the other stages")                                                        \
        ROW(HEADER, "header", "the header of a picture or sound, draws, planning")                                     \
        ROW(DECODE, "decode", "decoding pictures")                                                                     \
        ROW(RANDOM_RESIZED_CROP, "random_resized_crop", "the step")                                                    \
        ROW(RESIZE, "resize", "the step")                                                                              \
        ROW(PAD, "pad", "the step")                                                                                    \
        ROW(RANDOM_ZOOM_OUT, "random_zoom_out", "the step")                                                            \
        ROW(SCALE_JITTER, "scale_jitter", "the step")                                                                  \
        ROW(RANDOM_SHORTEST_SIZE, "random_shortest_size", "the step")                                                  \
        ROW(RANDOM_RESIZE, "random_resize", "the step")                                                                \
        ROW(VFLIP, "vflip", "the step")                                                                                \
        ROW(COLOR_JITTER, "color_jitter", "the step")                                                                  \
        ROW(GRAYSCALE, "grayscale", "the step")                                                                        \
        ROW(RANDOM_GRAYSCALE, "random_grayscale", "the step")                                                          \
        ROW(INVERT, "invert", "the step")                                                                              \
        ROW(POSTERIZE, "posterize", "the step")                                                                        \
        ROW(SOLARIZE, "solarize", "the step")                                                                          \
        ROW(AUTOCONTRAST, "autocontrast", "the step")                                                                  \
        ROW(EQUALIZE, "equalize", "the step")                                                                          \
        ROW(SHARPNESS, "sharpness", "the step")                                                                        \
        ROW(RANDOM_ROTATION, "random_rotation", "the step")                                                            \
        ROW(RANDOM_AFFINE, "random_affine", "the step")                                                                \
        ROW(RANDOM_PERSPECTIVE, "random_perspective", "the step")                                                      \
        ROW(ELASTIC, "elastic", "the step")                                                                            \
        ROW(GAUSSIAN_BLUR, "gaussian_blur", "the step")                                                                \
        ROW(GAUSSIAN_NOISE, "gaussian_noise", "the step")                                                              \
        ROW(ERASING, "erasing", "the step")                                                                            \
        ROW(RANDOM_CHANNEL_PERMUTATION, "random_channel_permutation", "the step")                                      \
        ROW(RANDOM_PHOTOMETRIC_DISTORT, "random_photometric_distort", "the step")                                      \
        ROW(AUTO_AUGMENT, "auto_augment", "the step")                                                                  \
        ROW(RAND_AUGMENT, "rand_augment", "the step")                                                                  \
        ROW(TIMM_RAND_AUGMENT, "timm_rand_augment", "the step")                                                        \
        ROW(TRIVIAL_AUGMENT_WIDE, "trivial_augment_wide", "the step")                                                  \
        ROW(AUG_MIX, "aug_mix", "the step")                                                                            \
        ROW(CLAHE, "clahe", "the step")                                                                                \
        ROW(COARSE_DROPOUT, "coarse_dropout", "the step")                                                              \
        ROW(JPEG, "jpeg", "the step")                                                                                  \
        ROW(MOTION_BLUR, "motion_blur", "the step")                                                                    \
        ROW(RANDOM_BRIGHTNESS_CONTRAST, "random_brightness_contrast", "the step")                                      \
        ROW(MOVE, "move", "moving decoded pixels to their place, where no step resizes")                               \
        ROW(CONVERT, "convert", "the steps to, normalize and layout; arrays from their file's form")                   \
        ROW(MASKS, "masks", "masks of instances")                                                                      \
        ROW(AUDIO, "audio", "decoding and resampling sound")                                                           \
        ROW(FEATURES, "features", "the steps for sound after audio: spectrograms and the like")                        \
        ROW(TEXT, "text", "texts out of their file's form")                                                            \
        ROW(TOKENS, "tokens", "making tokens of texts")                                                                \
        ROW(PLUGIN, "plugin", "steps of plug-ins")                                                                     \
        ROW(COPY, "copy", "bytes and rows that are delivered as they are stored")                                      \
        ROW(COLLATE, "collate", "completing a batch: padding, joining, publishing")

enum stage_id {
#define ROW(id, name, prose) STAGE_##id,
        STAGES(ROW)
#undef ROW
        N_STAGES
};

/* "decode" */
const char *stage_name(enum stage_id stage);

/* The stage with this name; STAGE_OTHER if there is none. */
enum stage_id stage_named(const char *name);
