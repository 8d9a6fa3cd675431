/* The keys of the configuration that belong to a format. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/data/format.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

static const struct format LISTING = {
        .name = "listing",
        .options = (const struct setting[]){ { .name = "annotations", .kind = SETTING_OPTIONAL, .max = 100 },
                                             { .name = "length", .kind = SETTING_NUMBER, .min = 1, .max = 100 },
                                             { 0 } },
};

START_TEST(a_format_gets_the_keys_that_it_takes) {
        struct format revised = LISTING;
        struct format_options options;
        char digest[sizeof(options.digest)];
        struct why why;

        ck_assert_int_eq(
                format_options_parse("annotations=/a/b=c.json\nlength=17\nsplit=:90%\n", &LISTING, &options, &why), 0);
        ck_assert_str_eq(format_option(&options, "annotations"), "/a/b=c.json");
        ck_assert_uint_eq(format_option_number(&options, "length", 1), 17);
        ck_assert_ptr_null(format_option(&options, "split")); /* of every dataset: the format does not see it */
        strcpy(digest, options.digest);
        format_options_fini(&options);

        ck_assert_int_eq(format_options_parse("annotations=/a/b=c.json\nlength=17\n", &LISTING, &options, &why), 0);
        ck_assert_str_eq(options.digest, digest);
        format_options_fini(&options);
        ck_assert_int_eq(format_options_parse("annotations=/a/b=c.json\nlength=18\n", &LISTING, &options, &why), 0);
        ck_assert_str_ne(options.digest, digest);
        format_options_fini(&options);
        revised.revision = "more";
        ck_assert_int_eq(format_options_parse("annotations=/a/b=c.json\nlength=17\n", &revised, &options, &why), 0);
        ck_assert_str_ne(options.digest, digest); /* an index from before it found more is made anew */
        format_options_fini(&options);
        ck_assert_int_eq(format_options_parse(NULL, &LISTING, &options, &why), 0);
        ck_assert_str_eq(options.digest, "");
        ck_assert_uint_eq(format_option_number(&options, "length", 5), 5);
        format_options_fini(&options);
}
END_TEST

START_TEST(a_split_is_a_name_a_rule_or_both) {
        const struct setting keys[] = { OPTION_SPLIT, { 0 } };
        const struct format named = { .name = "named", .options = keys };
        static const struct {
                const char *text, *name, *rule;
        } SPLITS[] = {
                { "train", "train", NULL },
                { "0:90%", NULL, "0:90%" },
                { "train[0:90%]", "train", "0:90%" },
                { "train[:90%]", "train", ":90%" },
                { "my split[5:]", "my split", "5:" },
                { "a.b-c_1[hash(0:5%; seed=[])]", "a.b-c_1", "hash(0:5%; seed=[])" },
                { "t[list(/a[1].txt)]", "t", "list(/a[1].txt)" },
                { "t[random_split(0.9,0.1; seed=0)[1]]", "t", "random_split(0.9,0.1; seed=0)[1]" },
                { "random_split(0.9,0.1; seed=0)[1]", NULL, "random_split(0.9,0.1; seed=0)[1]" },
                { "list(/a[1])", NULL, "list(/a[1])" },
                { "train[]", "train[]", NULL }, /* this and the next two: the format will say which names there are */
                { "train[0:90%", "train[0:90%", NULL },
                { "train[0:90%]x", "train[0:90%]x", NULL },
                { "[0:90%]", NULL, "[0:90%]" },
                { "train[[0:1]]", "train", "[0:1]" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(SPLITS); i++) {
                struct format_options options;
                const char *name;
                char text[100];
                struct why why;

                snprintf(text, sizeof(text), "split=%s\n", SPLITS[i].text);
                ck_assert_int_eq(format_options_parse(text, &named, &options, &why), 0);
                name = format_option(&options, "split");
                ck_assert_pstr_eq(name, SPLITS[i].name);
                ck_assert_pstr_eq(options.split, SPLITS[i].rule);
                format_options_fini(&options);
                ck_assert_int_eq(format_options_parse(text, &LISTING, &options, &why), 0);
                ck_assert_str_eq(options.split, SPLITS[i].text);
                ck_assert_uint_eq(options.n, 0);
                format_options_fini(&options);
        }
}
END_TEST

START_TEST(a_key_or_number_that_does_not_fit_is_refused_by_name) {
        static const char *const BAD[] = { "0", "101", "-1", " 5", "5x", "99999999999999999999" };
        struct format_options options;
        struct why why;

        ck_assert_int_eq(format_options_parse("colour=red\n", &LISTING, &options, &why), -EINVAL);
        ck_assert_str_eq(why.text, "the format listing does not take colour; it takes annotations, length");
        ck_assert_int_eq(format_options_parse("colour=red\n", &format_imagefolder, &options, &why), -EINVAL);
        for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
                char text[64];

                snprintf(text, sizeof(text), "length=%s\n", BAD[i]);
                ck_assert_int_eq(format_options_parse(text, &LISTING, &options, &why), -EINVAL);
                ck_assert_ptr_nonnull(strstr(why.text, "length: "));
                ck_assert_ptr_nonnull(strstr(why.text, "from 1 to 100"));
        }
}
END_TEST

/* A dataset that is named by its path and keys is known again by them. */
START_TEST(keys_stand_in_the_order_of_their_rows_and_each_once) {
        _cleanup_(freep) char *text = NULL;
        struct why why;

        ck_assert_int_eq(format_options_add(&text, format_option_find("split"), "train", &why), 0);
        ck_assert_int_eq(format_options_add(&text, format_option_find("label"), "", &why), 0);
        ck_assert_int_eq(format_options_add(&text, format_option_find("skip_lines"), "2", &why), 0);
        ck_assert_int_eq(format_options_add(&text, format_option_find("files"), "a", &why), 0);
        ck_assert_str_eq(text, "files=a\nskip_lines=2\nsplit=train\n");
        ck_assert_int_eq(format_options_add(&text, format_option_find("files"), "b", &why), -EINVAL);
        ck_assert_str_eq(why.text, "files: is given twice");
        ck_assert_int_eq(format_options_add(&text, format_option_find("raw"), "a\nb", &why), -EINVAL);
        ck_assert_int_eq(format_options_add(&text, format_option_find("skip_lines"), "x", &why), -EINVAL);
        ck_assert_ptr_null(format_option_find("colour"));
        for (size_t i = 0; format_option_at(i); i++)
                ck_assert_ptr_eq(format_option_find(format_option_at(i)->name), format_option_at(i));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "options", a_format_gets_the_keys_that_it_takes, 0 },
                { "options", keys_stand_in_the_order_of_their_rows_and_each_once, 0 },
                { "options", a_split_is_a_name_a_rule_or_both, 0 },
                { "options", a_key_or_number_that_does_not_fit_is_refused_by_name, 0 },
        };

        return suite_run("format_options", rows, ARRAY_SIZE(rows));
}
