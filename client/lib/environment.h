/* lib/environment.h: what a launcher tells a rank through its environment. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/lib/reason.h"

/* The rank of a process, and how many ranks there are. */
struct dli_launch {
        int rank, world;
        const char *launcher; /* the variable that gave the rank, static; NULL: no launcher did */
        struct why remark;    /* for people: what was found and ignored; "" */
        int n_local;          /* ranks that the launcher started on this node; 0: unknown */
        int first_local;      /* the first of them if they are consecutive; -1: unknown */
};

/* Fills in the values that the caller left at -1, from the first launcher that is found: torchrun (RANK, WORLD_SIZE),
 * Open MPI, MPICH and Intel MPI (PMI), a step of Slurm; otherwise rank 0 of 1. -EINVAL for a variable that is not a
 * number or lacks its partner: a wrong rank would silently train on the wrong samples. */
int dli_environment_rank(int rank, int world, struct why *reason, struct dli_launch *ret_launch);

/* The launcher's name of the run, at most `capacity` - 1 bytes; "" if there is none. Returns its length before it was
 * cut. */
int dli_environment_run(char *name, size_t capacity);

/* The name by which the ranks of this run find each other, followed by `number`, the loader's number within the
 * process. `ret_name` has room for DLP_NAME_MAX bytes. -EINVAL if there is no such name and the run has several ranks,
 * or if it is too long. */
int dli_environment_job(uint32_t world, uint64_t number, struct why *reason, char *ret_name);
