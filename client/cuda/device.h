/* cuda/device.h: one GPU as a loader uses it: its context, two streams and the kernels.
 *
 * The context is the device's primary one, which the runtime, torch and JAX use as well. Each entry of the library
 * makes it current for its own time only, so that the caller's context stays as it was.
 *
 * Two streams, so that the next batch can cross the link while a kernel waits for memory that the trainer still uses:
 * `copying` has copies to the device alone, `working` what is done with them there. Both are non-blocking: work of the
 * legacy default stream does not wait for them, nor they for it. */
#pragma once

#include "client/cuda/driver.h"
#include "proto/base/bus_id.h"

#define DEVICE_NAME_MAX    128u
#define DEVICE_KERNELS_MAX 32u

struct device {
        const struct driver *driver;
        cu_device handle;
        cu_context context; /* NULL: not open */
        int ordinal;
        cu_stream copying, working;
        cu_module module;
        cu_function finish[DEVICE_KERNELS_MAX]; /* as dlk_finish_names has them */
        cu_function color;
        uint32_t n_multiprocessors;
        char name[DEVICE_NAME_MAX];
        char bus_id[BUS_ID_MAX]; /* "0000:1b:00.0"; "": the driver does not say */
};

/* Chooses device `ordinal` and asks who it is, as device_open() does, but does not open it: no context is made. Errors
 * as there. */
int device_find(struct device *device, int ordinal, struct why *why);

/* Opens device `ordinal` of those that the process sees; -1: that of this process's place on its node (LOCAL_RANK, or
 * the variable of MPI or Slurm), else 0. -ENODEV, -ECHILD: see driver_find(); -EINVAL: no such device; -ENOMEM; -EIO.
 */
int device_open(struct device *device, int ordinal, struct why *why);

/* Waits until the device has done what was asked of it, then closes. Takes what was never opened; in the child of a
 * fork() it does nothing. */
void device_close(struct device *device);

/* Between these two the device's context is the thread's current one. Errors as driver_refuse(); the second needs no
 * call if the first failed. */
int device_enter(const struct device *device, struct why *why);
void device_leave(const struct device *device);
