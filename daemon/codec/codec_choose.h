/* codec/codec_choose.h: makes the codec that serves a field: what the field is, and the steps that are named for it, say
 * which. Steps of plug-ins and tokens stand on a codec of what comes before them. */
#pragma once

#include "daemon/codec/codec.h"

/* Makes a codec for field `idx_field` of the source with the steps of a part of a pipeline (`text`; NULL: the field as
 * it is stored). Codecs of one group use the same draws; group 0 is that of a pipeline without names. `named` NULL:
 * there is nothing to name. -EINVAL with the column, counted in the text; -ENOMEM. */
int codec_new(const struct source *source, uint32_t idx_field, uint32_t group, const char *text,
              const struct codec_named *named, struct codec **ret_codec, struct why *why);

/* The same for steps that are read already. The grammar is not needed afterwards. */
int codec_read(const struct source *source, uint32_t idx_field, uint32_t group, const struct codec_steps *steps,
               const struct codec_named *named, struct codec **ret_codec, struct why *why);
