#include "daemon/base/threads/fair_queue.h"

#include <assert.h>
#include <stddef.h>

#include "daemon/base/threads/thread.h"
#include "proto/base/clock.h"

#define SMOOTHING  8  /* the usual time is an average over about this many items */
#define FORGETTING 32 /* the longest time is forgotten after this many times as much work */

void fair_queue_init(struct fair_queue *queue) {
        *queue = (struct fair_queue){ .n_waiting = 0 };
        TAILQ_INIT(&queue->all.below);
        pthread_mutex_init(&queue->lock, NULL);
        pthread_cond_init(&queue->filled, NULL);
}

void fair_queue_fini(struct fair_queue *queue) {
        pthread_cond_destroy(&queue->filled);
        pthread_mutex_destroy(&queue->lock);
}

static void account_init(struct fair_account *account, struct fair_group *above) {
        TAILQ_INIT(&account->below);
        account->above = above ? &above->account : NULL;
}

void fair_group_init(struct fair_group *group, struct fair_group *above) {
        account_init(&group->account, above);
}

void fair_share_init(struct fair_share *share, struct fair_group *group, uint32_t weight) {
        assert(weight >= 1 && weight <= FAIR_WEIGHT_MAX);
        STAILQ_INIT(&share->items);
        account_init(&share->account, group);
        atomic_store_explicit(&share->weight, weight, memory_order_relaxed);
}

static int64_t fair_queue_weighed(struct fair_share *share, int64_t ns) {
        return ns / (int64_t)atomic_load_explicit(&share->weight, memory_order_relaxed);
}

/* Charged later, by the next thread that takes the lock. */
static void owe(struct fair_share *share, int64_t ns) {
        int64_t due_ns = fair_queue_weighed(share, ns);

        for (struct fair_account *account = &share->account; account; account = account->above)
                atomic_fetch_add_explicit(&account->due_ns, due_ns, memory_order_relaxed);
}

/* Accounts are the first members of groups and shares. */
static struct fair_group *outermost(const struct fair_share *share) {
        struct fair_account *account = share->account.above;

        while (account->above)
                account = account->above;
        return (struct fair_group *)account;
}

/* ---- called with the lock held ------------------------------------------------------------------------------- */

static int64_t take_ns(_Atomic int64_t *ns) {
        return atomic_load_explicit(ns, memory_order_relaxed) == 0
                       ? 0
                       : atomic_exchange_explicit(ns, 0, memory_order_relaxed);
}

/* Charges the difference between the actual and the expected time of finished items, and what took time beside them. */
static void settle_locked(struct fair_account *account) {
        account->had_ns += take_ns(&account->due_ns) + take_ns(&account->beside_ns);
}

/* What was charged without an item counts from here on, or a newcomer would have had it for nothing. */
static void begin_locked(struct fair_account *account, int64_t now_ns) {
        int64_t least_ns = now_ns - (account->has_begun ? FAIR_CREDIT_NS : 0), beside_ns = take_ns(&account->beside_ns);

        account->had_ns += take_ns(&account->due_ns);
        if (account->had_ns < least_ns)
                account->had_ns = least_ns;
        account->had_ns += beside_ns < FAIR_DEBT_NS ? beside_ns : FAIR_DEBT_NS;
        account->has_begun = true;
}

static struct fair_account *above_of(struct fair_queue *queue, const struct fair_account *account) {
        return account->above ? account->above : &queue->all;
}

/* The share has got its first item, and with it perhaps the groups to which it belongs. */
static void enter_locked(struct fair_queue *queue, struct fair_share *share) {
        struct fair_account *account = &share->account, *above;
        bool is_first = true;

        for (; is_first && account != &queue->all; account = above) {
                above = above_of(queue, account);
                is_first = TAILQ_EMPTY(&above->below);
                begin_locked(account, above->now_ns);
                TAILQ_INSERT_TAIL(&above->below, account, entry);
        }
}

/* Of an account in a list: it has items then, and a group has them by what is below it. */
static struct fair_share *fair_queue_share_of(struct fair_account *account) {
        return TAILQ_EMPTY(&account->below) ? (struct fair_share *)account : NULL;
}

