/* pipeline/attendance.h: which ranks of a job have come to this node.
 *
 * A loader that one rank opens and the others do not gives that rank its share of the samples and nobody the rest. The
 * client can say so only if it knows who has ever come: also ranks that were done and have left, and also if all have
 * left in between, as loaders for validation do. So what came is remembered for a while after a job's end, under its
 * user and name. Main thread. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "proto/limits.h"

struct attendance {
        uint32_t n_ranks; /* ranks that do not fit are not kept, and then not reported as missing either */
        uint32_t ranks[DLP_LOCAL_RANKS_MAX]; /* in the sequence in which they came first */
};

/* A rank has come. */
void attendance_note(struct attendance *attendance, uint32_t rank);

/* The job has ended. Of the newest jobs only, for a quarter of an hour. */
void attendance_keep(uid_t uid, const char *job, const struct attendance *attendance);

/* A job of this user and name begins: who came to the one before it. */
void attendance_recall(uid_t uid, const char *job, struct attendance *ret_attendance);
