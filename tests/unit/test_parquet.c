/* The small parsers under Parquet, on bytes made by hand: Thrift, runs of levels and indices, differences. What writers
 * write is in test_parquet.py, files that lie in test_parquet_damage.py. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "daemon/data/formats/parquet/pages/delta.h"
#include "daemon/data/formats/parquet/pages/parquet_reader.h"
#include "daemon/data/formats/parquet/pages/parquet_runs.h"
#include "daemon/data/formats/parquet/pages/parquet_unpack.h"
#include "daemon/data/formats/parquet/pages/values.h"
#include "daemon/data/formats/parquet/thrift.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/refusals.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

/* ---- Thrift ---------------------------------------------------------------------------------------------------- */

static struct thrift thrift_of(const uint8_t *bytes, size_t n_bytes) {
        return (struct thrift){ .bytes = bytes, .n_bytes = n_bytes };
}

START_TEST(fields_are_numbered_by_differences_or_in_full) {
        struct thrift thrift = thrift_of(BYTES(0x15, 0x03, 0x05, 0xd0, 0x0f, 0x04, 0x11, 0x00));
        struct thrift_field field = { 0 };

        ck_assert(thrift_next(&thrift, &field));
        ck_assert_int_eq(field.id, 1);
        ck_assert_int_eq(thrift_integer(&thrift, field.type), -2);
        ck_assert(thrift_next(&thrift, &field));
        ck_assert_int_eq(field.id, 1000);
        ck_assert_int_eq(thrift_integer(&thrift, field.type), 2);
        ck_assert(thrift_next(&thrift, &field));
        ck_assert_int_eq(field.id, 1001);
        ck_assert(thrift_bool(&thrift, field.type));
        ck_assert(!thrift_next(&thrift, &field));
        ck_assert(!thrift.is_damaged);
}
END_TEST

START_TEST(numbers_of_more_than_64_bits_are_damage) {
        struct thrift most = thrift_of(BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01));
        struct thrift more = thrift_of(BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02));

        ck_assert_int_eq(thrift_integer(&most, THRIFT_I64), INT64_MIN);
        ck_assert(!most.is_damaged);
        ck_assert_int_eq(thrift_integer(&more, THRIFT_I64), 0);
        ck_assert(more.is_damaged);
}
END_TEST

START_TEST(lengths_that_lead_outside_are_damage) {
        struct thrift text = thrift_of(BYTES(0x05, 'a', 'b'));
        struct thrift list = thrift_of(BYTES(0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00));
        enum thrift_type element;
        size_t n;

        ck_assert_str_eq(thrift_binary(&text, THRIFT_BINARY, &n), "");
        ck_assert_uint_eq(n, 0);
        ck_assert(text.is_damaged);
        ck_assert_uint_eq(thrift_list(&list, THRIFT_LIST, &element), 0);
        ck_assert(list.is_damaged);
}
END_TEST

START_TEST(skipping_ends_at_a_depth) {
        uint8_t bytes[1000];
        struct thrift thrift = thrift_of(bytes, sizeof(bytes));

        memset(bytes, 0x1c, sizeof(bytes)); /* each field is a struct */
        thrift_skip(&thrift, THRIFT_STRUCT);
        ck_assert(thrift.is_damaged);
        memset(bytes, 0x19, sizeof(bytes)); /* lists of one list */
        thrift = thrift_of(bytes, sizeof(bytes));
        thrift_skip(&thrift, THRIFT_LIST);
        ck_assert(thrift.is_damaged);
}
END_TEST

START_TEST(skipping_passes_over_every_type) {
        /* 1: map {1: 2} of bytes, 2: double, 3: UUID, 4: set of two bools, 5: true, 6: an empty map, 7: i16 */
        const uint8_t bytes[] = { 0x1b, 0x01, 0x33, 0x01, 0x02, 0x17, 0,    0,    0,    0,    0,    0,    0,    0,
                                  0x1d, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
                                  0,    0,    0,    0x1a, 0x21, 0x01, 0x02, 0x11, 0x1b, 0x00, 0x14, 0x02, 0x00, 0x77 };
        struct thrift thrift = thrift_of(bytes, sizeof(bytes));

        thrift_skip(&thrift, THRIFT_STRUCT);
        ck_assert(!thrift.is_damaged);
        ck_assert_uint_eq(thrift.at, sizeof(bytes) - 1);
}
END_TEST

START_TEST(a_list_without_elements_may_have_no_type) {
        struct thrift none = thrift_of(BYTES(0x00)), one = thrift_of(BYTES(0x10, 0x00));
        enum thrift_type element;

        ck_assert_uint_eq(thrift_list(&none, THRIFT_LIST, &element), 0);
        ck_assert(!none.is_damaged);
        ck_assert_uint_eq(thrift_list(&one, THRIFT_LIST, &element), 0);
        ck_assert(one.is_damaged);
}
END_TEST

