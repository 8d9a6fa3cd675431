/* data/formats/arrow/indices.h: the rows of a dataset in the sequence that an indices file gives, as "datasets" saved it
 * before 1.15: a column of row numbers, of which some may be missing and some come several times. */
#pragma once

#include "daemon/data/formats/columnar/columnar.h"

/* An index of all rows, of the one file that the pass has -> an index of those that `indices` name. `described` is an
 * empty builder that was described as `all` was; its folders are there already. Samples are then named FILE:NUMBER,
 * where the number is the place in the sequence. Takes memory for both indices. Returns 0 or an errno with the pass's
 * `why`. Blocks until the files are read. */
int arrow_indices_apply(struct columnar_pass *pass, const struct listed *indices, struct index_builder *all,
                        struct index_builder *described);
