/* tokenize/grow.h: arrays that grow, kept from text to text. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct grow {
        void *items;
        size_t n, n_room; /* bytes */
};

/* Makes room for this many bytes in all; what it holds stays. -ENOMEM. */
static inline int grow_reserve(struct grow *grow, size_t n_bytes) {
        size_t n_room = grow->n_room < 256 ? 256 : grow->n_room;
        void *items;

        if (n_bytes <= grow->n_room)
                return 0;
        while (n_room < n_bytes)
                n_room += n_room / 2;
        items = realloc(grow->items, n_room);
        if (!items)
                return -ENOMEM;
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
        *grow = (struct grow){ 0 };
}
