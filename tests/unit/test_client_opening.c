/* A loader is opened, or refused; several of them; and one is closed. */

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/left.h"
#include "proto/limits.h"
#include "tests/support/client.h"
#include "tests/support/suite.h"

START_TEST(other_versions_are_refused_naming_both) {
        char layout[64];
        struct stand_in_manners manners = { .n_samples = 100, .protocol = 7 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);

        check_refused(&options, -EPROTONOSUPPORT, "speaks protocol 3, the daemon");
        check_refused(&options, -EPROTONOSUPPORT, "speaks protocol 7");
        stand_in_stop(stand_in);

        manners = (struct stand_in_manners){ .n_samples = 100, .layout_version = 99 };
        stand_in = stand_in_start(&manners);
        options = options_for(stand_in, 4);
        snprintf(layout, sizeof(layout), "layout %u, the daemon", DLP_LAYOUT_VERSION);
        check_refused(&options, -EPROTONOSUPPORT, layout);
        check_refused(&options, -EPROTONOSUPPORT, "uses 99");
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(memory_that_could_fault_is_refused) {
        struct stand_in_manners manners = { .n_samples = 100, .unsealed = true };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);

        check_refused(&options, -EPROTO, "control memory");
        stand_in_stop(stand_in);

        manners = (struct stand_in_manners){ .n_samples = 100, .short_payload = true };
        stand_in = stand_in_start(&manners);
        options = options_for(stand_in, 4);
        check_refused(&options, -EPROTO, "payload memory");
        stand_in_stop(stand_in);
}
END_TEST

/* float16 of one channel, for the tensor "image". */
static void make_form(Dlp__LeftForm *form, uint8_t table[512]) {
        dlp__left_form__init(form);
        for (uint32_t i = 0; i < 512; i++)
                table[i] = (uint8_t)(i * 7);
        form->tensor = (char *)(uintptr_t) "image";
        form->dtype = DLC_FLOAT16;
        form->n_channels = 1;
        form->channels_first = true;
        form->table.data = table;
        form->table.len = 512;
}

