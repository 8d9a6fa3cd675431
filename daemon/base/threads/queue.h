/* base/threads/queue.h: the system's lists, with the one macro that glibc's copy of them lacks. */
#pragma once

#include <sys/queue.h>

/* The current element may be removed from the list and freed in the body. */
#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(variable, head, field, next)                                                                \
        for ((variable) = TAILQ_FIRST((head)); (variable) && ((next) = TAILQ_NEXT((variable), field), 1);              \
             (variable) = (next))
#endif
