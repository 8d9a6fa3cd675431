/* Memory for large files: taken again instead of anew, paid for as long as it is kept, given back when it is short. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "daemon/pipeline/memory/large_buffers.h"
#include "tests/support/suite.h"

#define MIB (UINT64_C(1) << 20)

static struct large_buffer *take(struct large_buffers *buffers, uint64_t n_bytes) {
        struct large_buffer *buffer = NULL;

        ck_assert_int_eq(large_buffers_take(buffers, n_bytes, &buffer, NULL), 0);
        ck_assert_uint_ge(buffer->n_bytes, n_bytes);
        ck_assert_uint_eq((uintptr_t)buffer->bytes % 64, 0);
        memset(buffer->bytes, 0xa5, n_bytes);
        return buffer;
}

START_TEST(what_was_given_back_last_is_taken_first_if_it_is_large_enough) {
        struct budget budget = { .limit_bytes = 100 * MIB };
        struct large_buffers buffers = { .budget = &budget };
        struct large_buffer *one = take(&buffers, MIB), *two = take(&buffers, 2 * MIB), *again;
        uint64_t used = budget_used(&budget);

        large_buffers_put(&buffers, two);
        large_buffers_put(&buffers, one);
        again = take(&buffers, MIB / 2);
        ck_assert_ptr_eq(again, one);
        ck_assert_ptr_eq(take(&buffers, MIB + 1), two);
        ck_assert_uint_eq(budget_used(&budget), used);
        large_buffers_put(&buffers, one);
        large_buffers_put(&buffers, two);
        large_buffers_put(&buffers, NULL);
        large_buffers_trim(&buffers);
        ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

START_TEST(files_that_grow_take_no_second_buffer) {
        struct budget budget = { .limit_bytes = 100 * MIB };
        struct large_buffers buffers = { .budget = &budget };

        for (uint64_t n_bytes = MIB; n_bytes < 3 * MIB; n_bytes += 10000)
                large_buffers_put(&buffers, take(&buffers, n_bytes));
        ck_assert_uint_le(budget_used(&budget), 3 * MIB + MIB / 4 + 4096);
        large_buffers_trim(&buffers);
        ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

START_TEST(a_giant_is_not_kept) {
        struct budget budget = { .limit_bytes = 100 * MIB };
        struct large_buffers buffers = { .budget = &budget };

        large_buffers_put(&buffers, take(&buffers, LARGE_BUFFER_KEEP + 1));
        ck_assert_uint_eq(budget_used(&budget), 0);
        ck_assert_ptr_null(buffers.spare);
}
END_TEST

START_TEST(what_is_spare_makes_room_and_what_does_not_fit_is_refused) {
        struct budget budget = { .limit_bytes = 7 * MIB };
        struct large_buffers buffers = { .budget = &budget };
        struct large_buffer *one = take(&buffers, MIB), *two = take(&buffers, 2 * MIB), *large, *refused = NULL;
        struct why why = { 0 };

        large_buffers_put(&buffers, one);
        large_buffers_put(&buffers, two);
        large = take(&buffers, 6 * MIB); /* both are in its way */
        ck_assert_int_eq(large_buffers_take(&buffers, MIB, &refused, &why), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(why.text, "a large file's buffer"));
        ck_assert_ptr_null(refused);
        large_buffers_put(&buffers, large);
        ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "buffers", what_was_given_back_last_is_taken_first_if_it_is_large_enough, 0 },
                { "buffers", files_that_grow_take_no_second_buffer, 0 },
                { "buffers", a_giant_is_not_kept, 0 },
                { "buffers", what_is_spare_makes_room_and_what_does_not_fit_is_refused, 0 },
        };

        return suite_run("large_buffers", rows, sizeof(rows) / sizeof(rows[0]));
}
