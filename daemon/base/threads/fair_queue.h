/* base/threads/fair_queue.h: work for a pool of threads, shared fairly between those who want it.
 *
 * Shares belong to groups, and groups may belong to others. Each share has a queue of its own, first in first out. A
 * thread takes from the outermost group that has had the least of the threads' time, of what that consists of from
 * the one that has had the least, and so on down to a share; each divided by the share's weight. What counts is the
 * time that items really took, not their number, so a share whose items take long gets fewer of them done, and the
 * others are not affected. A share without items is skipped.
 *
 * A group is charged what its shares are charged. So more shares do not give a group more time; its weight is the mean
 * of the weights of what it consists of and has items.
 *
 * When an item is taken it is charged what its share's items usually take, and the difference when it is done, so that
 * threads that take at the same moment spread over the shares. A share or a group that comes back after a pause begins
 * with a credit of at most CREDIT: it cannot save up time, but it loses nothing if its queue is empty for a moment.
 *
 * Work cannot be taken back from a thread, and how long it takes is a client's choice. So while a group wants short
 * items, or took one a moment ago, the long ones (LONG) of all others leave it a thread, which may be idle meanwhile:
 * an outermost group, that is, for anybody may have any number of others made. A
 * share that has not been measured has one item done first. A share with a long item counts as long for a good while,
 * and is charged its longest time when an item is taken: so threads spread before the first of them is back. A group
 * that comes when others' long items have every thread already makes one of them be given up.
 *
 * A long item begins whenever the others' queues are empty for a moment, so what a group was charged beside its items
 * would be paid by nobody. So, while another is about, it waits for as long before its next long item.
 *
 * One mutex, held for a few instructions and one look at each group that has items and at what those consist of that
 * come into question; a push wakes a thread only if one sleeps. Nothing is allocated. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"

#define FAIR_CREDIT_NS  500000000ll   /* of one thread's time, at weight 1 */
#define FAIR_DEBT_NS    10000000000ll /* likewise: the most that is remembered of what was charged without items */
#define FAIR_LONG_NS    500000000ll   /* others wait for less; and short ones last longer where CPUs are busy */
#define FAIR_ABOUT_NS   500000000ull  /* a group has gone that took nothing for one to two times this */
#define FAIR_WEIGHT_MAX 1000u
#define FAIR_WAKE_NS    20000

struct fair_share;

/* Embedded in what is queued. It belongs to the pusher until it is pushed, and to the popper after it was popped. */
struct fair_item {
        STAILQ_ENTRY(fair_item) entry;
        struct fair_share *share;
        int64_t charged_ns; /* when it was taken */
};

TAILQ_HEAD(fair_accounts, fair_account);

/* The threads' time that a group or a share was charged, divided by the weights. */
struct fair_account {
        struct fair_accounts below; /* what a group consists of and has items; the queue's lock, as far as due_ns */
        struct fair_account *above; /* the group's to which it belongs; NULL: that is outermost */
        TAILQ_ENTRY(fair_account) entry; /* in the group's list, or the queue's, while it has items */
        int64_t now_ns;                  /* had_ns of the one below that was served last: newcomers begin there */
        int64_t had_ns;
        bool has_begun;             /* had an item once */
        _Atomic int64_t due_ns;     /* what finished items took beyond what they were charged; not in had_ns yet */
        _Atomic int64_t beside_ns;  /* what was charged without an item; not in had_ns yet */
        _Atomic int64_t longest_ns; /* of its items: what the longest took, forgotten as it works; 0: not measured */
};

/* What counts as one towards all others beside it. Embedded in an object of the caller; outlives what belongs to it. */
struct fair_group {
        struct fair_account account;   /* first */
        uint32_t n_held, n_unmeasured; /* if it is outermost: threads that have an item of it which is not short; of
                                        * these, not measured */
        _Atomic uint64_t beside_ns;    /* if it is outermost: all that was charged without an item: for people */
        _Atomic uint64_t owed_ns;      /* likewise: of it what the next long item has to wait for, weighed */
        uint64_t waits_until_ns;       /* no long item before, by the clock, while another group is about */
};

/* One share. Embedded in an object of the caller; outlives its items. */
struct fair_share {
        struct fair_account account;    /* first */
        STAILQ_HEAD(, fair_item) items; /* the queue's lock */

        _Atomic uint32_t weight;   /* 1 to FAIR_WEIGHT_MAX; may be changed at any time */
        _Atomic int64_t usual_ns;  /* what an item takes, smoothed */
        _Atomic uint64_t taken_ns; /* what all finished items took: for people */
};

