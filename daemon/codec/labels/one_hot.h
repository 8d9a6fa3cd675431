/* codec/labels/one_hot.h: the number of a class as a row of probabilities, so that labels can be mixed.
 *
 *      3, of 5 classes, without smoothing: 0 0 0 1 0
 *
 * With smoothing s of n classes the class gets 1 - s + s / n and each other one s / n, as timm's Mixup has it. */
#pragma once

#include "daemon/codec/codec.h"

/* Is it a whole number of each sample, and so may be that of a class? */
bool one_hot_may_be(const struct schema_field *field);

bool one_hot_is(const struct codec *codec);

/* From now on the codec, which has no steps and whose field may be one, delivers float32 [n_classes]. For who makes the
 * program. A sample whose number is not below n_classes is damaged. */
void one_hot_set(struct codec *codec, uint32_t n_classes, double smoothing);
