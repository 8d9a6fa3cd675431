/* Batches taken, handed out and given back. */

#include <errno.h>

#include "client/cuda/cuda.h"

int cuda_enter(struct dlc_cuda *cuda, const char *name) {
        const struct driver *driver;
        int r;

        if (!cuda)
                return cuda_refuse(-EINVAL, "%s: cuda must not be NULL", name);
        if (cuda->failed < 0)
                return cuda_report(cuda, cuda->failed);
        r = driver_find(&driver, &cuda->why);
        if (r == 0)
                r = device_enter(&cuda->device, &cuda->why);
        return r < 0 ? cuda_report(cuda, r) : 0;
}

/* A CUDA call has failed: the copies that were queued may run or not, nobody knows. The slots are never given back, and
 * the daemon gets its memory back when the connection ends. */
static int cuda_next_fail(struct dlc_cuda *cuda, int error) {
        cuda->failed = error;
        dlc_detach(cuda->loader);
        return error;
}

/* ---- slots ----------------------------------------------------------------------------------------------------- */

/* Gives a slot back if the copy from it has been done. 1: it was, or there is none; 0; -EIO. */
static int cuda_next_settle(struct dlc_cuda *cuda, struct flight *flight, bool wait) {
        int r;

        if (!flight->slot)
                return 1;
        r = flight_is_copied(flight, &cuda->device, wait, &cuda->why);
        if (r <= 0)
                return r < 0 ? cuda_next_fail(cuda, r) : 0;
        dlc_release(cuda->loader, flight->slot);
        flight->slot = NULL;
        return 1;
}

static int cuda_next_settle_all(struct dlc_cuda *cuda, bool wait) {
        int r = 0;

        for (uint32_t i = 0; i < cuda->n_flights && r >= 0; i++)
                r = cuda_next_settle(cuda, &cuda->flights[i], wait);
        return r < 0 ? r : 0;
}

/* May the caller get another one? -ENOBUFS. */
static int check_held(struct dlc_cuda *cuda) {
        uint32_t n_held = 0;

        for (uint32_t i = 0; i < cuda->n_flights; i++)
                n_held += atomic_load_explicit(&cuda->flights[i].state, memory_order_relaxed) >= FLIGHT_HELD;
        if (n_held + 1 < cuda->n_flights)
                return 0;
        return why_set(&cuda->why, -ENOBUFS,
                       "all %u batches are held by the caller: release one first, or open with more n_batches",
                       cuda->n_flights - 1);
}

/* One that can be queued: the caller and the ring are done with it. `wait`: if need be until the copy from its last
 * slot has been done. -ENOBUFS: the caller has all of them; -EAGAIN: not now. */
static int find_idle(struct dlc_cuda *cuda, bool wait, struct flight **ret_flight) {
        struct flight *idle = NULL;
        int r;

        for (uint32_t i = 0; i < cuda->n_flights; i++) {
                struct flight *flight = &cuda->flights[i];

                /* Acquire: what dlc_cuda_release() recorded is to be seen. */
                if (atomic_load_explicit(&flight->state, memory_order_acquire) == FLIGHT_IDLE &&
                    (!idle || (idle->slot && !flight->slot)))
                        idle = flight;
        }
        if (!idle)
                return -ENOBUFS;
        r = cuda_next_settle(cuda, idle, wait);
        if (r <= 0)
                return r < 0 ? r : -EAGAIN;
        *ret_flight = idle;
        return 0;
}

/* ---- taking ---------------------------------------------------------------------------------------------------- */

static int cuda_next_from_loader(struct dlc_cuda *cuda, int r) {
        return r < 0 && r != -EAGAIN ? why_set(&cuda->why, r, "%s", dlc_last_error()) : r;
}

static int cuda_next_take(struct dlc_cuda *cuda, int timeout_ms) {
        int r = dlc_next(cuda->loader, timeout_ms, &cuda->taken);

        if (r != -ENOBUFS || timeout_ms == 0)
                return cuda_next_from_loader(cuda, r == -ENOBUFS ? -EAGAIN : r);
        /* The ring is small, and copies from all of its slots are under way. */
        r = cuda_next_settle_all(cuda, true);
        return r < 0 ? r : cuda_next_from_loader(cuda, dlc_next(cuda->loader, timeout_ms, &cuda->taken));
}

