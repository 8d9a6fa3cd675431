/* codec/plugged/plugged_forms.h: what fields with plug-ins have in common: forms, draws, memory. Private to this floor. */
#pragma once

#include "daemon/codec/codec_type.h"

/* Draws of plug-ins are apart from those of our steps, which are numbered from 0. One of theirs may draw a number for
 * each pixel, which is more than one stream has, so each has 4,096. */
#define FORMS_CODEC_PLACE   0x7000u
#define FORMS_STEP_PLACE(i) (0x8000u + (i)*0x1000u)

#define FORMS_COLLATION_PLACE 0x6000u

/* The dtype that has such a number for plug-ins. false: none has. */
bool forms_find_dtype(uint32_t number, uint32_t *ret_dtype);

/* An array of one shape, which is stacked. */
void forms_to_field(const struct dlplugin_form *form, struct field_form *ret_form);

/* The form of what `codec` delivers, for a plug-in that comes after it: of a field of one shape it depends on the steps
 * alone. -EINVAL with the column: it has no form that is known before a sample is read. */
int forms_of_codec(const struct codec *codec, const struct source *source, size_t column,
                   struct dlplugin_form *ret_form, struct why *why);

/* The worker's seats are there from now on. -ENOMEM. */
int forms_seats(struct codec_tools *tools, struct why *why);

/* fini() and refuse_memory() of both codecs. */
void forms_fini(struct codec *codec);
int forms_refuse_memory(const struct codec_tools *tools, const struct codec_opened *opened, uint64_t allowed_bytes,
                        struct why *why);
