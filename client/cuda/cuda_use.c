/* Streams that use a batch besides the one that it was taken for. */

#include <errno.h>

#include "client/cuda/cuda.h"

static bool cuda_use_is_known(const struct flight *flight, cu_stream stream) {
        for (uint32_t i = 0; i < flight->n_users; i++)
                if (flight->users[i] == stream)
                        return true;
        return false;
}

static int await_batch(struct dlc_cuda *cuda, const struct flight *flight, cu_stream stream) {
        const struct driver *driver = cuda->device.driver;
        cu_result result;
        struct why why;

        if (device_enter(&cuda->device, &why) < 0)
                return cuda_refuse(-EIO, "%s", why.text);
        result = driver->stream_wait(stream, flight->finished, 0);
        device_leave(&cuda->device);
        if (driver_refuse(driver, result, "waiting for a batch on another stream of the caller's", &why) < 0)
                return cuda_refuse(-EIO, "%s", why.text);
        return 0;
}

int dlc_cuda_use(struct dlc_cuda *cuda, const struct dlc_cuda_batch *batch, void *stream) {
        const struct driver *driver;
        struct flight *flight;
        struct why why;
        bool is_new;
        int r;

        if (!cuda || !batch)
                return cuda_refuse(-EINVAL, "dlc_cuda_use: cuda and batch must not be NULL");
        if (driver_find(&driver, &why) < 0)
                return cuda_refuse(-ECHILD, "%s", why.text);
        flight = cuda_find_flight(cuda, batch);
        if (!flight || atomic_load_explicit(&flight->state, memory_order_acquire) != FLIGHT_HELD)
                return cuda_refuse(-EINVAL,
                                   "dlc_cuda_use: this batch is not held: it was released, or is of another loader");
        is_new = !cuda_use_is_known(flight, stream);
        if (is_new && flight->n_users == DLC_CUDA_USERS_MAX)
                return cuda_refuse(-ENOBUFS,
                                   "dlc_cuda_use: %u other streams use this batch, and no more can be remembered",
                                   flight->n_users);
        r = await_batch(cuda, flight, stream);
        if (r == 0 && is_new)
                flight->users[flight->n_users++] = stream;
        return r;
}