enum fair_length {
        FAIR_SHORT,
        FAIR_UNMEASURED,
        FAIR_LONG
};

/* One thread that takes items, and what it is at. Zeroed at first. */
struct fair_thread {
        bool is_counted;
        enum fair_length length;  /* of the item that it took last */
        struct fair_group *group; /* whose it is, the outermost; not looked at if it is short */
};

/* An outermost group that took an item which was not long. */
struct fair_recent {
        const struct fair_group *group; /* only compared: it may be gone */
        uint64_t age;                   /* of the queue at that time */
};

struct fair_queue {
        pthread_mutex_t lock;    /* a leaf: nothing else is locked below it; covers all that follows */
        uint32_t n_waiting;      /* threads that sleep in pop */
        uint32_t n_dismissed;    /* threads that are to end, and have not yet */
        struct fair_account all; /* below it the outermost groups: its list ends the line that a push writes */

        bool is_stopped;
        pthread_cond_t filled;

        _Atomic bool is_pressed;      /* one of the threads that hold an item is to give it up */
        uint32_t n_threads, n_held;   /* in all, and those that have an item which is not short */
        struct fair_recent recent[2]; /* the last group that took one which is not long, and the last one beside it */
        uint64_t age, aged_ns;        /* grows while a thread is kept free */
};

void fair_queue_init(struct fair_queue *queue);

/* Call it when no thread uses the queue any more. */
void fair_queue_fini(struct fair_queue *queue);

/* Take a zeroed one. `above`: the group to which it belongs; NULL: it is outermost. */
void fair_group_init(struct fair_group *group, struct fair_group *above);
void fair_share_init(struct fair_share *share, struct fair_group *group, uint32_t weight);

/* Any thread; never blocks for long. Allowed after stop: then nobody takes the item, and it stays in the queue. */
void fair_queue_push(struct fair_queue *queue, struct fair_share *share, struct fair_item *item);

/* The same for several of one share, with one look at the lock. Wakes as many threads as they keep busy for
 * FAIR_WAKE_NS each: items that take less are not worth waking more for. */
void fair_queue_push_all(struct fair_queue *queue, struct fair_share *share, struct fair_item *const *items,
                         uint32_t n);

/* Blocks until there is an item that the thread may have, and returns it: it is done with the one before. NULL, even if
 * items are left: this thread is to end, because the queue was stopped or there is one thread too many. With `thread`
 * NULL, what takes long is not limited. */
struct fair_item *fair_queue_pop(struct fair_queue *queue, struct fair_thread *thread);

/* A thread that has popped `item` takes another one of its share, if they are short, at least n_stay are left and no
 * thread sleeps; NULL: it does not. Never blocks. */
struct fair_item *fair_queue_pop_beside(struct fair_queue *queue, const struct fair_item *item, uint32_t n_stay);

/* Should this thread give up its item and push it again? Yes, once, if no thread has a short item and another group got
 * one that is not long: it came when others had all threads already. Cheap; any thread. */
bool fair_queue_presses(struct fair_queue *queue, const struct fair_thread *thread);

/* The thread has spent taken_ns on an item that it popped; 0: nothing, which says nothing about other items. Call it
 * before releasing whatever keeps the share alive; any thread; no lock. */
void fair_item_done(struct fair_item *item, uint64_t taken_ns);

/* The share had this much time of other threads: it counts as if an item had taken it, also if it has no items now, up
 * to FAIR_DEBT_NS. Any thread; no lock. */
void fair_share_charge(struct fair_share *share, uint64_t taken_ns);

/* The same for a group as such, none of whose shares had it. */
void fair_group_charge(struct fair_group *group, uint64_t taken_ns);

/* Refunds what the item was charged when it was taken: it goes into the queue again unfinished, or is charged when it
 * is finished. Any thread; no lock. */
void fair_item_refund(struct fair_item *item);

/* Makes `n` threads end: those that call pop next, or sleep in it. The others take what is queued. Any thread. */
void fair_queue_dismiss(struct fair_queue *queue, uint32_t n);

/* Cancels up to `n` dismissals that no thread has followed yet. Returns how many. Any thread. */
uint32_t fair_queue_retain(struct fair_queue *queue, uint32_t n);

/* Makes all threads end that sleep in pop or call it later. Any thread. */
void fair_queue_stop(struct fair_queue *queue);
