#include "client/cuda/route.h"

#include <errno.h>
#include <string.h>

#include "client/cuda/flight.h"

static uint64_t route_aligned(uint64_t n) {
        return (n + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
}

static bool route_is_ragged(const struct dlc_tensor *tensor) {
        return tensor->places && !tensor->is_whole;
}

static bool stays_on_host(const struct dlc_tensor *tensor) {
        return tensor->dtype == DLC_BYTES || tensor->dtype == DLC_TEXT || tensor->dtype == DLC_TEXTS;
}

/* From the first byte of any sample to the last. */
static void route_ragged(const struct dlc_tensor *tensor, uint32_t n_samples, struct route *route) {
        uint64_t begin = UINT64_MAX, end = 0;

        for (uint32_t i = 0; i < n_samples; i++) {
                const struct dlc_place *place = &tensor->places[i];

                if (place->offset == DLC_ABSENT || place->n_bytes == 0)
                        continue;
                begin = place->offset < begin ? place->offset : begin;
                end = place->offset + place->n_bytes > end ? place->offset + place->n_bytes : end;
        }
        if (end == 0)
                return;
        begin -= begin % DEVICE_ALIGN; /* elements stay aligned; what lies before is of the same slot */
        route->skipped = begin;
        route->from = (const uint8_t *)tensor->data + begin;
        route->n_bytes = end - begin;
}

/* There may be gaps between samples, but not after the last one. */
static void route_dense(const struct dlc_tensor *tensor, struct route *route) {
        uint64_t n = dlc_dtype_bytes(tensor->dtype);

        route->from = tensor->data;
        for (uint32_t i = 0; i < tensor->n_dims; i++) {
                if (tensor->shape[i] <= 0)
                        return;
                n += (uint64_t)(tensor->shape[i] - 1) * (uint64_t)tensor->strides[i];
        }
        route->n_bytes = n;
}

static const struct finish_form *route_form_of(const struct dlc_tensor *tensor, const struct finish_forms *forms) {
        for (uint32_t i = 0; i < forms->n; i++)
                if (strcmp(forms->items[i].form.tensor, tensor->name) == 0)
                        return &forms->items[i];
        return NULL;
}

/* Is it what the form says, uint8 [n, height, width, channels], whose pixels follow one another? */
static bool route_fits(const struct dlc_tensor *tensor, const struct finish_form *form) {
        int64_t n_channels = form->form.n_channels;

        return tensor->dtype == DLC_UINT8 && tensor->n_dims == 4 && !tensor->places && !tensor->extents &&
               tensor->shape[3] == n_channels && tensor->strides[3] == 1 && tensor->strides[2] == n_channels &&
               tensor->strides[1] == tensor->shape[2] * n_channels;
}

static uint32_t passes_of(const struct dlc_left_operations *left) {
        uint32_t n = left->n_operations > 0;

        for (uint32_t i = 0; i < left->n_operations && i < DLC_LEFT_OPERATIONS_MAX; i++)
                n += left->operations[i].kind == DLC_LEFT_CONTRAST;
        return n;
}

/* What is left of each sample. The loader has checked that it lies within the slot. */
static void look_at_operations(const struct dlc_tensor *tensor, const struct finish_form *form, struct route *route) {
        for (int64_t i = 0; i < tensor->shape[0]; i++) {
                struct dlc_left_operations left; /* copied: the memory is shared */
                uint32_t n;

                memcpy(&left, (const uint8_t *)tensor->data + i * tensor->strides[0] + form->form.operations_at,
                       sizeof(left));
                n = passes_of(&left);
                route->n_passes = n > route->n_passes ? n : route->n_passes;
                route->has_flips = route->has_flips || left.flips != 0;
        }
        route->n_bytes = (uint64_t)tensor->shape[0] * (uint64_t)tensor->strides[0]; /* with the last one's */
}

static int route_choose(const struct dlc_tensor *tensor, const struct finish_forms *forms, struct route *route,
                        struct why *why) {
        const struct finish_form *form = route_form_of(tensor, forms);

        route->kind = stays_on_host(tensor) ? ROUTE_HOST : ROUTE_AS_IS;
        route->output_bytes = route->n_bytes;
        if (!form)
                return 0;
        if (!route_fits(tensor, form)) /* handed out as it is, it would be silently wrong */
                return why_set(why, -EPROTO, "the tensor %s of a batch is not the picture that was promised",
                               tensor->name);
        route->kind = ROUTE_FINISH;
        route->form = form;
        route->sample_stride = (uint64_t)tensor->strides[0];
        if (form->form.operations_at > 0)
                look_at_operations(tensor, form, route);
        route->output_bytes = (uint64_t)tensor->shape[0] * (uint64_t)tensor->strides[1] * (uint64_t)tensor->shape[1] *
                              dlc_dtype_bytes(form->form.dtype);
        return 0;
}

int routes_make(const struct dlc_batch *batch, const struct finish_forms *forms, struct routes *ret_routes,
                struct why *why) {
        *ret_routes = (struct routes){ .n = batch->n_tensors };
        for (uint32_t i = 0; i < batch->n_tensors; i++) {
                const struct dlc_tensor *tensor = &batch->tensors[i];
                struct route *route = &ret_routes->items[i];
                int r;

                if (route_is_ragged(tensor))
                        route_ragged(tensor, batch->n_samples, route);
                else
                        route_dense(tensor, route);
                r = route_choose(tensor, forms, route, why);
                if (r < 0)
                        return r;
                if (route->kind == ROUTE_HOST) {
                        route->stage_at = ret_routes->host_bytes;
                        ret_routes->host_bytes += route_aligned(route->n_bytes);
                        continue;
                }
                route->stage_at = ret_routes->stage_bytes;
                route->output_at = ret_routes->output_bytes;
                ret_routes->stage_bytes += route_aligned(route->n_bytes);
                ret_routes->output_bytes += route_aligned(route->output_bytes);
        }
        return 0;
}
