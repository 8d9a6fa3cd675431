/* codec/plugged/unpacked.h: a field whose stored bytes a plug-in's codec decodes. Private to this floor.
 *
 *      plugin(blocks.unpack) random_resized_crop(224)      a picture: our steps follow, as for those that we decode
 *      plugin(blocks.volume)                               an array of one shape
 */
#pragma once

#include "daemon/codec/codec_type.h"

/* `codec_step` is the first of the steps; no further plug-ins follow. -EINVAL with the column; -ENOMEM. */
int unpacked_choose(struct codec *codec, const struct plugin_step_text *codec_step, const struct codec_steps *steps,
                    struct why *why);
