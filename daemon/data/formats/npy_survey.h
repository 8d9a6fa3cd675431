/* data/formats/npy_survey.h: what the .npy files of a field have in common: samples of a dataset have one dtype and one
 * shape, of which the first dimension may vary. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/schema.h"
#include "proto/base/why.h"

struct npy_survey {
        uint64_t n_arrays; /* whose headers were read */
        bool is_mixed;     /* they differ, or one cannot be delivered as an array */
        uint32_t dtype, n_dims;
        int64_t shape[SCHEMA_DIMS_MAX];
};

/* Reads the header of one such file, which lies in `fd`. A damaged one is passed over: it will be the error of its
 * sample. Returns 0, or a negative errno with `why` if it cannot be read. Blocks for the disk. */
int npy_survey_take(struct npy_survey *survey, int fd, uint64_t offset, uint64_t n_bytes, struct why *why);

/* Adds what another survey found of further files of the field. */
void npy_survey_add(struct npy_survey *survey, const struct npy_survey *other);

/* Says kind, coding, dtype and shape of the field. Returns false, and leaves it alone, if the files have no dtype and
 * shape in common. */
bool npy_survey_describe(const struct npy_survey *survey, struct schema_field *field);
