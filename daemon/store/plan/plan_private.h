/* store/plan/plan_private.h: what the files of store/plan/plan.h share. */
#pragma once

#include "daemon/store/plan/arena.h"
#include "daemon/store/plan/plan.h"

struct plan {
        struct plan_arena arena;
        struct plan_file *files;  /* sorted by path, bytewise */
        uint64_t n_files, n_room; /* in the table */
        uint64_t n_bytes;
        char digest[PLACE_DIGEST_SIZE], state[PLACE_DIGEST_SIZE];
};

/* Are there files of which a file system that does not tell cases apart would make one, or one where another needs a
 * folder? The plan's files are sorted. Returns 0, -EINVAL with `why` naming both, or -ENOMEM. */
int plan_check_clashes(const struct plan *plan, struct why *why);
