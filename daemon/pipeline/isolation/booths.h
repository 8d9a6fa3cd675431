/* pipeline/isolation/booths.h: the cells of one worker, one for each user whose samples it had lately.
 *
 * A booth is a cell and its tray, the memory in which the worker lays the bytes of a sample. The tray goes with the
 * user, not with the cell: a cell that ended is replaced when the next order comes. One thread, the worker's. */
#pragma once

#include "daemon/pipeline/isolation/isolation.h"

#define BOOTHS_MAX 4u /* of a worker; the one that was used longest ago makes room for another user */

struct booth {
        uid_t uid;
        struct cell *cell;       /* NULL: none lives */
        struct cell_memory tray; /* number 0: nobody uses the booth */
        uint8_t *bytes;          /* the tray as the worker has it mapped */
        uint64_t cpu_ns;         /* of the cell, when it was last asked */
        uint64_t used;           /* the lower, the longer ago */
};

struct booths {
        struct isolation *isolation;
        struct render_setup setup;
        struct budget *budget;
        uint64_t n_used;
        struct booth of[BOOTHS_MAX];
};

/* `isolation` may be NULL: then the booths are not used. Each cell may keep own_bytes of scratch. The first booth is
 * paid for by the caller: own_bytes + ISOLATION_CELL_BYTES. */
void booths_init(struct booths *booths, struct isolation *isolation, struct budget *budget, uint64_t own_bytes);
void booths_fini(struct booths *booths);

/* The user's booth. -ENOMEM, -EMFILE. */
int booths_get(struct booths *booths, uid_t uid, struct booth **ret_booth, struct why *why);

/* Makes the tray at least this long; what lay there stays where it was in `bytes`. -ENOMEM, -EMFILE. */
int booth_widen(struct booths *booths, struct booth *booth, uint64_t n_bytes, struct why *why);

/* Its cell, which is started if none lives. Errors as cell_start(). */
int booth_cell(struct booths *booths, struct booth *booth, struct cell **ret_cell, struct why *why);

/* Ends the cell after an error of cell_ask(): how it ended. */
void booth_end_cell(struct booth *booth, int error, struct why *ret_how);
