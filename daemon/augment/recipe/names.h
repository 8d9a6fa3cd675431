/* augment/recipe/names.h: the names of steps, and what people write in their place. Private to this floor. */
#pragma once

#include "daemon/augment/step.h"
#include "proto/base/step_text.h"

#include <stdbool.h>
#include <stddef.h>

/* The step with this name; NULL if there is none. */
const struct step_type *step_find(const char *word, size_t n);

/* Also by the name of torchvision's class. */
const struct step_type *step_find_typed(const char *word, size_t n);

/* Is it `raw` or `decode`, which the table does not have? */
bool is_mode(const char *word, size_t n);

/* The text after "transforms." and the like, which people write before a class. */
const char *skip_module(const char *text);

/* -EINVAL: the word, at which the reader is, is not the name of a step; what it may have been meant to be. */
int step_refuse(const struct step_text *reader, const char *word, size_t n_word);
