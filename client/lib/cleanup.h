/* lib/cleanup.h: what leaves a scope is closed or freed there. Destructors take NULL and half-built objects. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))

static inline void closep(int *fd) {
        if (*fd >= 0)
                close(*fd);
}

static inline void freep(void *pointer) {
        free(*(void **)pointer);
}

/* Moves a descriptor out of a variable that would else be closed. */
static inline int take_fd(int *fd) {
        int taken = *fd;

        *fd = -1;
        return taken;
}
