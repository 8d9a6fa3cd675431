/* Files that cannot exist beside each other. The set of names finds that there are two; which two, is looked up for the
 * message only. */

#include <errno.h>
#include <string.h>

#include "daemon/store/plan/plan_names.h"
#include "daemon/store/plan/plan_private.h"
#include "proto/base/cleanup.h"

/* Are two folded paths equal, or is one of them a folder of the other? */
static bool clash_meet(const char *one, size_t n_one, const char *other, size_t n_other) {
        size_t n = n_one < n_other ? n_one : n_other;

        return memcmp(one, other, n) == 0 && (n_one == n_other || (n_one > n ? one : other)[n] == '/');
}

/* Looks for the earlier file that this one clashes with. 0: there is none, only their hashes are the same. */
static int say_clash(const struct plan *plan, uint64_t idx, struct why *why) {
        const char *path = plan->files[idx].path;
        char folded[PLAN_FOLD_SIZE], other_folded[PLAN_FOLD_SIZE];
        size_t n = plan_path_fold(path, folded);

        for (uint64_t i = 0; i < idx; i++) {
                const char *other = plan->files[i].path;
                size_t n_other = plan_path_fold(other, other_folded);

                if (!clash_meet(folded, n, other_folded, n_other))
                        continue;
                if (n != n_other)
                        return why_set(why, -EINVAL,
                                       "path \"%s\" is a file, but \"%s\" needs a folder there: rename one, or "
                                       "leave one out",
                                       n < n_other ? path : other, n < n_other ? other : path);
                if (strcmp(other, path) == 0)
                        return why_set(why, -EINVAL, "path \"%s\" is listed twice", path);
                return why_set(why, -EINVAL,
                               "paths \"%s\" and \"%s\" differ in case alone; some file systems would make "
                               "one file of them: rename one",
                               other, path);
        }
        return 0;
}

int plan_check_clashes(const struct plan *plan, struct why *why) {
        _cleanup_(plan_names_freep) struct plan_names *names = NULL;
        struct why inner;
        int r = plan_names_new(&names);

        for (uint64_t i = 0; i < plan->n_files && r == 0; i++) {
                r = plan_names_take(names, plan->files[i].path, &inner);
                if (r == -EINVAL)
                        r = say_clash(plan, i, why);
        }
        return r;
}
