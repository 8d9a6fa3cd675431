/* tokenize/grow.h: arrays that grow, kept from text to text. What a text becomes is known only when it is made, so it is
 * not computed beforehand how much memory that takes: the arrays that it may grow are counted together, and get no more
 * than was reserved for them. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct grow_account {
        size_t n_bytes, n_most;
        bool was_full; /* an array did not get what would have been more than n_most */
};

struct grow {
        void *items;
        size_t n, n_room;             /* bytes */
        struct grow_account *account; /* NULL: nobody counts */
};

/* Makes room for this many bytes in all; what it holds stays. -ENOMEM, also if its account is full. */
static inline int grow_reserve(struct grow *grow, size_t n_bytes) {
        struct grow_account *account = grow->account;
        size_t n_room = grow->n_room > 0 ? grow->n_room : n_bytes < 256 ? 256 : n_bytes;
        void *items;

        if (n_bytes <= grow->n_room)
                return 0;
        while (n_room < n_bytes)
                n_room += n_room / 2;
        if (account && account->n_bytes + (n_room - grow->n_room) > account->n_most) {
                account->was_full = true;
                return -ENOMEM;
        }
        items = realloc(grow->items, n_room);
        if (!items)
                return -ENOMEM;
        if (account)
                account->n_bytes += n_room - grow->n_room;
        grow->items = items;
        grow->n_room = n_room;
        return 0;
}

/* Makes room for so many bytes more. */
static inline int grow_more(struct grow *grow, size_t n_bytes) {
        return grow->n + n_bytes <= grow->n_room ? 0 : grow_reserve(grow, grow->n + n_bytes);
}

static inline void grow_free(struct grow *grow) {
        free(grow->items);
        if (grow->account)
                grow->account->n_bytes -= grow->n_room;
        *grow = (struct grow){ .account = grow->account };
}
