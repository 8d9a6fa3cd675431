/* What an index takes while it is built: it is paid for, a part of the limit at most, and given back; and building ends
 * within a record when it is told to. */
#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/dataset.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define N_ROWS 400000u

static const struct {
        const char *format, *file, *row, *begin;
} KINDS[] = {
        { "csv", "a.csv", "1\n", "a\n" },
        { "jsonl", "a.jsonl", "{\"a\":1}\n", "" },
        { "text", "a.txt", "1\n", "" },
};

static struct tree tree;

struct onlooker {
        struct budget budget;
        uint64_t most;
};

static void look(void *userdata, uint64_t n_files) {
        struct onlooker *onlooker = userdata;
        uint64_t used = budget_used(&onlooker->budget);

        onlooker->most = used > onlooker->most ? used : onlooker->most;
}

static int open_kind(size_t kind, struct onlooker *onlooker, const atomic_bool *cancel, struct why *why) {
        const struct index_watch watch = { .progress = look, .userdata = onlooker, .cancel = cancel };
        char path[128];
        struct dataset_spec spec = {
                .name = "d", .path = path, .format = KINDS[kind].format, .budget = &onlooker->budget
        };
        struct dataset *dataset;
        int r;

        snprintf(path, sizeof(path), "%s/%s", tree.root, KINDS[kind].file);
        tree_age(&tree, ".");
        r = dataset_open(&spec, "/proc/nowhere", &watch, &dataset, NULL, why);
        if (r == 0)
                dataset_unref(dataset);
        return r;
}

static void write_rows(size_t kind, size_t n) {
        size_t n_row = strlen(KINDS[kind].row), n_begin = strlen(KINDS[kind].begin);
        _cleanup_(freep) char *text = malloc(n_begin + n * n_row + 1);

        strcpy(text, KINDS[kind].begin);
        for (size_t i = 0; i <= n; i++)
                strcpy(text + n_begin + i * n_row, i < n ? KINDS[kind].row : "");
        tree_file(&tree, KINDS[kind].file, text);
}

START_TEST(an_index_takes_at_most_a_part_of_what_is_left_and_gives_it_back) {
        struct onlooker large = { .budget = { .limit_bytes = 1ull << 30 } };
        struct onlooker small = { .budget = { .limit_bytes = 8ull << 20 } };
        struct why why = { 0 };

        tree_make(&tree);
        write_rows((size_t)_i, N_ROWS);
        if (open_kind((size_t)_i, &large, NULL, &why) < 0)
                ck_abort_msg("%s", why.text);
        ck_assert_uint_gt(large.most, N_ROWS * 8); /* it is counted */
        ck_assert_uint_lt(large.most, N_ROWS * 160);
        ck_assert_uint_eq(budget_used(&large.budget), 0);

        ck_assert_int_eq(open_kind((size_t)_i, &small, NULL, &why), -ENOMEM);
        ck_assert_msg(strstr(why.text, "memory_limit: making the index needs more than") != NULL, "%s", why.text);
        ck_assert_uint_le(small.most, small.budget.limit_bytes / 4 * 3);
        ck_assert_uint_eq(budget_used(&small.budget), 0);
        tree_remove(&tree);
}
END_TEST

START_TEST(building_ends_within_a_record) {
        struct onlooker onlooker = { .budget = { .limit_bytes = 1ull << 30 } };
        _cleanup_(freep) char *text = malloc((8u << 20) + 1);
        atomic_bool cancel = true;
        struct why why = { 0 };

        tree_make(&tree);
        memset(text, '1', 8u << 20); /* one record */
        text[8u << 20] = '\0';
        tree_file(&tree, KINDS[_i].file, text);
        ck_assert_int_eq(open_kind((size_t)_i, &onlooker, &cancel, &why), -ECANCELED);
        tree_remove(&tree);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "memory", an_index_takes_at_most_a_part_of_what_is_left_and_gives_it_back, ARRAY_SIZE(KINDS) },
                { "cancel", building_ends_within_a_record, ARRAY_SIZE(KINDS) },
        };

        return suite_run("index_memory", rows, ARRAY_SIZE(rows));
}
