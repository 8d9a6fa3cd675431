#include "daemon/pipeline/jobs/shares.h"

#include <assert.h>

#define LEAVES_FREE      4u  /* a job that has 4 n tasks must leave n tasks free */
#define USER_LEAVES_FREE 16u /* and one more for each 16 tasks of its user's other jobs */

void shares_init(struct shares *shares, uint32_t n_depth, uint32_t n_tasks) {
        assert(n_depth > 0 && n_tasks >= n_depth);
        *shares = (struct shares){ .n_depth = n_depth, .n_free = n_tasks, .round = 1 };
}

void shares_begin(struct shares *shares) {
        shares->round++;
        shares->n_weights = 0;
}

/* 0: it wants nothing in this round. */
static uint64_t shares_weight_of(const struct shares *shares, const struct task_group *group) {
        return group->round == shares->round ? group->n_weights / group->n_wanting : 0;
}

/* A job wants something, so its groups do, and their weights change. */
void shares_want(struct shares *shares, struct task_share *share, uint32_t weight) {
        uint64_t before = 0, now = (uint64_t)weight * SHARES_UNIT;

        if (share->round == shares->round)
                return;
        share->round = shares->round;
        for (struct task_group *group = share->group; group; group = group->above) {
                uint64_t group_before = shares_weight_of(shares, group);

                if (group->round != shares->round)
                        group->n_wanting = group->n_weights = 0;
                group->round = shares->round;
                group->n_wanting += before == 0;
                group->n_weights += now - before;
                before = group_before;
                now = shares_weight_of(shares, group);
        }
        shares->n_weights += now - before;
}

/* Its share of the depth, rounded up, so that no share is 0. A user's share is depth * W / (sum of all W). A job's or a
 * household's is its group's share * w / (sum of w), and W, the group's weight, is the mean of these w: their sum is W
 * times their number. So of all these weights only the first sum and the job's remain. */
static uint64_t shares_part_of(const struct shares *shares, const struct task_share *share, uint32_t weight) {
        uint64_t n_parts = shares->n_weights;

        for (const struct task_group *group = share->group; group; group = group->above)
                n_parts *= group->n_wanting;
        return ((uint64_t)shares->n_depth * weight * SHARES_UNIT + n_parts - 1) / n_parts;
}

static const struct task_group *shares_user_of(const struct task_share *share) {
        const struct task_group *group = share->group;

        while (group->above)
                group = group->above;
        return group;
}

/* The free tasks, without those that this user must leave to others. */
static uint32_t free_for(const struct shares *shares, const struct task_share *share) {
        uint32_t n_left = (shares_user_of(share)->n_tasks - share->n_tasks) / USER_LEAVES_FREE;

        return shares->n_free > n_left ? shares->n_free - n_left : 0;
}

bool shares_may_take(const struct shares *shares, const struct task_share *share, uint32_t weight) {
        assert(share->round == shares->round);
        if (share->n_tasks >= (uint64_t)LEAVES_FREE * free_for(shares, share))
                return false;
        if (share->n_tasks < shares_part_of(shares, share, weight))
                return true;
        /* Above its share a job takes what the others leave, unless some of its reads are stuck. */
        return share->n_stuck == 0 && shares->n_active < shares->n_depth;
}

static int compare(uint64_t a, uint64_t b) {
        return a < b ? -1 : a > b;
}

/* By tasks / mean weight, without a division: first as users. */
static int compare_groups(const struct task_group *a, const struct task_group *b) {
        int r;

        if (a == b)
                return 0;
        r = compare_groups(a->above, b->above);
        return r != 0 ? r
                      : compare((uint64_t)a->n_tasks * a->n_wanting * b->n_weights,
                                (uint64_t)b->n_tasks * b->n_wanting * a->n_weights);
}

int shares_compare(const struct task_share *a, uint32_t weight_a, const struct task_share *b, uint32_t weight_b) {
        int r = compare_groups(a->group, b->group);

        return r != 0 ? r : compare((uint64_t)a->n_tasks * weight_b, (uint64_t)b->n_tasks * weight_a);
}

void shares_take(struct shares *shares, struct task_share *share) {
        assert(shares->n_free > 0);
        shares->n_free--;
        shares->n_active++;
        share->n_tasks++;
        for (struct task_group *group = share->group; group; group = group->above)
                group->n_tasks++;
}

void shares_give(struct shares *shares, struct task_share *share, bool was_stuck) {
        if (was_stuck)
                shares_set_stuck(shares, share, false);
        assert(share->n_tasks > share->n_stuck && share->group->n_tasks >= share->n_tasks);
        shares->n_free++;
        shares->n_active--;
        share->n_tasks--;
        for (struct task_group *group = share->group; group; group = group->above)
                group->n_tasks--;
}

void shares_set_stuck(struct shares *shares, struct task_share *share, bool is_stuck) {
        if (is_stuck) {
                assert(share->n_stuck < share->n_tasks);
                share->n_stuck++;
                shares->n_active--;
        } else {
                assert(share->n_stuck > 0);
                share->n_stuck--;
                shares->n_active++;
        }
}
