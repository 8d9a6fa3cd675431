/* codec/sounds/sound_part.h: which part of its file a sound is, as columns of the dataset say. Private to this floor.
 *
 * Manifests of long recordings have a row for each utterance: the file, the second where it begins ("offset" in those
 * of NeMo and lhotse) and how many seconds it has. */
#pragma once

#include "daemon/codec/codec_type.h"

struct sound_info;

struct sound_span {
        uint64_t first, n_frames; /* of the file */
};

/* Finds the columns that codec->sound names. -EINVAL: there is no such column of single numbers, or the dataset has a
 * column "offset" and the step says nothing about it: every row would get the beginning of its file. */
int sound_part_bind(struct codec *codec, const struct source *source, struct why *why);

/* -EBADMSG: the part does not lie in the file. A duration may end a tenth of a second after the file, because manifests
 * round; it ends with it then. */
int sound_part_span(const struct codec *codec, const struct codec_part *part, const struct sound_info *info,
                    struct sound_span *ret_span, struct why *why);
