/* pipeline/jobs/shares.h: how tasks, the samples under way, are shared between users and their jobs.
 *
 * Normally `n_depth` samples are under way at once. A single job may have all of them. When several users want them,
 * each may have the same part, so may each household of a user (pipeline/jobs/user.h) of that, and each of its jobs has
 * its part of this by weight; a household's weight is the mean of these jobs' weights, a user's the mean of these
 * households'. The next free task goes to the user who has the fewest, of that user's households to the one that has
 * the fewest, and so to a job. There are more tasks than n_depth: with them a new job gets its part at once while the
 * others still hold theirs, and the others continue at full depth while the reads of one job do not come back.
 *
 * A read that has not come back for a while makes its task stuck. Stuck tasks take nothing from the depth of the
 * others, but count against their own job's part: so a slow disk is read as before, and a disk that does not answer
 * costs a limited number of tasks. No job ever takes the last free tasks, nor do all jobs of a user together.
 *
 * Arithmetic only; the planner's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHARES_UNIT 65536u /* a weight of 1; that of users may be a fraction */

/* Of one user, or of one household of a user. Zeroed at first, except `above`; outlives the shares of its jobs. */
struct task_group {
        struct task_group *above; /* the user of a household; NULL: it is a user */
        uint32_t n_tasks;         /* of all jobs together */
        uint32_t n_wanting;       /* households or jobs that want tasks in the round `round` */
        uint64_t n_weights;       /* of these, in parts of SHARES_UNIT */
        uint64_t round;
};

/* Of one job. Zeroed at first, except the group. */
struct task_share {
        struct task_group *group; /* the household or user whose job it is */
        uint32_t n_tasks;         /* that it has */
        uint32_t n_stuck;         /* of these */
        uint64_t round;           /* the last one in which it wanted tasks */
};

struct shares {
        uint32_t n_depth;
        uint32_t n_free;    /* tasks that nobody has */
        uint32_t n_active;  /* tasks that are in use and not stuck */
        uint64_t n_weights; /* of the users who want tasks in this round, in parts of SHARES_UNIT */
        uint64_t round;
};

/* `n_tasks` tasks, n_depth or more. */
void shares_init(struct shares *shares, uint32_t n_depth, uint32_t n_tasks);

/* Begins a new round, in which no job wants anything yet. */
void shares_begin(struct shares *shares);

/* This job has tasks or wants some; call it at least once in each round. */
void shares_want(struct shares *shares, struct task_share *share, uint32_t weight);

/* May it have another one? It must have called shares_want() in this round. */
bool shares_may_take(const struct shares *shares, const struct task_share *share, uint32_t weight);

void shares_take(struct shares *shares, struct task_share *share);
void shares_give(struct shares *shares, struct task_share *share, bool was_stuck);

/* One of its tasks is stuck from now on, or is no longer stuck. */
void shares_set_stuck(struct shares *shares, struct task_share *share, bool is_stuck);

/* Negative: `a` gets a task before `b`, because its user has fewer by weight, or as many and its household has fewer,
 * or as many and the job itself has fewer. 0: they have the same. Both must have called shares_want() in this round. */
int shares_compare(const struct task_share *a, uint32_t weight_a, const struct task_share *b, uint32_t weight_b);
