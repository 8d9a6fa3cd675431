/* codec/render.h: where decoding and augmenting meet: rows go from the one to the other while they are in the cache.
 *
 * A picture that is cropped is never in memory as a whole: the decoder computes a band of rows, the resizer adds them
 * to its sums at once, and the next band overwrites them. */
#pragma once

#include "daemon/augment/recipe.h"
#include "daemon/decode/decode.h"

/* Decodes what `geometry` asks for of the decoder's open picture and executes the plan: geometry->height rows to `out`,
 * `stride` bytes apart. Errors are decoder_read_rows()'s and recipe_begin()'s. */
int render(struct decoder *decoder, struct workspace *workspace, const struct geometry *geometry, uint8_t *out,
           size_t stride, struct why *why);
