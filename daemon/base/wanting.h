/* base/wanting.h: whether what takes long is still wanted.
 *
 * Whoever is meant to get a sample may have left before it is made, or another user may wait for the thread. Loops
 * whose length a file or a client chooses ask after some work, and end with -ECANCELED if the answer is no. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef bool (*wanted_fn)(const void *userdata);

struct wanting {
        wanted_fn is_wanted; /* NULL: it always is */
        const void *userdata;
        bool is_over; /* it was not: what is made of this sample is thrown away */
};

static inline bool wanting_lasts(struct wanting *wanting) {
        wanting->is_over = wanting->is_over || (wanting->is_wanted && !wanting->is_wanted(wanting->userdata));
        return !wanting->is_over;
}

/* Asked by a loop after each `n` units of its work; it really looks once in `n_a_look` of them, which *n_done counts.
 * `wanting` NULL: it is wanted. */
static inline bool wanting_goes_on(struct wanting *wanting, size_t *n_done, size_t n, size_t n_a_look) {
        *n_done += n;
        if (!wanting || *n_done < n_a_look)
                return !wanting || !wanting->is_over;
        *n_done = 0;
        return wanting_lasts(wanting);
}
