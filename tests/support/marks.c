/* Check's marks, fewer of them.
 *
 * Check writes a line to a file for each assertion that holds, so that it can say where a test was when it crashed or
 * hung. In loops of a million assertions that was most of a test's time, the greater part of it in the kernel. Here the
 * line is written when an assertion holds for the first time, and once in each tick of the coarse clock (some
 * milliseconds) after that: what a report calls the last place is at most so old. The Makefile has the tests call this
 * function. */
#undef _mark_point
#include <check.h>
#include <stdatomic.h>
#include <time.h>

#define N_PLACES 8192 /* lines of a source file; two that share a bit cost a mark */

void suite_mark(const char *file, int line);

static _Atomic unsigned char been[N_PLACES];
static _Atomic long last_tick;

void suite_mark(const char *file, int line) {
        struct timespec now = { 0 };
        _Atomic unsigned char *here = &been[(unsigned)line % N_PLACES];

        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        if (atomic_load_explicit(here, memory_order_relaxed) &&
            atomic_load_explicit(&last_tick, memory_order_relaxed) == now.tv_nsec)
                return;
        atomic_store_explicit(here, 1, memory_order_relaxed);
        atomic_store_explicit(&last_tick, now.tv_nsec, memory_order_relaxed);
        _mark_point(file, line);
}
