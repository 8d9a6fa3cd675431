#include "daemon/base/threads/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A cell of the queue. `turn` counts its uses: 2n = free for its nth use, 2n + 1 = filled in its nth use. So the cell
 * itself says which side owns it, and neither side has to read the other's position. */
struct mailbox_cell {
        _Atomic uint64_t turn;
        void *item; /* written by the producer before turn becomes odd, read by the consumer before it becomes even */
};

int mailbox_init(struct mailbox *mailbox, uint32_t capacity) {
        struct mailbox_cell *cells;
        int fd;

        assert(capacity > 0);

        cells = calloc(capacity, sizeof(*cells));
        if (!cells)
                return -ENOMEM;

        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0) {
                int error = -errno;

                free(cells);
                return error;
        }

        *mailbox = (struct mailbox){ .cells = cells, .capacity = capacity, .fd = fd };
        return 0;
}

void mailbox_fini(struct mailbox *mailbox) {
        if (!mailbox->cells)
                return;

        close(mailbox->fd);
        free(mailbox->cells);
        *mailbox = (struct mailbox){ .fd = -1 };
}

/* Only a push that finds the mailbox armed writes to the fd: the producer that clears the flag has to do the write. */
static void wake_consumer(struct mailbox *mailbox) {
        const uint64_t one = 1;
        ssize_t n;

        if (!atomic_load(&mailbox->is_armed) || !atomic_exchange(&mailbox->is_armed, false))
                return;

        n = write(mailbox->fd, &one, sizeof(one));
        assert(n == sizeof(one)); /* the counter is read long before it reaches 2^64 */
        (void)n;
}

int mailbox_push(struct mailbox *mailbox, void *item) {
        uint64_t position = atomic_load_explicit(&mailbox->n_claimed, memory_order_relaxed);
        struct mailbox_cell *cell;
        uint64_t turn;

        assert(item);

        for (;;) {
                uint64_t turn_free = position / mailbox->capacity * 2;

                cell = &mailbox->cells[position % mailbox->capacity];
                turn = atomic_load_explicit(&cell->turn, memory_order_acquire);
                if (turn == turn_free) {
                        if (atomic_compare_exchange_weak_explicit(&mailbox->n_claimed, &position, position + 1,
                                                                  memory_order_relaxed, memory_order_relaxed))
                                break;
                } else if (turn < turn_free) {
                        return -EAGAIN; /* full: the cell's item of the previous round has not been popped */
                } else {
                        position = atomic_load_explicit(&mailbox->n_claimed, memory_order_relaxed);
                }
        }

        cell->item = item;
        /* Sequentially consistent, like the arming. Either this push sees that the consumer is armed, or the consumer,
         * which checks once more after arming, sees this item. */
        atomic_store(&cell->turn, turn + 1);
        wake_consumer(mailbox);
        return 0;
}

static void *mailbox_take(struct mailbox *mailbox) {
        struct mailbox_cell *cell = &mailbox->cells[mailbox->n_popped % mailbox->capacity];
        uint64_t turn = mailbox->n_popped / mailbox->capacity * 2;
        void *item;

        if (atomic_load(&cell->turn) != turn + 1)
                return NULL;

        item = cell->item;
        atomic_store_explicit(&cell->turn, turn + 2, memory_order_release);
        mailbox->n_popped++;
        return item;
}

/* Clears the fd and makes the next push write to it. The flag is cleared before the fd is read: a push that sees it
 * writes nothing, so the read cannot swallow the only wake-up there will be, while an item before it is still missing.
 * Writes are counted because the producer that cleared the flag may not have written yet: a write that comes after this
 * read is read at the next arming, so the fd never stays readable. */
static void arm(struct mailbox *mailbox) {
        uint64_t n;

        if (!atomic_exchange(&mailbox->is_armed, false) && mailbox->was_armed)
                mailbox->n_writes_owed++;
        if (mailbox->n_writes_owed > 0 && read(mailbox->fd, &n, sizeof(n)) == sizeof(n))
                mailbox->n_writes_owed -= n;
        mailbox->was_armed = true;
        atomic_store(&mailbox->is_armed, true);
}

void *mailbox_pop(struct mailbox *mailbox) {
        void *item = mailbox_take(mailbox);

        if (item)
                return item;

        arm(mailbox);
        return mailbox_take(mailbox);
}
