/* order/making/order_quota.h: items of several classes in a sequence of which each beginning has all classes in proportion.
 *
 * With m of n items in a class, k positions from the beginning hold k m / n of them, rounded up or down, for every k
 * and every class. For this, number j of the class (from 0) must stand at a position from j n / m, rounded down, to
 * before (j + 1) n / m, rounded up. Whoever may stand here and whose last position comes first is next; such a rule
 * finds a sequence where there is one, and here there always is (quota methods of apportionment: Balinski and Young,
 * 1975). Of equals the first class is taken. */
#pragma once

#include "proto/order/making/making.h"

struct dlp_quota_item {
        uint64_t key;
        uint32_t idx; /* of the class */
        uint32_t unused;
};

struct dlp_quota_class {
        uint64_t count, n_given;
        uint64_t position, rest; /* n_given * n = position * count + rest */
};

struct dlp_quota {
        uint64_t n, at;
        uint32_t n_classes, n_waiting, n_ready;
        struct dlp_quota_class *classes;
        struct dlp_quota_item *waiting; /* a heap: the first position that the class may take now */
        struct dlp_quota_item *ready;   /* a heap: the last one */
};

/* Classes with that many items each; a class without items never comes. -ENOMEM. Undone by dlp_quota_fini(), also after
 * an error. */
int dlp_quota_init(struct dlp_making *making, const uint64_t *counts, uint32_t n_classes, struct dlp_quota *ret_quota);
void dlp_quota_fini(struct dlp_making *making, struct dlp_quota *quota);

/* The class of the next position; to be called as often as there are items. */
uint32_t dlp_quota_next(struct dlp_quota *quota);

/* Bytes that it takes for that number of classes. */
uint64_t dlp_quota_bytes(uint64_t n_classes);
