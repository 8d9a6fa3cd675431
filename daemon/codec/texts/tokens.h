/* codec/texts/tokens.h: the codec that makes tokens of text. Private to this floor. */
#pragma once

#include "daemon/codec/codec_type.h"

/* The codec, whose steps are read and whose text is chosen, serves tokens. -EINVAL with the column; what at_hand_get()
 * gives; -ENOMEM. */
int tokens_settle(struct codec *codec, const struct codec_named *named, struct why *why);
