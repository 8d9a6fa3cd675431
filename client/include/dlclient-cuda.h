/* dlclient-cuda.h: batches of dataloaderd in the memory of a GPU.
 *
 * A struct dlc_cuda takes the batches of a loader (dlclient.h), copies each to the device while the one before it is
 * worked on, and finishes pictures there: to, normalize and layout at the end of a pipeline are done by a kernel, so
 * that uint8 crosses the link, a half or a quarter of the bytes (leave_forms); and flips and changes of colours before
 * them, which take the daemon's CPU time else (leave_operations). The numbers are the daemon's own, bit for bit.
 *
 *         struct dlc_options o = DLC_OPTIONS_INIT;
 *         o.dataset = "photos"; o.batch_size = 64; o.leave_forms = o.leave_operations = true;
 *         o.pipeline = "random_resized_crop(224) hflip(0.5) to(float16) layout(nchw)";
 *         if (dlc_cuda_get_bus_id(-1, bus_id, sizeof(bus_id)) == 0)
 *                 o.near_device = bus_id;
 *         if (dlc_open(&o, &loader) < 0)
 *                 errx(1, "%s", dlc_last_error());
 *         if (dlc_cuda_open(loader, NULL, &cuda) < 0)
 *                 errx(1, "%s", dlc_cuda_last_error());
 *         while (dlc_cuda_next(cuda, -1, stream, &b) == 0) {
 *                 train<<<..., stream>>>(b->batch.tensors[0].data);
 *                 dlc_cuda_release(cuda, b, stream);
 *         }
 *         dlc_cuda_close(cuda);
 *         dlc_close(loader);
 *
 * WHO WAITS FOR WHOM. `stream` is the stream on which the caller uses a batch: a CUstream or cudaStream_t, NULL for the
 * legacy default stream. The library has two streams of its own.
 *
 *         dlc_cuda_next()      returns when copy and kernel are queued, and does not wait for them. Work that is
 *                              queued on `stream` afterwards runs after them. For work on any other stream, the
 *                              caller makes that stream wait for `stream`, by an event, or calls
 *         dlc_cuda_use()       after which another stream waits for the batch as well, and the batch's memory for it.
 *         dlc_cuda_release()   returns at once; the work of `stream` may still be running. The batch's memory is
 *                              written again only after all that was queued on `stream` before the call. If
 *                              other streams use the batch, name them to dlc_cuda_use(), or make `stream` wait for
 *                              them before the call.
 *         the daemon's slot    is given back when the copy from it has been done, which an event says; never
 *                              earlier, whatever the caller does.
 *
 * `stream` is one of the device's primary context, which the runtime's interface, torch and JAX use; an event cannot be
 * recorded across contexts.
 *
 * So a batch may be kept as long as it is wanted, and nothing has to be synchronised for the library's sake.
 *
 * MEMORY on the device is the library's own, and is used again from batch to batch; or the caller's (`allocate`), who
 * then owns each batch's memory from dlc_cuda_next() on and frees it in the order of `stream`, as caching allocators
 * do.
 *
 * NO DRIVER. Nothing is linked to CUDA: libcuda.so.1 is looked for by dlc_cuda_open(), which returns -ENODEV with a
 * sentence where there is none. The loader works on without a device.
 *
 * ERRORS as in dlclient.h, with the texts of dlc_cuda_error() and dlc_cuda_last_error(); besides
 *         -ENODEV   no driver, one that is too old, or no device
 *         -ENOMEM   no memory on the device
 *         -EIO      a CUDA call failed, perhaps because of earlier work of the caller's. It is final: the context is
 *                   mostly lost. The loader is detached, so that others learn of it; close both.
 *         -ENOBUFS  the caller holds `n_batches` batches
 *
 * THREADS, FORK. As a loader: one thread at a time; only dlc_cuda_use() and dlc_cuda_release() may be called from any
 * thread, for a batch from one at a time. In the child
 * of a fork() every call but dlc_cuda_close() returns -ECHILD, and that one only frees. At a process's end memory that
 * was not closed is left to the driver. */
#ifndef DLCLIENT_CUDA_H
#define DLCLIENT_CUDA_H

#include "dlclient.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dlc_cuda;

/* Memory for one tensor of a batch that has any bytes: `n_bytes` on the device, aligned to 256 bytes. Called from
 * within dlc_cuda_next(), by its thread, with the device's context current; the memory must be usable in the order of
 * `stream`. The tensor's dtype and shape are set, data is not. Returns 0, or a negative errno, which dlc_cuda_next()
 * returns; without memory in *ret_data, or with any other result, that is -ENOMEM. What is in *ret_data then is given
 * back. */
typedef int (*dlc_cuda_allocate_fn)(void *userdata, const struct dlc_tensor *tensor, size_t n_bytes, void *stream,
                                    void **ret_data);

/* Takes back memory that `allocate` gave for a batch that nobody will get, because of a seek, an error or
 * dlc_cuda_close(): it is free in the order of `stream`, the one it was allocated for. From within one of these calls;
 * after -EIO from within dlc_cuda_close(), and the device's context may be lost then. */
typedef void (*dlc_cuda_free_fn)(void *userdata, void *data, void *stream);

/* Begin with DLC_CUDA_OPTIONS_INIT. */
struct dlc_cuda_options {
        size_t size;   /* of this struct, as the caller was compiled; set by DLC_CUDA_OPTIONS_INIT */
        int device;    /* of those that the process sees, from 0. -1 (default): that of the process's place on its node
                        * (LOCAL_RANK, or the variable of MPI or Slurm), else 0 */
        int n_batches; /* how many the caller may hold at once, 1 .. 64. Default 2. Each, and one more, takes memory on
                        * the device, unless `allocate` is set */
        dlc_cuda_allocate_fn allocate; /* NULL (default): memory of the library's own */
        dlc_cuda_free_fn free; /* goes with allocate; NULL: the caller knows what it gave, and frees all of it when it
                                * closes */
        void *userdata;        /* for both */
};

