/* codec/layered.h: pictures with alpha. Private to this floor.
 *
 * Colours and alpha are two pictures with the same plan. Few files have alpha, and the way of all others, on which rows
 * stay in the cache, is left as it is: here both are decoded into memory, the file of a picture that has alpha twice.
 */
#pragma once

#include "daemon/codec/codec_type.h"

/* Says what the decoder's open picture shall be. 0; -ENOTSUP as decoder_as(). */
int layered_open(struct codec_tools *tools, struct why *why);

/* The bytes that layered_render() takes beside those of the plan. */
uint64_t layered_need(const struct codec_tools *tools, const struct box *source);

/* As render(). `source` is the needed part of the stored picture. */
int layered_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                   const struct box *source, uint8_t *out, size_t stride, struct why *why);
