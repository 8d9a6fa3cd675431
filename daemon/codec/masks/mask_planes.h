/* codec/masks/mask_planes.h: which fields are masks of instances: an array of n masks, each height x width, with a picture
 * and perhaps its boxes. Private to this floor. */
#pragma once

#include "daemon/codec/codec_type.h"

/* Does the name say that it is a mask, and is it an array of planes? */
bool planes_are(const struct schema_field *field);

/* Makes the codec CODEC_PLANES. -EINVAL: masks are not of this dtype. */
int planes_choose(struct codec *codec, struct why *why);
