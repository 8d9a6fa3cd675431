/* Any text as a manifest. What is accepted must hold what store/plan/plan.h promises: allowed paths in order, and a
 * text that is read again as the same plan. The first byte: bit 0: archives are unpacked, bit 1: there is a base URL.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/plan/plan.h"
#include "proto/base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: a manifest was accepted: %s\n", what);
        abort();
}

static void check(const struct plan *plan) {
        _cleanup_(plan_freep) struct plan *again = NULL;
        _cleanup_(freep) char *text = NULL;
        char folded[PLAN_FOLD_SIZE];
        size_t n_bytes = 0;

        for (uint64_t i = 0; i < plan_n_files(plan); i++) {
                const struct plan_file *file = plan_file(plan, i);

                if (plan_path_check(file->path, strlen(file->path), NULL) < 0 || file->n_urls == 0 ||
                    file->n_urls > PLAN_URLS_MAX || file->n_bytes >= PLAN_BYTES_MAX)
                        find("a file that may not be");
                if (plan_find(plan, file->path) != (int64_t)i)
                        find("files out of order");
                if (plan_path_fold(file->path, folded) != strlen(folded))
                        find("a path that does not fold");
        }
        if (plan_write(plan, &text, &n_bytes) < 0 || plan_parse(text, n_bytes, "again", NULL, true, &again, NULL) < 0 ||
            strcmp(plan_digest(plan), plan_digest(again)) != 0 || plan_n_bytes(plan) != plan_n_bytes(again))
                find("it is not read as it was written");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct why why = { 0 };
        int r;

        if (n_bytes < 1)
                return 0;
        r = plan_parse((const char *)data + 1, n_bytes - 1, "fuzzed", data[0] & 2 ? "https://h/d/m.jsonl" : NULL,
                       data[0] & 1, &plan, &why);
        if (r == 0)
                check(plan);
        else if (!why.text[0])
                abort();
        return 0;
}