#define DLC_CUDA_OPTIONS_INIT                                                                                          \
        { sizeof(struct dlc_cuda_options), -1, 2, NULL, NULL, NULL }

#define DLC_CUDA_BUS_ID_MAX 17u /* bytes of a PCI bus id, with the NUL */

/* Where a device is, for the option near_device of dlc_open(), so that the daemon takes memory that is near to it:
 * "0000:1b:00.0" in `ret_bus_id`, which has room for `size` bytes, DLC_CUDA_BUS_ID_MAX at least; "" if the driver does
 * not say it. `device` as in the options, -1 too. Needs no loader, and makes no context on the device, but finds and
 * initialises the driver: not before a fork() whose child uses CUDA. Any thread. Returns 0; -ENODEV, -ECHILD, -EIO;
 * -EINVAL: no such device, or too little room. */
DLC_API int dlc_cuda_get_bus_id(int device, char *ret_bus_id, size_t size);

/* Registers the memory of the loader's batches with the driver and makes streams and kernels ready; takes about 0.1 s
 * for each GB of the loader's memory. `options` may be NULL. The loader stays the caller's, must outlive *ret_cuda, and
 * is not to be used with dlc_next(), dlc_set_epoch(), dlc_seek() and dlc_get_cursor() as long: see below. */
DLC_API int dlc_cuda_open(struct dlc_loader *loader, const struct dlc_cuda_options *options,
                          struct dlc_cuda **ret_cuda);

/* Waits until the device has done what was queued with the library's own streams, and frees everything, also memory of
 * batches that the caller still holds, unless it is the caller's (`allocate`). Streams of the caller's may be busy:
 * where the library's wait for them, or memory that is freed is used there, so does the call. Does nothing if it is
 * NULL. */
DLC_API void dlc_cuda_close(struct dlc_cuda *cuda);

/* A batch whose tensors are on the device. */
struct dlc_cuda_batch {
        /* As dlc_next() describes it, except that data points to the device, and that pictures are finished. Samples of
         * a ragged tensor are at data + places[i].offset there. All arrays, such as indices, are on the host, and stay
         * valid until the batch is released. */
        struct dlc_batch batch;
        uint64_t host_tensors; /* bit i: tensor i is bytes or text, and its data points to the host */
};

/* As dlc_next(): 0, DLC_END_OF_EPOCH, or a negative errno. Then it queues the copy of the batch after this one, if that
 * is ready, so that it crosses the link while the caller works on this one. With timeout_ms 0 it waits for nothing, and
 * -EAGAIN may also mean that the device is still copying: an event loop calls it until -EAGAIN, then polls dlc_fd() for
 * a few milliseconds at most, because that tells of the daemon's batches alone. */
DLC_API int dlc_cuda_next(struct dlc_cuda *cuda, int timeout_ms, void *stream, const struct dlc_cuda_batch **ret_batch);

/* Gives a batch back; see WHO WAITS FOR WHOM. Never blocks. Any thread. -EINVAL: it was not handed out, or released
 * before. */
DLC_API int dlc_cuda_release(struct dlc_cuda *cuda, const struct dlc_cuda_batch *batch, void *stream);

/* As dlc_sample_error(), which knows only the loader's own batches: why a sample of a held batch was substituted, or
 * NULL. Valid until the batch is released. Never blocks. */
DLC_API const char *dlc_cuda_sample_error(struct dlc_cuda *cuda, const struct dlc_cuda_batch *batch, uint32_t sample);

/* Makes `stream` wait until the batch is finished, and the batch's memory, when it is released, for all that was queued
 * on `stream` until then: for a stream besides that of dlc_cuda_next(). The stream must exist until the release. Never
 * blocks. Any thread. -EINVAL: the batch is not held; -ENOBUFS: DLC_CUDA_USERS_MAX other streams use it. */
DLC_API int dlc_cuda_use(struct dlc_cuda *cuda, const struct dlc_cuda_batch *batch, void *stream);

#define DLC_CUDA_USERS_MAX 8

/* As the functions of the same names without cuda: a batch that was copied ahead, but not handed out, counts as not
 * taken. */
DLC_API int dlc_cuda_set_epoch(struct dlc_cuda *cuda, uint64_t epoch);
DLC_API int dlc_cuda_seek(struct dlc_cuda *cuda, uint64_t epoch, uint64_t position);
DLC_API int dlc_cuda_get_cursor(struct dlc_cuda *cuda, uint64_t *ret_epoch, uint64_t *ret_position);

struct dlc_cuda_info {
        int device;                /* as `options` count them */
        const char *name;          /* "NVIDIA H200" */
        const char *bus_id;        /* "0000:1b:00.0" */
        int driver_version;        /* 12080: CUDA 12.8 */
        uint64_t registered_bytes; /* of the memory of the batches, now; 0: see `remark` */
        const char *remark;        /* "", or why copies are slower than they could be */
        uint64_t n_copied;         /* batches so far */
        uint64_t copied_bytes;
        uint64_t n_ahead; /* of these, copied before they were asked for */
};

/* Fills in the first `size` bytes (pass sizeof(struct dlc_cuda_info)). Texts are valid until the next call. */
DLC_API int dlc_cuda_get_info(struct dlc_cuda *cuda, struct dlc_cuda_info *ret_info, size_t size);

/* As dlc_error() and dlc_last_error(), of this library's calls. */
DLC_API const char *dlc_cuda_error(const struct dlc_cuda *cuda);
DLC_API const char *dlc_cuda_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
