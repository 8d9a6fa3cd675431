/* pipeline/isolation/user_cells.h: the cells of one worker, one for each user whose samples it had lately, each with its
 * tray: the memory in which the worker lays the bytes of a sample. One thread, the worker's. */
#pragma once

#include "daemon/pipeline/isolation/isolation.h"

#define USER_CELLS_MAX 4u /* of a worker; the one that was used longest ago makes room for another user */

struct user_cell {
        uid_t uid;
        struct cell cell;
        struct cell_area tray; /* none: no user has it */
        uint64_t used;         /* the lower, the longer ago */
};

struct user_cells {
        struct isolation *isolation;
        struct render_setup setup;
        struct budget *budget;
        uint64_t n_used;
        struct user_cell of[USER_CELLS_MAX];
};

/* `isolation` may be NULL: then they are not used. Each cell may keep own_bytes of scratch. The first one is
 * paid for by the caller: own_bytes + ISOLATION_CELL_BYTES. */
void user_cells_init(struct user_cells *all, struct isolation *isolation, struct budget *budget, uint64_t own_bytes);
void user_cells_fini(struct user_cells *all);

/* The user's cell, whose process need not be running yet. -ENOMEM, -EMFILE. */
int user_cells_get(struct user_cells *all, uid_t uid, struct user_cell **ret_user_cell, struct why *why);

/* Makes room for n_bytes in its tray; what lay there stays where it was. -ENOMEM, -EMFILE. */
int user_cell_widen(struct user_cells *all, struct user_cell *user_cell, uint64_t n_bytes, struct why *why);
