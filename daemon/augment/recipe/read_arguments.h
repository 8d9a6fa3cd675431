/* augment/recipe/read_arguments.h: the arguments of one step: which they are, and which are given. Private to this
 * floor. */
#pragma once

#include "daemon/augment/recipe/body.h"
#include "proto/base/step_text.h"

/* How many arguments the step has. */
unsigned count_arguments(const struct step_type *type);

/* Reads "(...)" if it is present. Sets bit i of `given` for each argument i that is. The steps of a group are added to
 * the recipe. -EINVAL. */
int read_arguments(struct step_text *reader, const struct step_type *type, struct step *step, struct recipe *recipe,
                   unsigned *given);

/* Gives the others their defaults. `word` is the step's name in the text. -EINVAL if one has none. */
int fill_defaults(const struct step_text *reader, const char *word, struct step *step, unsigned given);
