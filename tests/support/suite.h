/* tests/support/suite.h: a Check program's main() is a table of its tests.
 *
 *         int main(void) {
 *                 const struct suite_row rows[] = { { "waiting", a_wait_ends_when_its_time_is_over }, ... };
 *
 *                 return suite_run("client_waiting", rows, sizeof(rows) / sizeof(rows[0]));
 *         } */
#pragma once

#include <check.h>
#include <stddef.h>

struct suite_row {
        const char *group; /* for CK_RUN_CASE; rows of one group stand together */
        const TTest *test;
        int n_loops; /* the test runs with _i = 0 .. n_loops-1; 0: once */
};

/* Runs them, a minute each at most. Returns the program's exit status. */
int suite_run(const char *name, const struct suite_row *rows, size_t n_rows);

/* How many of n rounds of the same code are made: all of them, and under sanitizers and valgrind a part, since these
 * see in the first rounds what they see at all. run.py sets SUITE_ROUNDS_PART there: 10 for a tenth. */
unsigned suite_rounds(unsigned n);

/* The step of a loop over many of a kind: 1, and 3 where suite_rounds() gives a part. */
unsigned suite_stride(void);
