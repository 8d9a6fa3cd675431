/* order/making/order_classes.h: the classes of a column of labels: its different values, numbered from the smallest on.
 *
 * Labels are any whole numbers. Those that lie close together are looked up in a table, others by hashing. */
#pragma once

#include "proto/order/making/making.h"

#define DLP_CLASSES_MAX (1u << 20) /* more of them are ids, or a wrong column */

struct dlp_classes {
        uint32_t n;
        uint64_t *counts; /* n: how many values of the column each class has */
        int64_t *labels;  /* n: its value */

        uint64_t n_room; /* of counts and labels */
        int64_t minimum;
        uint64_t n_direct; /* values of `direct`; 0: `slots` is used */
        uint32_t *direct;  /* of the value minimum + i: class + 1; 0: none */
        uint64_t n_slots;  /* a power of two */
        struct dlp_class_slot *slots;
};

struct dlp_class_slot {
        int64_t label;
        uint32_t class_after; /* class + 1; 0: the slot is free */
        uint32_t unused;
};

/* Finds the classes of all values. -EINVAL: they are not whole numbers, or there are too many; -ENOMEM; -ECANCELED.
 * Undone by dlp_classes_fini(), also after an error. */
int dlp_classes_init(struct dlp_making *making, const char *step, const struct dlp_column *column,
                     struct dlp_classes *ret_classes);
void dlp_classes_fini(struct dlp_making *making, struct dlp_classes *classes);

/* The class of a label that the column has. */
uint32_t dlp_classes_find(const struct dlp_classes *classes, int64_t label);

/* The classes of values i .. i + n - 1. */
void dlp_classes_read(const struct dlp_classes *classes, const struct dlp_column *column, uint64_t i, uint64_t n,
                      uint32_t *ret_classes);

/* Bytes that it takes at most for a column of n values, while it is made; afterwards less. */
uint64_t dlp_classes_bytes_max(uint64_t n);
