#include "daemon/data/growing.h"

/* Each time it grows by half: a million small appends cost a few dozen reallocations, and little memory is unused. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/bytes.h"

static _Thread_local struct growing_payer *paying;

void growing_pay(struct growing_payer *payer) {
        paying = payer;
}

struct growing_payer *growing_paying(void) {
        return paying;
}

/* Others must find something, too, so an index never takes more than three quarters of what they leave. */
static int reserve(struct growing_payer *payer, uint64_t n_bytes, struct why *why) {
        uint64_t mine = atomic_fetch_add(&payer->n_bytes, n_bytes), used = budget_used(payer->budget);
        uint64_t others = used > mine ? used - mine : 0, most = (payer->budget->limit_bytes - others) / 4 * 3;
        char needed[BYTES_TEXT_MAX], allowed[BYTES_TEXT_MAX], limit[BYTES_TEXT_MAX];
        int r;

        if (n_bytes > most || mine > most - n_bytes)
                r = why_set(
                        why, -ENOMEM,
                        "memory_limit: making the index needs more than %s; %s are allowed, three quarters of what others leave "
                        "of %s: raise memory_limit, or make several datasets of it",
                        format_bytes(needed, mine + n_bytes), format_bytes(allowed, most),
                        format_bytes(limit, payer->budget->limit_bytes));
        else
                r = budget_reserve(payer->budget, n_bytes, "making the index", why);
        if (r < 0)
                atomic_fetch_sub(&payer->n_bytes, n_bytes);
        return r;
}

static int pay(struct growing_payer *payer, uint64_t n_bytes) {
        struct why why;

        if (!payer || reserve(payer, n_bytes, &why) == 0)
                return 0;
        if (!atomic_flag_test_and_set(&payer->is_refusing))
                payer->refusal = why;
        return -ENOMEM;
}

static void pay_back(struct growing_payer *payer, uint64_t n_bytes) {
        if (!payer || n_bytes == 0)
                return;
        budget_release(payer->budget, n_bytes);
        atomic_fetch_sub(&payer->n_bytes, n_bytes);
}

static int grow(struct growing *growing, size_t n_wanted) {
        size_t capacity = growing->capacity + growing->capacity / 2;
        struct growing_payer *payer = growing->bytes ? growing->payer : paying;
        uint8_t *bytes;

        if (capacity < n_wanted)
                capacity = n_wanted;
        if (capacity < 4096)
                capacity = 4096;
        if (pay(payer, capacity - growing->capacity) < 0)
                return -ENOMEM;
        bytes = realloc(growing->bytes, capacity);
        if (!bytes) {
                pay_back(payer, capacity - growing->capacity);
                return -ENOMEM;
        }
        growing->bytes = bytes;
        growing->payer = payer;
        growing->capacity = capacity;
        return 0;
}

int growing_append(struct growing *growing, const void *bytes, size_t n_bytes) {
        int r;

        if (n_bytes == 0)
                return 0;
        if (n_bytes > SIZE_MAX / 4 - growing->n_bytes)
                return -ENOMEM;
        if (n_bytes > growing->capacity - growing->n_bytes) {
                r = grow(growing, growing->n_bytes + n_bytes);
                if (r < 0)
                        return r;
        }
        if (bytes)
                memcpy(growing->bytes + growing->n_bytes, bytes, n_bytes);
        else
                memset(growing->bytes + growing->n_bytes, 0, n_bytes);
        growing->n_bytes += n_bytes;
        return 0;
}

void growing_clear(struct growing *growing) {
        growing->n_bytes = 0;
}

void growing_fini(struct growing *growing) {
        free(growing->bytes);
        pay_back(growing->payer, growing->capacity);
        *growing = (struct growing){ 0 };
}
