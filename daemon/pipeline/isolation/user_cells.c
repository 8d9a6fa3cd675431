#include "daemon/pipeline/isolation/user_cells.h"

#include "daemon/pipeline/task.h"

#define TRAY_BYTES (TASK_BUFFER_BYTES + (64u << 10)) /* what a task reads, and values */

static uint64_t cost(const struct user_cells *all) {
        return all->setup.own_bytes + ISOLATION_CELL_BYTES;
}

void user_cells_init(struct user_cells *all, struct isolation *isolation, struct budget *budget, uint64_t own_bytes) {
        *all = (struct user_cells){ .isolation = isolation, .budget = budget };
        if (isolation)
                all->setup = isolation->setup;
        all->setup.own_bytes = own_bytes;
}

/* Nothing of its user stays. */
static void user_cells_clear(struct user_cells *all, struct user_cell *user_cell) {
        cell_end(&user_cell->cell);
        cell_area_drop(all->isolation->cells, &user_cell->tray);
}

void user_cells_fini(struct user_cells *all) {
        for (uint32_t i = 0; i < USER_CELLS_MAX; i++) {
                struct user_cell *user_cell = &all->of[i];

                if (!user_cell->tray.bytes)
                        continue;
                user_cells_clear(all, user_cell);
                if (i > 0)
                        budget_release(all->budget, cost(all));
        }
}

int user_cell_widen(struct user_cells *all, struct user_cell *user_cell, uint64_t n_bytes, struct why *why) {
        int r = cell_area_widen(all->isolation->cells, "dataloaderd-tray", n_bytes, &user_cell->tray);

        return r < 0 ? why_errno(why, r, "isolation: memory for the bytes of a sample") : 0;
}

/* An empty one that can be paid for, else that which was used longest ago. */
static struct user_cell *user_cells_make_room(struct user_cells *all) {
        struct user_cell *oldest = &all->of[0];

        for (uint32_t i = 0; i < USER_CELLS_MAX; i++) {
                struct user_cell *user_cell = &all->of[i];

                if (!user_cell->tray.bytes) {
                        if (i == 0 || budget_reserve(all->budget, cost(all), "a decoder's process", NULL) == 0)
                                return user_cell;
                        break;
                }
                if (user_cell->used < oldest->used)
                        oldest = user_cell;
        }
        user_cells_clear(all, oldest);
        return oldest;
}

int user_cells_get(struct user_cells *all, uid_t uid, struct user_cell **ret_user_cell, struct why *why) {
        struct user_cell *user_cell = NULL;
        int r;

        for (uint32_t i = 0; i < USER_CELLS_MAX && !user_cell; i++)
                if (all->of[i].tray.bytes && all->of[i].uid == uid)
                        user_cell = &all->of[i];
        if (!user_cell) {
                user_cell = user_cells_make_room(all);
                r = user_cell_widen(all, user_cell, TRAY_BYTES, why);
                if (r < 0) {
                        if (user_cell != &all->of[0])
                                budget_release(all->budget, cost(all));
                        return r;
                }
                user_cell->uid = uid;
        }
        user_cell->used = ++all->n_used;
        *ret_user_cell = user_cell;
        return 0;
}