/* ---- runs ------------------------------------------------------------------------------------------------------ */

START_TEST(runs_are_equal_values_or_packed_ones) {
        /* 3 times 5, then 8 packed values 0 ... 7 of 3 bits (the example of the specification) */
        struct parquet_runs runs;
        uint32_t value;

        parquet_runs_begin(&runs, BYTES(0x06, 0x05, 0x03, 0x88, 0xc6, 0xfa), 3);
        for (uint32_t i = 0; i < 11; i++) {
                ck_assert(parquet_runs_next(&runs, &value));
                ck_assert_uint_eq(value, i < 3 ? 5 : i - 3);
        }
        ck_assert(!parquet_runs_next(&runs, &value));
}
END_TEST

START_TEST(wide_values_run_over_bytes) {
        /* 8 values of 13 bits and 8 of 32 bits, the numbers i * 1000 and i * 500,000,000 */
        uint8_t bytes[1 + 32] = { 0x03 };
        struct parquet_runs runs;
        uint32_t value;

        for (uint32_t width = 13; width <= 32; width += 19) {
                uint32_t unit = width == 13 ? 1000 : 500000000;

                memset(bytes + 1, 0, 32);
                for (uint32_t bit = 0; bit < 8 * width; bit++)
                        bytes[1 + bit / 8] |= (uint8_t)((uint64_t)(bit / width * unit) >> bit % width & 1) << bit % 8;
                parquet_runs_begin(&runs, bytes, 1 + width, width);
                for (uint32_t i = 0; i < 8; i++) {
                        ck_assert(parquet_runs_next(&runs, &value));
                        ck_assert_uint_eq(value, i * unit);
                }
        }
}
END_TEST

START_TEST(runs_that_are_cut_or_hold_too_wide_a_value_end) {
        struct parquet_runs runs;
        uint32_t value;

        parquet_runs_begin(&runs, BYTES(0x04, 0x01), 9); /* a value of two bytes, of which one is there */
        ck_assert(!parquet_runs_next(&runs, &value));
        parquet_runs_begin(&runs, BYTES(0x04, 0x08), 3); /* 8 has four bits */
        ck_assert(!parquet_runs_next(&runs, &value));
        parquet_runs_begin(&runs, BYTES(0x03, 0x88), 3); /* two of eight packed values are whole */
        ck_assert(parquet_runs_next(&runs, &value));
        ck_assert(parquet_runs_next(&runs, &value));
        ck_assert_uint_eq(value, 1);
        ck_assert(!parquet_runs_next(&runs, &value));
        parquet_runs_begin(&runs, BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80), 1);
        ck_assert(!parquet_runs_next(&runs, &value));
        ck_assert_uint_eq(parquet_runs_width(0), 0);
        ck_assert_uint_eq(parquet_runs_width(1), 1);
        ck_assert_uint_eq(parquet_runs_width(UINT32_MAX), 32);
}
END_TEST

/* ---- differences ----------------------------------------------------------------------------------------------- */

START_TEST(differences_add_up_and_wrap_around) {
        /* Blocks of 8 in one part: 7, 5, 3, 1, 2, 3, 4, 5 (the example of the specification): least -2, 2 bits. */
        struct parquet_delta delta;
        const uint8_t *bytes = (const uint8_t[]){ 0x08, 0x01, 0x08, 0x0e, 0x03, 0x02, 0xc0, 0x3f, 0x77 };
        const int64_t wanted[] = { 7, 5, 3, 1, 2, 3, 4, 5 };
        int64_t value;

        ck_assert(parquet_delta_begin(&delta, bytes, 9));
        ck_assert_ptr_null(parquet_delta_end(&delta));
        for (size_t i = 0; i < 8; i++) {
                ck_assert(parquet_delta_next(&delta, &value));
                ck_assert_int_eq(value, wanted[i]);
        }
        ck_assert(!parquet_delta_next(&delta, &value));
        ck_assert_ptr_eq(parquet_delta_end(&delta), bytes + 8);

        /* INT64_MAX + 1 */
        ck_assert(parquet_delta_begin(&delta, BYTES(0x08, 0x01, 0x02, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                    0xff, 0x01, 0x02, 0x00)));
        ck_assert(parquet_delta_next(&delta, &value) && value == INT64_MAX);
        ck_assert(parquet_delta_next(&delta, &value) && value == INT64_MIN);
}
END_TEST

