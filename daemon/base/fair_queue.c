#include "daemon/base/fair_queue.h"

#include <assert.h>
#include <stddef.h>

#define SMOOTHING 8 /* the usual time is an average over about this many items */

void fair_queue_init(struct fair_queue *queue) {
        *queue = (struct fair_queue){ .now_ns = 0 };
        TAILQ_INIT(&queue->groups);
        pthread_mutex_init(&queue->lock, NULL);
        pthread_cond_init(&queue->filled, NULL);
}

void fair_queue_fini(struct fair_queue *queue) {
        pthread_cond_destroy(&queue->filled);
        pthread_mutex_destroy(&queue->lock);
}

void fair_group_init(struct fair_group *group) {
        TAILQ_INIT(&group->shares);
}

void fair_share_init(struct fair_share *share, struct fair_group *group, uint32_t weight) {
        assert(weight >= 1 && weight <= FAIR_WEIGHT_MAX);
        STAILQ_INIT(&share->items);
        share->group = group;
        atomic_store_explicit(&share->weight, weight, memory_order_relaxed);
}

static int64_t weighed(struct fair_share *share, int64_t ns) {
        return ns / (int64_t)atomic_load_explicit(&share->weight, memory_order_relaxed);
}

/* Charged later, by the next thread that takes the lock. */
static void owe(struct fair_share *share, int64_t ns) {
        int64_t due_ns = weighed(share, ns);

        atomic_fetch_add_explicit(&share->account.due_ns, due_ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&share->group->account.due_ns, due_ns, memory_order_relaxed);
}

/* ---- called with the lock held ------------------------------------------------------------------------------- */

/* Charges the difference between the actual and the expected time of finished items. */
static void settle_locked(struct fair_account *account) {
        if (atomic_load_explicit(&account->due_ns, memory_order_relaxed) != 0)
                account->had_ns += atomic_exchange_explicit(&account->due_ns, 0, memory_order_relaxed);
}

static void begin_locked(struct fair_account *account, int64_t now_ns) {
        int64_t credit_ns = account->has_begun ? FAIR_CREDIT_NS : 0;

        settle_locked(account);
        if (!account->has_begun || account->had_ns < now_ns - credit_ns)
                account->had_ns = now_ns - credit_ns;
        account->has_begun = true;
}

/* The share has got its first item. */
static void enter_locked(struct fair_queue *queue, struct fair_share *share) {
        struct fair_group *group = share->group;

        if (TAILQ_EMPTY(&group->shares)) {
                begin_locked(&group->account, queue->now_ns);
                TAILQ_INSERT_TAIL(&queue->groups, group, entry);
        }
        begin_locked(&share->account, group->now_ns);
        TAILQ_INSERT_TAIL(&group->shares, share, entry);
}

static struct fair_group *least_served_locked(struct fair_queue *queue) {
        struct fair_group *group, *least = NULL;

        TAILQ_FOREACH(group, &queue->groups, entry) {
                settle_locked(&group->account);
                if (!least || group->account.had_ns < least->account.had_ns)
                        least = group;
        }
        return least;
}

static struct fair_share *least_served_of_locked(struct fair_group *group) {
        struct fair_share *share, *least = NULL;

        TAILQ_FOREACH(share, &group->shares, entry) {
                settle_locked(&share->account);
                if (!least || share->account.had_ns < least->account.had_ns)
                        least = share;
        }
        return least;
}

static void charge_locked(struct fair_account *account, int64_t ns, int64_t *now_ns) {
        if (account->had_ns > *now_ns)
                *now_ns = account->had_ns;
        account->had_ns += ns;
}

static struct fair_item *take_from_locked(struct fair_queue *queue, struct fair_group *group,
                                          struct fair_share *share) {
        struct fair_item *item = STAILQ_FIRST(&share->items);

        STAILQ_REMOVE_HEAD(&share->items, entry);
        item->charged_ns = atomic_load_explicit(&share->usual_ns, memory_order_relaxed);
        charge_locked(&group->account, weighed(share, item->charged_ns), &queue->now_ns);
        charge_locked(&share->account, weighed(share, item->charged_ns), &group->now_ns);
        /* Among shares with equal use, the one that waited longest is next. */
        TAILQ_REMOVE(&group->shares, share, entry);
        if (!STAILQ_EMPTY(&share->items))
                TAILQ_INSERT_TAIL(&group->shares, share, entry);
        TAILQ_REMOVE(&queue->groups, group, entry);
        if (!TAILQ_EMPTY(&group->shares))
                TAILQ_INSERT_TAIL(&queue->groups, group, entry);
        return item;
}

static struct fair_item *take_locked(struct fair_queue *queue) {
        struct fair_group *group = least_served_locked(queue);

        return group ? take_from_locked(queue, group, least_served_of_locked(group)) : NULL;
}

static bool has_more_than(const struct fair_share *share, uint32_t n) {
        const struct fair_item *item = STAILQ_FIRST(&share->items);

        for (; item && n > 0; n--)
                item = STAILQ_NEXT(item, entry);
        return item != NULL;
}

