/* Stamps: what is written is read, what is damaged is refused by name, and each one can be told from the next. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/record/stamp.h"
#include "proto/base/cleanup.h"
#include "tests/support/temporary.h"

#define DIGEST "8f3a09b2c4d1000000000000000000000000000000000000000000000000cafe"

static struct place place;
static char root[64], stamp_path[PATH_MAX];

static void setup(void) {
        char path[PATH_MAX];
        struct why why;

        temporary_folder(root, sizeof(root));
        snprintf(path, sizeof(path), "%s/photos", root);
        ck_assert_int_eq(place_init(&place, path, &why), 0);
        ck_assert_int_eq(mkdir(place.folder, 0755), 0);
        ck_assert_int_eq(place_file(&place, "v-8f3a09b2c4d1", "", path), 0);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        ck_assert_int_eq(place_file(&place, "stamp", "", stamp_path), 0);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw) {
        return remove(path);
}

static void teardown(void) {
        nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static struct stamp example(void) {
        return (struct stamp){ .dataset = "photos",
                               .manifest = DIGEST,
                               .version = "v-8f3a09b2c4d1",
                               .source = DIGEST,
                               .prepare = "resize(short=256) \"jpeg\\(90)",
                               .format = "packed",
                               .n_files = (1ull << 53) - 1,
                               .n_bytes = 1ull << 52,
                               .n_nodes = 1000,
                               .when = 1795264270 };
}

static void write_text(const char *text) {
        FILE *out = fopen(stamp_path, "w");

        ck_assert_ptr_nonnull(out);
        fputs(text, out);
        fclose(out);
}

static void read_raw(char *text, size_t size) {
        FILE *in = fopen(stamp_path, "r");
        size_t n = fread(text, 1, size - 1, in);

        text[n] = '\0';
        fclose(in);
}

START_TEST(a_stamp_is_read_as_it_was_written) {
        struct stamp stamp = example(), again = { 0 };
        char text[4096];
        struct why why;

        ck_assert_int_eq(stamp_write(&place, &stamp, &why), 0);
        ck_assert_int_eq(stamp_read(&place, &again, &why), 0);
        ck_assert_mem_eq(&stamp, &again, sizeof(stamp));
        read_raw(text, sizeof(text));
        ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}
END_TEST

START_TEST(nothing_staged_is_an_outcome_of_its_own) {
        struct stamp stamp;
        struct why why;

        ck_assert_int_eq(stamp_read(&place, &stamp, &why), STAMP_ABSENT);
        ck_assert_uint_eq(stamp_mark(&place), 0);
        teardown();
        ck_assert_int_eq(stamp_read(&place, &stamp, &why), STAMP_ABSENT);
}
END_TEST

START_TEST(each_stamp_has_a_mark_of_its_own) {
        struct stamp stamp = example();
        uint64_t before = 0;
        struct why why;

        for (int i = 0; i < 20; i++) {
                uint64_t mark;

                ck_assert_int_eq(stamp_write(&place, &stamp, &why), 0);
                mark = stamp_mark(&place);
                ck_assert_uint_ne(mark, 0);
                ck_assert_uint_ne(mark, before);
                ck_assert_uint_eq(mark, stamp_mark(&place));
                before = mark;
        }
}
END_TEST

START_TEST(a_stamp_cut_anywhere_is_refused_by_name) {
        struct stamp stamp = example(), again;
        char text[4096];
        struct why why;

        ck_assert_int_eq(stamp_write(&place, &stamp, &why), 0);
        read_raw(text, sizeof(text));
        for (size_t n = strlen(text) - 1; n-- > 0;) {
                text[n] = '\0';
                write_text(text);
                ck_assert_int_eq(stamp_read(&place, &again, &why), -EBADMSG);
                ck_assert_ptr_nonnull(strstr(why.text, stamp_path));
        }
}
END_TEST

static const struct {
        const char *from, *to;
        int result;
} CHANGES[] = {
        { "\"n_nodes\":1000", "\"n_nodes\": 1000 , \"later\" : \"a \\\"word\" , \"more\": -3", 0 },
        { "\"n_nodes\":1000", "\"n_nodes\":4294967296", -EBADMSG },
        { "\"n_nodes\":1000", "\"n_nodes\":-1", -EBADMSG },
        { "\"n_nodes\":1000", "\"n_nodes\":\"1000\"", -EBADMSG },
        { "\"n_nodes\":1000", "\"n_nodes\":1000,\"n_nodes\":1000", -EBADMSG },
        { "\"n_nodes\":1000,", "", -EBADMSG },
        { "\"n_nodes\":1000", "\"n_nodes\":1000,\"later\":{\"more\":[1,null]}", 0 },
        { "\"n_nodes\":1000", "\"n_nodes\":1000.5", -EBADMSG },
        { "\"n_nodes\":1000", "\"n_nodes\":1e3", 0 },
        { "\"n_nodes\":1000", "\"n_nodes\":1000}, {\"later\":1", -EBADMSG },
        { "9007199254740991", "9007199254740992", -EBADMSG },
        { "9007199254740991", "-1", -EBADMSG },
        { "v-8f3a09b2c4d1", "v-8f3a09b2c4d2", -EBADMSG },
        { "v-8f3a09b2c4d1", "../../etc/..//", -EBADMSG },
        { "\"source_version\":\"\"", "\"source_version\":\"v-../../../..\"", -EBADMSG },
        { "\"source_version\":\"\"", "\"source_version\":\"v-0123456789ab\"", 0 },
        { "\"index\":\"\"", "\"index\":\"" DIGEST "\"", -EBADMSG }, /* there is no such file */
        { "\"index\":\"\"", "\"index\":\"1234\"", -EBADMSG },
        { "\"photos\"", "\"\"", -EBADMSG },
        { "\"photos\"", "\"pho\x01tos\"", -EBADMSG },
        { "\"photos\"", "\"pho\\u0041tos\"", 0 },
        { "\"photos\"", "\"pho\\u0000tos\"", -EBADMSG },
        { "\"photos\"", "\"pho\\ntos\"", -EBADMSG },
        { "\"packed\"", "\"much too long a name for a format of samples\"", -EBADMSG },
};

