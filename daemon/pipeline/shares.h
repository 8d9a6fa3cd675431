/* pipeline/shares.h: how tasks, the samples under way, are shared between users and their jobs.
 *
 * `n_depth` samples are under way at once when all goes well. A job alone may have all of them. When several users want
 * them, each may have the same part, and of it each of that user's jobs its part by weight; a user's weight is the mean
 * of those jobs' weights. The next free task goes to the user who has the fewest, and of that user's jobs to the one
 * that has the fewest. There are more tasks than that: with them a job that has just come gets its part at once, while
 * those that were there first still hold theirs, and the others go on at full depth while the reads of one do not come
 * back.
 *
 * A read that has not come back for a while makes its task stuck. Stuck tasks take nothing from the depth of the
 * others, but count against their own job's part: so a disk that is merely slow is read as before, and one that
 * is gone costs a bounded number of tasks. Whatever happens, no job takes the last free ones, nor do all jobs of a user
 * together.
 *
 * Arithmetic alone; the planner's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHARES_UNIT 65536u /* a user's weight of 1, which may be a fraction */

/* Of one user. Zeroed at first; outlives the shares of that user's jobs. */
struct task_user {
        uint32_t n_tasks;   /* that all of them have */
        uint32_t n_wanting; /* jobs that want tasks in the round `round` */
        uint64_t n_weights; /* of these */
        uint64_t round;
};

/* Of one job. Zeroed at first, except the user. */
struct task_share {
        struct task_user *user;
        uint32_t n_tasks; /* that it has */
        uint32_t n_stuck; /* of these */
        uint64_t round;   /* the last one in which it wanted tasks */
};

struct shares {
        uint32_t n_depth;
        uint32_t n_free;    /* tasks that nobody has */
        uint32_t n_active;  /* tasks that somebody has and that are not stuck */
        uint64_t n_weights; /* of the users who want tasks in this round, in parts of SHARES_UNIT */
        uint64_t round;
};

/* `n_tasks` tasks, n_depth or more. */
void shares_init(struct shares *shares, uint32_t n_depth, uint32_t n_tasks);

/* A new round: nobody wants anything yet. */
void shares_begin(struct shares *shares);

/* This job has tasks or wants some; to be said once or more in each round. */
void shares_want(struct shares *shares, struct task_share *share, uint32_t weight);

/* May it have another one? It has said in this round that it wants. */
bool shares_may_take(const struct shares *shares, const struct task_share *share, uint32_t weight);

void shares_take(struct shares *shares, struct task_share *share);
void shares_give(struct shares *shares, struct task_share *share, bool was_stuck);

/* One of its tasks is stuck from now on, or is no more. */
void shares_set_stuck(struct shares *shares, struct task_share *share, bool is_stuck);

/* Negative: `a` is to have a task before `b`, since its user has less by weight, or as much and it has less itself; 0:
 * they have the same. Both have said in this round that they want. */
int shares_compare(const struct task_share *a, uint32_t weight_a, const struct task_share *b, uint32_t weight_b);
