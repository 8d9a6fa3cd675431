/* data/formats/megatron/gpt_split.h: which sequences of a file belong to the part for training, validation or testing,
 * as Megatron's --split says. */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"

/* `splits`: "969,30,1", up to three weights of the parts train, valid and test, which need not add up to anything.
 * NULL: all sequences are for training. `part`: the name of one of them; NULL: "train". The part is the sequences
 * *ret_first up to *ret_first + *ret_n. Returns 0, or -EINVAL with `why`. */
int gpt_split(const char *splits, const char *part, uint64_t n_sequences, uint64_t *ret_first, uint64_t *ret_n,
              struct why *why);
