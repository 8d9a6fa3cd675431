/* What is handed out: which batches, in which order, to the byte; what is held, and what goes back. And what
 * becomes of descriptions that make no sense. */

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"
#include "tests/support/client.h"
#include "tests/support/suite.h"

/* ---- batches -------------------------------------------------------------------------------------------------------
 */

START_TEST(a_rank_gets_its_samples_in_order_and_to_the_byte) {
        struct stand_in_manners manners = { .n_samples = 103 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 8);
        struct dlc_loader *loader;

        options.world_size = 3;
        options.rank = 1;
        loader = open_loader(&options);
        ck_assert_uint_eq(dlc_dataset_samples(loader), 103);
        ck_assert_uint_eq(dlc_epoch_samples(loader), 35); /* ceil(103 / 3) */
        ck_assert_uint_eq(dlc_epoch_batches(loader), 5);
        ck_assert_str_eq(dlc_dataset_digest(loader), "c0ffee");
        ck_assert_str_eq(dlc_get_info(loader)->pipeline, "raw()");
        ck_assert_str_eq(dlc_get_info(loader)->job, "test");
        ck_assert_uint_eq((uintptr_t)dlc_get_info(loader)->memory_base % DLP_SLOT_ALIGN, 0);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
                ck_assert_int_eq(dlc_set_epoch(loader, epoch), 0);
                check_epoch(loader, epoch);
        }
        ck_assert_uint_eq(manners.n_seeks, 0); /* what comes next anyway costs nothing */
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(without_set_epoch_the_next_epoch_follows) {
        struct stand_in_manners manners = { .n_samples = 10 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader;

        options.first_epoch = 7;
        loader = open_loader(&options);
        check_epoch(loader, 7);
        check_epoch(loader, 8);
        check_epoch(loader, 9);
        ck_assert_uint_eq(manners.n_seeks, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_rank_without_samples_gets_ends_only) {
        struct stand_in_manners manners = { .n_samples = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader;

        options.world_size = 8;
        options.rank = 5;
        options.partition = "exact";
        loader = open_loader(&options);
        ck_assert_uint_eq(dlc_epoch_batches(loader), 0);
        for (int i = 0; i < 3; i++)
                check_end(loader);
        ck_assert_int_eq(dlc_set_epoch(loader, 77), 0);
        check_end(loader);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_last_batch_is_short_and_drop_last_leaves_it_out) {
        struct stand_in_manners manners = { .n_samples = 10 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        check_steps(loader, 0, 0, 2);
        batch = take(loader);
        ck_assert_uint_eq(batch->n_samples, 2);
        ck_assert_int_eq(batch->tensors[0].shape[0], 2);
        check_batch(loader, batch, 0, 2);
        dlc_close(loader); /* with a batch held */

        options.drop_last = true;
        loader = open_loader(&options);
        ck_assert_uint_eq(dlc_epoch_batches(loader), 2);
        check_epoch(loader, 0);
        check_epoch(loader, 1);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(substitutes_are_told_with_their_reason) {
        struct stand_in_manners manners = { .n_samples = 21, .substitute_each = 5 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 7);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch = take(loader);

        ck_assert_uint_eq(batch->n_substituted, 2); /* 0 and 5 of 0..6 */
        ck_assert_ptr_nonnull(batch->substitutes);
        for (uint32_t i = 0; i < 7; i++) {
                ck_assert_int_eq(batch->indices[i], i);
                ck_assert_int_eq(batch->substitutes[i], i % 5 == 0 ? (int)i + 1 : -1);
                ck_assert_int_eq(batch->served[i], i % 5 == 0 ? (int)i + 1 : (int)i); /* what lies there */
                if (i % 5 != 0)
                        ck_assert_ptr_null(dlc_sample_error(loader, batch, i));
        }
        ck_assert_str_eq(dlc_sample_error(loader, batch, 0), "sample 0 is damaged");
        ck_assert_str_eq(dlc_sample_error(loader, batch, 5), "sample 5 is damaged");
        ck_assert_ptr_null(dlc_sample_error(loader, batch, 7));
        ck_assert_int_eq(dlc_release(loader, batch), 0);
        ck_assert_ptr_null(dlc_sample_error(loader, batch, 0));
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(ragged_samples_lie_where_their_places_say) {
        struct stand_in_manners manners = { .n_samples = 30, .ragged = true };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 30);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch = take(loader);
        const struct dlc_tensor *image = &batch->tensors[0];

        ck_assert_uint_eq(image->dtype, DLC_BYTES);
        ck_assert_int_eq(image->shape[1], -1);
        ck_assert_ptr_null(batch->tensors[1].places);
        for (uint32_t i = 0; i < 30; i++) {
                const uint8_t *bytes = (const uint8_t *)image->data + image->places[i].offset;

                ck_assert_uint_eq(image->places[i].n_bytes, i % (STAND_IN_PIXELS + 1));
                for (uint32_t k = 0; k < image->places[i].n_bytes; k++)
                        ck_assert_uint_eq(bytes[k], stand_in_pixel(i, 0, k));
        }
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- holding -------------------------------------------------------------------------------------------------------
 */

START_TEST(held_batches_stay_and_go_back_in_any_order) {
        enum {
                DEPTH = 5
        };
        struct stand_in_manners manners = { .n_samples = 400, .n_slots = DEPTH };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *held[DEPTH - 1];
        uint64_t steps[DEPTH - 1];
        unsigned seed = 1;

        ck_assert_uint_eq(dlc_get_info(loader)->n_slots, DEPTH);
        for (uint64_t i = 0; i < DEPTH - 1; i++) {
                held[i] = take(loader);
                steps[i] = i;
        }
        for (uint64_t step = DEPTH - 1; step < dlc_epoch_batches(loader); step++) {
                size_t victim = (size_t)rand_r(&seed) % (DEPTH - 1);

                for (size_t i = 0; i < DEPTH - 1; i++)
                        check_batch(loader, held[i], 0, steps[i]);
                ck_assert_int_eq(dlc_release(loader, held[victim]), 0);
                held[victim] = take(loader);
                steps[victim] = step;
        }
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_full_ring_is_said_and_not_waited_for) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *first = take(loader), *second = take(loader), *third;

        ck_assert_int_eq(dlc_next(loader, -1, &third), -ENOBUFS);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "all 2 slots are held"));
        ck_assert_str_eq(dlc_last_error(), dlc_error(loader));
        ck_assert_int_eq(dlc_release(loader, second), 0);
        third = take(loader);
        check_batch(loader, third, 0, 2);
        check_batch(loader, first, 0, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(what_was_not_handed_out_is_not_taken_back) {
        struct stand_in_manners manners = { .n_samples = 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options), *other;
        const struct dlc_batch *batch = take(loader);
        struct dlc_batch copy = *batch;

        options.job = "other";
        other = open_loader(&options);
        ck_assert_int_eq(dlc_release(other, batch), -EINVAL);
        ck_assert_int_eq(dlc_release(loader, &copy), -EINVAL);
        ck_assert_int_eq(dlc_release(loader, (const struct dlc_batch *)((const char *)batch + 8)), -EINVAL);
        ck_assert_int_eq(dlc_release(loader, NULL), -EINVAL);
        ck_assert_int_eq(dlc_release(NULL, batch), -EINVAL);
        ck_assert_int_eq(dlc_release(loader, batch), 0);
        ck_assert_int_eq(dlc_release(loader, batch), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "released before"));
        ck_assert_str_eq(dlc_error(loader), ""); /* left to the thread that uses the loader */
        check_steps(loader, 0, 1, 50);
        dlc_close(other);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

struct releaser {
        struct dlc_loader *loader;
        const struct dlc_batch *batch;
};

static void *release_later(void *userdata) {
        struct releaser *releaser = userdata;

        usleep(30000);
        return (void *)(intptr_t)dlc_release(releaser->loader, releaser->batch);
}

START_TEST(another_thread_may_release_while_one_waits) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 3, .hold = false };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);

        for (uint64_t step = 0; step < 20; step += 2) {
                struct releaser releaser = { loader, take(loader) };
                const struct dlc_batch *second = take(loader);
                pthread_t thread;
                void *r;

                check_batch(loader, releaser.batch, 0, step);
                ck_assert_int_eq(pthread_create(&thread, NULL, release_later, &releaser), 0);
                check_batch(loader, second, 0, step + 1);
                ck_assert_int_eq(dlc_release(loader, second), 0);
                pthread_join(thread, &r);
                ck_assert_ptr_null(r);
        }
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- damage --------------------------------------------------------------------------------------------------------
 */

START_TEST(a_failed_job_stays_failed) {
        struct stand_in_manners manners = { .n_samples = 100, .fail_at = 3 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        check_steps(loader, 0, 0, 3);
        for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EBADMSG);
                ck_assert_str_eq(dlc_error(loader), "photos: dog/7.jpg is truncated");
        }
        ck_assert_int_eq(dlc_set_epoch(loader, 1), -EBADMSG);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static void spoil_sequence(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->sequence += 1;
}
static void spoil_step(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->step += 1;
}
static void spoil_epoch(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->epoch += 1;
}
static void spoil_n_samples(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->n_samples = control->batch_size + 1;
}
static void spoil_no_samples(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->n_samples = 0;
}
static void spoil_n_tensors(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->n_tensors = DLP_TENSORS_MAX + 1;
}
static void spoil_n_dims(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].n_dims = DLP_DIMS_MAX + 1;
}
static void spoil_dtype(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[1].dtype = DLP_N_DTYPES;
}
static void spoil_name(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        memset(record->tensors[0].name, 'x', sizeof(record->tensors[0].name));
}
static void spoil_offset(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[1].offset = control->slot_bytes - 8;
}
static void spoil_far_offset(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[1].offset = UINT64_MAX - 8;
}
static void spoil_strides(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].strides[1] = INT64_MAX;
}
static void spoil_negative_stride(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].strides[0] = -8;
}
static void spoil_shape(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].shape[2] = INT64_MAX;
}
static void spoil_batch_dimension(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].shape[0] += 1;
}
static void spoil_layout(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].layout = 7;
}
static void spoil_ragged(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].layout = DLP_RAGGED; /* but this ring has no places */
}
static void spoil_idx_places(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        spoil_ragged(control, record, idx_slot);
        record->tensors[0].idx_places = UINT32_MAX;
}
static void spoil_errors(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->n_errors = record->n_samples + 1;
}

