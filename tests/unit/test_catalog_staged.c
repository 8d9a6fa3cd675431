/* Datasets with an origin in the catalog: stamps come, change and go, and nobody is served from anything else. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/pipeline/catalog/catalog.h"
#include "tests/support/tree.h"

#define PATIENCE 6000 /* times ten milliseconds */

struct fixture {
        struct tree tree;
        struct background *background;
        struct catalog catalog;
        struct place place;
        char path[96], index_dir[96];
};

static struct fixture f;

static void setup(void) {
        struct why why;

        tree_make(&f.tree);
        tree_dir(&f.tree, "index");
        tree_dir(&f.tree, ".d.staged");
        snprintf(f.path, sizeof(f.path), "%s/d", f.tree.root);
        snprintf(f.index_dir, sizeof(f.index_dir), "%s/index", f.tree.root);
        ck_assert_int_eq(place_init(&f.place, f.path, &why), 0);
        ck_assert_int_eq(background_new(&f.background), 0);
        ck_assert_int_eq(catalog_init(&f.catalog, f.background, f.index_dir, NULL), 0);
        background_reap(f.background);
}

static void teardown(void) {
        catalog_cancel(&f.catalog);
        background_stop(f.background);
        catalog_fini(&f.catalog);
        background_free(f.background);
        tree_remove(&f.tree);
}

static void configure(const char *origin) {
        struct catalog_wish wish = { "d", f.path, "imagefolder", origin };
        struct why why;

        if (catalog_configure(&f.catalog, &wish, 1, &why) < 0)
                ck_abort_msg("%s", why.text);
}

/* A version with n_samples, named by a digit, and its stamp. */
static void stage(char digit, int n_samples) {
        struct stamp stamp = { .dataset = "d", .n_files = 1, .n_bytes = 1, .n_nodes = 1, .when = 1 };
        char path[64];
        struct why why;

        memset(stamp.manifest, digit, sizeof(stamp.manifest) - 1);
        strcpy(stamp.source, stamp.manifest);
        place_version(stamp.manifest, stamp.version);
        for (int i = 0; i < n_samples; i++) {
                snprintf(path, sizeof(path), ".d.staged/%s/cats/%d.png", stamp.version, i);
                tree_file(&f.tree, path, "a cat");
        }
        if (stamp_write(&f.place, &stamp, &why) < 0)
                ck_abort_msg("%s", why.text);
}

/* As the daemon does, but ten times as often; and a moment for the background. */
static void look(void) {
        struct pollfd poll_fd = { .fd = background_fd(f.background), .events = POLLIN };

        catalog_look(&f.catalog);
        for (int i = 0; i < 10; i++) {
                background_reap(f.background);
                poll(&poll_fd, 1, 1);
        }
        background_reap(f.background);
}

static struct catalog_entry *entry(void) {
        return TAILQ_FIRST(&f.catalog.entries);
}

static void wait_state(enum catalog_state state) {
        for (int i = 0; i < PATIENCE && entry()->state != state; i++)
                look();
        ck_assert_int_eq(entry()->state, state);
}

static void wait_samples(uint64_t n) {
        for (int i = 0; i < PATIENCE; i++) {
                if (entry()->open && dataset_source(entry()->open->dataset)->n_samples == n)
                        return;
                look();
        }
        ck_abort_msg("never %d samples", (int)n);
}

static const char *digest_of(const struct catalog_dataset *dataset) {
        return dataset_source(dataset->dataset)->digest;
}

