/* cuda/flight.h: a batch on its way from a slot of the ring to the device.
 *
 *      slot in the ring --copying--> stage --working--> output, which the trainer gets
 *
 *   copying  copies the slot's tensors to the stage, as they are, and records `copied`: the slot is free after it
 *   working  waits for `copied`, and until the trainer's stream is done with the output (`freed`, or `allocated` if
 *            the output is the caller's); finishes pictures, moves all else; records `finished`
 *
 * The stage is used again when working has read it: copying waits for the last `finished`. So nothing on the host waits
 * for anything, and a batch crosses the link while the trainer's stream is still busy with memory that it will get.
 *
 * All calls are made within device_enter(), by the thread that uses the loader. */
#pragma once

#include <stdatomic.h>

#include "client/cuda/device.h"
#include "client/include/dlclient-cuda.h"
#include "proto/layout.h"
#include "proto/limits.h"

enum flight_state {
        FLIGHT_IDLE,
        FLIGHT_AHEAD,   /* queued, not handed out yet */
        FLIGHT_HELD,    /* the caller has it */
        FLIGHT_LEAVING, /* is being released; stays so if that fails, because its memory cannot be used again then */
};

/* Memory on the device that only grows. */
struct device_memory {
        cu_pointer base; /* 0: none */
        uint64_t bytes;
};

/* The same on the host. */
struct host_memory {
        uint8_t *base;
        size_t bytes;
};

/* A form that is left to us, and its table on the device. */
struct finish_form {
        struct dlc_left_form form;
        cu_pointer table;
};

struct finish_forms {
        struct finish_form items[DLP_LEFT_FORMS_MAX];
        uint32_t n;
};

/* Of the caller: who allocates outputs. */
struct output_source {
        dlc_cuda_allocate_fn allocate; /* NULL: the flight's own memory */
        dlc_cuda_free_fn free;         /* NULL: the caller frees all of it in the end */
        void *userdata;
        cu_stream stream;
};

struct flight {
        struct dlc_cuda_batch batch;  /* first: a pointer to it is a pointer to its flight */
        _Atomic uint32_t state;       /* enum flight_state; any thread: dlc_cuda_release() */
        struct dlc_loader *loader;    /* whose batches it takes */
        const struct dlc_batch *slot; /* of the ring, not given back yet; NULL: it is */
        uint64_t epoch, position;     /* place before this batch, */
        uint32_t turn;                /* and how many seeks there were before it */
        cu_event copied, finished, freed, allocated, used;
        bool is_freed_recorded, is_finished_recorded;
        cu_stream stream;                    /* for which the outputs were allocated, */
        void *outputs[DLP_TENSORS_MAX];      /* if they are the caller's, until handed out; NULL: there is none */
        cu_stream users[DLC_CUDA_USERS_MAX]; /* streams of dlc_cuda_use() */
        uint32_t n_users;
        struct device_memory stage, output;
        struct host_memory host;
        const char **errors; /* why samples were substituted, in `host`; NULL: none was */
        struct dlc_tensor tensors[DLP_TENSORS_MAX];
        int64_t shapes[DLP_TENSORS_MAX][DLP_DIMS_MAX], strides[DLP_TENSORS_MAX][DLP_DIMS_MAX];
};

int flight_open(struct flight *flight, const struct device *device, struct dlc_loader *loader, struct why *why);

/* The device has finished with it. */
void flight_close(struct flight *flight, const struct device *device);

/* Queues all of it, for an idle flight whose slot was given back. On success the flight has the slot: it is free when
 * flight_is_copied(). -ENOMEM: nothing was queued, and the slot is still the caller's; also what `source` returned.
 * -EIO: part of it may have been queued: the slot must not be given back. */
int flight_queue(struct flight *flight, const struct device *device, const struct finish_forms *forms,
                 const struct output_source *source, const struct dlc_batch *slot, uint64_t *ret_copied_bytes,
                 struct why *why);

/* The batch is handed out: memory of the caller's is the caller's again. */
void flight_hand_out(struct flight *flight);

/* Makes `stream` wait for what the other streams that use the batch were asked for; they are forgotten. */
cu_result flight_await_users(struct flight *flight, const struct device *device, cu_stream stream);

/* The batch that is queued will not be handed out: memory of the caller's goes back. */
void flight_give_up(struct flight *flight, const struct device *device, const struct output_source *source);

/* The same for one that could not be queued to its end, when nothing writes to that memory any more. */
void flight_free_outputs(struct flight *flight, const struct output_source *source);

/* Has the copy from the slot been done? 1, 0, or -EIO. `wait`: waits for it. */
int flight_is_copied(const struct flight *flight, const struct device *device, bool wait, struct why *why);

/* Makes the tables of the loader's left forms ready on the device, and frees them. */
int finish_forms_open(struct finish_forms *forms, const struct device *device, const struct dlc_loader *loader,
                      struct why *why);
void finish_forms_close(struct finish_forms *forms, const struct device *device);
