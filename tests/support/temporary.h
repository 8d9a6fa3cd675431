/* tests/support/temporary.h: a folder for one test in TMPDIR, where the runner sees if the test does not remove it. */
#pragma once

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define TEMPORARY_MAX 48 /* bytes with NUL: leaves room for names in it, also in the path of a socket */

/* Makes it and writes its path. A TMPDIR that is too long is replaced by /tmp. */
static inline void temporary_folder(char *ret_path, size_t size) {
        const char *parent = getenv("TMPDIR");

        if (!parent || !*parent || snprintf(ret_path, size, "%s/dataloaderd-test-XXXXXX", parent) >= TEMPORARY_MAX)
                snprintf(ret_path, size, "/tmp/dataloaderd-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(ret_path));
}
