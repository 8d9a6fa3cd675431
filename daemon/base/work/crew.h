/* base/work/crew.h: some threads do a piece of work while the calling thread looks after them. */
#pragma once

#include <stdint.h>

#define CREW_MAX 128u /* threads */

/* Runs work(userdata) in up to n_threads threads at once (1 to CREW_MAX of them) and returns when all have returned
 * from it. Meanwhile tick(userdata) is called on the calling thread every tick_ns, sooner when a thread ends, and once
 * after the last one. A limit on threads may leave fewer of them, which only takes longer; an errno if not one could be
 * started: then nothing was called. `name`: of each thread (thread.h). */
int crew_run(const char *name, uint32_t n_threads, void (*work)(void *userdata), uint64_t tick_ns,
             void (*tick)(void *userdata), void *userdata);
