/* base/threads/mailbox.h: messages from any thread to one thread that sleeps in poll.
 *
 * A bounded queue of pointers with an eventfd beside it. Many threads push, one thread (the consumer) pops, and the
 * consumer may have other things to wait for: it polls mailbox_fd() next to them. What one producer pushes comes out
 * in the order it was pushed; between producers the order is that of their claims.
 *
 * The drain rule: before the consumer sleeps, it pops until NULL. This NULL arms the eventfd: the first push after it
 * writes to the fd, all others do not, so a burst costs one system call, and an awake consumer costs none. The fd may
 * also wake the consumer without need; popping until NULL is right then, too.
 *
 * Ownership: the mailbox holds pointers and never follows them. No locks: a producer that is held up between claiming a
 * place and filling it delays the items after it, but nobody spins. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mailbox_cell;

struct mailbox {
        struct mailbox_cell *cells;
        uint64_t capacity;
        int fd;

        _Alignas(64) _Atomic uint64_t n_claimed; /* producers: pushes that have a place */
        _Alignas(64) _Atomic bool is_armed;      /* true: the next push must write to the fd, and sets it to false */

        /* The consumer's own. */
        _Alignas(64) uint64_t n_popped;
        uint64_t n_writes_owed; /* writes to the fd that were promised by producers and not yet read */
        bool was_armed;
};

/* `capacity` pointers (1 or more) fit. Returns 0, -ENOMEM or what eventfd() failed with; after a failure there is
 * nothing to fini. */
int mailbox_init(struct mailbox *mailbox, uint32_t capacity);

/* Call it when no thread pushes any more. The caller pops what is still queued before. */
void mailbox_fini(struct mailbox *mailbox);

/* Any thread; never blocks; `item` is not NULL. All that the caller wrote before is seen by the consumer that pops the
 * item. Returns 0, or -EAGAIN if `capacity` items wait. */
int mailbox_push(struct mailbox *mailbox, void *item);

/* The consumer only; never blocks. Returns NULL if nothing waits; only then may the consumer sleep on the fd. */
void *mailbox_pop(struct mailbox *mailbox);

/* Readable when there may be something to pop; level-triggered, never to be read by anyone but mailbox_pop(). */
static inline int mailbox_fd(const struct mailbox *mailbox) {
        return mailbox->fd;
}
