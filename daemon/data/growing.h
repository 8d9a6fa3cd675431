/* data/growing.h: an array of bytes that grows by appending.
 *
 * A million names take one allocation instead of a million. Addresses change when it grows, so callers keep offsets.
 *
 * While an index is built, all threads that build it have one payer: the arrays that they begin are counted in a budget
 * until they are freed, and an array that would take too much of it does not grow. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "proto/base/why.h"

struct growing_payer {
        struct budget *budget;
        _Atomic uint64_t
                n_bytes; /* that the arrays have now; at most three quarters of what others leave of the budget */
        atomic_flag is_refusing;
        struct why refusal; /* of the first array that could not grow; once all threads have ended */
};

struct growing {
        uint8_t *bytes; /* aligned as malloc aligns */
        size_t n_bytes;
        size_t capacity;
        struct growing_payer *payer; /* NULL: it is not counted */
};

/* The payer of all arrays that the calling thread begins; it outlives them. NULL: they are not counted. */
void growing_pay(struct growing_payer *payer);

/* The calling thread's, for another one that does a part of its work. */
struct growing_payer *growing_paying(void);

/* Appends n_bytes bytes; NULL appends zeroes. Returns 0, or -ENOMEM and the contents are unchanged. */
int growing_append(struct growing *growing, const void *bytes, size_t n_bytes);

/* Removes the contents, but keeps the memory. */
void growing_clear(struct growing *growing);

void growing_fini(struct growing *growing);