START_TEST(blocks_that_cannot_be_are_refused) {
        struct parquet_delta delta;
        int64_t value;

        ck_assert(!parquet_delta_begin(&delta, BYTES(0x08, 0x00, 0x01, 0x00))); /* no part */
        ck_assert(!parquet_delta_begin(&delta, BYTES(0x08, 0x03, 0x01, 0x00))); /* parts of 8 / 3 values */
        ck_assert(!parquet_delta_begin(&delta, BYTES(0x0c, 0x01, 0x01, 0x00))); /* 12 values: not whole bytes */
        ck_assert(!parquet_delta_begin(&delta, BYTES(0x80, 0x80, 0x80, 0x01, 0x01, 0x01, 0x00)));   /* a huge block */
        ck_assert(!parquet_delta_begin(&delta, BYTES(0x08, 0x01, 0x05)));                           /* no first value */
        ck_assert(parquet_delta_begin(&delta, BYTES(0x08, 0x01, 0x05, 0x02, 0x00, 0x41, 1, 2, 3))); /* 65 bits */
        ck_assert(parquet_delta_next(&delta, &value) && value == 1);
        ck_assert(!parquet_delta_next(&delta, &value));
}
END_TEST

/* 65537 lengths in a few bytes: somebody has to look whether they are still wanted. */
START_TEST(lengths_that_nobody_wants_any_more_end_with_a_reason) {
        const uint8_t lengths[] = { 0x80, 0x80, 0x04, 1, 0x81, 0x80, 0x04, 0, 0, 0 };
        struct parquet_page_bytes bytes = { .bytes = lengths, .n = sizeof(lengths) };
        const struct parquet_element texts = { .physical = PARQUET_BYTE_ARRAY };
        struct parquet_reader reader = { .element = &texts, .encoding = PARQUET_DELTA_LENGTH_BYTE_ARRAY };
        const atomic_bool cancel = true;
        struct indexing indexing = { .cancel = &cancel };
        struct why why = { .text = "" };

        ck_assert_int_eq(parquet_values_begin(&reader, 65537, &bytes, &why), 0);
        indexing_join(&indexing);
        ck_assert_int_eq(parquet_values_begin(&reader, 65537, &bytes, &why), -ECANCELED);
        indexing_join(NULL);
        ck_assert_str_eq(why.text, "indexing was cancelled");
        parquet_encoded_fini(&reader.encoded);
}
END_TEST

/* ---- columns that are left out --------------------------------------------------------------------------------- */

START_TEST(a_damaged_column_keeps_its_reason_where_another_error_ends_the_row) {
        _cleanup_(refusals_fini) struct refusals refusals = { 0 };
        struct refusal one = { 0 };
        struct why why;

        why_set(&why, -EBADMSG, "column \"a\" is damaged");
        ck_assert(refusals_mark_of_several(&refusals, "a", -EBADMSG, &why));
        why_set(&why, -ESTALE, "x.parquet: column \"b\" has changed while it was read");
        ck_assert(refusals_settle(&refusals, -ESTALE, &why));
        ck_assert(refusals_next(&refusals, &one));
        ck_assert_str_eq(one.reason, "column \"a\" is damaged");
        ck_assert(!refusals_next(&refusals, &one));
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------------------------- */

START_TEST(pages_are_limited_alone_and_together) {
        struct parquet_buffer buffers[5] = { 0 };
        struct parquet_memory memory = { 0 };
        struct why why;

        ck_assert_int_eq(parquet_buffer_reserve(&buffers[0], PARQUET_PAGE_MAX + 1ull, &memory, &why), -EFBIG);
        for (int i = 0; i < 4; i++)
                ck_assert_int_eq(parquet_buffer_reserve(&buffers[i], PARQUET_PAGE_MAX, &memory, &why), 0);
        ck_assert_int_eq(parquet_buffer_reserve(&buffers[4], 1, &memory, &why), -EFBIG);
        ck_assert_int_eq(parquet_buffer_reserve(&buffers[3], 100, &memory, &why), 0);
        parquet_buffer_fini(&buffers[3], &memory);
        ck_assert_int_eq(parquet_buffer_reserve(&buffers[4], 1, &memory, &why), 0);
        for (int i = 0; i < 5; i++)
                parquet_buffer_fini(&buffers[i], &memory);
        ck_assert_uint_eq(memory.n_bytes, 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "thrift", fields_are_numbered_by_differences_or_in_full },
                { "thrift", numbers_of_more_than_64_bits_are_damage },
                { "thrift", lengths_that_lead_outside_are_damage },
                { "thrift", skipping_ends_at_a_depth },
                { "thrift", skipping_passes_over_every_type },
                { "thrift", a_list_without_elements_may_have_no_type },
                { "runs", runs_are_equal_values_or_packed_ones },
                { "runs", wide_values_run_over_bytes },
                { "runs", runs_that_are_cut_or_hold_too_wide_a_value_end },
                { "differences", differences_add_up_and_wrap_around },
                { "differences", blocks_that_cannot_be_are_refused },
                { "differences", lengths_that_nobody_wants_any_more_end_with_a_reason },
                { "refusals", a_damaged_column_keeps_its_reason_where_another_error_ends_the_row },
                { "memory", pages_are_limited_alone_and_together },
        };

        return suite_run("parquet", rows, ARRAY_SIZE(rows));
}
