#include "tests/support/client.h"

#include <check.h>
#include <string.h>
#include <time.h>

uint64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct dlc_options options_for(const struct stand_in *stand_in, int batch_size) {
        struct dlc_options options = DLC_OPTIONS_INIT;

        options.dataset = "numbers";
        options.socket = stand_in_path(stand_in);
        options.batch_size = batch_size;
        options.job = "test";
        options.rank = 0;
        options.world_size = 1;
        options.on_restart = "raise";
        return options;
}

struct dlc_loader *open_loader(const struct dlc_options *options) {
        struct dlc_loader *loader = NULL;
        int r = dlc_open(options, &loader);

        ck_assert_msg(r == 0, "dlc_open: %d %s", r, dlc_last_error());
        return loader;
}

void check_refused(const struct dlc_options *options, int error, const char *part) {
        struct dlc_loader *loader = (struct dlc_loader *)&loader;
        int r = dlc_open(options, &loader);

        ck_assert_msg(r == error, "%d (%s), not %d", r, dlc_last_error(), error);
        ck_assert_ptr_eq(loader, &loader);
        ck_assert_msg(strstr(dlc_last_error(), part) != NULL, "\"%s\" is not in \"%s\"", part, dlc_last_error());
}

void check_batch_from(struct dlc_loader *loader, const struct dlc_batch *batch, uint64_t epoch, uint64_t base,
                      uint64_t step) {
        const struct dlc_info *info = dlc_get_info(loader);
        const struct dlc_tensor *image = &batch->tensors[0], *label = &batch->tensors[1];

        ck_assert_uint_eq(batch->epoch, epoch);
        ck_assert_uint_eq(batch->step, step);
        ck_assert_uint_eq(batch->n_tensors, 2);
        ck_assert_str_eq(image->name, "image");
        ck_assert_str_eq(label->name, "label");
        ck_assert_uint_eq(label->dtype, DLC_INT64);
        ck_assert_int_eq(image->shape[0], batch->n_samples);
        ck_assert_uint_eq((uintptr_t)image->data % 256, 0);

        for (uint32_t i = 0; i < batch->n_samples; i++) {
                int64_t index = stand_in_index(info->dataset_samples, info->world_size, info->rank, base,
                                               step * info->batch_size + i);
                const uint8_t *pixels = (const uint8_t *)image->data + (int64_t)i * image->strides[0];

                ck_assert_int_eq(batch->indices[i], index);
                ck_assert_int_eq(((const int64_t *)label->data)[i], stand_in_label(index, epoch));
                for (uint32_t k = 0; k < STAND_IN_PIXELS; k++)
                        ck_assert_uint_eq(pixels[k], stand_in_pixel(index, epoch, k));
        }
}

void check_batch(struct dlc_loader *loader, const struct dlc_batch *batch, uint64_t epoch, uint64_t step) {
        check_batch_from(loader, batch, epoch, 0, step);
}

const struct dlc_batch *take(struct dlc_loader *loader) {
        const struct dlc_batch *batch = NULL;
        int r = dlc_next(loader, PATIENCE_MS, &batch);

        ck_assert_msg(r == 0, "dlc_next: %d %s", r, dlc_error(loader));
        return batch;
}

void check_steps_from(struct dlc_loader *loader, uint64_t epoch, uint64_t base, uint64_t first, uint64_t end) {
        for (uint64_t step = first; step < end; step++) {
                const struct dlc_batch *batch = take(loader);

                check_batch_from(loader, batch, epoch, base, step);
                ck_assert_int_eq(dlc_release(loader, batch), 0);
        }
}

void check_steps(struct dlc_loader *loader, uint64_t epoch, uint64_t first, uint64_t end) {
        check_steps_from(loader, epoch, 0, first, end);
}

void check_end(struct dlc_loader *loader) {
        const struct dlc_batch *batch = (const void *)&batch;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), DLC_END_OF_EPOCH);
        ck_assert_ptr_eq(batch, &batch); /* untouched */
}

void check_epoch(struct dlc_loader *loader, uint64_t epoch) {
        check_steps(loader, epoch, 0, dlc_epoch_batches(loader));
        check_end(loader);
}
