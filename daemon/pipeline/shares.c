#include "daemon/pipeline/shares.h"

#include <assert.h>

#define LEAVES_FREE 4u /* a job that has 4 n tasks leaves n free ones */

void shares_init(struct shares *shares, uint32_t n_depth, uint32_t n_tasks) {
        assert(n_depth > 0 && n_tasks >= n_depth);
        *shares = (struct shares){ .n_depth = n_depth, .n_free = n_tasks, .round = 1 };
}

void shares_begin(struct shares *shares) {
        shares->round++;
        shares->n_weights = 0;
}

void shares_want(struct shares *shares, struct task_share *share, uint32_t weight) {
        if (share->round == shares->round)
                return;
        share->round = shares->round;
        shares->n_weights += weight;
}

/* Its part of the depth, rounded up: nobody's is nothing. */
static uint64_t part_of(const struct shares *shares, uint32_t weight) {
        return ((uint64_t)shares->n_depth * weight + shares->n_weights - 1) / shares->n_weights;
}

bool shares_may_take(const struct shares *shares, const struct task_share *share, uint32_t weight) {
        assert(share->round == shares->round);
        if (shares->n_free == 0 || share->n_tasks >= (uint64_t)LEAVES_FREE * shares->n_free)
                return false;
        if (share->n_tasks < part_of(shares, weight))
                return true;
        return share->n_stuck == 0 && shares->n_active < shares->n_depth;
}

void shares_take(struct shares *shares, struct task_share *share) {
        assert(shares->n_free > 0);
        shares->n_free--;
        shares->n_active++;
        share->n_tasks++;
}

void shares_give(struct shares *shares, struct task_share *share, bool was_stuck) {
        if (was_stuck)
                shares_set_stuck(shares, share, false);
        assert(share->n_tasks > share->n_stuck);
        shares->n_free++;
        shares->n_active--;
        share->n_tasks--;
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
