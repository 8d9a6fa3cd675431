/* Batches on a device: besides the calls of the library for GPUs, each call of the driver fails, which is the tests'
 * own (tests/cuda/). The daemon's calls don't. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/include/dlclient-cuda.h"
#include "tests/faults/points.h"
#include "tests/faults/scenarios.h"
#include "tests/faults/scene.h"
#include "tests/support/cuda_driver.h"

#define SIDE     12u
#define CHANNELS 3u
#define BATCH    6u

/* A scene with a device. */
struct device_scene {
        struct scene *scene;
        struct dlc_loader *loader;
        struct dlc_cuda *cuda;
        bool allocates;
        int n_allocated; /* by the caller, and not freed */
        unsigned n_samples, n_failures;
};

/* ---- the driver's calls ---------------------------------------------------------------------------------------- */

#define NAME(name, symbol, needs, since) #name,
static const char *const NAMES[] = { CUDA_CALLS(NAME) };

/* The driver asks before each call. The name is one of ours: the runner reads it where there is no driver. What fails
 * from then on is a context that is lost: nothing is executed in it any more. */
static int fails(const char *name) {
        static const int ERRORS[] = { CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_OUT_OF_MEMORY };
        int error;

        for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
                if (strcmp(NAMES[i], name) == 0) {
                        error = fault_point_below(NAMES[i], ERRORS, 2, __builtin_return_address(0));
                        return error && points->from_then_on ? error | DLT_CUDA_STICKY : error;
                }
        return 0;
}

/* ---- what the trainer does: nothing of it fails ------------------------------------------------------------------ */

static int allocate(void *userdata, const struct dlc_tensor *tensor, size_t n_bytes, void *stream, void **ret_data) {
        struct device_scene *device = userdata;
        uint64_t pointer = 0;

        points_exempt = true;
        if (cuda.cuMemAlloc(&pointer, n_bytes) != CUDA_SUCCESS)
                scene_problem(device->scene, "the trainer gets no memory");
        points_exempt = false;
        device->n_allocated++;
        *ret_data = (void *)(uintptr_t)pointer;
        return 0;
}

static void free_one(struct device_scene *device, const void *data) {
        cuda.cuMemFree((uintptr_t)data);
        device->n_allocated--;
}

static void free_allocated(void *userdata, void *data, void *stream) {
        points_exempt = true;
        free_one(userdata, data);
        points_exempt = false;
}

/* A picture comes as planes, and is known as pixels. */
static void as_pixels(uint8_t *picture) {
        uint8_t planes[CHANNELS * SIDE * SIDE];

        memcpy(planes, picture, sizeof(planes));
        for (uint32_t i = 0; i < SIDE * SIDE; i++)
                for (uint32_t c = 0; c < CHANNELS; c++)
                        picture[i * CHANNELS + c] = planes[c * SIDE * SIDE + i];
}

static void fetch(struct device_scene *device, void *to, const struct dlc_tensor *tensor, uint32_t i, size_t n) {
        if (cuda.cuMemcpyDtoH(to, (uintptr_t)tensor->data + i * (uint64_t)tensor->strides[0], n) != CUDA_SUCCESS)
                scene_problem(device->scene, "a batch cannot be read on the device");
}

/* Copies a batch back and compares it with what a loader without a device gives. */
static void check_batch(struct device_scene *device, const struct dlc_cuda_batch *batch) {
        static const int64_t STRIDES[][1] = { { CHANNELS * SIDE * SIDE }, { sizeof(int64_t) } };
        static uint8_t pictures[BATCH][CHANNELS * SIDE * SIDE];
        static int64_t labels[BATCH];
        struct dlc_tensor tensors[2] = { batch->batch.tensors[0], batch->batch.tensors[1] };
        struct dlc_batch copy = batch->batch;
        int r = cuda.cuStreamSynchronize(NULL);

        if (r == CUDA_ERROR_ILLEGAL_ADDRESS && points_hit()) /* the context is lost, for the trainer too */
                return;
        if (r != CUDA_SUCCESS || copy.n_samples > BATCH || tensors[0].n_dims != 4 || tensors[0].shape[1] != CHANNELS) {
                scene_problem(device->scene, "a batch is not what was asked for");
                return;
        }
        for (uint32_t i = 0; i < copy.n_samples; i++) {
                fetch(device, pictures[i], &tensors[0], i, sizeof(pictures[i]));
                fetch(device, &labels[i], &tensors[1], i, sizeof(labels[i]));
                as_pixels(pictures[i]);
        }
        tensors[0].data = pictures;
        tensors[1].data = labels;
        for (int i = 0; i < 2; i++)
                tensors[i].strides = STRIDES[i];
        copy.tensors = tensors;
        scene_check_batch(device->scene, SCENE_PHOTOS, &copy);
        device->n_samples += copy.n_samples;
}

/* ---- the library's calls ---------------------------------------------------------------------------------------- */

