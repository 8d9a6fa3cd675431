/* data/formats/arrow/indices.h: the rows of a dataset in the sequence that an indices file gives, as "datasets" saved it
 * before 1.15: a column of row numbers, of which some may be missing and some come several times. */
#pragma once

#include "daemon/data/formats/arrow/arrow_pass.h"

/* An index of all rows -> an index of those that the indices files of pass->folder name. `described` is an empty
 * builder that was described as `all` was; its folders are there already. `name` and `status` are of the file that
 * holds all rows. Samples are then named FILE:NUMBER, where the number is the place in the sequence. Takes memory for
 * both indices. Returns 0 or an errno with the pass's `why`. Blocks until the files are read. */
int arrow_indices_apply(struct arrow_pass *pass, struct index_builder *all, const char *name, const struct stat *status,
                        struct index_builder *described);
