/* codec/masks/array_mask.h: a mask that is an array, height x width, as .npy files and listings have it. Its part says the
 * dtype, decode(mask=int64): without it, an array with the name of a mask is masks of instances (mask_planes.h).
 * Private to this floor. */
#pragma once

#include "daemon/codec/codec_type.h"

/* Is the field an array that may be a mask? */
bool array_mask_may_be(const struct schema_field *field);

/* Makes the codec one that reads the array in this dtype. -EINVAL: the array is not of whole numbers or bool. */
int array_mask_choose(struct codec *codec, enum dlp_dtype dtype, struct why *why);

/* What CODEC_MASK does for such a field. */
int array_mask_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                    struct codec_opened *ret_opened, struct why *why);
int array_mask_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      uint8_t *out, struct why *why);
