/* pipeline/isolation/booths.h: the cells of one worker, one for each user whose samples it had lately.
 *
 * A booth is a cell and its tray, the memory in which the worker lays the bytes of a sample. One thread, the worker's.
 */
#pragma once

#include "daemon/pipeline/isolation/isolation.h"

#define BOOTHS_MAX 4u /* of a worker; the one that was used longest ago makes room for another user */

struct booth {
        uid_t uid;
        struct cell cell;
        struct cell_area tray; /* none: nobody uses the booth */
        uint64_t used;         /* the lower, the longer ago */
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

/* Makes room for n_bytes in its tray; what lay there stays where it was. -ENOMEM, -EMFILE. */
int booth_widen(struct booths *booths, struct booth *booth, uint64_t n_bytes, struct why *why);
