#include "daemon/pipeline/isolation/booths.h"

#include "daemon/pipeline/task.h"

#define TRAY_BYTES (TASK_BUFFER_BYTES + (64u << 10)) /* what a task reads, and values */

static uint64_t cost(const struct booths *booths) {
        return booths->setup.own_bytes + ISOLATION_CELL_BYTES;
}

void booths_init(struct booths *booths, struct isolation *isolation, struct budget *budget, uint64_t own_bytes) {
        *booths = (struct booths){ .isolation = isolation, .budget = budget };
        if (isolation)
                booths->setup = isolation->setup;
        booths->setup.own_bytes = own_bytes;
}

/* Nothing of its user stays. */
static void booths_clear(struct booths *booths, struct booth *booth) {
        cell_end(&booth->cell);
        cell_area_drop(booths->isolation->cells, &booth->tray);
}

void booths_fini(struct booths *booths) {
        for (uint32_t i = 0; i < BOOTHS_MAX; i++) {
                struct booth *booth = &booths->of[i];

                if (!booth->tray.bytes)
                        continue;
                booths_clear(booths, booth);
                if (i > 0)
                        budget_release(booths->budget, cost(booths));
        }
}

int booth_widen(struct booths *booths, struct booth *booth, uint64_t n_bytes, struct why *why) {
        int r = cell_area_widen(booths->isolation->cells, "dataloaderd-tray", n_bytes, &booth->tray);

        return r < 0 ? why_errno(why, r, "isolation: memory for the bytes of a sample") : 0;
}

/* An empty one that can be paid for, else that which was used longest ago. */
static struct booth *booths_make_room(struct booths *booths) {
        struct booth *oldest = &booths->of[0];

        for (uint32_t i = 0; i < BOOTHS_MAX; i++) {
                struct booth *booth = &booths->of[i];

                if (!booth->tray.bytes) {
                        if (i == 0 || budget_reserve(booths->budget, cost(booths), "a decoder's process", NULL) == 0)
                                return booth;
                        break;
                }
                if (booth->used < oldest->used)
                        oldest = booth;
        }
        booths_clear(booths, oldest);
        return oldest;
}

int booths_get(struct booths *booths, uid_t uid, struct booth **ret_booth, struct why *why) {
        struct booth *booth = NULL;
        int r;

        for (uint32_t i = 0; i < BOOTHS_MAX && !booth; i++)
                if (booths->of[i].tray.bytes && booths->of[i].uid == uid)
                        booth = &booths->of[i];
        if (!booth) {
                booth = booths_make_room(booths);
                r = booth_widen(booths, booth, TRAY_BYTES, why);
                if (r < 0) {
                        if (booth != &booths->of[0])
                                budget_release(booths->budget, cost(booths));
                        return r;
                }
                booth->uid = uid;
        }
        booth->used = ++booths->n_used;
        *ret_booth = booth;
        return 0;
}