/* The daemon came back with other memory. Batches from the old one have been copied, or are waited for. */
static int follow_memory(struct dlc_cuda *cuda) {
        int r;

        if (pinned_is_current(&cuda->pinned, cuda->loader))
                return 0;
        r = cuda_next_settle_all(cuda, true);
        if (r < 0)
                return r;
        pinned_close(&cuda->pinned, &cuda->device, cuda->loader, true);
        return pinned_open(&cuda->pinned, &cuda->device, cuda->loader, &cuda->why);
}

static int cuda_next_queue(struct dlc_cuda *cuda, struct flight *flight, cu_stream stream) {
        struct output_source source = cuda->output;
        uint64_t n_bytes;
        int r;

        source.stream = stream;
        r = flight_queue(flight, &cuda->device, &cuda->forms, &source, cuda->taken, &n_bytes, &cuda->why);
        if (r == -EIO)
                return cuda_next_fail(cuda, r);
        if (r < 0)
                return r;
        cuda->taken = NULL;
        cuda->n_copied++;
        cuda->copied_bytes += n_bytes;
        atomic_store_explicit(&flight->state, FLIGHT_AHEAD, memory_order_relaxed);
        cuda->ahead = flight;
        return 0;
}

/* Takes the next batch and queues its copy. 0 with cuda->ahead, DLC_END_OF_EPOCH, or a negative errno. With a timeout
 * of 0 it waits for nothing, except for copies from the memory of a daemon that has ended. */
static int go_ahead(struct dlc_cuda *cuda, int timeout_ms, cu_stream stream) {
        struct flight *flight = NULL;
        int r = find_idle(cuda, timeout_ms != 0, &flight);

        if (r == 0 && !cuda->taken)
                r = cuda_next_take(cuda, timeout_ms);
        if (r == 0)
                r = follow_memory(cuda);
        return r != 0 ? r : cuda_next_queue(cuda, flight, stream);
}

/* The batch after this one, if it is there. What else the loader said comes with the next call. */
static void cuda_next_look_ahead(struct dlc_cuda *cuda, cu_stream stream) {
        int r = go_ahead(cuda, 0, stream);

        if (r == 0) {
                cuda->n_ahead++;
        } else if (r == DLC_END_OF_EPOCH || (r < 0 && r != -EAGAIN && r != -ENOBUFS && r != -ENOMEM && r != -EINTR)) {
                cuda->pending = r;
                cuda->pending_why = cuda->why;
        }
}

static int tell_pending(struct dlc_cuda *cuda) {
        int r = cuda->pending;

        cuda->pending = 0;
        cuda->why = cuda->pending_why;
        return r;
}

static int cuda_next_next(struct dlc_cuda *cuda, int timeout_ms, cu_stream stream,
                          const struct dlc_cuda_batch **ret_batch) {
        struct flight *flight;
        int r = cuda_next_settle_all(cuda, false);

        if (r == 0)
                r = check_held(cuda);
        if (r == 0 && !cuda->ahead)
                r = cuda->pending ? tell_pending(cuda) : go_ahead(cuda, timeout_ms, stream);
        if (r != 0)
                return r;
        flight = cuda->ahead;
        r = driver_refuse(cuda->device.driver, cuda->device.driver->stream_wait(stream, flight->finished, 0),
                          "waiting for a batch on the caller's stream", &cuda->why);
        if (r < 0)
                return cuda_next_fail(cuda, -EIO);
        cuda->ahead = NULL;
        flight->epoch = cuda->epoch;
        flight->position = cuda->position;
        flight->turn = cuda->turn;
        if (!flight->batch.batch.is_replay) {
                cuda->epoch = flight->batch.batch.epoch;
                cuda->position = flight->batch.batch.position;
        }
        flight_hand_out(flight);
        atomic_store_explicit(&flight->state, FLIGHT_HELD, memory_order_release);
        *ret_batch = &flight->batch;
        cuda_next_look_ahead(cuda, stream);
        return 0;
}