/* A new share is what its outermost group is: else a client would begin anew with each job. */
static int64_t fair_queue_longest_of(const struct fair_share *share) {
        int64_t longest_ns = atomic_load_explicit(&share->account.longest_ns, memory_order_relaxed);

        return longest_ns > 0 ? longest_ns
                              : atomic_load_explicit(&outermost(share)->account.longest_ns, memory_order_relaxed);
}

static enum fair_length fair_queue_length_of(const struct fair_share *share) {
        if (fair_queue_longest_of(share) >= FAIR_LONG_NS)
                return FAIR_LONG;
        return atomic_load_explicit(&share->account.longest_ns, memory_order_relaxed) > 0 ? FAIR_SHORT
                                                                                          : FAIR_UNMEASURED;
}

/* Has anything below items that are not long? What is below `but` does not count. */
static bool has_shorter_locked(const struct fair_account *above, const struct fair_account *but) {
        struct fair_account *account;
        struct fair_share *share;

        TAILQ_FOREACH(account, &above->below, entry) {
                share = fair_queue_share_of(account);
                if (account == but)
                        continue;
                if (share ? fair_queue_length_of(share) != FAIR_LONG : has_shorter_locked(account, but))
                        return true;
        }
        return false;
}

/* Is there another group that has items which are not long, or took one a moment ago? */
static bool is_another_about_locked(const struct fair_queue *queue, const struct fair_group *group) {
        const struct fair_recent *recent = &queue->recent[queue->recent[0].group == group];

        return (recent->group && recent->age + 1 >= queue->age) || has_shorter_locked(&queue->all, &group->account);
}

/* Long items of all groups together leave a thread; one that is not measured may get it, but a group's own never
 * have them all. */
static bool may_have_locked(const struct fair_queue *queue, const struct fair_share *share) {
        enum fair_length length = fair_queue_length_of(share);
        const struct fair_group *group;
        bool has_room;

        if (length == FAIR_SHORT || queue->n_threads < 2)
                return true;
        group = outermost(share);
        has_room = length == FAIR_LONG ? queue->n_held + 1 < queue->n_threads && clock_now_ns() >= group->waits_until_ns
                                       : group->n_unmeasured == 0 && group->n_held + 1 < queue->n_threads;
        return has_room || !is_another_about_locked(queue, group);
}

/* Of all that is below; NULL: there is no item that a thread may have now. */
static struct fair_share *least_served_locked(const struct fair_queue *queue, const struct fair_account *above) {
        struct fair_share *share, *least = NULL;
        struct fair_account *account;
        int64_t least_ns = 0;

        TAILQ_FOREACH(account, &above->below, entry) {
                settle_locked(account);
                if (least && account->had_ns >= least_ns)
                        continue;
                share = fair_queue_share_of(account);
                if (share ? may_have_locked(queue, share) : (share = least_served_locked(queue, account)) != NULL) {
                        least = share;
                        least_ns = account->had_ns;
                }
        }
        return least;
}

static void charge_locked(struct fair_account *account, int64_t ns, int64_t *now_ns) {
        if (account->had_ns > *now_ns)
                *now_ns = account->had_ns;
        account->had_ns += ns;
}

static struct fair_item *take_from_locked(struct fair_queue *queue, struct fair_share *share) {
        struct fair_item *item = STAILQ_FIRST(&share->items);
        struct fair_account *account, *above;
        bool has_items;

        STAILQ_REMOVE_HEAD(&share->items, entry);
        item->charged_ns = fair_queue_length_of(share) == FAIR_LONG
                                   ? fair_queue_longest_of(share)
                                   : atomic_load_explicit(&share->usual_ns, memory_order_relaxed);
        has_items = !STAILQ_EMPTY(&share->items);
        for (account = &share->account; account != &queue->all; account = above) {
                above = above_of(queue, account);
                charge_locked(account, fair_queue_weighed(share, item->charged_ns), &above->now_ns);
                /* Among those with equal use, the one that waited longest is next. */
                TAILQ_REMOVE(&above->below, account, entry);
                if (has_items)
                        TAILQ_INSERT_TAIL(&above->below, account, entry);
                has_items = !TAILQ_EMPTY(&above->below);
        }
        return item;
}

