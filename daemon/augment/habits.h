/* augment/habits.h: what people type who know what they want and not how it is written here, and what they then should
 * write. Private to this floor; spellings that are simply taken are in proto/base/typed.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/augment/step.h"

#define HABIT_MAX 160u /* bytes with NUL */

/* The step for a word that is the value of one: "to(float16)" for fp16, "layout(nchw)" for NCHW. False: for none. */
bool habit_step(const char *word, size_t n, char ret_text[HABIT_MAX]);

/* The rest of a sentence about argument `idx` of a step, whose value at `text` was refused; "" if nothing is known to
 * be meant. `first` is the value of the step's first argument. */
void habit_value(const struct step_type *type, unsigned idx, const struct value *first, const char *text,
                 char ret_text[HABIT_MAX]);