START_TEST(without_a_stamp_whoever_asks_waits_and_reads_what_for) {
        struct progress progress = { .phase = "transferring", .n_bytes_total = 8, .n_bytes_done = 2 };
        struct catalog_dataset *dataset;
        struct why why;

        setup();
        configure("https://host/x?signature=secret");
        ck_assert_str_eq(entry()->staged->origin, "https://host/x");
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &dataset, &why), -EAGAIN);
        ck_assert_ptr_nonnull(strstr(why.text, "is being searched for"));
        wait_state(CATALOG_STAGING);
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &dataset, &why), -EAGAIN);
        ck_assert_ptr_nonnull(strstr(why.text, "dlctl stage d"));

        ck_assert_int_eq(progress_write(&f.place, &progress, &why), 0);
        for (int i = 0; i < PATIENCE && !catalog_is_being_staged(entry()); i++)
                look();
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &dataset, &why), -EAGAIN);
        ck_assert_ptr_nonnull(strstr(why.text, "transferring, 2 bytes of 8 bytes (25 %)"));

        stage('1', 2);
        wait_state(CATALOG_READY);
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &dataset, &why), 0);
        ck_assert_str_eq(dataset_root(dataset->dataset) + strlen(f.tree.root), "/.d.staged/v-111111111111");
        catalog_dataset_unref(dataset);
        teardown();
}
END_TEST

/* As a client does: asks again as long as it is told to. */
static int get_again(const char *digest, struct catalog_dataset **ret_dataset) {
        struct why why;
        int r = -EAGAIN;

        for (int i = 0; i < PATIENCE && r == -EAGAIN; i++) {
                r = catalog_get_again(&f.catalog, "d", digest, ret_dataset, &why);
                if (r == -EAGAIN)
                        look();
        }
        return r;
}

START_TEST(a_running_job_gets_the_version_before_as_long_as_somebody_holds_it) {
        struct catalog_dataset *old, *dataset;
        char digest[INDEX_DIGEST_SIZE];
        struct why why;

        setup();
        stage('1', 2);
        configure("https://host/x");
        wait_samples(2);
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &old, &why), 0);
        snprintf(digest, sizeof(digest), "%s", digest_of(old));
        stage('2', 3);
        wait_samples(3);

        ck_assert_int_eq(catalog_get(&f.catalog, "d", &dataset, &why), 0);
        ck_assert_str_ne(digest_of(dataset), digest);
        catalog_dataset_unref(dataset);
        ck_assert_int_eq(catalog_get_again(&f.catalog, "d", digest, &dataset, &why), 0);
        ck_assert_ptr_eq(dataset, old);
        catalog_dataset_unref(dataset);
        ck_assert_int_eq(catalog_get_again(&f.catalog, "d", NULL, &dataset, &why), 0);
        ck_assert_ptr_ne(dataset, old);
        catalog_dataset_unref(dataset);

        catalog_dataset_unref(old);
        for (int i = 0; i < PATIENCE && !TAILQ_EMPTY(&entry()->staged->older); i++)
                look();
        ck_assert(TAILQ_EMPTY(&entry()->staged->older));
        ck_assert_int_eq(get_again(digest, &dataset), 0); /* it has no index of its own: it is not found */
        ck_assert_str_ne(digest_of(dataset), digest);
        catalog_dataset_unref(dataset);
        teardown();
}
END_TEST

