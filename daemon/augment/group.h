/* augment/group.h: a step around other steps, `random_apply([hflip(1), vflip(1)], p=0.3)`. Private to this floor.
 *
 * A group draws, for each sample, which of its branches run and in which sequence. What the steps inside then draw does
 * not depend on that: each has the stream of its own place in the text, counted as if there were no brackets. */
#pragma once

#include "proto/order/philox.h"

#include <stdbool.h>
#include <stdint.h>

#define GROUPS_DEEP_MAX 4u /* groups within one another */

struct value;

struct group {
        bool is_sequence; /* the steps inside are one branch, which run one after the other; else each is a branch */
        bool runs_all;    /* all branches run if any does; else one of them */
        unsigned idx_weights; /* the argument that says how often each branch runs; 0: the group has none */

        /* How often anything inside runs, 0 to 1. NULL: always. */
        double (*chance)(const struct value *values);

        /* Draws the branches that run, of n (at least 1, at most LIST_MAX), and their sequence. Returns how many. */
        uint32_t (*draw)(const struct value *values, uint32_t n, struct dlp_philox *philox, uint32_t *ret_sequence);
};

/* Draws one f32 u, and with it one of n branches: the first one at whose end the sum of the weights, in float64, is
 * above u times the sum of them all. Without weights (an empty list) each of them weighs 1. */
uint32_t group_choose(const struct value *weights, uint32_t n, struct dlp_philox *philox);
