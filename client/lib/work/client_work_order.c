/* Orders of the daemon become the arrays of a sample, of a run of samples, or of a whole batch. */

#include <errno.h>
#include <string.h>

#include "client/lib/work/handle.h"

static void fill_array(const struct work_form *form, uint8_t *slot, uint64_t place, struct dlc_array *array) {
        array->data = slot + form->offset + form->stride * place;
        array->dtype = form->dtype;
        array->n_dims = form->n_dims;
        memcpy(array->shape, form->shape, sizeof(array->shape));
}

static bool fill_input(const struct work_form *form, const Dlp__OrderStep *told, uint8_t *slot, uint64_t place,
                       struct dlc_array *array) {
        uint64_t n_bytes;

        fill_array(form, slot, place, array);
        if (!form->varies)
                return true;
        if (told->n_shape != form->n_dims)
                return false;
        memcpy(array->shape, told->shape, form->n_dims * sizeof(*told->shape));
        return dli_work_product(dlp_dtype_bytes(form->dtype), told->shape, told->n_shape, &n_bytes) &&
               n_bytes <= form->stride;
}

/* Do all samples of the order lie in the slot, and has each what it needs? */
static bool client_work_order_is_sound(const struct dlc_work *work, const Dlp__Order *told) {
        if (told->slot >= work->n_slots || told->place >= work->batch_size || told->n_others >= DLP_RUN_MAX ||
            told->n_others >= work->batch_size - told->place || told->n_samples > work->batch_size ||
            (told->n_samples > 0 && told->n_others > 0))
                return false;
        for (size_t i = 0; i < told->n_steps && i < work->n_steps; i++)
                if ((told->steps[i]->n_seeds != 0 && told->steps[i]->n_seeds != told->n_others) ||
                    (told->n_others > 0 && work->steps[i].output.varies)) /* each sample has sizes of its own */
                        return false;
        return true;
}

static uint64_t client_work_order_seed_of(const Dlp__OrderStep *told, size_t idx_sample) {
        return idx_sample == 0 || told->n_seeds == 0 ? told->seed : told->seeds[idx_sample - 1];
}

/* If it varies it is as large as it may be, unless dlc_work_deliver() says something else. */
static void fill_output(const struct work_form *form, uint8_t *slot, uint64_t place, struct dlc_array *array,
                        int64_t *ret_delivered) {
        fill_array(form, slot, place, array);
        if (!form->varies)
                return;
        memcpy(array->shape, form->most, sizeof(array->shape));
        memcpy(ret_delivered, form->most, sizeof(form->most));
}

static void client_work_order_fill_whole(const struct work_form *form, uint8_t *slot, uint32_t n_samples,
                                         struct dlc_array *array) {
        array->data = slot + form->offset;
        array->dtype = form->dtype;
        array->n_dims = form->n_dims + 1;
        array->shape[0] = n_samples;
        memcpy(array->shape + 1, form->shape, form->n_dims * sizeof(*form->shape));
}

/* Other processes of the rank may write to the shapes, so they are checked as they are used. */
static bool client_work_order_fill_list(const struct work_form *form, uint8_t *slot, uint32_t n_samples,
                                        struct dlc_array *arrays) {
        for (uint32_t i = 0; i < n_samples; i++) {
                uint8_t *sample = slot + form->offset + form->stride * i;
                uint64_t n_bytes;

                arrays[i] = (struct dlc_array){ .data = sample, .dtype = form->dtype, .n_dims = form->n_dims };
                memcpy(arrays[i].shape, sample + form->shape_at, form->n_dims * sizeof(*arrays[i].shape));
                if (!dli_work_product(dlp_dtype_bytes(form->dtype), arrays[i].shape, form->n_dims, &n_bytes) ||
                    n_bytes > form->shape_at)
                        return false;
        }
        return true;
}

/* Step `idx_step` of the rank's is step k of the order. */
static bool fill_step(struct dlc_work *work, uint32_t idx_step, const Dlp__Order *told, uint32_t k) {
        uint8_t *slot = work->payload + work->slots_offset + work->slot_bytes * told->slot;
        const struct work_step *step = &work->steps[idx_step];
        struct dlc_work_step *order = &work->told[k];
        size_t idx = work->idx_sample;

        order->function = step->function;
        order->field = step->field;
        order->parameter = step->parameter;
        order->n_fields = step->n_fields;
        order->seed = client_work_order_seed_of(told->steps[k], idx);
        work->input_strides[k] = step->input.stride;
        work->output_strides[k] = step->output.stride;
        if (told->n_samples == 0) { /* those for samples are the first of the rank's: k is idx_step */
                fill_output(&step->output, slot, told->place + idx, &order->output, work->delivered[k]);
                return fill_input(&step->input, told->steps[k], slot, told->place + idx, &order->input);
        }
        client_work_order_fill_whole(&step->input, slot, told->n_samples, &order->input);
        client_work_order_fill_whole(&step->output, slot, told->n_samples, &order->output);
        work->told_lists[k] = work->lists[idx_step];
        return !step->input.varies ||
               client_work_order_fill_list(&step->input, slot, told->n_samples, work->lists[idx_step]);
}

/* The next sample of the order is the one to work on, or its whole batch. */
int dli_work_fill(struct dlc_work *work, const Dlp__Order *told) {
        size_t idx = work->idx_sample;
        uint32_t k = 0;

        if (!client_work_order_is_sound(work, told))
                return dli_work_damaged(work);
        for (uint32_t i = 0; i < work->n_steps; i++) {
                if (work->steps[i].is_whole != (told->n_samples > 0))
                        continue;
                if (k == told->n_steps || !fill_step(work, i, told, k))
                        return dli_work_damaged(work);
                k++;
        }
        if (k != told->n_steps)
                return dli_work_damaged(work);
        work->order = (struct dlc_order){ .number = told->number + idx,
                                          .epoch = told->epoch,
                                          .sample = idx == 0 ? told->sample : told->others[idx - 1],
                                          .n_steps = k,
                                          .steps = work->told,
                                          .n_samples = told->n_samples };
        if (told->n_samples > 0) {
                work->order.samples = (const int64_t *)(const void *)(work->payload + work->slots_offset +
                                                                      work->slot_bytes * told->slot +
                                                                      work->numbers_offset);
                work->order.lists = work->told_lists;
        }
        return 0;
}

void dli_work_fill_run(struct dlc_work *work, const Dlp__Order *told) {
        uint32_t n = (uint32_t)(told->n_others + 1 - work->idx_sample);

        for (uint32_t k = 0; k < n; k++) {
                work->samples[k] = work->idx_sample + k == 0 ? told->sample : told->others[work->idx_sample + k - 1];
                for (uint32_t i = 0; i < work->order.n_steps; i++)
                        work->seeds[k * work->order.n_steps + i] = client_work_order_seed_of(told->steps[i],
                                                                                             work->idx_sample + k);
        }
        work->run = (struct dlc_run){ .first = &work->order,
                                      .n_samples = n,
                                      .samples = work->samples,
                                      .seeds = work->seeds,
                                      .input_strides = work->input_strides,
                                      .output_strides = work->output_strides,
                                      .begun = (uint64_t *)&work->mark->begun };
}
