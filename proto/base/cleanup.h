/* proto/base/cleanup.h: what leaves a scope is closed or freed there.
 *
 * Destructors take NULL and half-built objects, so one _cleanup_ on the declaration covers every return. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))

/* Moves a pointer out of a variable that would else be cleaned up. */
#define TAKE_PTR(pointer)                                                                                              \
        ({                                                                                                             \
                __typeof__(pointer) _taken = (pointer);                                                                \
                (pointer) = NULL;                                                                                      \
                _taken;                                                                                                \
        })

/* The same for a descriptor. */
static inline int take_fd(int *fd) {
        int taken = *fd;

        *fd = -1;
        return taken;
}

static inline void closep(int *fd) {
        if (*fd >= 0)
                close(*fd);
}

static inline void freep(void *pointer) {
        free(*(void **)pointer);
}

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