START_TEST(jobs_of_many_versions_keep_each_its_own) {
        struct catalog_dataset *held[4], *dataset;
        char digests[4][INDEX_DIGEST_SIZE];
        struct version_claim claim;
        struct why why;
        int folder_fd;

        setup();
        for (int i = 0; i < 4; i++) {
                stage((char)('1' + i), 2 + i);
                if (i == 0)
                        configure("https://host/x");
                wait_samples(2 + (uint64_t)i);
                ck_assert_int_eq(catalog_get(&f.catalog, "d", &held[i], &why), 0);
                snprintf(digests[i], sizeof(digests[i]), "%s", digest_of(held[i]));
        }
        folder_fd = open(f.place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (int i = 0; i < 4; i++) {
                char version[PLACE_VERSION_SIZE];

                ck_assert_int_eq(get_again(digests[i], &dataset), 0);
                ck_assert_ptr_eq(dataset, held[i]);
                catalog_dataset_unref(dataset);
                snprintf(version, sizeof(version), "v-%012d", 0);
                memset(version + 2, '1' + i, 12);
                ck_assert_int_eq(version_claim(folder_fd, version, &claim), -EBUSY);
        }
        catalog_dataset_unref(held[0]);
        for (int i = 0; i < PATIENCE && version_claim(folder_fd, "v-111111111111", &claim) < 0; i++)
                look();
        version_claim_free(&claim); /* else it is not ours, and this fails */
        for (int i = 1; i < 4; i++)
                catalog_dataset_unref(held[i]);
        close(folder_fd);
        teardown();
}
END_TEST

START_TEST(a_version_that_cannot_be_opened_does_not_displace_the_one_before) {
        struct catalog_dataset *dataset;
        struct why why;

        setup();
        stage('1', 2);
        configure("https://host/x");
        wait_samples(2);
        tree_dir(&f.tree, ".d.staged/v-222222222222"); /* no class in it */
        stage('2', 0);
        for (int i = 0; i < PATIENCE && !entry()->staged->told.text[0]; i++)
                look();
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &dataset, &why), 0);
        ck_assert_uint_eq(dataset_source(dataset->dataset)->n_samples, 2);
        catalog_dataset_unref(dataset);
        stage('3', 4);
        wait_samples(4);
        teardown();
}
END_TEST

START_TEST(a_stamp_that_goes_or_is_damaged_lets_nobody_in) {
        struct catalog_dataset *held, *dataset;
        char path[PATH_MAX + 16];
        struct why why;

        setup();
        stage('1', 2);
        configure("https://host/x");
        wait_samples(2);
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &held, &why), 0);
        snprintf(path, sizeof(path), "%s/stamp", f.place.folder);
        unlink(path);
        wait_state(CATALOG_STAGING);
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &dataset, &why), -EAGAIN);
        tree_file(&f.tree, ".d.staged/stamp", "{\"version\":\"../../etc\"}");
        wait_state(CATALOG_FAILED);
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &dataset, &why), -EIO);
        ck_assert_ptr_nonnull(strstr(why.text, "stamp"));
        ck_assert_int_eq(catalog_get(&f.catalog, "d", &dataset, &why), -EAGAIN); /* and looks again */
        wait_state(CATALOG_FAILED);
        ck_assert_uint_eq(dataset_source(held->dataset)->n_samples, 2);
        stage('1', 2);
        wait_state(CATALOG_READY);
        catalog_dataset_unref(held);
        teardown();
}
END_TEST

START_TEST(an_end_or_a_reload_in_the_middle_of_a_look_does_no_harm) {
        for (int round = 0; round < 30; round++) {
                setup();
                stage('1', 2);
                configure("https://host/x");
                for (int i = 0; i < round % 5; i++)
                        background_reap(f.background);
                if (round % 2)
                        configure(round % 4 == 1 ? "https://host/other" : "");
                stage('2', 3);
                catalog_look(&f.catalog);
                usleep((unsigned)(round * 100));
                teardown();
        }
}
END_TEST

int main(void) {
        Suite *suite = suite_create("catalog staged");
        TCase *tcase = tcase_create("staged");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_set_timeout(tcase, 120);
        tcase_add_test(tcase, without_a_stamp_whoever_asks_waits_and_reads_what_for);
        tcase_add_test(tcase, a_running_job_gets_the_version_before_as_long_as_somebody_holds_it);
        tcase_add_test(tcase, jobs_of_many_versions_keep_each_its_own);
        tcase_add_test(tcase, a_version_that_cannot_be_opened_does_not_displace_the_one_before);
        tcase_add_test(tcase, a_stamp_that_goes_or_is_damaged_lets_nobody_in);
        tcase_add_test(tcase, an_end_or_a_reload_in_the_middle_of_a_look_does_no_harm);
        suite_add_tcase(suite, tcase);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