/* Should the calling thread leave? This loses no wake-up for an item: a dismissal wakes all sleeping threads, and no
 * thread falls asleep while a dismissal is pending. */
static bool leave_locked(struct fair_queue *queue) {
        if (queue->is_stopped)
                return true;
        if (queue->n_dismissed == 0)
                return false;
        queue->n_dismissed--;
        return true;
}

/* ---- public functions ---------------------------------------------------------------------------------------- */

void fair_queue_push(struct fair_queue *queue, struct fair_share *share, struct fair_item *item) {
        bool somebody_sleeps;

        item->share = share;
        pthread_mutex_lock(&queue->lock);
        if (STAILQ_EMPTY(&share->items))
                enter_locked(queue, share);
        STAILQ_INSERT_TAIL(&share->items, item, entry);
        somebody_sleeps = queue->n_waiting > 0;
        pthread_mutex_unlock(&queue->lock);

        /* Outside the lock, or the woken thread would at once have to wait for it. */
        if (somebody_sleeps)
                pthread_cond_signal(&queue->filled);
}

/* Of `n_waiting` threads. */
static uint32_t n_to_wake(const struct fair_share *share, uint32_t n, uint32_t n_waiting) {
        int64_t usual_ns = atomic_load_explicit(&share->usual_ns, memory_order_relaxed);
        int64_t n_busy = usual_ns >= FAIR_WAKE_NS ? n : 1 + (int64_t)n * usual_ns / FAIR_WAKE_NS;

        return n_busy < (int64_t)n_waiting ? (uint32_t)n_busy : n_waiting;
}

void fair_queue_push_all(struct fair_queue *queue, struct fair_share *share, struct fair_item *const *items,
                         uint32_t n) {
        uint32_t n_wake;

        if (n == 0)
                return;
        pthread_mutex_lock(&queue->lock);
        if (STAILQ_EMPTY(&share->items))
                enter_locked(queue, share);
        for (uint32_t i = 0; i < n; i++) {
                items[i]->share = share;
                STAILQ_INSERT_TAIL(&share->items, items[i], entry);
        }
        n_wake = n_to_wake(share, n, queue->n_waiting);
        pthread_mutex_unlock(&queue->lock);
        for (; n_wake > 0; n_wake--)
                pthread_cond_signal(&queue->filled);
}

struct fair_item *fair_queue_pop(struct fair_queue *queue) {
        struct fair_item *item = NULL;

        pthread_mutex_lock(&queue->lock);
        while (TAILQ_EMPTY(&queue->groups) && queue->n_dismissed == 0 && !queue->is_stopped) {
                queue->n_waiting++;
                pthread_cond_wait(&queue->filled, &queue->lock);
                queue->n_waiting--;
        }
        if (!leave_locked(queue))
                item = take_locked(queue);
        pthread_mutex_unlock(&queue->lock);
        return item;
}

struct fair_item *fair_queue_pop_beside(struct fair_queue *queue, const struct fair_item *item, uint32_t n_stay) {
        struct fair_share *share = item->share;
        struct fair_item *other = NULL;

        pthread_mutex_lock(&queue->lock);
        if (queue->n_waiting == 0 && !queue->is_stopped && has_more_than(share, n_stay))
                other = take_from_locked(queue, share->group, share);
        pthread_mutex_unlock(&queue->lock);
        return other;
}

void fair_item_done(struct fair_item *item, uint64_t taken_ns) {
        struct fair_share *share = item->share;
        int64_t usual_ns = atomic_load_explicit(&share->usual_ns, memory_order_relaxed);

        /* Two threads may overwrite each other's average: either value is good. */
        usual_ns += ((int64_t)taken_ns - usual_ns) / SMOOTHING;
        atomic_store_explicit(&share->usual_ns, usual_ns, memory_order_relaxed);
        owe(share, (int64_t)taken_ns - item->charged_ns);
        atomic_fetch_add_explicit(&share->taken_ns, taken_ns, memory_order_relaxed);
        item->charged_ns = 0; /* what else is done with it before it is pushed again comes in addition */
}

void fair_share_charge(struct fair_share *share, uint64_t taken_ns) {
        owe(share, (int64_t)taken_ns);
}

void fair_item_refund(struct fair_item *item) {
        owe(item->share, -item->charged_ns);
        item->charged_ns = 0;
}

void fair_queue_dismiss(struct fair_queue *queue, uint32_t n) {
        pthread_mutex_lock(&queue->lock);
        queue->n_dismissed += n;
        pthread_mutex_unlock(&queue->lock);
        pthread_cond_broadcast(&queue->filled);
}

uint32_t fair_queue_retain(struct fair_queue *queue, uint32_t n) {
        pthread_mutex_lock(&queue->lock);
        if (n > queue->n_dismissed)
                n = queue->n_dismissed;
        queue->n_dismissed -= n;
        pthread_mutex_unlock(&queue->lock);
        return n;
}

void fair_queue_stop(struct fair_queue *queue) {
        pthread_mutex_lock(&queue->lock);
        queue->is_stopped = true;
        pthread_mutex_unlock(&queue->lock);
        pthread_cond_broadcast(&queue->filled);
}
