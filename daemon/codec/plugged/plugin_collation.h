/* codec/plugged/plugin_collation.h: a collation of a plug-in, at the end of a part of a pipeline.
 *
 *      image: center_crop(224) plugin(blocks.centered)
 *
 * Its samples are rendered into a part of the slot of their own (struct field_input), without gaps. When all of them
 * are there, the plug-in makes the field's tensor of them. It does not change once it is made. */
#pragma once

#include <stdio.h>

#include "daemon/codec/codec.h"
#include "daemon/codec/plugged/plugin_step.h"

struct plugin_collation;

/* For what `codec` delivers. -EINVAL with the column: there is no such form, or the plug-in's own reason. -ENOMEM. */
int plugin_collation_new(const struct plugin_step_text *text, const struct codec *codec, const struct source *source,
                         struct plugin_collation **ret_collation, struct why *why);

/* Takes NULL. */
void plugin_collation_free(struct plugin_collation *collation);

const struct plugin_use *plugin_collation_use(const struct plugin_collation *collation);

/* In its one normal spelling. */
void plugin_collation_print(const struct plugin_collation *collation, FILE *stream);

/* `form` is what the codec delivers, and becomes that of the tensor. */
void plugin_collation_apply(const struct plugin_collation *collation, struct field_form *form);

/* Memory for n samples and the rows that become of them. */
uint64_t plugin_collation_need(const struct plugin_collation *collation, uint32_t n);

/* Makes n rows of n samples. `input` has the seed, the epoch, and as `sample` the place of the batch in the epoch; what
 * is drawn is that of the codec's part. `samples` are copied before the plug-in sees them. -EBADMSG: the plug-in fails,
 * or its process ended or hung; -ENOMEM; -ECANCELED. */
int plugin_collation_run(const struct plugin_collation *collation, const struct codec *codec, struct codec_tools *tools,
                         const struct codec_input *input, uint32_t n, const uint8_t *samples, uint8_t *out,
                         struct why *why);
