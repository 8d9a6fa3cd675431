/* The life of a struct dlc_cuda, and what can be asked of it. */
#include "client/cuda/cuda.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(DLC_CUDA_BUS_ID_MAX == BUS_ID_MAX, "a bus id is handed out as it is");

static _Thread_local struct why last_error;

int cuda_report(struct dlc_cuda *cuda, int error) {
        last_error = cuda->why;
        return error;
}

int cuda_refuse(int error, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        why_set_list(&last_error, error, format, arguments);
        va_end(arguments);
        return error;
}

const char *dlc_cuda_last_error(void) {
        return last_error.text;
}

const char *dlc_cuda_error(const struct dlc_cuda *cuda) {
        return cuda ? cuda->why.text : "";
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

/* As the options of a loader: fields that an older program does not have keep their defaults. */
static int cuda_read_options(const struct dlc_cuda_options *options, struct dlc_cuda_options *ret_options) {
        static const struct dlc_cuda_options DEFAULTS = DLC_CUDA_OPTIONS_INIT;

        *ret_options = DEFAULTS;
        if (!options)
                return 0;
        if (options->size < offsetof(struct dlc_cuda_options, allocate) || options->size > sizeof(*options))
                return cuda_refuse(
                        -EINVAL,
                        "options: not initialised, or of a newer library; begin with struct dlc_cuda_options o = "
                        "DLC_CUDA_OPTIONS_INIT");
        memcpy(ret_options, options, options->size);
        if (ret_options->device < -1)
                return cuda_refuse(-EINVAL, "device: %d; must not be negative (-1: the process's own)",
                                   ret_options->device);
        if (ret_options->n_batches < 1 || ret_options->n_batches > (int)CUDA_BATCHES_MAX)
                return cuda_refuse(-EINVAL, "n_batches: %d; 1 to %u are allowed", ret_options->n_batches,
                                   CUDA_BATCHES_MAX);
        return 0;
}

static int cuda_open_inside(struct dlc_cuda *cuda) {
        int r = finish_forms_open(&cuda->forms, &cuda->device, cuda->loader, &cuda->why);

        for (uint32_t i = 0; i < cuda->n_flights && r == 0; i++)
                r = flight_open(&cuda->flights[i], &cuda->device, cuda->loader, &cuda->why);
        if (r == 0)
                r = pinned_open(&cuda->pinned, &cuda->device, cuda->loader, &cuda->why);
        return r;
}

static int open_all(struct dlc_cuda *cuda, int ordinal) {
        int r = device_open(&cuda->device, ordinal, &cuda->why);

        if (r == 0)
                r = device_enter(&cuda->device, &cuda->why);
        if (r < 0)
                return r;
        r = cuda_open_inside(cuda);
        device_leave(&cuda->device);
        if (r == 0 && dlc_get_cursor(cuda->loader, &cuda->epoch, &cuda->position) < 0)
                return why_set(&cuda->why, -ESHUTDOWN, "%s", dlc_last_error());
        return r;
}

int dlc_cuda_open(struct dlc_loader *loader, const struct dlc_cuda_options *options, struct dlc_cuda **ret_cuda) {
        struct dlc_cuda_options read;
        struct dlc_cuda *cuda;
        int r;

        if (!loader || !ret_cuda)
                return cuda_refuse(-EINVAL, "dlc_cuda_open: loader and ret_cuda must not be NULL");
        r = cuda_read_options(options, &read);
        if (r < 0)
                return r;
        cuda = calloc(1, sizeof(*cuda) + ((size_t)read.n_batches + 1) * sizeof(struct flight));
        if (!cuda)
                return cuda_refuse(-ENOMEM, "no memory for a loader");
        cuda->loader = loader;
        cuda->output =
                (struct output_source){ .allocate = read.allocate, .free = read.free, .userdata = read.userdata };
        cuda->n_flights = (uint32_t)read.n_batches + 1;
        r = open_all(cuda, read.device);
        if (r < 0) {
                cuda_report(cuda, r);
                dlc_cuda_close(cuda);
                return r;
        }
        *ret_cuda = cuda;
        return 0;
}

/* ---- closing --------------------------------------------------------------------------------------------------- */

/* After this nothing of ours reads or writes on the device. What the trainer queued may: the driver frees memory only
 * after that. */
static void close_inside(struct dlc_cuda *cuda) {
        const struct device *device = &cuda->device;

        device->driver->stream_synchronize(device->copying);
        device->driver->stream_synchronize(device->working);
        for (uint32_t i = 0; i < cuda->n_flights; i++)
                flight_close(&cuda->flights[i], device);
        finish_forms_close(&cuda->forms, device);
}

void dlc_cuda_close(struct dlc_cuda *cuda) {
        const struct driver *driver;
        struct why unused;
        bool is_here, is_inside;

        if (!cuda)
                return;
        is_here = cuda->device.context && driver_find(&driver, &unused) == 0; /* not in the child of a fork() */
        is_inside = is_here && device_enter(&cuda->device, &unused) == 0;
        if (is_inside) {
                cuda_drop_ahead(cuda);
                close_inside(cuda);
        }
        for (uint32_t i = 0; i < cuda->n_flights; i++) {
                if (is_here)
                        flight_free_outputs(&cuda->flights[i], &cuda->output);
                if (cuda->flights[i].slot)
                        dlc_release(cuda->loader, cuda->flights[i].slot);
                free(cuda->flights[i].host.base);
        }
        if (cuda->taken)
                dlc_release(cuda->loader, cuda->taken);
        pinned_close(&cuda->pinned, &cuda->device, cuda->loader, is_inside);
        if (is_inside)
                device_leave(&cuda->device);
        device_close(&cuda->device);
        free(cuda);
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

int dlc_cuda_get_bus_id(int device, char *ret_bus_id, size_t size) {
        struct device found;
        struct why why;
        int r;

        if (!ret_bus_id || size < BUS_ID_MAX)
                return cuda_refuse(-EINVAL,
                                   "dlc_cuda_get_bus_id: ret_bus_id has room for %zu bytes; DLC_CUDA_BUS_ID_MAX are "
                                   "needed",
                                   ret_bus_id ? size : 0);
        if (device < -1)
                return cuda_refuse(-EINVAL, "device: %d; must not be negative (-1: the process's own)", device);
        r = device_find(&found, device, &why);
        if (r < 0)
                return cuda_refuse(r, "%s", why.text);
        memcpy(ret_bus_id, found.bus_id, BUS_ID_MAX);
        return 0;
}

int dlc_cuda_get_info(struct dlc_cuda *cuda, struct dlc_cuda_info *ret_info, size_t size) {
        struct dlc_cuda_info info;

        if (!cuda || !ret_info)
                return cuda_refuse(-EINVAL, "dlc_cuda_get_info: cuda and ret_info must not be NULL");
        info = (struct dlc_cuda_info){
                .device = cuda->device.ordinal,
                .name = cuda->device.name,
                .bus_id = cuda->device.bus_id,
                .driver_version = cuda->device.driver->version,
                .registered_bytes = cuda->pinned.n_registered,
                .remark = cuda->pinned.refusal.text,
                .n_copied = cuda->n_copied,
                .copied_bytes = cuda->copied_bytes,
                .n_ahead = cuda->n_ahead,
        };
        if (size > sizeof(info))
                memset((uint8_t *)ret_info + sizeof(info), 0, size - sizeof(info));
        memcpy(ret_info, &info, size < sizeof(info) ? size : sizeof(info));
        return 0;
}