START_TEST(what_is_in_a_stamp_is_checked) {
        struct stamp stamp = example(), again;
        char text[4096], changed[8192];
        struct why why = { 0 };
        char *at;

        ck_assert_int_eq(stamp_write(&place, &stamp, &why), 0);
        read_raw(text, sizeof(text));
        at = strstr(text, CHANGES[_i].from);
        ck_assert_ptr_nonnull(at);
        snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, CHANGES[_i].to,
                 at + strlen(CHANGES[_i].from));
        write_text(changed);
        ck_assert_msg(stamp_read(&place, &again, &why) == CHANGES[_i].result, "%s: %s", CHANGES[_i].to, why.text);
}
END_TEST

START_TEST(a_stamp_that_speaks_of_what_is_gone_is_refused) {
        struct stamp stamp = example(), again;
        char path[PATH_MAX];
        struct why why;

        strcpy(stamp.index, DIGEST);
        ck_assert_int_eq(stamp_write(&place, &stamp, &why), 0);
        ck_assert_int_eq(stamp_read(&place, &again, &why), -EBADMSG);
        ck_assert_ptr_nonnull(strstr(why.text, "v-8f3a09b2c4d1.index"));
        place_file(&place, "v-8f3a09b2c4d1", ".index", path);
        close(open(path, O_CREAT | O_WRONLY, 0644));
        ck_assert_int_eq(stamp_read(&place, &again, &why), 0);
        place_file(&place, "v-8f3a09b2c4d1", "", path);
        rmdir(path);
        ck_assert_int_eq(stamp_read(&place, &again, &why), -EBADMSG);
        ck_assert_int_eq(symlink("/etc", path), 0);
        ck_assert_int_eq(stamp_read(&place, &again, &why), -EBADMSG);
}
END_TEST

START_TEST(a_folder_a_fifo_or_a_link_in_its_place_is_an_error_at_once) {
        struct stamp stamp = example(), again;
        struct why why;

        ck_assert_int_eq(mkdir(stamp_path, 0755), 0);
        ck_assert_int_lt(stamp_read(&place, &again, &why), 0);
        rmdir(stamp_path);
        ck_assert_int_eq(mkfifo(stamp_path, 0644), 0);
        ck_assert_int_eq(stamp_read(&place, &again, &why), -EBADMSG);
        unlink(stamp_path);
        ck_assert_int_eq(symlink("/dev/zero", stamp_path), 0);
        ck_assert_int_eq(stamp_read(&place, &again, &why), -ELOOP);
        ck_assert_int_eq(stamp_write(&place, &stamp, &why), 0); /* takes the link's place */
        ck_assert_int_eq(stamp_read(&place, &again, &why), 0);
}
END_TEST

START_TEST(what_no_stamp_may_say_is_not_written) {
        struct stamp stamp = example();
        struct why why;

        strcpy(stamp.version, "v-../../../..");
        ck_assert_int_eq(stamp_write(&place, &stamp, &why), -EINVAL);
        stamp = example();
        stamp.n_bytes = 1ull << 53;
        ck_assert_int_eq(stamp_write(&place, &stamp, &why), -EINVAL);
        ck_assert_uint_eq(stamp_mark(&place), 0);
}
END_TEST

START_TEST(what_a_killed_run_left_is_not_written_into) {
        struct stamp stamp = example(), again;
        char path[PATH_MAX + 8], victim[PATH_MAX];
        struct stat status;
        struct why why;

        snprintf(victim, sizeof(victim), "%s/victim", root);
        close(open(victim, O_CREAT | O_WRONLY, 0644));
        snprintf(path, sizeof(path), "%s.new", stamp_path);
        ck_assert_int_eq(symlink(victim, path), 0);
        ck_assert_int_eq(stamp_write(&place, &stamp, &why), 0);
        ck_assert_int_eq(stamp_read(&place, &again, &why), 0);
        ck_assert_int_eq(stat(victim, &status), 0);
        ck_assert_int_eq(status.st_size, 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("stamp");
        TCase *all = tcase_create("all");
        SRunner *runner;
        int n_failed;

        tcase_add_checked_fixture(all, setup, teardown);
        tcase_add_test(all, a_stamp_is_read_as_it_was_written);
        tcase_add_test(all, nothing_staged_is_an_outcome_of_its_own);
        tcase_add_test(all, each_stamp_has_a_mark_of_its_own);
        tcase_add_test(all, a_stamp_cut_anywhere_is_refused_by_name);
        tcase_add_loop_test(all, what_is_in_a_stamp_is_checked, 0, (int)ARRAY_SIZE(CHANGES));
        tcase_add_test(all, a_stamp_that_speaks_of_what_is_gone_is_refused);
        tcase_add_test(all, a_folder_a_fifo_or_a_link_in_its_place_is_an_error_at_once);
        tcase_add_test(all, what_no_stamp_may_say_is_not_written);
        tcase_add_test(all, what_a_killed_run_left_is_not_written_into);
        tcase_set_timeout(all, 60);
        suite_add_tcase(suite, all);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
