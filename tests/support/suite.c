#include "tests/support/suite.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_S 60

int suite_run(const char *name, const struct suite_row *rows, size_t n_rows) {
        Suite *suite = suite_create(name);
        SRunner *runner = srunner_create(suite);
        TCase *tcase = NULL;
        int n_failed;

        for (size_t i = 0; i < n_rows; i++) {
                if (!tcase || strcmp(rows[i].group, rows[i - 1].group) != 0) {
                        tcase = tcase_create(rows[i].group);
                        tcase_set_timeout(tcase, LIMIT_S);
                        suite_add_tcase(suite, tcase);
                }
                if (rows[i].n_loops > 0)
                        tcase_add_loop_test(tcase, rows[i].test, 0, rows[i].n_loops);
                else
                        tcase_add_test(tcase, rows[i].test);
        }
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}

unsigned suite_rounds(unsigned n) {
        const char *part = getenv("SUITE_ROUNDS_PART");
        unsigned divisor = part ? (unsigned)strtoul(part, NULL, 10) : 1;

        return divisor > 1 && n > divisor ? n / divisor : n;
}

unsigned suite_stride(void) {
        return suite_rounds(UINT_MAX) < UINT_MAX ? 3 : 1;
}