int dlc_cuda_next(struct dlc_cuda *cuda, int timeout_ms, void *stream, const struct dlc_cuda_batch **ret_batch) {
        int r;

        if (!ret_batch)
                return cuda_refuse(-EINVAL, "dlc_cuda_next: ret_batch must not be NULL");
        r = cuda_enter(cuda, "dlc_cuda_next");
        if (r < 0)
                return r;
        r = cuda_next_next(cuda, timeout_ms, stream, ret_batch);
        device_leave(&cuda->device);
        if (r == DLC_END_OF_EPOCH) {
                cuda->epoch++;
                cuda->position = 0;
        }
        return r < 0 && r != -EAGAIN ? cuda_report(cuda, r) : r;
}

/* ---- giving back ----------------------------------------------------------------------------------------------- */

struct flight *cuda_find_flight(struct dlc_cuda *cuda, const struct dlc_cuda_batch *batch) {
        for (uint32_t i = 0; i < cuda->n_flights; i++)
                if (&cuda->flights[i].batch == batch)
                        return &cuda->flights[i];
        return NULL;
}

const char *dlc_cuda_sample_error(struct dlc_cuda *cuda, const struct dlc_cuda_batch *batch, uint32_t sample) {
        const struct flight *flight = cuda ? cuda_find_flight(cuda, batch) : NULL;
        const struct driver *driver;
        struct why unused;

        if (!flight || driver_find(&driver, &unused) < 0 ||
            atomic_load_explicit(&flight->state, memory_order_acquire) != FLIGHT_HELD ||
            sample >= flight->batch.batch.n_samples)
                return NULL;
        return flight->errors ? flight->errors[sample] : NULL;
}

/* Its memory may be written again after what `stream` has been asked for. Memory of the caller's is not written. */
static int mark_freed(struct dlc_cuda *cuda, struct flight *flight, cu_stream stream) {
        const struct driver *driver = cuda->device.driver;
        cu_result result;
        struct why why;

        if (cuda->output.allocate) {
                flight->n_users = 0;
                return 0;
        }
        if (device_enter(&cuda->device, &why) < 0)
                return cuda_refuse(-EIO, "%s", why.text);
        result = flight_await_users(flight, &cuda->device, stream);
        if (result == CU_SUCCESS)
                result = driver->event_record(flight->freed, stream);
        device_leave(&cuda->device);
        if (driver_refuse(driver, result, "marking the end of a batch on the caller's stream", &why) < 0)
                return cuda_refuse(-EIO, "%s", why.text);
        flight->is_freed_recorded = true;
        return 0;
}

int dlc_cuda_release(struct dlc_cuda *cuda, const struct dlc_cuda_batch *batch, void *stream) {
        const struct driver *driver;
        struct flight *flight;
        struct why why;
        uint32_t held = FLIGHT_HELD;
        int r;

        if (!cuda || !batch)
                return cuda_refuse(-EINVAL, "dlc_cuda_release: cuda and batch must not be NULL");
        if (driver_find(&driver, &why) < 0)
                return cuda_refuse(-ECHILD, "%s", why.text);
        flight = cuda_find_flight(cuda, batch);
        if (!flight)
                return cuda_refuse(-EINVAL, "dlc_cuda_release: this batch is not of this loader");
        /* Only one caller gets it from here on; it becomes idle when its end is marked, or never, if that failed. */
        if (!atomic_compare_exchange_strong(&flight->state, &held, FLIGHT_LEAVING))
                return cuda_refuse(-EINVAL, "dlc_cuda_release: this batch was released before");
        r = mark_freed(cuda, flight, stream);
        if (r == 0)
                atomic_store_explicit(&flight->state, FLIGHT_IDLE, memory_order_release);
        return r;
}

void cuda_drop_ahead(struct dlc_cuda *cuda) {
        if (cuda->taken)
                dlc_release(cuda->loader, cuda->taken);
        if (cuda->ahead) {
                flight_give_up(cuda->ahead, &cuda->device, &cuda->output);
                atomic_store_explicit(&cuda->ahead->state, FLIGHT_IDLE, memory_order_relaxed);
        }
        cuda->taken = NULL;
        cuda->ahead = NULL;
        cuda->pending = 0;
}
