/* collate/delivered.h: what a function of the trainer's delivered for a field whose samples vary in size.
 *
 * It lies in the sample's own part of the slot (field->result_offset), without gaps, with room for the largest sample.
 * Its process says how large it is, and that is believed only within what the text declares. Then it is copied to where
 * collation wants it. Nothing here reads an element, so that it does not matter if the process writes there meanwhile.
 */
#pragma once

#include <stdbool.h>

#include "daemon/collate/collate_layout.h"
#include "proto/base/why.h"

/* Is the field a copy of what a function delivers? */
bool delivered_varies(const struct field_form *form);

/* How many of its dimensions vary: as many sizes does the process say of each sample. */
uint32_t delivered_n_sizes(const struct field_form *form);

/* Completes `ret_shape`, form->n_dims elements, by the sizes that the process says. They are not checked; what does not
 * fit into an int64_t becomes -1. */
void delivered_shape(const struct field_form *form, const uint64_t *sizes, int64_t *ret_shape);

/* May a sample have this shape? -EBADMSG with what was declared. No dimension may be empty, but one that is alone in
 * varying, where samples are not stacked. */
int delivered_check(const struct field_form *form, const int64_t *shape, struct why *why);

/* Copies a sample to its place, which collating_place() has told: `shape` is the one it was placed with, which is
 * shorter than `from` has it in the first dimension if padding truncates. */
void delivered_copy(const struct field_layout *field, const int64_t *shape, const uint8_t *from, uint8_t *to);
