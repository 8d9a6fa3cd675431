/* cuda/cuda.h: the parts of a struct dlc_cuda, for the files of the library.
 *
 *      cuda.c      opened, closed, asked about      flight.c   one batch's way to the device, and what is queued for it
 *      cuda_next.c      batches taken and given back     route.c    where each tensor of a batch goes
 *      cuda_use.c       other streams that use a batch   cuda_finish.c   the kernels that finish pictures
 *      cuda_place.c     which epoch and position come
 *      device.c    the GPU: context, streams        pinned.c   the ring's memory, registered
 *      driver.c    libcuda.so.1                     kernels/   what runs on the device
 *
 * Everything belongs to the thread that uses the loader, except the states of the flights and what
 * dlc_cuda_release() does with one that is held: that call may come from any thread. */
#pragma once

#include "client/cuda/device.h"
#include "client/cuda/flight.h"
#include "client/cuda/pinned.h"

#define CUDA_BATCHES_MAX 64u

struct dlc_cuda {
        struct dlc_loader *loader;
        struct device device;
        struct pinned pinned;
        struct finish_forms forms;
        struct output_source output;
        struct flight *ahead;          /* queued, comes next; NULL: none is */
        const struct dlc_batch *taken; /* of the loader, but not queued: the device had no memory; NULL: none */
        int pending; /* what the loader returned after the batch that is ahead, not told yet; 0: nothing */
        struct why pending_why;
        int failed;               /* negative errno after which nothing can follow; `why` has its text */
        uint64_t epoch, position; /* place after the last batch that was handed out */
        uint32_t turn;            /* number of seeks so far: batches from before do not count for the place */
        uint64_t n_copied, copied_bytes, n_ahead;
        struct why why;
        uint32_t n_flights;
        struct flight flights[]; /* one more than the caller may hold: that which is ahead */
};

/* Makes the text in cuda->why the last error of the calling thread. Returns `error`. */
int cuda_report(struct dlc_cuda *cuda, int error);

/* Writes and reports one where there is no struct dlc_cuda, or it must not be touched. Returns `error`. */
int cuda_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Called at the start of public function `name`: can it be used here and now? Then the device's context is the current
 * one until device_leave(). */
int cuda_enter(struct dlc_cuda *cuda, const char *name);

/* The flight that a caller's batch is; NULL: it is not of this loader. Any thread. */
struct flight *cuda_find_flight(struct dlc_cuda *cuda, const struct dlc_cuda_batch *batch);

/* Gives up the batch that was copied ahead, and what followed it. Within cuda_enter() and device_leave(). */
void cuda_drop_ahead(struct dlc_cuda *cuda);