static void fair_queue_hold_locked(struct fair_queue *queue, struct fair_thread *thread,
                                   const struct fair_share *share) {
        struct fair_group *group = outermost(share);

        thread->length = fair_queue_length_of(share);
        if (thread->length != FAIR_LONG) {
                if (queue->recent[0].group != group)
                        queue->recent[1] = queue->recent[0];
                queue->recent[0] = (struct fair_recent){ group, queue->age };
        }
        if (thread->length == FAIR_SHORT)
                return;
        thread->group = group;
        queue->n_held++;
        group->n_held++;
        group->n_unmeasured += thread->length == FAIR_UNMEASURED;
}

/* A long item of the group is done: the next one waits for what the group had beside. Threads wait together. */
static void wait_for_owed_locked(struct fair_group *group) {
        uint64_t owed_ns = atomic_exchange_explicit(&group->owed_ns, 0, memory_order_relaxed) / group->n_held;
        uint64_t now_ns = clock_now_ns(), most_ns = now_ns + FAIR_DEBT_NS;

        group->waits_until_ns = owed_ns + (group->waits_until_ns > now_ns ? group->waits_until_ns : now_ns);
        if (group->waits_until_ns > most_ns)
                group->waits_until_ns = most_ns;
}

/* Returns true if there may be items now that other threads could not have before. */
static bool let_go_locked(struct fair_queue *queue, struct fair_thread *thread) {
        if (thread->length == FAIR_SHORT)
                return false;
        if (thread->length == FAIR_LONG)
                wait_for_owed_locked(thread->group);
        queue->n_held--;
        thread->group->n_held--;
        thread->group->n_unmeasured -= thread->length == FAIR_UNMEASURED;
        thread->length = FAIR_SHORT;
        return true;
}

/* Something was pushed for the share. */
static void press_locked(struct fair_queue *queue, const struct fair_share *share) {
        if (queue->n_threads >= 2 && queue->n_held == queue->n_threads && outermost(share)->n_held == 0 &&
            fair_queue_length_of(share) != FAIR_LONG)
                atomic_store_explicit(&queue->is_pressed, true, memory_order_relaxed);
}

static struct fair_item *fair_queue_take_locked(struct fair_queue *queue, struct fair_thread *thread) {
        struct fair_share *share = least_served_locked(queue, &queue->all);

        if (!share)
                return NULL;
        if (atomic_load_explicit(&queue->is_pressed, memory_order_relaxed))
                atomic_store_explicit(&queue->is_pressed, false, memory_order_relaxed);
        if (thread)
                fair_queue_hold_locked(queue, thread, share);
        return take_from_locked(queue, share);
}

/* Where items wait that no thread may have, the queue grows older: that ends when nobody else has taken any. */
static void sleep_locked(struct fair_queue *queue) {
        uint64_t now_ns;

        queue->n_waiting++;
        if (TAILQ_EMPTY(&queue->all.below)) {
                pthread_cond_wait(&queue->filled, &queue->lock);
        } else {
                now_ns = clock_now_ns();
                if (now_ns >= queue->aged_ns + FAIR_ABOUT_NS) {
                        queue->age++;
                        queue->aged_ns = now_ns;
                }
                thread_wait_until(&queue->filled, &queue->lock, queue->aged_ns + FAIR_ABOUT_NS);
        }
        queue->n_waiting--;
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
        press_locked(queue, share);
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
        press_locked(queue, share);
        n_wake = n_to_wake(share, n, queue->n_waiting);
        pthread_mutex_unlock(&queue->lock);
        for (; n_wake > 0; n_wake--)
                pthread_cond_signal(&queue->filled);
}

struct fair_item *fair_queue_pop(struct fair_queue *queue, struct fair_thread *thread) {
        struct fair_item *item = NULL;
        bool is_new = false, wakes;

