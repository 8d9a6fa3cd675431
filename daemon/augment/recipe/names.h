/* augment/recipe/names.h: the names of steps, and what people write in their place. Private to this floor. */
#pragma once

#include "daemon/augment/step.h"

/* The step that is meant, also by the name of torchvision's class; NULL: there is none. */
const struct step_type *step_find(struct grammar_word name);

/* The steps that do what a class of torchvision does which has no arguments: "to(float32) layout(nchw)" for ToTensor.
 * NULL: there are none. */
const char *names_texts(struct grammar_word name);

/* -EINVAL: it is not the name of a step; what it may have been meant to be. */
int names_refuse(const struct grammar *grammar, struct grammar_word name, struct why *why);