static void (*const SPOILERS[])(struct dlp_control *, struct dlp_slot_record *, uint32_t) = {
        spoil_idx_places, spoil_sequence,        spoil_step,    spoil_epoch,           spoil_n_samples,
        spoil_no_samples, spoil_n_tensors,       spoil_n_dims,  spoil_dtype,           spoil_name,
        spoil_offset,     spoil_far_offset,      spoil_strides, spoil_shape,           spoil_layout,
        spoil_ragged,     spoil_batch_dimension, spoil_errors,  spoil_negative_stride,
};

START_TEST(a_damaged_record_is_an_error_and_not_a_stray_pointer) {
        struct stand_in_manners manners = { .n_samples = 100, .spoil = SPOILERS[_i] };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch = NULL;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EPROTO);
        ck_assert_ptr_null(batch);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "damaged"));
        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EPROTO);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_slot_number_out_of_range_is_an_error) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 3, .false_slot = _i ? 3 : UINT32_MAX };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EPROTO);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "the slot of batch 0"));
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static void spoil_place(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        dlp_places(control, idx_slot, 0)[1].n_bytes = control->slot_bytes;
}
static void spoil_place_offset(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        dlp_places(control, idx_slot, 0)[0] = (struct dlp_place){ .offset = UINT64_MAX, .n_bytes = 1 };
}

