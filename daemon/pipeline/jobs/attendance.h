/* pipeline/jobs/attendance.h: which ranks of a job have attached on this node.
 *
 * If one rank opens a loader and the others do not, that rank gets its share of the samples, and nobody gets the rest.
 * The client can warn about this only if it knows which ranks have ever attached: also ranks that were done and have
 * left, and also if all of them have left in between, as loaders for validation do. So the ranks are remembered for a
 * while after a job's end, under its user and name. Main thread. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "proto/limits.h"

struct attendance {
        uint32_t n_ranks; /* ranks that do not fit are not kept, and then not reported as missing either */
        uint32_t ranks[DLP_LOCAL_RANKS_MAX]; /* in the sequence in which they first attached */
};

/* A rank has attached. */
void attendance_note(struct attendance *attendance, uint32_t rank);

/* The job has ended. Only the newest jobs are kept, for a quarter of an hour. */
void attendance_keep(uid_t uid, const char *job, const struct attendance *attendance);

/* A job of this user and name begins: returns the ranks of the job before it. */
void attendance_recall(uid_t uid, const char *job, struct attendance *ret_attendance);
