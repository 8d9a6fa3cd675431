/* store/record/record_steps.h: the text of `prepare`, read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/text/kinds.h"

#define STEPS_SHORT_MAX       16384u /* pixels: as a pipeline's resize */
#define STEPS_QUALITY_DEFAULT 95u    /* of what is resized, if jpeg() is not written */

struct steps {
        /* "convert": Parquet files become Arrow streams. */
        bool converts;
        /* "command: TEXT": the text, a part of what was parsed; NULL: none. Each file goes through this shell command.
         */
        const char *command;

        /* Else, pictures: */
        bool packs_only;     /* nothing is written: no picture is looked at */
        uint32_t short_side; /* pixels; 0: pictures keep their size */
        uint32_t quality;    /* of libjpeg, 1 to 100 */
        bool encodes_all;    /* jpeg() is written: what keeps its size is encoded as well; else it is packed as it is */
        bool transcodes;     /* gpu_jpeg is written: a JPEG becomes one whose rows can be decoded side by side */
};

/* All steps for pictures, and convert. */
extern const struct kind_family prepare_kinds;

/* Is this a text of steps? -EINVAL with the position and what was expected. */
int steps_check(const char *steps, struct why *why);

/* -EINVAL with the column and what was expected. */
int steps_parse(const char *text, struct steps *ret_steps, struct why *why);
