/* proto/base/typed.h: spellings that users of Python type for the words of a text of steps.
 *
 * There is one normal spelling, in which texts are compared and printed: resize(256:256), to(float16), layout(nchw).
 * People also write resize([256, 256]), to(torch.half), layout("NCHW"), and it is clear what they mean. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/symbol.h"

/* Does the value of n characters mean this name? Case, quotes around it and a module before it ("torch.") do not count,
 * and torch's short names of dtypes are known: half, bf16, fp32, long. Search for the exact name first. */
bool typed_is(const char *value, size_t n, const char *name) DLP_SYMBOL(typed_is);

/* Is it this name, case and underscores aside? RandomCrop is random_crop. */
bool typed_is_class(const char *word, size_t n, const char *name) DLP_SYMBOL(typed_is_class);

/* The index of a value among n_names, exactly or as typed_is() says; n_names if it is none. */
size_t typed_find(const char *value, size_t n, const char *const *names, size_t n_names) DLP_SYMBOL(typed_find);
