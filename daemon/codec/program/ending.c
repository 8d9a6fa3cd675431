/* codec/program/ending.c: what follows the steps of a part: a function of the trainer's, and a collation. */
#include "daemon/codec/program/body.h"

#include <errno.h>

int take_ending(const char *text, size_t begin, size_t *steps_end, struct own_step *ret_own,
                struct collation *ret_collation, struct why *why) {
        int r = collation_take(text, begin, *steps_end, ret_collation, steps_end, why);

        if (r == 0)
                r = own_step_take(text, begin, *steps_end, ret_own, steps_end, why);
        if (r == 0 && ret_own->function[0] && !collation_is_stack(ret_collation))
                r = why_set(why, -EINVAL,
                            "pipeline, column %zu: what a function delivers has one shape and is stacked: leave what "
                            "follows python(%s) out",
                            ret_collation->column, ret_own->function);
        return r;
}

int check_own(const struct own_step *own, uint32_t n, struct why *why) {
        if (!own->function[0] || n == 1)
                return 0;
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: python(%s) is for one field, and its part names %u: give each field a "
                       "part of its own",
                       own->column, own->function, n);
}
