#include "daemon/base/budget.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/bytes.h"

/* How the limit is raised, so far that `bytes` fit: by twice what is missing, because the daemon's own buffers may take
 * half of it, and grow with it. */
static void say_how(const struct budget *budget, uint64_t bytes, uint64_t free_bytes, struct why *ret_how) {
        uint64_t n_mib = (budget->limit_bytes >> 20) + ((bytes - free_bytes) >> 20) * 2 + 6;

        if (!budget->variable)
                why_set(ret_how, 0, "raise memory_limit, or ask for a smaller batch or fewer slots");
        else
                why_set(ret_how, 0,
                        "ask for a smaller batch or fewer slots; or end this daemon (dlctl stop) and open the loader "
                        "with %s=\"memory_limit=%" PRIu64 "%s\" in the environment, which starts one with more",
                        budget->variable, n_mib >= 1024 ? (n_mib + 1023) / 1024 : n_mib, n_mib >= 1024 ? "GiB" : "MiB");
}

static int budget_refuse(const struct budget *budget, uint64_t bytes, uint64_t free_bytes, const char *what,
                         struct why *why) {
        char needed[AMOUNT_TEXT_MAX], left[AMOUNT_TEXT_MAX], limit[BYTES_TEXT_MAX];
        struct why how;

        format_compared(needed, bytes, left, free_bytes);
        say_how(budget, bytes, free_bytes, &how);
        return why_set(why, -ENOMEM, "memory_limit: %s needs %s, %s of %s are free: %s", what, needed, left,
                       format_bytes(limit, budget->limit_bytes), how.text);
}

void budget_share_init(struct budget *share, struct budget *whole, uint32_t uid, uint32_t percent) {
        *share = (struct budget){ .limit_bytes = whole->limit_bytes, .whole = whole, .uid = uid };
        atomic_store_explicit(&share->percent, percent, memory_order_relaxed);
}

static int refuse_share(const struct budget *share, uint64_t bytes, uint64_t mine, uint64_t allowed, const char *what,
                        struct why *why) {
        char needed[BYTES_TEXT_MAX], taken[BYTES_TEXT_MAX], most[BYTES_TEXT_MAX];

        return why_set(
                why, -ENOMEM,
                "user_memory: %s needs %s, rings of user %u take %s and may take %s, %u %% of what others leave of "
                "memory_limit: ask for a smaller batch or fewer slots, or have user_memory or memory_limit raised",
                what, format_bytes(needed, bytes), share->uid, format_bytes(taken, mine), format_bytes(most, allowed),
                atomic_load_explicit(&share->percent, memory_order_relaxed));
}

/* The most that a share may hold at this moment; others may take or give back at the same time. */
static uint64_t share_allowed(struct budget *share, uint64_t mine) {
        uint64_t used = budget_used(share->whole), others = used > mine ? used - mine : 0;
        uint64_t left = share->limit_bytes - others;
        uint32_t percent = atomic_load_explicit(&share->percent, memory_order_relaxed);

        return left / 100 * percent + left % 100 * percent / 100;
}

static int reserve_share(struct budget *share, uint64_t bytes, const char *what, struct why *why) {
        uint64_t mine = atomic_load_explicit(&share->used_bytes, memory_order_relaxed), allowed;
        int r;

        do {
                allowed = share_allowed(share, mine);
                if (bytes > allowed || mine > allowed - bytes)
                        return refuse_share(share, bytes, mine, allowed, what, why);
        } while (!atomic_compare_exchange_weak_explicit(&share->used_bytes, &mine, mine + bytes, memory_order_relaxed,
                                                        memory_order_relaxed));
        r = budget_reserve(share->whole, bytes, what, why);
        if (r < 0)
                atomic_fetch_sub_explicit(&share->used_bytes, bytes, memory_order_relaxed);
        return r;
}

int budget_reserve(struct budget *budget, uint64_t bytes, const char *what, struct why *why) {
        uint64_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);

        if (budget->whole)
                return reserve_share(budget, bytes, what, why);
        do {
                uint64_t free_bytes = budget->limit_bytes - used; /* never negative: used <= limit always */

                if (bytes > free_bytes)
                        return budget_refuse(budget, bytes, free_bytes, what, why);
        } while (!atomic_compare_exchange_weak_explicit(&budget->used_bytes, &used, used + bytes, memory_order_relaxed,
                                                        memory_order_relaxed));
        return 0;
}

void budget_release(struct budget *budget, uint64_t bytes) {
        uint64_t before = atomic_fetch_sub_explicit(&budget->used_bytes, bytes, memory_order_relaxed);

        assert(before >= bytes);
        (void)before;
        if (budget->whole)
                budget_release(budget->whole, bytes);
}

uint64_t budget_used(struct budget *budget) {
        return atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
}
