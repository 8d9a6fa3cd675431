/* ctl/jobs/job_hold.h: does a rank wait for its dataset? */
#pragma once

#include "daemon/pipeline/stream.h"
#include "proto/base/why.h"

/* It does if the dataset cannot be read and a sample of the rank waits for it, or if a read does not return: the ring
 * has that state. *ret_why says what it waits for. Main thread. */
bool hold_of(const struct stream *stream, struct why *ret_why);
