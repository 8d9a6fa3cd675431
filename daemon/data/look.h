/* data/look.h: is a sample damaged, or can its dataset not be read at all?
 *
 * A failed read alone does not say much: a file may be missing because it was removed, or because its file system is no
 * longer mounted. So this looks at the folder, at some other files and at the sample. It reads from the disk and not
 * from the page cache where possible: cached data can be read even when the server is gone.
 *
 * All functions block as long as the file system does, on a dead mount for ever: call them only on threads that may
 * hang. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/machine/read_error.h"
#include "daemon/data/dataset.h"
#include "proto/base/why.h"

/* read_error_kind() for a sample of a dataset: if its file could not be reached when the index was made, and still
 * cannot, that is not caused by an outage. Nor is a file that was written to (-EREMCHG), once it is known that its
 * bytes differ. */
enum read_error dataset_read_error_kind(const struct dataset *dataset, uint64_t sample, int error);

/* How many other files, spread over the dataset, a look reads a piece of. */
#define LOOK_OTHERS 8u

/* Can the dataset be read? Its folder must be there, and more than half of LOOK_OTHERS samples must be readable.
 * Samples for which `skip` (may be NULL) returns true are not used. If the folder's mount is gone and the same folder
 * (as its index says) is at its path, it is opened again and *ret_reopened is set. Returns 0, or an errno with `why`,
 * which names the folder, a file and the error. */
int dataset_look(struct dataset *dataset, bool (*skip)(void *userdata, uint64_t sample), void *userdata,
                 bool *ret_reopened, struct why *why);

/* Reads one sample. Returns 0; a negative errno that only this sample's file has; or LOOK_OUTAGE with `why`: its folder
 * or the whole shard is gone, or the error is not about a file. */
#define LOOK_OUTAGE 1
int dataset_look_at(const struct dataset *dataset, uint64_t sample, struct why *why);
