/* codec/plugged/plugged_codec.h: a field whose elements go through steps of plug-ins after all other steps. Private to this
 * floor.
 *
 * What the field would deliver without them is made by a codec of its own, `before`, into memory from which the first
 * plug-in reads; the last one's result is copied into the slot. So a plug-in's step can follow whatever has one shape:
 * pictures, arrays, sound of one length. */
#pragma once

#include "daemon/codec/codec_type.h"

/* The codec, of which `before` is there, goes through these n steps. -EINVAL with the column; -ENOMEM. */
int plugged_settle(struct codec *codec, const struct source *source, const struct plugin_step_text *steps, uint32_t n,
                   struct why *why);