START_TEST(a_damaged_place_is_an_error) {
        struct stand_in_manners manners = { .n_samples = 100,
                                            .ragged = true,
                                            .spoil = _i ? spoil_place : spoil_place_offset };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EPROTO);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* The images as rows of 12 bytes of which some are real: a stand-in with places has room for extents. */
static void make_padded(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        struct dlp_tensor_record *tensor = &record->tensors[0];

        tensor->dtype = DLP_DTYPE_UINT8;
        tensor->layout = DLP_PADDED;
        tensor->padded_dim = tensor->n_padded_dims = tensor->pads_left = 1;
        tensor->shape[1] = 12;
        tensor->strides[0] = STAND_IN_ROW;
        for (uint32_t i = 0; i < record->n_samples; i++)
                ((struct dlp_extent *)(void *)dlp_places(control, idx_slot, 0))[i] =
                        (struct dlp_extent){ { i == 0 ? DLP_PLACE_ABSENT : i, 1 } };
}

START_TEST(a_padded_tensor_says_how_much_of_each_sample_is_real) {
        struct stand_in_manners manners = { .n_samples = 100, .ragged = true, .spoil = make_padded };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), 0);
        ck_assert_ptr_null(batch->tensors[0].places);
        ck_assert_ptr_null(batch->tensors[1].extents);
        ck_assert_uint_eq(batch->tensors[0].padded_dim, 1);
        ck_assert_uint_eq(batch->tensors[0].n_padded_dims, 1);
        ck_assert_uint_eq(batch->tensors[0].pads_left, 1);
        ck_assert_uint_eq(batch->tensors[0].extents[0].n[0], DLC_ABSENT);
        ck_assert_uint_eq(batch->tensors[0].extents[3].n[0], 3);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static void spoil_extent(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        make_padded(control, record, idx_slot);
        dlp_places(control, idx_slot, 0)[3].offset = 13;
}
static void spoil_padded_dim(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        make_padded(control, record, idx_slot);
        record->tensors[0].padded_dim = 2; /* after the last one */
        record->tensors[0].shape[2] = 100;
}
static void spoil_padded_batch(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        make_padded(control, record, idx_slot);
        record->tensors[0].padded_dim = 0;
}
static void spoil_n_padded(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        make_padded(control, record, idx_slot);
        record->tensors[0].n_padded_dims = 2; /* there is one */
        record->tensors[0].shape[2] = 100;
}
static void spoil_none_padded(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        make_padded(control, record, idx_slot);
        record->tensors[0].n_padded_dims = 0;
}
static void spoil_side(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        make_padded(control, record, idx_slot);
        record->tensors[0].pads_left = 2;
}
static void spoil_padded_places(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        make_padded(control, record, idx_slot);
        record->tensors[0].idx_places = 1;
}
static void spoil_padded_stride(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        make_padded(control, record, idx_slot);
        record->tensors[0].strides[1] = INT64_MAX / 4;
}

