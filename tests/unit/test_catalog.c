/* The catalog: what becomes of a configured dataset, and who may go on using one that is gone. */

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
        struct budget budget;
        struct catalog catalog;
        char path[2][96]; /* of two folders */
};

static struct fixture f;

static void age(void) {
        tree_age(&f.tree, "one/cats");
        tree_age(&f.tree, "one");
        tree_age(&f.tree, "two/dogs");
        tree_age(&f.tree, "two");
}

static void setup(void) {
        char index_dir[96];

        tree_make(&f.tree);
        tree_dir(&f.tree, "index");
        tree_file(&f.tree, "one/cats/a.png", "first");
        tree_file(&f.tree, "one/cats/b.png", "second");
        tree_file(&f.tree, "two/dogs/c.png", "third");
        age();
        snprintf(index_dir, sizeof(index_dir), "%s/index", f.tree.root);
        snprintf(f.path[0], sizeof(f.path[0]), "%s/one", f.tree.root);
        snprintf(f.path[1], sizeof(f.path[1]), "%s/two", f.tree.root);
        ck_assert_int_eq(background_new(&f.background), 0);
        f.budget = (struct budget){ .limit_bytes = 1 << 20 };
        ck_assert_int_eq(catalog_init(&f.catalog, f.background, index_dir, &f.budget), 0);
        background_reap(f.background);
}

static void teardown(void) {
        catalog_cancel(&f.catalog);
        background_stop(f.background);
        catalog_fini(&f.catalog);
        background_free(f.background);
        ck_assert_uint_eq(budget_used(&f.budget), 0);
        tree_remove(&f.tree);
}

static void configure(const struct catalog_wish *wishes, size_t n) {
        struct why why;

        if (catalog_configure(&f.catalog, wishes, n, &why) < 0)
                ck_abort_msg("%s", why.text);
}

static void wait_a_little(void) {
        struct pollfd poll_fd = { .fd = background_fd(f.background), .events = POLLIN };

        background_reap(f.background);
        poll(&poll_fd, 1, 10);
        background_reap(f.background);
}

static bool is_checked;

static void on_checked(struct catalog_waiter *waiter, bool late) {
        (void)waiter;
        ck_assert(!late);
        is_checked = true;
}

/* As attaching does: waits for the look at the folder. */
static void check(const char *name) {
        struct catalog_waiter waiter = { .done = on_checked };

        is_checked = false;
        if (catalog_check(&f.catalog, name, &waiter) == 0)
                return;
        for (int i = 0; i < PATIENCE && !is_checked; i++)
                wait_a_little();
        ck_assert(is_checked);
}

/* As a client does: asks again as long as it is told to. */
static int get(const char *name, struct catalog_dataset **ret_dataset, struct why *why) {
        int r = -EAGAIN;

        for (int i = 0; i < PATIENCE && r == -EAGAIN; i++) {
                r = catalog_get(&f.catalog, name, ret_dataset, why);
                if (r == -EAGAIN)
                        wait_a_little();
        }
        return r;
}

static enum catalog_state state_of(const char *name) {
        struct catalog_entry *entry;

        TAILQ_FOREACH(entry, &f.catalog.entries, entry)
                if (strcmp(entry->name, name) == 0)
                        return entry->state;
        ck_abort_msg("no %s", name);
}

static uint64_t n_samples(const struct catalog_dataset *dataset) {
        return dataset_source(dataset->dataset)->n_samples;
}

START_TEST(an_index_that_has_to_be_kept_in_memory_counts_against_memory_limit) {
        struct catalog_dataset *dataset = NULL;
        struct why why;

        setup();
        ck_assert_int_eq(unlinkat(f.tree.fd, "index", AT_REMOVEDIR), 0);
        tree_file(&f.tree, "index", "no folder, so nothing can be saved");
        configure(&(struct catalog_wish){ "one", f.path[0], "imagefolder" }, 1);
        ck_assert_int_eq(get("one", &dataset, &why), 0);
        ck_assert_uint_gt(budget_used(&f.budget), 0);
        catalog_dataset_unref(dataset);

        configure(NULL, 0);
        for (int i = 0; i < PATIENCE && budget_used(&f.budget) > 0; i++) /* the ledger's thread closes it */
                wait_a_little();
        ck_assert_uint_eq(budget_used(&f.budget), 0);
        f.budget.limit_bytes = 100;
        configure(&(struct catalog_wish){ "one", f.path[0], "imagefolder" }, 1);
        ck_assert_int_lt(get("one", &dataset, &why), 0);
        ck_assert_msg(strstr(why.text, "memory_limit: making the index needs") != NULL, "%s", why.text);
        teardown();
}
END_TEST

