#include "client/cuda/device.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/kernels/color.h"
#include "client/cuda/kernels/finish.h"
#include "client/cuda/kernels/images.h"

/* The place of a process on its node, by who started it. */
static const char *const PLACES[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID" };

/* A launcher that gives each process one device numbers them all 0. */
static int own_ordinal(int n_devices) {
        for (size_t i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
                const char *text = getenv(PLACES[i]);

                if (text && *text)
                        return n_devices == 1 ? 0 : atoi(text);
        }
        return 0;
}

static int device_choose(struct device *device, int ordinal, struct why *why) {
        const struct driver *driver = device->driver;
        int n_devices = 0, n_multiprocessors = 0, r;
        char bus_id[32];

        r = driver_refuse(driver, driver->device_count(&n_devices), "counting the devices", why);
        if (r < 0)
                return r;
        device->ordinal = ordinal >= 0 ? ordinal : own_ordinal(n_devices);
        if (device->ordinal < 0 || device->ordinal >= n_devices)
                return why_set(
                        why, -EINVAL,
                        "device %d does not exist: this process sees %d, from 0 on (CUDA_VISIBLE_DEVICES says which)",
                        device->ordinal, n_devices);
        r = driver_refuse(driver, driver->device_get(&device->handle, device->ordinal), "opening the device", why);
        if (r < 0)
                return r;
        if (driver->device_name(device->name, sizeof(device->name), device->handle) != CU_SUCCESS)
                strcpy(device->name, "a GPU");
        r = driver_refuse(driver,
                          driver->device_attribute(&n_multiprocessors, CU_ATTRIBUTE_MULTIPROCESSORS, device->handle),
                          "looking at the device", why);
        device->n_multiprocessors = (uint32_t)n_multiprocessors;
        if (driver->device_bus_id(bus_id, sizeof(bus_id), device->handle) != CU_SUCCESS ||
            !bus_id_read(bus_id, device->bus_id)) /* it comes in capitals */
                device->bus_id[0] = '\0';
        return r;
}

int device_find(struct device *device, int ordinal, struct why *why) {
        int r;

        *device = (struct device){ 0 };
        r = driver_find(&device->driver, why);
        return r < 0 ? r : device_choose(device, ordinal, why);
}

/* The fatbin has code for the usual devices. PTX, which the driver compiles, is for those that came later, and for
 * drivers that are older than the toolkit that made the fatbin. */
static int load_kernels(struct device *device, struct why *why) {
        const struct driver *driver = device->driver;
        cu_result result = driver->module_load(&device->module, dlk_fatbin);
        int r;

        assert(dlk_n_finish_names <= DEVICE_KERNELS_MAX);
        if (result != CU_SUCCESS)
                result = driver->module_load(&device->module, dlk_ptx);
        if (result != CU_SUCCESS)
                device->module = NULL;
        r = driver_refuse(driver, result, "loading the kernels", why);
        /* All at once: a function that is loaded at its first use may synchronise, and breaks a graph's capture. */
        for (uint32_t i = 0; i < dlk_n_finish_names && r == 0; i++)
                r = driver_refuse(driver,
                                  driver->module_function(&device->finish[i], device->module, dlk_finish_names[i]),
                                  "finding a kernel", why);
        if (r == 0)
                r = driver_refuse(driver, driver->module_function(&device->color, device->module, dlk_color_name),
                                  "finding a kernel", why);
        return r;
}

static int device_open_inside(struct device *device, struct why *why) {
        const struct driver *driver = device->driver;
        int r = driver_refuse(driver, driver->stream_create(&device->copying, CU_STREAM_NON_BLOCKING),
                              "making a stream", why);

        if (r == 0)
                r = driver_refuse(driver, driver->stream_create(&device->working, CU_STREAM_NON_BLOCKING),
                                  "making a stream", why);
        return r < 0 ? r : load_kernels(device, why);
}

int device_open(struct device *device, int ordinal, struct why *why) {
        int r = device_find(device, ordinal, why);

        if (r == 0)
                r = driver_refuse(device->driver, device->driver->context_retain(&device->context, device->handle),
                                  "opening the device", why);
        if (r < 0) {
                device->context = NULL;
                return r;
        }
        r = device_enter(device, why);
        if (r == 0) {
                r = device_open_inside(device, why);
                device_leave(device);
        }
        if (r < 0)
                device_close(device);
        return r;
}

void device_close(struct device *device) {
        const struct driver *driver = device->driver, *here;
        struct why unused;

        if (!device->context || driver_find(&here, &unused) < 0)
                return;
        if (device_enter(device, &unused) == 0) {
                cu_stream streams[] = { device->copying, device->working };

                for (size_t i = 0; i < 2; i++)
                        if (streams[i]) {
                                driver->stream_synchronize(streams[i]);
                                driver->stream_destroy(streams[i]);
                        }
                if (device->module)
                        driver->module_unload(device->module);
                device_leave(device);
        }
        driver->context_release(device->handle);
        device->context = NULL;
}

int device_enter(const struct device *device, struct why *why) {
        return driver_refuse(device->driver, device->driver->context_push(device->context), "making the device current",
                             why);
}

void device_leave(const struct device *device) {
        cu_context context;

        device->driver->context_pop(&context);
}