START_TEST(what_is_left_to_the_caller_is_kept_and_only_who_asks_for_it_gets_it) {
        Dlp__LeftForm form, *forms[] = { &form };
        struct stand_in_manners manners = { .n_samples = 100, .forms = forms, .n_forms = 1 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_left_form seen;
        struct dlc_loader *loader;
        uint8_t table[512];

        make_form(&form, table);
        loader = open_loader(&options);
        ck_assert(!manners.leave_forms);
        ck_assert_int_eq(dlc_get_left_form(loader, 0, &seen, sizeof(seen)), -ENOENT);
        dlc_close(loader);

        options.leave_forms = true;
        loader = open_loader(&options);
        ck_assert_int_eq(dlc_get_left_form(loader, 0, &seen, sizeof(seen)), 0);
        ck_assert_str_eq(seen.tensor, "image");
        ck_assert_uint_eq(seen.dtype, DLC_FLOAT16);
        ck_assert_uint_eq(seen.n_channels, 1);
        ck_assert(seen.channels_first);
        ck_assert_uint_eq(seen.table_bytes, 512);
        ck_assert_mem_eq(seen.table, table, 512);
        ck_assert_int_eq(dlc_get_left_form(loader, 1, &seen, sizeof(seen)), -ENOENT);
        ck_assert_int_eq(dlc_get_left_form(NULL, 0, &seen, sizeof(seen)), -EINVAL);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(operations_are_left_to_who_asks_for_them_and_understands_the_answer) {
        Dlp__LeftForm form, *forms[] = { &form };
        struct stand_in_manners manners = { .n_samples = 100, .forms = forms, .n_forms = 1 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_left_form seen;
        struct dlc_loader *loader;
        uint8_t table[512];

        make_form(&form, table);
        options.leave_forms = true;
        loader = open_loader(&options);
        ck_assert_uint_eq(manners.leave_operations, 0);
        dlc_close(loader);

        options.leave_operations = true; /* of a daemon that leaves none */
        loader = open_loader(&options);
        ck_assert_uint_eq(manners.leave_operations, DLP_LEFT_OPERATIONS_FORMAT);
        ck_assert_int_eq(dlc_get_left_form(loader, 0, &seen, sizeof(seen)), 0);
        ck_assert_uint_eq(seen.operations_at, 0);
        ck_assert_int_eq(dlc_get_left_form(loader, 0, &seen, offsetof(struct dlc_left_form, operations_at)), 0);
        dlc_close(loader);

        form.operations_format = DLP_LEFT_OPERATIONS_FORMAT;
        form.operations_at = 3 * DLP_LEFT_ALIGN;
        loader = open_loader(&options);
        ck_assert_int_eq(dlc_get_left_form(loader, 0, &seen, sizeof(seen)), 0);
        ck_assert_uint_eq(seen.operations_at, 3 * DLP_LEFT_ALIGN);
        ck_assert_int_eq(dlc_get_left_form(loader, 0, &seen, offsetof(struct dlc_left_form, operations_at)), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "leave_operations"));
        dlc_close(loader);

        options.leave_forms = false; /* alone it asks for nothing */
        loader = open_loader(&options);
        ck_assert_uint_eq(manners.leave_operations, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(operations_that_were_not_asked_for_or_make_no_sense_are_refused) {
        static const struct {
                uint32_t format;
                uint64_t at;
                bool are_asked_for;
        } ROWS[] = {
                { DLP_LEFT_OPERATIONS_FORMAT, 64, false },     { DLP_LEFT_OPERATIONS_FORMAT + 1, 64, true },
                { DLP_LEFT_OPERATIONS_FORMAT, 0, true },       { 0, 64, true },
                { DLP_LEFT_OPERATIONS_FORMAT, 65, true },      { DLP_LEFT_OPERATIONS_FORMAT, UINT64_MAX - 63, true },
                { DLP_LEFT_OPERATIONS_FORMAT, 1 << 25, true },
        };
        Dlp__LeftForm form, *forms[] = { &form };
        struct stand_in_manners manners = { .n_samples = 100, .forms = forms, .n_forms = 1 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        uint8_t table[512];

        options.leave_forms = true;
        make_form(&form, table);
        for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
                form.operations_format = ROWS[i].format;
                form.operations_at = ROWS[i].at;
                options.leave_operations = ROWS[i].are_asked_for;
                check_refused(&options, -EPROTO, "to the device");
        }
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(what_cannot_be_left_is_refused) {
        Dlp__LeftForm form, *forms[DLP_LEFT_FORMS_MAX + 1];
        struct stand_in_manners manners = { .n_samples = 100, .forms = forms, .n_forms = 1 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        uint8_t table[3 * 256 * 4];

        options.leave_forms = true;
        for (uint32_t i = 0; i <= DLP_LEFT_FORMS_MAX; i++)
                forms[i] = &form;
        for (int i = 0; i < 7; i++) {
                make_form(&form, table);
                switch (i) {
                case 0:
                        form.dtype = DLC_FLOAT64;
                        break;
                case 1:
                        form.dtype = 99;
                        break;
                case 2:
                        form.n_channels = 2;
                        form.table.len = 1024;
                        break;
                case 3:
                        form.table.len = 511;
                        break;
                case 4:
                        form.n_channels = 3;
                        break;
                case 5:
                        form.tensor = (char *)(uintptr_t) "a_name_that_is_longer_than_that_of_a_tensor";
                        break;
                default:
                        manners.n_forms = DLP_LEFT_FORMS_MAX + 1;
                        break;
                }
                check_refused(&options, -EPROTO, "to the device");
        }
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_refusal_carries_the_daemons_text_and_code) {
        struct stand_in_manners manners = { .n_samples = 100, .refuse_code = ENOMEM };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);

        check_refused(&options, -ENOMEM, "memory_limit: 9 MiB are needed");
        stand_in_stop(stand_in);

        /* Which means something else here. */
        manners = (struct stand_in_manners){ .n_samples = 100, .refuse_code = ECONNREFUSED };
        stand_in = stand_in_start(&manners);
        options = options_for(stand_in, 4);
        check_refused(&options, -EREMOTEIO, "memory_limit: 9 MiB are needed");
        stand_in_stop(stand_in);
}
END_TEST

static void count_progress(void *userdata, const char *text) {
        ck_assert_str_eq(text, "photos: indexing, 12 files so far");
        ++*(int *)userdata;
}

START_TEST(opening_waits_for_an_index_and_shows_it) {
        struct stand_in_manners manners = { .n_samples = 20, .n_retries = 8 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader;
        int n_told = 0;

        options.on_progress = count_progress;
        options.userdata = &n_told;
        loader = open_loader(&options);
        ck_assert_int_eq(n_told, 1); /* a third of a second: once a second at most */
        ck_assert_str_eq(dlc_error(loader), "");
        check_epoch(loader, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(opening_gives_up_when_it_was_told_to) {
        struct stand_in_manners manners = { .n_samples = 20, .n_retries = UINT32_MAX };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        uint64_t began = now_ms();

        options.open_timeout_ms = 250;
        check_refused(&options, -ETIMEDOUT, "12 files so far");
        ck_assert_uint_ge(now_ms() - began, 249);
        ck_assert_uint_lt(now_ms() - began, 5000);
        options.open_timeout_ms = 0;
        check_refused(&options, -ETIMEDOUT, "open_timeout_ms=0");
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(two_loaders_in_two_threads_do_not_meet) {
        struct stand_in_manners manners = { .n_samples = 500 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options[2] = { options_for(stand_in, 4), options_for(stand_in, 7) };
        struct dlc_loader *loaders[2];

        for (int i = 0; i < 2; i++) {
                options[i].world_size = 2;
                options[i].rank = i;
                loaders[i] = open_loader(&options[i]);
        }
        for (uint64_t step = 0; step < 30; step++) /* one thread, taking turns */
                for (int i = 0; i < 2; i++)
                        check_steps(loaders[i], 0, step, step + 1);
        for (int i = 0; i < 2; i++)
                dlc_close(loaders[i]);
        stand_in_stop(stand_in);
}
END_TEST

static void *run_epochs(void *userdata) {
        struct dlc_loader *loader = open_loader(userdata);

        for (uint64_t epoch = 0; epoch < 20; epoch++)
                check_epoch(loader, epoch);
        dlc_close(loader);
        return NULL;
}

START_TEST(loaders_of_several_threads_are_independent) {
        struct stand_in_manners manners = { .n_samples = 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options[4];
        pthread_t threads[4];

        for (int i = 0; i < 4; i++) {
                options[i] = options_for(stand_in, 3 + i);
                options[i].world_size = 4;
                options[i].rank = i;
                ck_assert_int_eq(pthread_create(&threads[i], NULL, run_epochs, &options[i]), 0);
        }
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_closed_loader_leaves_nothing_behind) {
        struct stand_in_manners manners = { .n_samples = 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        int lowest = dup(0);

        close(lowest);
        for (int i = 0; i < 20; i++) {
                struct dlc_loader *loader = open_loader(&options);

                check_steps(loader, 0, 0, 3);
                dlc_close(loader);
        }
        for (int waited = 0; manners.n_clients > 0 && waited < PATIENCE_MS; waited++)
                usleep(1000);
        ck_assert_uint_eq(manners.n_clients, 0);
        ck_assert_int_eq(dup(0), lowest);
        close(lowest);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(missing_arguments_are_refused) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        const struct dlc_batch *batch;

        ck_assert_int_eq(dlc_open(NULL, NULL), -EINVAL);
        ck_assert_int_eq(dlc_open(&options, NULL), -EINVAL);
        ck_assert_int_eq(dlc_next(NULL, 0, &batch), -EINVAL);
        ck_assert_int_eq(dlc_set_epoch(NULL, 0), -EINVAL);
        ck_assert_int_eq(dlc_fd(NULL), -EINVAL);
        ck_assert_ptr_null(dlc_get_info(NULL));
        ck_assert_uint_eq(dlc_epoch_batches(NULL), 0);
        ck_assert_ptr_null(dlc_dataset_digest(NULL));
        ck_assert_str_eq(dlc_error(NULL), "");
        ck_assert_ptr_null(dlc_sample_error(NULL, NULL, 0));
        dlc_close(NULL);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "opening", other_versions_are_refused_naming_both },
                { "opening", memory_that_could_fault_is_refused },
                { "opening", what_is_left_to_the_caller_is_kept_and_only_who_asks_for_it_gets_it },
                { "opening", operations_are_left_to_who_asks_for_them_and_understands_the_answer },
                { "opening", operations_that_were_not_asked_for_or_make_no_sense_are_refused },
                { "opening", what_cannot_be_left_is_refused },
                { "opening", a_refusal_carries_the_daemons_text_and_code },
                { "opening", opening_waits_for_an_index_and_shows_it },
                { "opening", opening_gives_up_when_it_was_told_to },
                { "opening", two_loaders_in_two_threads_do_not_meet },
                { "opening", loaders_of_several_threads_are_independent },
                { "opening", a_closed_loader_leaves_nothing_behind },
                { "opening", missing_arguments_are_refused },
        };

        return suite_run("client_opening", rows, sizeof(rows) / sizeof(rows[0]));
}