        pthread_mutex_lock(&queue->lock);
        if (thread) {
                is_new = let_go_locked(queue, thread);
                queue->n_threads += !thread->is_counted;
                thread->is_counted = true;
        }
        while (!leave_locked(queue)) {
                item = fair_queue_take_locked(queue, thread);
                if (item)
                        break;
                is_new = is_new || !TAILQ_EMPTY(&queue->all.below);
                sleep_locked(queue);
        }
        if (!item && thread) {
                queue->n_threads--;
                thread->is_counted = false;
        }
        wakes = is_new && item && queue->n_waiting > 0;
        pthread_mutex_unlock(&queue->lock);
        if (wakes)
                pthread_cond_signal(&queue->filled);
        return item;
}

struct fair_item *fair_queue_pop_beside(struct fair_queue *queue, const struct fair_item *item, uint32_t n_stay) {
        struct fair_share *share = item->share;
        struct fair_item *other = NULL;

        pthread_mutex_lock(&queue->lock);
        if (queue->n_waiting == 0 && !queue->is_stopped && fair_queue_length_of(share) == FAIR_SHORT &&
            has_more_than(share, n_stay))
                other = take_from_locked(queue, share);
        pthread_mutex_unlock(&queue->lock);
        return other;
}

bool fair_queue_presses(struct fair_queue *queue, const struct fair_thread *thread) {
        return atomic_load_explicit(&queue->is_pressed, memory_order_relaxed) && thread->length != FAIR_SHORT &&
               atomic_exchange_explicit(&queue->is_pressed, false, memory_order_relaxed);
}

/* Not by the number of items: a client may well have a few long ones after many short ones, and again. */
static void fair_queue_remember(struct fair_account *account, int64_t longest_ns, int64_t taken_ns) {
        longest_ns -= taken_ns / FORGETTING;
        atomic_store_explicit(&account->longest_ns, longest_ns > taken_ns ? longest_ns : taken_ns,
                              memory_order_relaxed);
}

/* Two threads may overwrite each other's numbers: either is good. */
static void fair_queue_measure(struct fair_share *share, int64_t taken_ns) {
        struct fair_account *all = &outermost(share)->account;
        int64_t usual_ns = atomic_load_explicit(&share->usual_ns, memory_order_relaxed);

        usual_ns = usual_ns == 0 ? taken_ns : usual_ns + (taken_ns - usual_ns) / SMOOTHING;
        atomic_store_explicit(&share->usual_ns, usual_ns, memory_order_relaxed);
        fair_queue_remember(&share->account, fair_queue_longest_of(share), taken_ns);
        fair_queue_remember(all, atomic_load_explicit(&all->longest_ns, memory_order_relaxed), taken_ns);
}

void fair_item_done(struct fair_item *item, uint64_t taken_ns) {
        struct fair_share *share = item->share;

        if (taken_ns > 0)
                fair_queue_measure(share, (int64_t)taken_ns);
        owe(share, (int64_t)taken_ns - item->charged_ns);
        atomic_fetch_add_explicit(&share->taken_ns, taken_ns, memory_order_relaxed);
        item->charged_ns = 0; /* what else is done with it before it is pushed again comes in addition */
}

/* To the outermost: there it can be seen. */
static void charge_beside(struct fair_account *account, int64_t weighed_ns, uint64_t taken_ns) {
        struct fair_group *group = NULL;

        for (; account; account = account->above) {
                atomic_fetch_add_explicit(&account->beside_ns, weighed_ns, memory_order_relaxed);
                group = (struct fair_group *)account;
        }
        atomic_fetch_add_explicit(&group->beside_ns, taken_ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&group->owed_ns, (uint64_t)weighed_ns, memory_order_relaxed);
}

void fair_group_charge(struct fair_group *group, uint64_t taken_ns) {
        charge_beside(&group->account, (int64_t)taken_ns, taken_ns);
}

void fair_share_charge(struct fair_share *share, uint64_t taken_ns) {
        charge_beside(&share->account, fair_queue_weighed(share, (int64_t)taken_ns), taken_ns);
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
