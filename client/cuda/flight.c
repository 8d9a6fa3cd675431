#include "client/cuda/flight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/cuda_finish.h"
#include "client/cuda/route.h"

/* Device memory grows by this, so that batches of varying size seldom make it grow. */
#define DEVICE_GRAIN (1ull << 20)

int flight_open(struct flight *flight, const struct device *device, struct dlc_loader *loader, struct why *why) {
        cu_event *events[] = { &flight->copied, &flight->finished, &flight->freed, &flight->allocated, &flight->used };
        int r = 0;

        flight->loader = loader;
        for (size_t i = 0; i < sizeof(events) / sizeof(events[0]) && r == 0; i++)
                r = driver_refuse(device->driver, device->driver->event_create(events[i], CU_EVENT_DISABLE_TIMING),
                                  "making an event", why);
        return r;
}

void flight_close(struct flight *flight, const struct device *device) {
        cu_event events[] = { flight->copied, flight->finished, flight->freed, flight->allocated, flight->used };

        /* Memory waits for what the trainer's streams still do with it. An event that is still to come on one of them
         * does not: the driver frees it when it has come, and nobody asks for it any more. */
        if (flight->output.base)
                device->driver->release(flight->output.base);
        if (flight->stage.base)
                device->driver->release(flight->stage.base);
        for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
                if (events[i])
                        device->driver->event_destroy(events[i]);
        flight->stage = flight->output = (struct device_memory){ 0 };
        flight->copied = flight->finished = flight->freed = flight->allocated = flight->used = NULL;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* What it held is lost. The driver frees memory only after all work with it. */
static int device_reserve(struct device_memory *memory, const struct device *device, uint64_t n_bytes,
                          struct why *why) {
        uint64_t wanted = (n_bytes + DEVICE_GRAIN - 1) / DEVICE_GRAIN * DEVICE_GRAIN;
        struct device_memory larger = { .bytes = wanted };
        char doing[80];
        int r;

        if (n_bytes <= memory->bytes)
                return 0;
        if (memory->base)
                device->driver->release(memory->base);
        *memory = (struct device_memory){ 0 };
        snprintf(doing, sizeof(doing), "%llu MiB of the device's memory for a batch",
                 (unsigned long long)(wanted >> 20));
        r = driver_refuse(device->driver, device->driver->allocate(&larger.base, wanted), doing, why);
        if (r == 0)
                *memory = larger;
        return r;
}

static int host_reserve(struct host_memory *memory, size_t n_bytes, struct why *why) {
        uint8_t *larger;

        if (n_bytes <= memory->bytes)
                return 0;
        larger = realloc(memory->base, n_bytes);
        if (!larger)
                return why_set(why, -ENOMEM, "no memory for a batch");
        *memory = (struct host_memory){ larger, n_bytes };
        return 0;
}

/* ---- what the caller gets of the host -------------------------------------------------------------------------- */

/* Carves pieces out of the flight's memory on the host. */
struct carver {
        uint8_t *at;
};

static void *flight_keep(struct carver *carver, const void *from, size_t n_bytes) {
        void *kept = carver->at;

        if (!from)
                return NULL;
        memcpy(kept, from, n_bytes);
        carver->at += (n_bytes + 7) / 8 * 8;
        return kept;
}

/* A pointer for each sample, then the texts. A good batch has neither. */
static size_t errors_bytes(const struct dlc_batch *slot) {
        return slot->substitutes ? slot->n_samples * sizeof(char *) + DLP_SLOT_ERRORS_MAX * DLP_SLOT_ERROR_BYTES : 0;
}

static void keep_errors(struct flight *flight, const struct dlc_batch *slot, struct carver *carver) {
        uint32_t n_kept = 0;

        flight->errors = slot->substitutes ? (const char **)carver->at : NULL;
        if (!flight->errors)
                return;
        carver->at += slot->n_samples * sizeof(char *);
        for (uint32_t i = 0; i < slot->n_samples; i++) {
                const char *text = slot->substitutes[i] < 0 ? NULL : dlc_sample_error(flight->loader, slot, i);
                size_t n_bytes;

                flight->errors[i] = NULL;
                if (!text || n_kept++ >= DLP_SLOT_ERRORS_MAX)
                        continue;
                n_bytes = strnlen(text, DLP_SLOT_ERROR_BYTES - 1);
                memcpy(carver->at, text, n_bytes);
                carver->at[n_bytes] = '\0';
                flight->errors[i] = (const char *)carver->at;
                carver->at += DLP_SLOT_ERROR_BYTES;
        }
}

static size_t flight_kept_bytes(const struct dlc_batch *slot, const struct routes *routes) {
        size_t n = slot->n_samples, n_bytes = routes->host_bytes + 3 * n * sizeof(int64_t) + errors_bytes(slot);

        for (uint32_t i = 0; i < slot->n_tensors; i++) {
                n_bytes += slot->tensors[i].places ? n * sizeof(struct dlc_place) : 0;
                n_bytes += slot->tensors[i].extents ? n * sizeof(struct dlc_extent) : 0;
                n_bytes += DLP_TENSOR_NAME_MAX;
        }
        return n_bytes;
}

/* The slot's own arrays are gone when the slot is given back, long before the trainer is done with the batch. */
static void keep_arrays(struct flight *flight, const struct dlc_batch *slot, const struct routes *routes) {
        struct carver carver = { flight->host.base + routes->host_bytes };
        struct dlc_batch *batch = &flight->batch.batch;
        size_t n = slot->n_samples;

        *batch = *slot;
        batch->tensors = flight->tensors;
        batch->indices = flight_keep(&carver, slot->indices, n * sizeof(int64_t));
        batch->substitutes = flight_keep(&carver, slot->substitutes, n * sizeof(int64_t));
        batch->served = flight_keep(&carver, slot->served, n * sizeof(int64_t));
        keep_errors(flight, slot, &carver);
        for (uint32_t i = 0; i < slot->n_tensors; i++) {
                struct dlc_tensor *tensor = &flight->tensors[i];

                *tensor = slot->tensors[i];
                tensor->name = flight_keep(&carver, tensor->name, strlen(tensor->name) + 1);
                tensor->places = flight_keep(&carver, tensor->places, n * sizeof(struct dlc_place));
                tensor->extents = flight_keep(&carver, tensor->extents, n * sizeof(struct dlc_extent));
                memcpy(flight->shapes[i], tensor->shape, tensor->n_dims * sizeof(int64_t));
                memcpy(flight->strides[i], tensor->strides, tensor->n_dims * sizeof(int64_t));
                tensor->shape = flight->shapes[i];
                tensor->strides = flight->strides[i];
                tensor->data = NULL;
        }
}

/* [n, h, w, c] of bytes becomes what the form says, without gaps. */
static void describe_finished(struct dlc_tensor *tensor, const struct dlc_left_form *form, int64_t *shape,
                              int64_t *strides) {
        int64_t n_element = (int64_t)dlc_dtype_bytes(form->dtype);

        tensor->dtype = form->dtype;
        if (form->channels_first) {
                shape[3] = shape[2];
                shape[2] = shape[1];
                shape[1] = form->n_channels;
        }
        for (uint32_t i = tensor->n_dims; i-- > 0;)
                strides[i] = i + 1 == tensor->n_dims ? n_element : strides[i + 1] * shape[i + 1];
}

static int flight_describe(struct flight *flight, const struct dlc_batch *slot, const struct routes *routes,
                           struct why *why) {
        int r = host_reserve(&flight->host, flight_kept_bytes(slot, routes), why);

        if (r < 0)
                return r;
        keep_arrays(flight, slot, routes);
        flight->batch.host_tensors = 0;
        for (uint32_t i = 0; i < routes->n; i++) {
                const struct route *route = &routes->items[i];
                struct dlc_tensor *tensor = &flight->tensors[i];

                if (route->kind == ROUTE_FINISH)
                        describe_finished(tensor, &route->form->form, flight->shapes[i], flight->strides[i]);
                if (route->kind != ROUTE_HOST)
                        continue;
                flight->batch.host_tensors |= 1ull << i;
                if (route->n_bytes > 0)
                        memcpy(flight->host.base + route->stage_at, route->from, route->n_bytes);
                tensor->data = flight->host.base + route->stage_at - route->skipped;
        }
        return 0;
}

/* ---- the output ------------------------------------------------------------------------------------------------ */

static int ask_for_output(struct flight *flight, const struct routes *routes, const struct output_source *source) {
        for (uint32_t i = 0; i < routes->n; i++) {
                const struct route *route = &routes->items[i];
                int r;

                if (route->kind == ROUTE_HOST || route->output_bytes == 0)
                        continue;
                r = source->allocate(source->userdata, &flight->tensors[i], route->output_bytes, source->stream,
                                     &flight->outputs[i]);
                if (r != 0 || !flight->outputs[i])
                        return r < 0 ? r : -ENOMEM;
                flight->tensors[i].data = flight->outputs[i];
        }
        return 0;
}

void flight_hand_out(struct flight *flight) {
        memset(flight->outputs, 0, sizeof(flight->outputs));
}

void flight_free_outputs(struct flight *flight, const struct output_source *source) {
        for (uint32_t i = 0; i < DLP_TENSORS_MAX; i++) {
                if (flight->outputs[i] && source->free)
                        source->free(source->userdata, flight->outputs[i], flight->stream);
                flight->outputs[i] = NULL;
        }
}

void flight_give_up(struct flight *flight, const struct device *device, const struct output_source *source) {
        if (!source->allocate)
                return;
        device->driver->stream_wait(flight->stream, flight->finished, 0); /* what is queued may still write to it */
        flight_free_outputs(flight, source);
}

static int find_output(struct flight *flight, const struct device *device, const struct routes *routes,
                       const struct output_source *source, struct why *why) {
        int r;

        if (source->allocate) {
                flight->stream = source->stream;
                r = ask_for_output(flight, routes, source);
                if (r == 0)
                        return 0;
                flight_free_outputs(flight, source);
                return why_set(why, r, "no memory on the device for a batch: the caller's allocate() returned %d", r);
        }
        r = device_reserve(&flight->output, device, routes->output_bytes, why);
        for (uint32_t i = 0; i < routes->n && r == 0; i++)
                if (routes->items[i].kind != ROUTE_HOST)
                        flight->tensors[i].data = (void *)(uintptr_t)(flight->output.base + routes->items[i].output_at);
        return r;
}

/* A wait is for the event as it was recorded last, so one event does for all. */
cu_result flight_await_users(struct flight *flight, const struct device *device, cu_stream stream) {
        const struct driver *driver = device->driver;
        cu_result result = CU_SUCCESS;

        for (uint32_t i = 0; i < flight->n_users && result == CU_SUCCESS; i++) {
                result = driver->event_record(flight->used, flight->users[i]);
                if (result == CU_SUCCESS)
                        result = driver->stream_wait(stream, flight->used, 0);
        }
        flight->n_users = 0;
        return result;
}

/* ---- queueing -------------------------------------------------------------------------------------------------- */

static int queue_copies(struct flight *flight, const struct device *device, const struct routes *routes,
                        struct why *why) {
        const struct driver *driver = device->driver;
        cu_result result = CU_SUCCESS;

        if (flight->is_finished_recorded)
                result = driver->stream_wait(device->copying, flight->finished, 0);
        for (uint32_t i = 0; i < routes->n && result == CU_SUCCESS; i++) {
                const struct route *route = &routes->items[i];

                if (route->kind != ROUTE_HOST && route->n_bytes > 0)
                        result = driver->copy_in(flight->stage.base + route->stage_at, route->from, route->n_bytes,
                                                 device->copying);
        }
        if (result == CU_SUCCESS)
                result = driver->event_record(flight->copied, device->copying);
        return driver_refuse(driver, result, "copying a batch to the device", why);
}

/* The output may be written when the trainer's stream is done with what was there before. */
static cu_result wait_for_output(struct flight *flight, const struct device *device,
                                 const struct output_source *source) {
        const struct driver *driver = device->driver;
        cu_event before = source->allocate ? flight->allocated : flight->freed;
        cu_result result = CU_SUCCESS;

        if (source->allocate)
                result = driver->event_record(flight->allocated, source->stream);
        else if (!flight->is_freed_recorded)
                return CU_SUCCESS;
        return result == CU_SUCCESS ? driver->stream_wait(device->working, before, 0) : result;
}

static int queue_work(struct flight *flight, const struct device *device, const struct routes *routes,
                      const struct output_source *source, struct why *why) {
        const struct driver *driver = device->driver;
        cu_result result = driver->stream_wait(device->working, flight->copied, 0);

        if (result == CU_SUCCESS)
                result = wait_for_output(flight, device, source);
        for (uint32_t i = 0; i < routes->n && result == CU_SUCCESS; i++) {
                const struct route *route = &routes->items[i];
                cu_pointer from = flight->stage.base + route->stage_at;
                struct dlc_tensor *tensor = &flight->tensors[i];

                if (route->kind == ROUTE_FINISH)
                        result = finish_launch(device, route, from, tensor);
                else if (route->kind == ROUTE_AS_IS && route->n_bytes > 0)
                        result = driver->copy_over((cu_pointer)(uintptr_t)tensor->data, from, route->n_bytes,
                                                   device->working);
                if (route->kind == ROUTE_AS_IS)
                        tensor->data = (uint8_t *)tensor->data - route->skipped;
        }
        if (result == CU_SUCCESS)
                result = driver->event_record(flight->finished, device->working);
        flight->is_finished_recorded = true;
        return driver_refuse(driver, result, "finishing a batch on the device", why);
}

/* What the driver says of memory while work is queued is final: the first part of the work is under way. */
static int final(int r) {
        return r == 0 ? 0 : -EIO;
}

int flight_queue(struct flight *flight, const struct device *device, const struct finish_forms *forms,
                 const struct output_source *source, const struct dlc_batch *slot, uint64_t *ret_copied_bytes,
                 struct why *why) {
        struct routes routes;
        int r = routes_make(slot, forms, &routes, why);

        if (r == 0)
                r = device_reserve(&flight->stage, device, routes.stage_bytes, why);
        if (r == 0)
                r = flight_describe(flight, slot, &routes, why);
        if (r == 0)
                r = find_output(flight, device, &routes, source, why);
        if (r < 0)
                return r;
        r = queue_copies(flight, device, &routes, why);
        if (r == 0)
                r = queue_work(flight, device, &routes, source, why);
        if (r < 0)
                return final(r);
        flight->slot = slot;
        *ret_copied_bytes = routes.stage_bytes;
        return 0;
}

int flight_is_copied(const struct flight *flight, const struct device *device, bool wait, struct why *why) {
        const struct driver *driver = device->driver;
        cu_result result = wait ? driver->event_synchronize(flight->copied) : driver->event_query(flight->copied);
        int r;

        if (result == CU_NOT_READY)
                return 0;
        r = driver_refuse(driver, result, "copying a batch to the device", why);
        return r < 0 ? -EIO : 1;
}
