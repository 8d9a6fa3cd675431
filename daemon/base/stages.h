/* base/stages.h: what a worker may be doing with a sample, each stage defined once: id, name, what it is.
 *
 * Steps of a pipeline that take time of their own have their own name, so that the heavy one can be named. The others
 * (crops, hflip) only say which pixels the stages before and after them read and write, and cost nothing alone. The
 * build lists the former by the line of their kind that says `.stage = STAGE_...` (STEP_STAGES, Makefile). */
#pragma once

#include <stdint.h>

#include "kinds/stages.h"

#define STAGES(ROW)                                                                                                    \
        ROW(OTHER, "other", "what is between the other stages")                                                        \
        ROW(HEADER, "header", "the header of a picture or sound, draws, planning")                                     \
        ROW(DECODE, "decode", "decoding pictures")                                                                     \
        STEP_STAGES(ROW)                                                                                               \
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
