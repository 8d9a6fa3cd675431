/* lib/environment.h: what a launcher tells a rank through its environment. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/lib/reason.h"

/* Completes what the caller left at -1 from the first launcher that is there: torchrun (RANK, WORLD_SIZE), Open MPI,
 * MPICH and Intel MPI (PMI), Slurm; else rank 0 of 1. -EINVAL for a variable that is no number or that lacks its
 * partner: a wrong rank would silently train on the wrong samples. */
int dli_environment_rank(int rank, int world, struct dli_reason *reason, int *ret_rank, int *ret_world);

/* The name by which the ranks of this run find each other, with `number`, the loader's number within the process,
 * behind it. `ret_name` has room for DLP_NAME_MAX bytes. -EINVAL if there is no such name and the run has several
 * ranks, or if it is too long. */
int dli_environment_job(uint32_t world, uint64_t number, struct dli_reason *reason, char *ret_name);
