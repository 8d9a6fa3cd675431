/* codec/tokens.h: the codec that makes tokens of text. Private to this floor. */
#pragma once

#include "daemon/codec/codec_type.h"

/* Makes the codec serve tokens: step `idx` says so, and what stands before it makes text of the field. -EINVAL with the
 * column; what at_hand_get() gives; -ENOMEM. */
int tokens_choose(struct codec *codec, const struct source *source, const struct codec_steps *steps, uint32_t idx,
                  const struct codec_named *named, struct why *why);

/* Frees what tokens_choose() made. */
void tokens_fini(struct codec *codec);

/* A worker's: zeroes are empty. */
size_t token_tools_bytes(const struct token_tools *tools);
void token_tools_trim(struct token_tools *tools);
