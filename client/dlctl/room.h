/* dlctl/room.h: memory. dlctl has nothing to lose: without it, it ends. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

/* Ends the program if there is none. */
static inline void *room_or_end(void *memory) {
        if (!memory) {
                fputs("dlctl: no memory\n", stderr);
                exit(EXIT_FAILURE);
        }
        return memory;
}

/* Zeroes for n things; never NULL. */
static inline void *room_for(size_t n, size_t size) {
        return room_or_end(calloc(n > 0 ? n : 1, size));
}