static void (*const PADDED_SPOILERS[])(struct dlp_control *, struct dlp_slot_record *, uint32_t) = {
        spoil_extent,      spoil_padded_dim, spoil_padded_batch,  spoil_n_padded,
        spoil_none_padded, spoil_side,       spoil_padded_places, spoil_padded_stride,
};

START_TEST(a_damaged_padding_is_an_error) {
        struct stand_in_manners manners = { .n_samples = 100, .ragged = true, .spoil = PADDED_SPOILERS[_i] };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EPROTO);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "batches", a_padded_tensor_says_how_much_of_each_sample_is_real },
                { "damage", a_damaged_padding_is_an_error, sizeof(PADDED_SPOILERS) / sizeof(PADDED_SPOILERS[0]) },
                { "batches", a_rank_gets_its_samples_in_order_and_to_the_byte },
                { "batches", without_set_epoch_the_next_epoch_follows },
                { "batches", a_rank_without_samples_gets_ends_only },
                { "batches", a_last_batch_is_short_and_drop_last_leaves_it_out },
                { "batches", substitutes_are_told_with_their_reason },
                { "batches", ragged_samples_lie_where_their_places_say },
                { "holding", held_batches_stay_and_go_back_in_any_order },
                { "holding", a_full_ring_is_said_and_not_waited_for },
                { "holding", what_was_not_handed_out_is_not_taken_back },
                { "holding", another_thread_may_release_while_one_waits },
                { "damage", a_failed_job_stays_failed },
                { "damage", a_damaged_record_is_an_error_and_not_a_stray_pointer,
                  sizeof(SPOILERS) / sizeof(SPOILERS[0]) },
                { "damage", a_slot_number_out_of_range_is_an_error, 2 },
                { "damage", a_damaged_place_is_an_error, 2 },
        };

        return suite_run("client_batches", rows, sizeof(rows) / sizeof(rows[0]));
}
