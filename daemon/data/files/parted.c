#include "daemon/data/files/parted.h"

#include <errno.h>
#include <stdlib.h>

#define PIECES_PER_THREAD 4u /* so that the last ones are not waited for long */

struct looking {
        const struct parted *parted;
        void *found[CUTS_SLOTS];
};

static void parted_look(void *userdata, struct cuts *cuts, const struct cut *cut) {
        struct looking *looking = userdata;
        const struct parted *parted = looking->parted;

        looking->found[cut->idx_slot] = parted->look(parted->userdata, cut->number, cuts_is_over(cuts));
}

uint64_t parted_pieces(uint64_t n_files) {
        uint64_t n_threads = cuts_threads(), n_wanted = n_threads > 1 ? PIECES_PER_THREAD * n_threads : 1;

        return n_files == 0 ? 0 : (n_wanted + n_files - 1) / n_files * n_files;
}

int parted_run(const struct parted *parted) {
        struct looking looking = { .parted = parted };
        const struct cuts_work work = { .n_pieces = parted->n,
                                        .look = parted_look,
                                        .userdata = &looking,
                                        .n_slots = 2 * cuts_threads(),
                                        .n_threads = parted->look ? 0 : 1,
                                        .is_callers = true };
        struct cuts *cuts;
        struct cut cut;
        int r = parted->n > 0 ? cuts_new(&work, &cuts) : 0;

        if (r < 0 || parted->n == 0)
                return r;
        while (r == 0 && cuts_next(cuts, &cut) == 0) {
                void *found = looking.found[cut.idx_slot];

                looking.found[cut.idx_slot] = NULL;
                r = parted->take(parted->userdata, cut.number, found);
                if (found)
                        parted->free(found);
                cuts_take(cuts, cut.number + 1);
        }
        cuts_free(cuts);
        for (uint32_t i = 0; i < CUTS_SLOTS; i++)
                if (looking.found[i])
                        parted->free(looking.found[i]);
        return r;
}
