/* The keys of the configuration that belong to a format. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/data/format.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

static const struct format LISTING = { .name = "listing",
                                       .options = (const char *const[]){ "annotations", "length", NULL } };

START_TEST(a_format_gets_the_keys_that_it_takes) {
        struct format_options options;
        char digest[sizeof(options.digest)];
        struct why why;
        uint64_t n;

        ck_assert_int_eq(
                format_options_parse("annotations=/a/b=c.json\nlength=17\nsplit=:90%\n", &LISTING, &options, &why), 0);
        ck_assert_str_eq(format_option(&options, "annotations"), "/a/b=c.json");
        ck_assert_int_eq(format_option_u64(&options, "length", 1, 1, 100, &n, &why), 0);
        ck_assert_uint_eq(n, 17);
        ck_assert_ptr_null(format_option(&options, "split")); /* of every dataset: the format does not see it */
        strcpy(digest, options.digest);
        format_options_fini(&options);

        ck_assert_int_eq(format_options_parse("annotations=/a/b=c.json\nlength=17\n", &LISTING, &options, &why), 0);
        ck_assert_str_eq(options.digest, digest);
        format_options_fini(&options);
        ck_assert_int_eq(format_options_parse("annotations=/a/b=c.json\nlength=18\n", &LISTING, &options, &why), 0);
        ck_assert_str_ne(options.digest, digest);
        format_options_fini(&options);
        ck_assert_int_eq(format_options_parse(NULL, &LISTING, &options, &why), 0);
        ck_assert_str_eq(options.digest, "");
        ck_assert_int_eq(format_option_u64(&options, "length", 5, 1, 100, &n, &why), 0);
        ck_assert_uint_eq(n, 5);
        format_options_fini(&options);
}
END_TEST

START_TEST(a_key_or_number_that_does_not_fit_is_refused_by_name) {
        static const char *const BAD[] = { "0", "101", "-1", " 5", "5x", "99999999999999999999" };
        struct format_options options;
        struct why why;
        uint64_t n;

        ck_assert_int_eq(format_options_parse("colour=red\n", &LISTING, &options, &why), -EINVAL);
        ck_assert_str_eq(why.text, "the format listing does not take colour; it takes annotations, length");
        ck_assert_int_eq(format_options_parse("colour=red\n", &FORMAT_IMAGEFOLDER, &options, &why), -EINVAL);
        for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
                char text[64];

                snprintf(text, sizeof(text), "length=%s\n", BAD[i]);
                ck_assert_int_eq(format_options_parse(text, &LISTING, &options, &why), 0);
                ck_assert_int_eq(format_option_u64(&options, "length", 5, 1, 100, &n, &why), -EINVAL);
                ck_assert_ptr_nonnull(strstr(why.text, "length: "));
                ck_assert_ptr_nonnull(strstr(why.text, "from 1 to 100"));
                format_options_fini(&options);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "options", a_format_gets_the_keys_that_it_takes, 0 },
                { "options", a_key_or_number_that_does_not_fit_is_refused_by_name, 0 },
        };

        return suite_run("format_options", rows, ARRAY_SIZE(rows));
}
