/* data/look.h: is a sample damaged, or can its dataset not be read at all?
 *
 * A read that fails says little by itself: a file is missing because somebody removed it, or because nothing is mounted
 * there any more. So the folder is looked at, some other files, and the sample. What is asked of the disk here does not
 * come from the page cache where that can be helped: what was cached is readable also when the server is gone.
 *
 * All of it blocks as the file system does, for ever on a dead mount: for threads that may hang. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/dataset.h"
#include "proto/base/why.h"

/* What an error of open() or read() says about the file that it was met with. */
enum read_error {
        READ_ERROR_OWN,    /* only this file can be meant: not a regular file, another length */
        READ_ERROR_CLEAR,  /* the file, or everything: ENOENT, EACCES. One look tells which */
        READ_ERROR_VAGUE,  /* the same, but it may also pass: EIO, ESTALE, whatever is not known here */
        READ_ERROR_OUTAGE, /* no file is meant by it: ENOTCONN, ETIMEDOUT, EHOSTDOWN */
};

enum read_error read_error_kind(int error);

/* The same for a sample of a dataset: a file that could not be reached when the index was made, and still cannot, is
 * not what an outage has taken away. */
enum read_error dataset_read_error_kind(const struct dataset *dataset, uint64_t sample, int error);

/* Other files that a look reads a piece of, spread over the dataset. */
#define LOOK_OTHERS 8u

/* Can the dataset be read? Its folder must be there, and more than half of LOOK_OTHERS samples for which `skip` does
 * not say true (may be NULL). A folder whose mount is gone is opened again if at its path lies the same one (as its
 * index says), and *ret_reopened is set. Returns 0, or an errno with `why`, which names the folder, a file and the
 * error. */
int dataset_look(struct dataset *dataset, bool (*skip)(void *userdata, uint64_t sample), void *userdata,
                 bool *ret_reopened, struct why *why);

/* Reads one sample. Returns 0; a negative errno that only this sample's file has; or LOOK_OUTAGE with `why`: its folder
 * or the whole shard is gone, or the error is none of a file. */
#define LOOK_OUTAGE 1
int dataset_look_at(const struct dataset *dataset, uint64_t sample, struct why *why);
