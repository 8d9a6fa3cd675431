/* data/doubts.h: files of a dataset that can probably not be decoded, told when it is opened and not at step 40,000.
 *
 * If nothing else is in doubt, pictures of 16 bits or floats are told as well, since 8 bits keep next to nothing of
 * them; this is looked for in archives, records and columns, too.
 *
 * Formats tell files by their names. A download that failed leaves empty files, or pages of HTML called 7.jpg. Empty
 * files and those that are not files are known from the index: all samples are looked at. What the others begin with is
 * looked at for some that are spread over the dataset, always the same ones. Damage further inside is met when a sample
 * is decoded (the ledger). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/dataset.h"
#include "proto/base/why.h"

#define DOUBTS_FILES     256u /* whose first bytes are read */
#define DOUBTS_NO_SAMPLE UINT64_MAX

/* Looks at pictures, sounds, and bytes that may be pictures; the dataset must be held. Blocks as the file system
 * does, for about `max_ns` at most, or until *cancel (may be NULL) is set; then the rest was not looked at. Meanwhile
 * *ret_sample (may be NULL) is the sample whose file is being read, or DOUBTS_NO_SAMPLE. Writes a sentence with numbers
 * and the first name of each kind; "" if nothing is in doubt. */
void dataset_doubts(const struct dataset *dataset, uint64_t max_ns, const atomic_bool *cancel,
                    _Atomic uint64_t *ret_sample, struct why *ret_text);

/* Does the sentence tell of samples that cannot be decoded? Else only of such as one may not expect. */
bool doubts_end_jobs(const char *text);

/* Has a pipeline, in its normal spelling, the step that the sentence asks for? */
bool doubts_are_settled(const char *text, const char *pipeline);