static void failed(struct device_scene *device, const char *what, int r) {
        device->n_failures++;
        scene_check_failure(device->scene, what, r, dlc_cuda_last_error(), false);
}

static bool open_device(struct device_scene *device) {
        struct dlc_cuda_options wish = DLC_CUDA_OPTIONS_INIT;
        struct dlc_options options = scene_options(device->scene, SCENE_PHOTOS);
        char bus_id[DLC_CUDA_BUS_ID_MAX];
        int r;

        points_exempt = false;
        r = dlc_cuda_get_bus_id(0, bus_id, sizeof(bus_id));
        points_exempt = true;
        if (r < 0)
                failed(device, "get_bus_id", r);
        else
                options.near_device = bus_id;
        options.pipeline = "random_resized_crop(12) hflip(0.5) layout(nchw)";
        options.leave_forms = true;
        device->loader = scene_open(device->scene, &options, true);
        if (!device->loader)
                return false;
        if (device->allocates) {
                wish.allocate = allocate;
                wish.free = free_allocated;
                wish.userdata = device;
        }
        points_exempt = false;
        r = dlc_cuda_open(device->loader, &wish, &device->cuda);
        points_exempt = true;
        if (r < 0)
                failed(device, "cuda_open", r);
        return r == 0;
}

static void give_back(struct device_scene *device, const struct dlc_cuda_batch *batch) {
        void *data[2] = { batch->batch.tensors[0].data, batch->batch.tensors[1].data };
        int r;

        points_exempt = false;
        r = dlc_cuda_release(device->cuda, batch, NULL);
        points_exempt = true;
        if (r < 0)
                failed(device, "cuda_release", r);
        for (int i = 0; i < 2 && device->allocates; i++)
                free_one(device, data[i]);
}

/* What is not final is tried again: the trouble is over after a second. */
static bool passes(int r) {
        if (r == -ENOMEM)
                usleep(10000);
        return r == -ENOMEM || r == -EINTR;
}

static int read_epoch(struct device_scene *device) {
        const struct dlc_cuda_batch *batch;
        int r;

        do {
                points_exempt = false;
                r = dlc_cuda_next(device->cuda, 20000, NULL, &batch);
                points_exempt = true;
                if (r < 0)
                        failed(device, "cuda_next", r);
                if (r == 0) {
                        check_batch(device, batch);
                        give_back(device, batch);
                }
        } while (r == 0 || passes(r));
        return r;
}

/* Two epochs, and between them a seek to the second one, when its first batch is on its way. */
static void read_all(struct device_scene *device) {
        uint64_t epoch, position;
        int r = read_epoch(device);

        if (r == DLC_END_OF_EPOCH && device->n_samples != SCENE_SAMPLES)
                scene_problem(device->scene, "%u samples came", device->n_samples);
        if (r != DLC_END_OF_EPOCH)
                return;
        points_exempt = false;
        r = dlc_cuda_seek(device->cuda, 1, 0);
        if (r == 0)
                r = dlc_cuda_get_cursor(device->cuda, &epoch, &position);
        points_exempt = true;
        if (r < 0)
                failed(device, "cuda_seek", r);
        else if (epoch != 1 || position != 0)
                scene_problem(device->scene, "the next epoch begins elsewhere");
        else if (read_epoch(device) == DLC_END_OF_EPOCH && device->n_samples != 2 * SCENE_SAMPLES)
                scene_problem(device->scene, "%u samples came of two epochs", device->n_samples);
}

static void close_device(struct device_scene *device) {
        struct dlt_cuda_counts counts;

        points_exempt = false;
        dlc_cuda_close(device->cuda);
        points_exempt = true;
        dlc_close(device->loader);
        if (device->n_allocated != 0)
                scene_problem(device->scene, "%d pieces of the trainer's memory were not given back",
                              device->n_allocated);
        counts = cuda_driver_counts();
        if (counts.n_violations > 0)
                scene_problem(device->scene, "a rule of the driver was broken: %s", counts.first_violation);
        if (!points_hit() && counts.n_events + counts.n_allocations + counts.n_registrations > 0)
                scene_problem(device->scene, "nothing failed, and something is left on the device");
}

static void run(struct scene *scene, bool allocates) {
        static const char *const SETTINGS[] = { "DLT_CUDA_DELAY_US=200", NULL };
        struct device_scene device = { .scene = scene, .allocates = allocates };

        scene_begin(scene, false);
        cuda_driver_begin_current(SETTINGS);
        cuda.set_trap(fails);
        scene_begin_trouble(scene);
        if (open_device(&device))
                read_all(&device);
        close_device(&device);
        if (device.n_failures == 0 && device.n_samples != 2 * SCENE_SAMPLES)
                scene_problem(scene, "nothing failed, and %u samples came", device.n_samples);
        cuda.set_trap(NULL);
        scene_must_serve(scene);
}

void scenario_cuda(struct scene *scene) {
        run(scene, false);
}

void scenario_cuda_allocate(struct scene *scene) {
        run(scene, true);
}
