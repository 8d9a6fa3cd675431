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

static uint64_t user_weight(const struct shares *shares, const struct task_user *user) {
        return user->round == shares->round ? user->n_weights * SHARES_UNIT / user->n_wanting : 0;
}

void shares_want(struct shares *shares, struct task_share *share, uint32_t weight) {
        struct task_user *user = share->user;

        if (share->round == shares->round)
                return;
        share->round = shares->round;
        shares->n_weights -= user_weight(shares, user);
        if (user->round != shares->round)
                user->n_wanting = user->n_weights = 0;
        user->round = shares->round;
        user->n_wanting++;
        user->n_weights += weight;
        shares->n_weights += user_weight(shares, user);
}

/* Its share of the depth, rounded up, so that no share is 0. A user's share is depth * W / (sum of all W), where W is
 * the mean of the weights w of the user's jobs. A job's share is the user's share * w / (sum of w). The sum of w is W
 * times the number of jobs. */
static uint64_t part_of(const struct shares *shares, const struct task_share *share, uint32_t weight) {
        uint64_t n_parts = share->user->n_wanting * shares->n_weights;

        return ((uint64_t)shares->n_depth * weight * SHARES_UNIT + n_parts - 1) / n_parts;
}

/* The free tasks, without those that this user must leave to others. */
static uint32_t free_for(const struct shares *shares, const struct task_share *share) {
        uint32_t n_left = (share->user->n_tasks - share->n_tasks) / USER_LEAVES_FREE;

        return shares->n_free > n_left ? shares->n_free - n_left : 0;
}

bool shares_may_take(const struct shares *shares, const struct task_share *share, uint32_t weight) {
        assert(share->round == shares->round);
        if (share->n_tasks >= (uint64_t)LEAVES_FREE * free_for(shares, share))
                return false;
        if (share->n_tasks < part_of(shares, share, weight))
                return true;
        /* Above its share a job takes what the others leave, unless some of its reads are stuck. */
        return share->n_stuck == 0 && shares->n_active < shares->n_depth;
}

static int compare(uint64_t a, uint64_t b) {
        return a < b ? -1 : a > b;
}

int shares_compare(const struct task_share *a, uint32_t weight_a, const struct task_share *b, uint32_t weight_b) {
        const struct task_user *user_a = a->user, *user_b = b->user;
        int r;

        /* compares tasks / mean weight of both users, without a division */
        r = compare((uint64_t)user_a->n_tasks * user_a->n_wanting * user_b->n_weights,
                    (uint64_t)user_b->n_tasks * user_b->n_wanting * user_a->n_weights);
        return r != 0 ? r : compare((uint64_t)a->n_tasks * weight_b, (uint64_t)b->n_tasks * weight_a);
}

void shares_take(struct shares *shares, struct task_share *share) {
        assert(shares->n_free > 0);
        shares->n_free--;
        shares->n_active++;
        share->n_tasks++;
        share->user->n_tasks++;
}

void shares_give(struct shares *shares, struct task_share *share, bool was_stuck) {
        if (was_stuck)
                shares_set_stuck(shares, share, false);
        assert(share->n_tasks > share->n_stuck && share->user->n_tasks >= share->n_tasks);
        shares->n_free++;
        shares->n_active--;
        share->n_tasks--;
        share->user->n_tasks--;
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
