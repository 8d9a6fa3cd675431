/* Packed samples are read through the page cache if they fit: what fits, and how much memory there is for us. */
#include <stdint.h>
#include <string.h>

#include "daemon/base/machine/machine_memory.h"
#include "daemon/pipeline/memory/page_cache.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define GIB (UINT64_C(1) << 30)

START_TEST(what_fits_into_half_of_the_memory_is_read_through_the_cache) {
        struct why why;

        ck_assert(!page_cache_is_bypassed("auto", 8 * GIB, 16 * GIB, &why));
        ck_assert_str_eq(why.text, "8.0 GiB, 16.0 GiB of memory available, half of it for a dataset");
        ck_assert(page_cache_is_bypassed("auto", 8 * GIB + 1, 16 * GIB, &why));
        ck_assert(page_cache_is_bypassed("auto", 1, 0, &why)); /* nobody says how much there is */
        ck_assert(!page_cache_is_bypassed("use", 100 * GIB, GIB, &why));
        ck_assert(page_cache_is_bypassed("bypass", 1, GIB, &why));
}
END_TEST

START_TEST(the_memory_to_be_had_is_the_smallest_limit_of_all_groups_above) {
        struct tree tree;

        tree_make(&tree);
        ck_assert(memory_group_limit(tree.root, "/a/b") == UINT64_MAX);
        tree_file(&tree, "a/b/memory.max", "max\n");
        tree_file(&tree, "a/memory.max", "8589934592\n");
        ck_assert_uint_eq(memory_group_limit(tree.root, "/a/b"), 8 * GIB);
        tree_file(&tree, "a/b/memory.high", "4294967296\n");
        ck_assert_uint_eq(memory_group_limit(tree.root, "/a/b"), 4 * GIB);
        ck_assert_uint_eq(memory_group_limit(tree.root, "/a"), 8 * GIB);
        tree_file(&tree, "memory.max", "1073741824\n"); /* a container sees its own group as the topmost */
        ck_assert_uint_eq(memory_group_limit(tree.root, "/a/b"), GIB);
        ck_assert_uint_eq(memory_group_limit(tree.root, "/"), GIB);
        tree_remove(&tree);
}
END_TEST

START_TEST(what_the_kernel_calls_available_is_read) {
        ck_assert_uint_eq(memory_parse_available("MemTotal:  100 kB\nMemAvailable:    24385896 kB\nBuffers: 1 kB\n"),
                          UINT64_C(24385896) << 10);
        ck_assert_uint_eq(memory_parse_available("MemTotal: 100 kB\n"), 0);
        ck_assert_uint_gt(memory_available(), 1 << 20);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "choice", what_fits_into_half_of_the_memory_is_read_through_the_cache },
                { "memory", the_memory_to_be_had_is_the_smallest_limit_of_all_groups_above },
                { "memory", what_the_kernel_calls_available_is_read },
        };

        return suite_run("page_cache", rows, sizeof(rows) / sizeof(rows[0]));
}
