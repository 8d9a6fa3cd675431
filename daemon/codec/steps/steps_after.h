/* codec/steps/steps_after.h: steps for pictures that a function of the trainer's has made: what is written after python(NAME).
 *
 *      image: random_resized_crop(224) python(my) color_jitter(0.4) to(float32) normalize
 *
 * The function delivers uint8 height x width x channels in a part of the slot of its own (struct field_input,
 * `result`), and a worker thread of the daemon makes the field of it. All sizes are known when the text is bound:
 * nothing but levels comes from memory that the function's process may still write. The steps draw as others do, from a
 * stream apart from that of the steps before the function. */
#pragma once

#include <stdint.h>

#include "daemon/codec/codec.h"
#include "daemon/collate/collate_layout.h"
#include "proto/base/why.h"

struct steps_after;

/* Reads steps for pictures of 1 or 3 channels, of this view of their field. -EINVAL with the column in the text,
 * -ENOMEM.
 */
int steps_after_new(const struct codec_steps *steps, uint32_t n_channels, uint32_t view, struct steps_after **ret_after,
                    struct why *why);

/* Takes NULL. */
void steps_after_free(struct steps_after *after);

/* In their one normal spelling. Belongs to them. */
const char *steps_after_text(const struct steps_after *after);

/* Do they leave each pixel where it is? */
bool steps_after_keeps_places(const struct steps_after *after);

/* What a function delivers becomes form->result, and the form what the steps make of it. -EINVAL: it is another
 * kind of array, or the steps make pictures of several sizes. */
int steps_after_form(const struct steps_after *after, struct field_form *form, struct why *why);

/* ---- a sample; a worker ---------------------------------------------------------------------------------------- */

/* Draws, for a picture that is form->result. `codec` is what the function's input was made by. `ret_need_bytes`: memory
 * that rendering may take. -EFBIG, -ERANGE: the steps cannot be applied to it. */
int steps_after_open(const struct steps_after *after, const struct codec *codec, struct codec_tools *tools,
                     const struct codec_input *input, const struct field_form *form, uint64_t *ret_need_bytes,
                     struct why *why);

/* Writes the field to `out`. Once after each steps_after_open(). `pixels` may change meanwhile. -ENOMEM. */
int steps_after_render(const struct steps_after *after, struct codec_tools *tools, const struct field_form *form,
                       const uint8_t *pixels, uint8_t *out, struct why *why);