START_TEST(a_dataset_is_indexed_in_the_background_and_then_ready) {
        struct catalog_dataset *dataset = NULL;
        struct why why;

        setup();
        configure(&(struct catalog_wish){ "one", f.path[0], "imagefolder" }, 1);
        ck_assert_int_eq(state_of("one"), CATALOG_INDEXING);
        ck_assert_int_eq(catalog_get(&f.catalog, "one", &dataset, &why), -EAGAIN);
        ck_assert_ptr_nonnull(strstr(why.text, "its index is being built"));
        ck_assert_ptr_null(dataset);
        ck_assert_int_eq(get("one", &dataset, &why), 0);
        ck_assert_int_eq(state_of("one"), CATALOG_READY);
        ck_assert_str_eq(dataset->name, "one");
        ck_assert_uint_eq(n_samples(dataset), 2);
        catalog_dataset_unref(dataset);
        teardown();
}
END_TEST

START_TEST(an_unknown_name_is_refused_with_the_known_ones) {
        struct catalog_wish many[64];
        struct catalog_dataset *dataset;
        static char names[64][DLP_NAME_MAX];
        struct why why;

        setup();
        ck_assert_int_eq(catalog_get(&f.catalog, "one", &dataset, &why), -ENOENT);
        ck_assert_ptr_nonnull(strstr(why.text, "names no dataset"));
        configure((struct catalog_wish[]){ { "one", f.path[0], "imagefolder" }, { "two", f.path[1], "imagefolder" } },
                  2);
        ck_assert_int_eq(catalog_get(&f.catalog, "three", &dataset, &why), -ENOENT);
        ck_assert_ptr_nonnull(strstr(why.text, "\"three\""));
        ck_assert_ptr_nonnull(strstr(why.text, "one, two"));

        for (uint32_t i = 0; i < 64; i++) { /* more names than a message has room for */
                memset(names[i], 'x', sizeof(names[i]) - 1);
                snprintf(names[i], 8, "n%02u", i);
                names[i][3] = 'x';
                many[i] = (struct catalog_wish){ names[i], f.path[0], "imagefolder" };
        }
        configure(many, 64);
        ck_assert_int_eq(catalog_get(&f.catalog, "three", &dataset, &why), -ENOENT);
        ck_assert_ptr_nonnull(strstr(why.text, "n00x"));
        teardown();
}
END_TEST

START_TEST(a_folder_that_cannot_be_opened_fails_with_its_name_and_is_tried_again) {
        struct catalog_dataset *dataset;
        char path[96];
        struct why why;

        setup();
        snprintf(path, sizeof(path), "%s/later", f.tree.root);
        configure(&(struct catalog_wish){ "later", path, "imagefolder" }, 1);
        ck_assert_int_eq(get("later", &dataset, &why), -EIO);
        ck_assert_int_eq(state_of("later"), CATALOG_FAILED);
        ck_assert_ptr_nonnull(strstr(why.text, path));

        tree_file(&f.tree, "later/birds/d.png", "late");
        usleep(1100000); /* a failure that is older is not told but tried again */
        ck_assert_int_eq(catalog_get(&f.catalog, "later", &dataset, &why), -EAGAIN);
        ck_assert_int_eq(get("later", &dataset, &why), 0);
        ck_assert_uint_eq(n_samples(dataset), 1);
        catalog_dataset_unref(dataset);
        teardown();
}
END_TEST

START_TEST(a_changed_folder_is_indexed_again_once_nobody_is_served_from_it) {
        struct catalog_dataset *served, *again;
        struct why why;

        setup();
        configure(&(struct catalog_wish){ "one", f.path[0], "imagefolder" }, 1);
        ck_assert_int_eq(get("one", &served, &why), 0);
        tree_file(&f.tree, "one/cats/z.png", "new");
        tree_age(&f.tree, "one/cats");
        ck_assert_int_eq(catalog_get(&f.catalog, "one", &again, &why), 0); /* as long as somebody is */
        ck_assert_ptr_eq(again, served);
        catalog_dataset_unref(again);
        check("one");
        ck_assert_int_eq(catalog_get(&f.catalog, "one", &again, &why), 0);
        ck_assert_ptr_eq(again, served);
        catalog_dataset_unref(again);
        catalog_dataset_unref(served);
        check("one");
        ck_assert_int_eq(get("one", &again, &why), 0); /* the new index may be there already */
        ck_assert_uint_eq(n_samples(again), 3);
        catalog_dataset_unref(again);
        teardown();
}
END_TEST

