/* codec/plugged/plugged_codec.h: a field whose elements go through steps of plug-ins after all other steps. Private to this
 * floor.
 *
 * What the field would deliver without them is made by a codec of its own, `before`, into memory from which the first
 * plug-in reads; the last one's result is copied into the slot. So a plug-in's step can follow whatever has one shape:
 * pictures, arrays, sound of one length. */
#pragma once

#include "daemon/codec/codec_type.h"

/* Step `idx` is the first plugin(...). -EINVAL with the column; -ENOMEM. */
int plugged_choose(struct codec *codec, const struct source *source, const struct codec_steps *steps, uint32_t idx,
                   const struct codec_named *named, struct why *why);

void plugged_fini(struct codec *codec);

/* Is it a picture that has the same form after the plug-ins as before them? */
bool plugged_is_picture(const struct codec *codec);
