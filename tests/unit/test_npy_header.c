/* Headers of .npy files, byte by byte: what numpy writes, what else is allowed, and what is refused. Files that numpy
 * itself has written are in test_npy.py. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/data/formats/npy_header.h"
#include "tests/support/suite.h"

#define TEXT_AT 10

static struct npy_header header;
static struct why why;

/* Version 1, without padding. Returns what reading it returns. */
static int read_text(const char *text) {
        uint8_t bytes[4096] = "\x93NUMPY\x01";
        size_t n = strlen(text);

        ck_assert_uint_lt(n, sizeof(bytes) - TEXT_AT);
        bytes[8] = (uint8_t)n;
        bytes[9] = (uint8_t)(n >> 8);
        memcpy(bytes + TEXT_AT, text, n);
        header = (struct npy_header){ .n_dims = 77 };
        return npy_header_read(bytes, TEXT_AT + n, true, &header, &why);
}

static int read_descr(const char *descr) {
        char text[128];

        snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (3, 4), }", descr);
        return read_text(text);
}

static const struct {
        const char *descr;
        enum dlp_dtype dtype;
        uint64_t bytes;
} TYPES[] = {
        { "|b1", DLP_DTYPE_BOOL, 1 },    { "|i1", DLP_DTYPE_INT8, 1 },    { "<i2", DLP_DTYPE_INT16, 2 },
        { "<i4", DLP_DTYPE_INT32, 4 },   { "<i8", DLP_DTYPE_INT64, 8 },   { "|u1", DLP_DTYPE_UINT8, 1 },
        { "<u2", DLP_DTYPE_UINT16, 2 },  { "<u4", DLP_DTYPE_UINT32, 4 },  { "<u8", DLP_DTYPE_UINT64, 8 },
        { "<f2", DLP_DTYPE_FLOAT16, 2 }, { "<f4", DLP_DTYPE_FLOAT32, 4 }, { "<f8", DLP_DTYPE_FLOAT64, 8 },
};

START_TEST(each_type_has_its_size_and_either_order_of_bytes) {
        char other[8];

        ck_assert_int_eq(read_descr(TYPES[_i].descr), 0);
        ck_assert_int_eq(header.dtype, TYPES[_i].dtype);
        ck_assert_uint_eq(header.row_bytes, 4 * TYPES[_i].bytes);
        ck_assert_uint_eq(header.end, header.data + 12 * TYPES[_i].bytes);
        ck_assert(!header.is_big_endian);
        snprintf(other, sizeof(other), ">%s", TYPES[_i].descr + 1);
        ck_assert_int_eq(read_descr(other), 0);
        ck_assert_int_eq(header.is_big_endian, TYPES[_i].bytes > 1);
}
END_TEST

START_TEST(python_may_write_the_dictionary_in_several_ways) {
        static const char *const TEXTS[] = {
                "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 2), }                \n",
                "{\"shape\":(5,2),\"fortran_order\":False,\"descr\":\"<f4\"}",
                " { 'fortran_order' : False , 'shape' : ( 5L , 2L ) , 'descr' : '=f4' } ",
        };

        for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
                ck_assert_msg(read_text(TEXTS[i]) == 0, "%s: %s", TEXTS[i], why.text);
                ck_assert_uint_eq(header.n_dims, 2);
                ck_assert_uint_eq(header.shape[0], 5);
                ck_assert_uint_eq(header.shape[1], 2);
                ck_assert_uint_eq(header.data, TEXT_AT + strlen(TEXTS[i]));
        }
        ck_assert_int_eq(read_text("{'descr': '<i8', 'fortran_order': True, 'shape': (5,), }"), 0);
        ck_assert_uint_eq(header.row_bytes, 8);
}
END_TEST

START_TEST(what_is_wrong_is_said) {
        static const struct {
                const char *text, *word;
                int error;
        } rows[] = {
                { "{'descr': '<f4', 'fortran_order': True, 'shape': (5, 2)}", "ascontiguousarray", -ENOTSUP },
                { "{'descr': '|O', 'fortran_order': False, 'shape': (5,)}", "Python objects", -ENOTSUP },
                { "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (5,)}", "records", -ENOTSUP },
                { "{'descr': '', 'fortran_order': False, 'shape': (5,)}", "unknown", -ENOTSUP },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "single number", -ENOTSUP },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2)}", "no rows", -ENOENT },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}", "without elements", -ENOTSUP },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "more than 8", -ENOTSUP },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 2)}", "overflows",
                  -EBADMSG },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693951, 1)}", "overflows",
                  -EBADMSG },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}", "elements", -EBADMSG },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (5 2)}", "\",\" or \")\"", -EBADMSG },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (5,", "elements", -EBADMSG },
                { "{'descr': '<f4', 'fortran_order': False 'shape': (5,)}", "\",\" or \"}\"", -EBADMSG },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': [5]}", "a shape such as", -EBADMSG },
                { "{'descr': '<f4', 'fortran_order': False}", "lacks 'shape'", -EBADMSG },
                { "{'descr: '<f4'}", "'descr', 'fortran_order' or 'shape'", -EBADMSG },
                { "{'descr': '<f4", "a type such as", -EBADMSG },
                { "[]", "\"{\"", -EBADMSG },
                { "", "\"{\"", -EBADMSG },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                ck_assert_msg(read_text(rows[i].text) == rows[i].error, "%s: %s", rows[i].text, why.text);
                ck_assert_msg(strstr(why.text, rows[i].word), "%s: %s", rows[i].text, why.text);
                ck_assert_uint_eq(header.n_dims, 77); /* nothing was written */
        }
}
END_TEST

START_TEST(a_header_that_is_cut_anywhere_is_refused) {
        static const char TEXT[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 2049), }\n";
        uint8_t bytes[12 + sizeof(TEXT)] = "\x93NUMPY";

        for (int major = 1; major <= 3; major++) {
                size_t begin = major == 1 ? 10 : 12, n = begin + sizeof(TEXT) - 1;

                bytes[6] = (uint8_t)major;
                memset(bytes + 8, 0, 4);
                bytes[8] = sizeof(TEXT) - 1;
                memcpy(bytes + begin, TEXT, sizeof(TEXT) - 1);
                for (size_t k = 0; k < n; k++)
                        ck_assert_int_eq(npy_header_read(bytes, k, true, &header, &why), -EBADMSG);
                ck_assert_int_eq(npy_header_read(bytes, n, true, &header, &why), 0);
                ck_assert_uint_eq(header.data, n);
                ck_assert_uint_eq(header.row_bytes, 4098);
        }
        bytes[6] = 4;
        ck_assert_int_eq(npy_header_read(bytes, sizeof(bytes), true, &header, &why), -ENOTSUP);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "npy", each_type_has_its_size_and_either_order_of_bytes, sizeof(TYPES) / sizeof(TYPES[0]) },
                { "npy", python_may_write_the_dictionary_in_several_ways },
                { "npy", what_is_wrong_is_said },
                { "npy", a_header_that_is_cut_anywhere_is_refused },
        };

        return suite_run("npy_header", rows, sizeof(rows) / sizeof(rows[0]));
}