START_TEST(a_dataset_that_leaves_the_configuration_stays_for_who_is_served_from_it) {
        struct catalog_dataset *dataset, *other;
        struct why why;

        setup();
        configure(&(struct catalog_wish){ "one", f.path[0], "imagefolder" }, 1);
        ck_assert_int_eq(get("one", &dataset, &why), 0);
        configure(&(struct catalog_wish){ "one", f.path[1], "imagefolder" }, 1); /* the same name, another folder */
        ck_assert_int_eq(get("one", &other, &why), 0);
        ck_assert_ptr_ne(other, dataset);
        ck_assert_uint_eq(n_samples(dataset), 2);
        ck_assert_uint_eq(n_samples(other), 1);
        configure(NULL, 0);
        ck_assert(TAILQ_EMPTY(&f.catalog.entries));
        ck_assert_int_eq(catalog_get(&f.catalog, "one", &other, &why), -ENOENT);
        ck_assert_uint_eq(n_samples(dataset), 2);
        ck_assert_uint_eq(n_samples(other), 1);
        catalog_dataset_unref(dataset);
        catalog_dataset_unref(other);
        catalog_dataset_unref(NULL);
        teardown();
}
END_TEST

START_TEST(datasets_may_go_and_come_while_they_are_being_indexed) {
        struct catalog_dataset *dataset;
        struct why why;

        setup();
        for (uint32_t i = 0; i < 50; i++) {
                struct catalog_wish wish = { "one", f.path[i % 2], "imagefolder" };

                configure(&wish, i % 3 ? 1 : 0);
                if (i % 7 == 0)
                        wait_a_little();
        }
        configure(&(struct catalog_wish){ "one", f.path[0], "imagefolder" }, 1);
        ck_assert_int_eq(get("one", &dataset, &why), 0);
        ck_assert_uint_eq(n_samples(dataset), 2);
        catalog_dataset_unref(dataset);
        configure(&(struct catalog_wish){ "two", f.path[1], "imagefolder" }, 1);
        teardown(); /* with one under way */
}
END_TEST

START_TEST(whoever_waits_for_a_look_is_told_also_if_the_dataset_goes) {
        struct catalog_waiter waiters[3] = { { .done = on_checked }, { .done = on_checked }, { .done = on_checked } };
        struct catalog_dataset *dataset;
        struct why why;

        setup();
        configure(&(struct catalog_wish){ "one", f.path[0], "imagefolder" }, 1);
        ck_assert_int_eq(get("one", &dataset, &why), 0);
        catalog_dataset_unref(dataset);
        for (int i = 0; i < 3; i++) /* one look for all */
                ck_assert_int_eq(catalog_check(&f.catalog, "one", &waiters[i]), 1);
        configure(NULL, 0);
        ck_assert(is_checked);
        ck_assert_int_eq(catalog_check(&f.catalog, "one", &waiters[0]), 0);
        wait_a_little();
        teardown();
}
END_TEST

START_TEST(damaged_samples_are_counted_and_the_last_is_remembered) {
        struct catalog_dataset *dataset;
        struct why why;

        setup();
        configure(&(struct catalog_wish){ "one", f.path[0], "imagefolder" }, 1);
        ck_assert_int_eq(get("one", &dataset, &why), 0);
        ck_assert_uint_eq(catalog_dataset_error(dataset, "a.png is damaged"), 0);
        ck_assert_uint_eq(catalog_dataset_error(dataset, "b.png is damaged"), 1);
        ck_assert_str_eq(dataset->last_error.text, "b.png is damaged");
        catalog_dataset_unref(dataset);
        teardown();
}
END_TEST

int main(void) {
        Suite *suite = suite_create("catalog");
        TCase *catalog = tcase_create("catalog");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_test(catalog, an_index_that_has_to_be_kept_in_memory_counts_against_memory_limit);
        tcase_add_test(catalog, a_dataset_is_indexed_in_the_background_and_then_ready);
        tcase_add_test(catalog, an_unknown_name_is_refused_with_the_known_ones);
        tcase_add_test(catalog, a_folder_that_cannot_be_opened_fails_with_its_name_and_is_tried_again);
        tcase_add_test(catalog, a_changed_folder_is_indexed_again_once_nobody_is_served_from_it);
        tcase_add_test(catalog, a_dataset_that_leaves_the_configuration_stays_for_who_is_served_from_it);
        tcase_add_test(catalog, datasets_may_go_and_come_while_they_are_being_indexed);
        tcase_add_test(catalog, whoever_waits_for_a_look_is_told_also_if_the_dataset_goes);
        tcase_add_test(catalog, damaged_samples_are_counted_and_the_last_is_remembered);
        tcase_set_timeout(catalog, 60);
        suite_add_tcase(suite, catalog);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
