/* dlclient.h: finished batches from dataloaderd, in the memory of the program that trains.
 *
 * A loader is one rank's share of one dataset. The daemon reads, decodes and augments; the loader hands out pointers
 * into memory that both share. Nothing is copied and nothing is started in your process: no thread, no signal handler;
 * the library never prints, never exits and never raises SIGPIPE. The one process that it may start is the user's
 * private daemon, for a dataset that is named by its path: then this process has a child for a tenth of a second.
 *
 *         struct dlc_loader *loader;
 *         struct dlc_options o = DLC_OPTIONS_INIT;
 *         o.dataset = "photos"; o.batch_size = 64; o.pipeline = "random_resized_crop(224) hflip(0.5)";
 *         if (dlc_open(&o, &loader) < 0)
 *                 errx(1, "%s", dlc_last_error());
 *         for (int epoch = 0; epoch < 2; epoch++) {
 *                 const struct dlc_batch *b;
 *                 dlc_set_epoch(loader, epoch);
 *                 while (dlc_next(loader, -1, &b) == 0) {
 *                         ...
 *                         dlc_release(loader, b);
 *                 }
 *         }
 *         dlc_close(loader);
 *
 * ERRORS. Functions that return int return 0, a positive documented outcome, or a negative errno; outputs are written
 * only if the result is 0. dlc_error() and dlc_last_error() return a text that names the problem and says what to do:
 *         -EINVAL           an argument or option; the text names it and what is allowed
 *         -ECONNREFUSED     no daemon can be reached at the socket (not running, another path, no permission), or a
 *                           private one could not be started
 *         -ECONNRESET       the daemon ended and did not come back in time, or closed the connection (the text gives
 *                           its reason)
 *         -EPROTONOSUPPORT  the versions of library and daemon are incompatible; the text names both
 *         -EPROTO           what the daemon sent or wrote makes no sense
 *         -EAGAIN           nothing is ready and timeout_ms was 0
 *         -ETIMEDOUT        the time has passed
 *         -EINTR            a signal came while waiting; call again to wait on
 *         -ENOBUFS          all slots are held by the caller: release a batch first
 *         -EBADMSG          a sample could not be read or decoded and on_error is "fail": the job has ended
 *         -ENOTRECOVERABLE  more samples are damaged than max_errors allows: the job has ended
 *         -ESTALE           the dataset changed while the daemon was away
 *         -ESHUTDOWN        the loader was detached
 *         -ECHILD           the loader was opened before a fork(): only its parent can use it
 *         -ENOMEM           no memory
 *
 * dlc_open() also passes on the daemon's refusals: -ENOENT (no such dataset), -EADDRINUSE (the rank is taken), ...
 *
 * THREADS. A loader belongs to one thread at a time; different loaders are independent. Only dlc_release() may be
 * called from any thread at any time, also while another thread waits in dlc_next().
 *
 * FORK. The child of a fork() cannot use the parent's loaders: each call but dlc_close() returns -ECHILD, and the
 * batches' memory is not mapped. dlc_close() in the child frees its copy and leaves the parent's loader as it is.
 *
 * COMPATIBILITY. Within libdlclient.so.0 structs grow only at their end. */
#ifndef DLCLIENT_H
#define DLCLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLC_API __attribute__((visibility("default")))

/* A number that is not known yet: of a stream, how many samples and batches it has, until it has ended. */
#define DLC_UNKNOWN UINT64_MAX

/* dlc_next(): all batches of the epoch have been handed out. */
#define DLC_END_OF_EPOCH 1

struct dlc_loader;

/* ---- opening ------------------------------------------------------------------------------------------------- */

/* Called while dlc_open() waits for something that takes long, and while dlc_next() waits for a dataset that cannot be
 * read (see dlc_hold()) or for the order of an epoch; at most once a second, from within that call. `text` is a
 * sentence such as "dataset photos: its index is being built, 120 k files so far", valid during the call. */
typedef void (*dlc_progress_fn)(void *userdata, const char *text);

/* What a call waits for, in numbers: for a bar of one's own. All texts are valid during the callback. */
struct dlc_progress {
        const char *dataset;
        const char *phase; /* "indexing", "staging: transferring", "making the order"; "": only `text` is known */
        const char *unit;  /* of done and total: "B" for bytes, "files", "samples"; "": nothing was counted yet */
        const char *text;  /* all of it as a sentence */
        uint64_t done;
        uint64_t total;      /* 0: not known. It may change while it is found out on the way */
        double seconds;      /* since this work began */
        double per_second;   /* `done` grows so much a second; 0: not known, or it stands still */
        double seconds_left; /* below 0: nobody knows */
};

/* Called while dlc_open() waits for an index or a staging, while dlc_next() and dlc_await_length() wait for the order
 * of an epoch that is being made, and while dlc_next() waits for an index after the daemon's return: ten times a second
 * at most, from within that call. No function of the loader may be called from it. */
typedef void (*dlc_wait_fn)(void *userdata, const struct dlc_progress *progress);

/* Writes the line that dlctl and Python show, without a newline, for a terminal of n_columns:
 *
 *         photos: indexing ████████▌░░░░░░░░░░░  42 %  12.3 GiB of 29.0 GiB  1.1 GiB/s  15 s left
 *
 * The name may be any text: what a terminal cannot show becomes '?', and if it is too long its middle is left out.
 * `utf8`: the terminal shows UTF-8. 2048 bytes hold every line; a smaller `size` cuts it. Any thread. Returns 0, or
 * -EINVAL. */
DLC_API int dlc_progress_line(const struct dlc_progress *progress, unsigned n_columns, bool utf8, char *buffer,
                              size_t size);

/* Numbers that a sampler needs, such as weights: see the option sampler. */
struct dlc_column {
        const char *name;
        uint32_t dtype;     /* enum dlc_dtype: bool, an integer, float32 or float64 */
        const void *values; /* n_values elements, one after the other; copied by dlc_open() */
        uint64_t n_values;  /* as many as the dataset has samples; indices of a subset may be any number */
};

/* The options of a loader. Begin with DLC_OPTIONS_INIT and set those that differ; dlc_open() copies the texts. */
struct dlc_options {
        size_t size; /* of this struct, as the caller was compiled; set by DLC_OPTIONS_INIT */

        /* Name of a dataset of the daemon's configuration; or a path, which has a '/' in it and needs no configuration:
         * "./photos", also with keys of a dataset section: "/data/photos {split=\"0:90%\"}". Several, one after the
         * other: "a + b". See libdlclient(3). The only mandatory option. */
        const char *dataset;
        const char *pipeline; /* steps applied to a sample, dataloaderd-pipeline(7). NULL: "raw", the bytes as stored */
        int batch_size;       /* samples a batch, 1 .. 65536. Default 1 */
        uint64_t seed; /* of order and augmentation. Default 0. All ranks of a job use the same seed. Two loaders with
                        * the same seed and pipeline have the same order and the same crops: see draws */

        /* NULL: DATALOADERD_SOCKET in the environment; else, for names, /run/dataloaderd/dataloaderd.sock; for a path,
         * that daemon if it serves paths to this user, else the user's private daemon, which is started if there is
         * none. */
        const char *socket;

        /* The ranks of one training run find each other by the job's name; all their options must agree, but those that
         * change neither which samples a rank gets nor their values: rank, first_epoch, n_epochs, n_slots, leave_forms,
         * and what is about waiting, devices and restarts.
         * NULL: the run's id (TORCHELASTIC_RUN_ID, SLURM_JOB_ID, Open MPI's job, else MASTER_ADDR:MASTER_PORT), for a
         * single rank also the process, and the number of the loader within its process. Therefore open the loaders of
         * a program in the same sequence on every rank. */
        const char *job;
        int rank;       /* 0 .. world_size-1. -1: RANK, OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID; none set: 0 */
        int world_size; /* -1: WORLD_SIZE, OMPI_COMM_WORLD_SIZE, PMI_SIZE or SLURM_STEP_NUM_TASKS, as for rank; none
                         * set: 1. Slurm's variables count only in a step of several tasks: a batch script or a shell
                         * of an allocation is rank 0 of 1, and dlc_warning() says so */

        bool shuffle;          /* default true: a new order each epoch, torch's for this seed and epoch */
        bool drop_last;        /* leave out a rank's last batch if it is incomplete. Default false */
        const char *partition; /* "pad" (default): all ranks get the same number, the last ones repeat samples, as with
                                * torch's DistributedSampler; "drop": the rest is left out; "exact": each sample once */
        const char *order;     /* "torch" (default): the order of torch's samplers. "tdperm": an order of our own that
                                * takes no memory and resumes at once, for datasets of 10^8 samples and more. "buffer":
                                * WebDataset's shuffle buffer; a stream always has it. See shuffle_buffer. "blocks",
                                * "blocks(window=16)": the dataset's shards in random sequence, a few of them (8)
                                * shuffled together, for data that are far away; see docs/orders.md */
        const char *on_error;  /* at a damaged sample: "fail" (default) ends the job; "substitute" serves the next one
                                * of the order in its place; "skip" leaves it out, so that batches may be smaller
                                * and a rank may get one batch fewer: not for ranks that must step together */

        uint64_t first_epoch; /* the daemon begins to prepare this epoch at once. Default 0 */
        uint64_t n_epochs;    /* how many it prepares. Default 0: no limit. A seek to any other is always possible */
        int n_slots;          /* batches prepared ahead or held at once, 2 .. 64. 0 (default): the daemon's setting */

        /* How long dlc_open() waits for the dataset to be staged and its index to be built, ms. -1 (default): as long
         * as it takes; 0: not at all. */
        int open_timeout_ms;
        dlc_progress_fn on_progress; /* may be NULL */
        void *userdata;              /* passed to on_progress; must stay valid as long as the loader */

        /* Where first_epoch begins: the samples at global positions before it were consumed by an earlier run, and the
         * remaining ones are dealt out to the ranks. Default 0. As in dlc_seek(). */
        uint64_t first_position;

        /* When the daemon ends: "wait" (default): wait for it up to restart_timeout_ms, attach again and continue
         * after the last batch that was handed out; "raise": return -ECONNRESET. */
        const char *on_restart;
        int restart_timeout_ms; /* default 300000; -1: as long as it takes */

        /* With on_error "substitute" or "skip": how many damaged samples the job tolerates before it fails; a value
         * below 1 is a share of the dataset's samples. Each is counted once, whichever ranks of this node meet it and
         * however often. 0 (default): any number. At one more dlc_next() returns -ENOTRECOVERABLE. */
        double max_errors;

        /* Which random draws the augmentation uses. Loaders that differ only in this have the same order and different
         * crops, flips and colours. Those of view v of each sample (the step views of the pipeline, v from 0) are those
         * of a loader whose draws is larger by v. Default 0 */
        uint64_t draws;

        /* How many samples the shuffle buffer holds, of a stream or with the order "buffer": 1 .. 16777216.
         * 0 (default): 1000. */
        int shuffle_buffer;

        /* How the samples of an epoch are dealt to the ranks. "strided" (default): one by one in turn, as with torch's
         * DistributedSampler; "batch": whole batches in turn, as Accelerate and Hugging Face's Trainer do; "chunk": the
         * same, by the name that Megatron's users know. At the end, "partition" counts in batches then. */
        const char *dealing;

        /* Steps that make the order of an epoch, such as "weighted(column=w)", "mix(a=0.7, b=0.3)" or
         * "buckets(column=length, edges=64:128, tokens=8192)": see dataloaderd-samplers(7). NULL or "" (default): all
         * samples, shuffled as shuffle and order say. Then dlc_epoch_batches() may differ from epoch to epoch, and is
         * known once dlc_await_length() has returned. */
        const char *sampler;
        const struct dlc_column *columns; /* that the steps name and the dataset does not have; else NULL */
        int n_columns;                    /* 0 .. 16 */

        dlc_wait_fn on_wait; /* may be NULL; gets the same userdata as on_progress */

        /* true: what the last steps of a picture ask for (to, normalize, layout) is left to the caller, who does it on
         * a device: see dlc_get_left_form(). Ranks of a job may differ in it. */
        bool leave_forms;

        /* PCI bus id of the device that will read the batches, such as "0000:1b:00.0" (dlc_cuda_get_bus_id()): the
         * daemon takes memory that is near to it. NULL or "" (default): near to the CPUs of this process, if all of
         * them are in one memory node. Where the machine does not say what is near to the device, or does not let
         * memory be bound, any memory is taken; dlc_info.memory says which it was. Ranks of a job may differ in it. */
        const char *near_device;

        /* With leave_forms; true: flips and changes of colours at the end of a picture's pipeline (hflip, vflip,
         * color_jitter, grayscale(3), random_grayscale) are left to the caller as well: see struct dlc_left_operations.
         * The draws are the daemon's, so the pictures are the same. */
        bool leave_operations;
};

#define DLC_OPTIONS_INIT                                                                                               \
        {                                                                                                              \
                sizeof(struct dlc_options), NULL, NULL, 1, 0, NULL, NULL, -1, -1, true, false, NULL, NULL, NULL, 0, 0, \
                        0, -1, NULL, NULL, 0, NULL, 300000, 0.0, 0, 0, NULL, NULL, NULL, 0, NULL, false, NULL, false   \
        }

/* Attaches as a rank. The daemon begins to fill the rank's slots before this returns.
 * Blocks until the daemon has answered (for at most a minute), and, while the dataset is staged or indexed, for up to
 * open_timeout_ms.
 * On success the caller owns *ret_loader and closes it with dlc_close(). On failure dlc_last_error() has the text. */
DLC_API int dlc_open(const struct dlc_options *options, struct dlc_loader **ret_loader);

/* Detaches and frees the loader with all its batches and their memory; does nothing if it is NULL. The rank may attach
 * again at once. Never blocks. */
DLC_API void dlc_close(struct dlc_loader *loader);

/* Releases the rank and its place in the daemon, but keeps the memory of batches that the caller still holds: they can
 * be read until they are released, and dlc_close() frees the rest. Every other call returns -ESHUTDOWN from then on.
 * Never blocks. It is for callers that pass batches on to code and do not know when that code is done with them. */
DLC_API void dlc_detach(struct dlc_loader *loader);

/* ---- batches ------------------------------------------------------------------------------------------------- */

enum dlc_dtype {
        DLC_BYTES, /* encoded bytes of any length; only in ragged tensors */
        DLC_UINT8,
        DLC_INT32,
        DLC_INT64,
        DLC_FLOAT16,
        DLC_BFLOAT16,
        DLC_FLOAT32,
        DLC_FLOAT64,
        DLC_BOOL, /* one byte: 0 or 1 */
        DLC_INT8,
        DLC_INT16,
        DLC_UINT16,
        DLC_UINT32,
        DLC_UINT64,
        DLC_TEXT,  /* UTF-8 text of any length, without NUL at its end; only in ragged tensors. A part of a file's name
                    * has that name's bytes, whatever they are */
        DLC_TEXTS, /* a list of such texts; only in ragged tensors. The bytes of a sample are uint64_t n, uint64_t
                    * ends[n], then the texts, one after the other: text i ends ends[i] bytes after the first one
                    * begins, and begins where the one before it ends */
};

#define DLC_ABSENT UINT64_MAX /* offset of a sample that does not have the field; n_bytes is 0 */

/* Where one sample of a ragged tensor is. */
struct dlc_place {
        uint64_t offset;  /* bytes from the tensor's data; or DLC_ABSENT */
        uint64_t n_bytes; /* length of the sample */
};

/* How much of a sample of a padded tensor is real: elements in its first padded dimension and in the second, if there
 * is one (else 1). DLC_ABSENT in the first: the sample does not have the field. */
struct dlc_extent {
        uint64_t n[2];
};

/* One field of all samples of a batch. The first dimension is the batch; it counts the real samples.
 *
 * Dense (places is NULL): element (i, j, ...) is at data + i * strides[0] + j * strides[1] + ...; there may be
 * padding between samples.
 *
 * Padded (dense, and extents is set), by the step pad: along the dimension padded_dim, and the next one if
 * n_padded_dims is 2, samples were made equally long. Of sample i extents[i].n[0] elements are real (and n[1] along the
 * next one): the first ones, or the last ones if pads_left. The tensor that follows it in the batch, FIELD_mask, says
 * the same for each element.
 *
 * Packed (is_whole, and places is set), by the step pack: dense rows of one length, which several samples share. The
 * elements of sample i are places[i].n_bytes at data + places[i].offset. FIELD_positions, FIELD_segments, FIELD_labels
 * and cu_seqlens, which come with it, have is_whole and no places.
 *
 * Ragged (places is set): samples differ in length, or some do not have the field. Sample i is at data +
 * places[i].offset, without gaps in C order. shape[1], ... are the dimensions of a sample; shape[1] is -1 if it varies:
 * then the sample has places[i].n_bytes / strides[1] rows. strides[0] has no meaning. Bytes, text and lists of
 * texts have the shape [n_samples, -1], in bytes; boxes [n_samples, -1, 4]; a number that may be absent [n_samples];
 * masks [n_samples, -1, height, width], where height and width are those of this batch. */
struct dlc_tensor {
        const char *name;                 /* "image", "label" */
        uint32_t dtype;                   /* enum dlc_dtype */
        uint32_t n_dims;                  /* 1 .. 8 */
        const int64_t *shape;             /* n_dims elements */
        const int64_t *strides;           /* n_dims elements, in bytes, none negative */
        void *data;                       /* little-endian; until release the caller may also write to it */
        const struct dlc_place *places;   /* n_samples elements, or NULL */
        const struct dlc_extent *extents; /* n_samples elements, or NULL: it is not padded */
        uint8_t padded_dim;
        uint8_t n_padded_dims;
        uint8_t pads_left;
        uint8_t is_whole;    /* 1: it describes the whole batch: shape[0] does not count samples */
        uint8_t reserved[4]; /* zero */
};

/* A batch. It and everything that it points to stay unchanged until dlc_release() or dlc_close(). */
struct dlc_batch {
        uint64_t epoch;
        uint64_t step; /* batch of this rank within the epoch: 0, 1, ... */
        uint32_t n_samples;
        uint32_t n_tensors;
        const struct dlc_tensor *tensors;
        const int64_t *indices;     /* n_samples: which samples of the dataset the order asks for. Look up targets of
                                     * your own by `served`, which says what the batch really holds */
        const int64_t *substitutes; /* NULL if none was substituted, else n_samples: the index of the sample that was
                                     * served in place of a damaged one, or -1 */
        uint32_t n_substituted;
        uint32_t idx_slot;   /* 0 .. n_slots-1: which slot of the ring this is, for callers that register memory once */
        uint64_t sequence;   /* how many batches of this loader came before it, including those that a seek skipped */
        uint64_t planned_ns; /* CLOCK_MONOTONIC: when the daemon began to fill it */
        uint64_t ready_ns;   /* CLOCK_MONOTONIC: when it was ready */
        uint32_t n_skipped;  /* on_error "skip": damaged samples that were left out of it */
        uint32_t is_replay;  /* 1: an earlier batch once more, because `dlctl diagnose --confirm` measures how fast the
                              * trainer is without waiting. Epoch and step are those of the batch that comes next */
        uint64_t position;   /* global position in the epoch after all ranks have taken their batch of this step:
                              * where dlc_seek() continues with the next one. Of a replay: before it */
        const int64_t *served; /* n_samples: which samples the batch holds: as indices, except that for a substituted
                                * sample it is the substitute. Never NULL */
};

/* Hands out the next batch of the epoch.
 *
 * Returns 0 with a batch in *ret_batch, which must be returned with dlc_release(); DLC_END_OF_EPOCH (positive) when
 * all of the rank's batches of this epoch have been handed out; or a negative errno. After DLC_END_OF_EPOCH the next
 * call begins the following epoch, unless dlc_set_epoch() chooses another one. (In torch, forgetting set_epoch()
 * repeats the order of the same epoch; here the order always moves on.)
 *
 * timeout_ms: how long to wait for a batch, -1 = without limit, 0 = not at all (-EAGAIN). A batch that is ready costs
 * no system call. Only a call that begins an epoch past n_epochs may block longer, because the daemon has to be asked.
 *
 * When the daemon ends, batches that were ready are still handed out. Then, with on_restart "raise", the call returns
 * -ECONNRESET; with "wait" it waits until the daemon is back, for at most timeout_ms (-ETIMEDOUT; the next call waits
 * on) and restart_timeout_ms (-ECONNRESET), and continues with the batch after the last one that was handed out.
 * Batches held by the caller stay as they are, but new batches are at other addresses: memory that is registered with a
 * GPU has to be registered again (info: n_restarts).
 *
 * A batch all of whose samples were skipped is not handed out: `step` then jumps. -EBADMSG, -ENOTRECOVERABLE,
 * -ECONNRESET, -ESTALE and -EPROTO are final: the loader returns them again until it is closed. */
DLC_API int dlc_next(struct dlc_loader *loader, int timeout_ms, const struct dlc_batch **ret_batch);

/* Waits until it is known how many batches the current epoch has, where a sampler makes the order (dlc_info.is_made):
 * until its first batch is ready, at most for timeout_ms (-1: as long as it takes). Returns at once for all other
 * loaders, and returns what dlc_next() would if the order cannot be made, as with a weight that is negative. Returns 0,
 * -ETIMEDOUT, -EINTR, -EAGAIN (timeout_ms 0), or another negative errno. */
DLC_API int dlc_await_length(struct dlc_loader *loader, int timeout_ms);

/* Returns a batch, so that its slot can be filled again; in any order, from any thread. Never blocks. After the call
 * the batch and its memory must not be touched. -EINVAL: this loader did not hand it out, or it was released before;
 * dlc_last_error() of the calling thread has the text. */
DLC_API int dlc_release(struct dlc_loader *loader, const struct dlc_batch *batch);

/* Why a sample of a held batch was substituted: a text such as "dog/7.jpg: truncated". NULL if it was not, or if
 * the text was not kept (16 are kept for each batch). Valid as long as the batch. For batches of libdlclient-cuda there
 * is dlc_cuda_sample_error(). */
DLC_API const char *dlc_sample_error(struct dlc_loader *loader, const struct dlc_batch *batch, uint32_t idx_sample);

/* Selects the epoch (at most 2^32-1) whose batches follow, from its beginning. It costs nothing for the epoch that
 * would come next anyway, and does nothing at the start of that epoch. Otherwise, or in the middle of an epoch, the
 * daemon is asked to continue there: what it had prepared is discarded, and the call blocks for its answer (for at most
 * a minute). Batches held by the caller stay valid. */
DLC_API int dlc_set_epoch(struct dlc_loader *loader, uint64_t epoch);

/* Continues in the middle of an epoch, also with another world size or batch size than before. `position` is a global
 * position, 0 .. the number of the dataset's samples; the samples from there on are dealt out to the ranks. At the last
 * position the epoch has no batches left. Asks the daemon as dlc_set_epoch() does; takes a few milliseconds whatever
 * the position. */
DLC_API int dlc_seek(struct dlc_loader *loader, uint64_t epoch, uint64_t position);

/* Where a resumed run would continue: after the batches that were released, in their order. A batch that is held counts
 * as not done, and so do all batches after it. After the last batch of an epoch the position is the number of the
 * dataset's samples; after DLC_END_OF_EPOCH was returned it is (epoch + 1, 0). Returns 0 or a negative errno. */
DLC_API int dlc_get_cursor(struct dlc_loader *loader, uint64_t *ret_epoch, uint64_t *ret_position);

/* Computes the place of a run with these options, over a dataset of n_samples, after each rank has taken n_batches more
 * batches from (epoch, position) on. After an epoch's last batch the place is the beginning of the next epoch, so
 * n_batches = 0 tells whether anything of the epoch is left at a position. An epoch in which no rank has a batch counts
 * as one batch. Needs neither a daemon nor a loader; does not block; any thread.
 * Returns 0, or -EINVAL for options that dlc_open() would refuse without asking the daemon, for a position beyond the
 * epoch's end, or for an epoch above 2^32-1 (the result may be 2^32, after the last one); dlc_last_error() of the
 * calling thread has the text. */
DLC_API int dlc_cursor_after(const struct dlc_options *options, uint64_t n_samples, uint64_t epoch, uint64_t position,
                             uint64_t n_batches, uint64_t *ret_epoch, uint64_t *ret_position);

/* Writes what the text of a pipeline says, as the daemon reads it, with tabs between the words of a line:
 *
 *      part  END  FIELD ...         the part up to byte END, and its fields by their names in batches; of steps without
 *                                   fields there are none
 *      step  NAME  ARGUMENT ...     a step of this part; an argument is VALUE or KEY=VALUE, a list 224:256
 *
 * Of a text with a mistake there are the steps up to it; dlc_open() says what is wrong. A buffer of 16 bytes for each
 * one of the text, and 64 more, is large enough. Needs no loader; any thread. Returns 0; -E2BIG: the buffer is too
 * small; -EINVAL; -ENOMEM. */
DLC_API int dlc_pipeline_steps(const char *pipeline, char *buffer, size_t size);

/* A descriptor for poll(), select() and event loops: call dlc_next(loader, 0, &b) until it returns -EAGAIN, then wait
 * for POLLIN, then call again. (Readable means "look again", not "a batch is ready".) Only poll it; it belongs to the
 * loader and is closed with it. Negative errno for a loader that cannot be used here.
 *
 * With libdlclient-cuda it tells of the daemon's batches alone, not of one that was copied ahead, and not of the
 * device. So call dlc_cuda_next(cuda, 0, stream, &b) until it returns -EAGAIN before waiting; and wait for a few
 * milliseconds at most: -EAGAIN may also mean that the device is still copying, of whose end no descriptor tells. */
DLC_API int dlc_fd(const struct dlc_loader *loader);

/* ---- what was obtained --------------------------------------------------------------------------------------- */

struct dlc_info {
        uint64_t dataset_samples;   /* samples in the dataset; DLC_UNKNOWN of a stream that has not ended */
        uint64_t epoch_samples;     /* samples of this rank in an epoch; likewise */
        uint64_t epoch_batches;     /* batches of this rank in an epoch; likewise */
        const char *dataset_digest; /* hex: identifies the dataset's content and the sequence of its samples */
        const char *pipeline;       /* in its canonical spelling */
        const char *job;
        const char *memory; /* for people: "huge pages (transparent), locked, node 0" */
        uint32_t rank;
        uint32_t world_size;
        uint32_t batch_size;
        uint32_t n_slots;
        void *memory_base;     /* all slots of this rank are here: the range to register with a GPU's driver */
        uint64_t memory_bytes; /* multiple of the page size */
        uint32_t n_restarts;   /* restarts of the daemon since dlc_open(); changes when memory_base changes */
        uint32_t is_waiting;   /* 1: the daemon has ended and dlc_next() waits until it is back */
        uint32_t is_stream;    /* 1: the dataset is a stream: its numbers become known when it has ended */
        uint32_t is_made;      /* 1: a sampler makes the order: epoch_samples and epoch_batches are those of the current
                                * epoch, DLC_UNKNOWN before its first batch; a position counts what ranks are dealt, which
                                * may be whole batches */
        uint32_t uses_batch_size;   /* 1: and the order depends on the batch size */
        uint64_t epoch_units;       /* how many positions the current epoch has: as many as samples, unless is_made */
        const char *sampler;        /* in its canonical spelling; "": none */
        const char *columns_digest; /* hex: identifies the columns that were handed over; "": none */
        const char *dataset;        /* as the daemon calls it: of a path, the whole path, and its options in braces */
        const char *socket;         /* of the daemon: /run/dataloaderd/dataloaderd.sock, or of a private one */
        const char *ticket; /* for dlc_work_open(), which applies functions of the pipeline; "": it names none */
        const char *order;  /* in its canonical spelling: "torch", "blocks(window=16)" */
        const char
                *blocks_digest; /* hex: identifies where the dataset's blocks end; "": the order does not go by them */
};

/* Never NULL for a loader; valid until dlc_close(). Constant, except for what a restart of the daemon changes: memory,
 * n_slots, memory_base, memory_bytes, ticket, n_restarts and is_waiting; and for the numbers of a stream, which
 * dlc_next() sets when it learns that the stream has ended. */
DLC_API const struct dlc_info *dlc_get_info(const struct dlc_loader *loader);

/* A sentence about something that is allowed but perhaps not intended, to be shown once. NULL: there is none, or no
 * further one. Ask after dlc_open() and after an epoch's end. After dlc_open(), rank 0 is told of files of the dataset
 * that can probably not be decoded. After an epoch it names ranks of this node that have never attached, if rank and
 * world_size came from the environment and the launcher says which ranks the node has. The daemon is asked for that
 * once; if ranks are missing, the call waits for late ones until 5 s after the opening. Valid until the next call on
 * the loader. */
DLC_API const char *dlc_warning(struct dlc_loader *loader);

/* This process's place in its run according to the environment, as dlc_open() uses it for options that are -1. */
struct dlc_launch {
        int rank;             /* 0 if the environment does not say it */
        int world_size;       /* 1 if the environment does not say it */
        const char *launcher; /* the variable that gave the rank, such as "SLURM_PROCID"; NULL: none */
        const char *run;      /* the run's name, with which the default name of a job begins; "": none */
        const char *remark;   /* what was found but not used, as dlc_warning() says it; "": nothing */
};

/* Fills in the first `size` bytes (pass sizeof(struct dlc_launch)). Returns 0, or -EINVAL for variables that make no
 * sense. Texts are valid until this thread's next call. */
DLC_API int dlc_get_launch(struct dlc_launch *ret_launch, size_t size);

/* A daemon that this user's loaders may find: the node's, or the user's private one. */
struct dlc_daemon {
        const char *absence; /* NULL: it answers; else why not, as a sentence, and the numbers below are 0 */
        const char *socket;  /* where it was asked; "": there is no folder for a private one */
        const char *version; /* "": unknown */
        const char *log;     /* file of a private daemon; "": a node's, whose log is the journal */
        const char *program; /* that a loader would start as a private daemon; "": not found, or the node's is asked */
        uint64_t pid;        /* as the daemon's own PID namespace has it */
        uint64_t up_seconds;
        uint32_t n_datasets;
        uint32_t n_jobs; /* that this user may see */
        uint32_t is_private;
        uint32_t serves_paths; /* 1: a loader with a path is served by it */
};

/* Describes one of the two, and starts none: `is_private` asks for the private daemon, else for the one at
 * DATALOADERD_SOCKET, without the variable for the node's. Fills in the first `size` bytes (pass sizeof(struct
 * dlc_daemon)). Waits for an answer, 20 s at most. Returns 0, also if none answers; -EINTR for a signal, -ENOMEM. Texts
 * are valid until this thread's next call. */
DLC_API int dlc_get_daemon(bool is_private, struct dlc_daemon *ret_daemon, size_t size);

/* Counted since dlc_open(). Times are of CLOCK_MONOTONIC, in nanoseconds. */
struct dlc_stats {
        uint64_t n_batches;     /* handed out */
        uint64_t n_samples;     /* in these batches */
        uint64_t n_substituted; /* samples */
        uint64_t n_skipped;     /* samples */
        uint64_t n_waits;       /* batches that were not ready when they were first asked for */
        uint64_t waited_ns;     /* time in these calls, including restarts */
        uint64_t restart_ns;    /* part of waited_ns: while the daemon was gone */
        uint64_t opened_ns;     /* when dlc_open() returned */
        uint64_t read_ns;       /* over the samples of all batches handed out: time waiting for bytes */
        uint64_t queued_ns;     /* likewise: time waiting for a worker */
        uint64_t decode_ns;     /* likewise: time being decoded and augmented */
        uint32_t n_ready;       /* batches that are ready now */
        uint32_t n_held;        /* batches that the caller holds now */
        uint32_t n_slots;
        uint32_t n_restarts;
        uint64_t hold_ns; /* part of waited_ns: while the job was on hold (dlc_hold()) */
};

/* Fills in the first `size` bytes (pass sizeof(struct dlc_stats)). Returns 0 or a negative errno. */
DLC_API int dlc_get_stats(struct dlc_loader *loader, struct dlc_stats *ret_stats, size_t size);

/* What holds up the loader's job: the answer that "dlctl diagnose" gives to whoever runs the daemon, from the same
 * numbers, about all ranks of the job on this node. Texts are valid until the next dlc_diagnose() or dlc_detach(). */
struct dlc_diagnosis {
        const char *limit;                   /* "trainer", "reading", "origin", "decoding", "step", "latency", "rank",
                                                "order", "outage", "restart", "ended", "nothing yet" */
        const char *input_bound;             /* "not": ranks wait for less than 5 % of the time; "moderately": for less
                                                than 20 %; "highly" */
        const char *verdict;                 /* a sentence: whether data hold up the job, and what limits it */
        const char *advice;                  /* a sentence: what to change, and what that would give */
        double seconds;                      /* since the previous dlc_diagnose(); the first one: since the opening */
        double wait_share;                   /* of this time, 0 to 1: of the rank that waits most; of ranks at the same
                                                step, the longest wait of each step */
        double samples_per_second;           /* that the ranks took */
        double predicted_samples_per_second; /* after that change; 0: not known */
        double tokens_per_second;            /* of text in the samples that the ranks took; 0: there are none */
        uint64_t n_texts_cut;                /* since the job began: by max_length of tokens(), */
        uint64_t n_tokens_cut;               /* and about how many tokens were left out of them */
};

/* Asks the daemon; fills in the first `size` bytes (pass sizeof(struct dlc_diagnosis)). It blocks for a moment, and
 * does not wait for a daemon that is away: then `limit` is "restart". Returns 0 or a negative errno (-EINTR: a signal
 * came, call again). */
DLC_API int dlc_diagnose(struct dlc_loader *loader, struct dlc_diagnosis *ret_diagnosis, size_t size);

/* Returns a sentence if the job is on hold because its dataset cannot be read (a missing mount, a server that does not
 * answer), such as "on hold: /data/photos: cats/7.jpg: Input/output error (EIO); trying again for 9 min", or if a read
 * has not finished after 5 s ("... reading cats/7.jpg has not come back for 12 s"); else NULL. No sample is lost
 * meanwhile. After the daemon's outage_timeout the job ends and dlc_next() returns -EBADMSG with the reason; only for a
 * read that hangs does it wait as long as the read takes. Valid until the next call on the loader. Never blocks. */
DLC_API const char *dlc_hold(struct dlc_loader *loader);

/* The classes of the dataset, in the order of their labels. The daemon is asked for the names once (the call blocks for
 * a moment), and they stay valid until dlc_close(). If the daemon is away, the call waits for it as dlc_next() does, up
 * to restart_timeout_ms (-EINTR: a signal came, call again). dlc_n_classes() returns a negative errno if the names
 * cannot be obtained, dlc_class_name() NULL for a label that does not exist. */
DLC_API int64_t dlc_n_classes(struct dlc_loader *loader);
DLC_API const char *dlc_class_name(struct dlc_loader *loader, uint64_t label);

/* What the daemon knows of samples without reading them. `samples`: n of them, numbers below dlc_dataset_samples(), as
 * a batch's `served` has them; n is 0 .. 4096. Both calls ask the daemon (a moment), and wait for it as dlc_n_classes()
 * does if it is away. Return 0; -EINVAL: no such sample or field, the text has those there are; or another errno. */
#define DLC_SAMPLES_ASKED_MAX 4096u

/* Their names: paths within the dataset, or what else names a sample. (*ret_names)[i] is valid until the next call of
 * this function on the loader, or dlc_close(). */
DLC_API int dlc_sample_names(struct dlc_loader *loader, const uint64_t *samples, uint32_t n,
                             const char *const **ret_names);

/* The numbers of a field that has one for each sample, such as "label". `ret_values` has room for n * 8 bytes; it gets
 * n elements of the dtype *ret_dtype (enum dlc_dtype), one after the other. */
DLC_API int dlc_sample_numbers(struct dlc_loader *loader, const char *field, const uint64_t *samples, uint32_t n,
                               void *ret_values, uint32_t *ret_dtype);

/* How many samples an epoch has, those that are padded included: for this rank, and for all ranks together. Where a
 * sampler's steps make the order, it is made here, and kept until dlc_epoch_order() gives it out; numbers of the
 * dataset that they need are asked of the daemon (so the call blocks, and waits for a daemon that is away as dlc_next()
 * does). -EOPNOTSUPP: the dataset is a stream that has not ended; -EINVAL: the steps need lists of numbers, which only
 * batches tell; -ENOMEM. */
DLC_API int dlc_epoch_length(struct dlc_loader *loader, uint64_t epoch, uint64_t *ret_n, uint64_t *ret_n_all);

/* The samples of this rank in an epoch, in their order: *ret_samples has room for exactly n of them, as
 * dlc_epoch_length() says, also those that drop_last leaves out. Computed here, in some tens of nanoseconds for each
 * sample of the dataset. Errors as above; -EINVAL: another n. */
DLC_API int dlc_epoch_order(struct dlc_loader *loader, uint64_t epoch, int64_t *ret_samples, uint64_t n);

/* How many batches this rank has from a global position of an epoch on, as a resume there would give them; DLC_UNKNOWN
 * if that is not known. Never blocks. */
DLC_API int dlc_batches_from(struct dlc_loader *loader, uint64_t position, uint64_t *ret_n);

/* One of the datasets that a loader was opened with: `dataset = "a + b"` has two. */
struct dlc_part {
        const char *name;
        const char *digest; /* of its content: 64 hexadecimal digits */
        uint64_t first;     /* the index of its first sample: those of a part follow those of the part before it */
        uint64_t n_samples; /* DLC_UNKNOWN of a stream that has not ended */
};

/* Describes part `idx`, from 0; a loader of one dataset has this one part. `size` is sizeof(struct dlc_part). The texts
 * stay valid until dlc_close(). Returns 0; -ENOENT if there are no more parts; -EINVAL. Never blocks. */
DLC_API int dlc_get_part(const struct dlc_loader *loader, uint32_t idx, struct dlc_part *ret_part, size_t size);

/* What the option leave_forms leaves to the caller, for one tensor: in the batch it is uint8 [n, height, width,
 * n_channels], and level l of channel c becomes element c * 256 + l of the table. Pictures that are padded, ragged or
 * may be absent are not among these, nor are those whose pipeline ends without to, normalize and layout, unless
 * operations are left: they come as the pipeline says. */
struct dlc_left_form {
        const char *tensor;
        uint32_t dtype;      /* of the finished tensor, and of the table: uint8, float16, bfloat16 or float32 */
        uint32_t n_channels; /* 1 or 3 */
        bool channels_first; /* the finished tensor is [n, n_channels, height, width] */
        const void *table;   /* n_channels * 256 elements */
        size_t table_bytes;
        uint64_t operations_at; /* bytes from a sample's first to its struct dlc_left_operations; 0: it has none. They
                                 * are before the next sample (strides[0]), also of the last one */
};

/* What the option leave_operations leaves to the caller, for one sample: done before the table is looked into. Each
 * operation gets the picture of the one before it, whole numbers of 8 bits, and has the arithmetic of Pillow and
 * torchvision: see daemon/augment/operations of the source. The kernels of libdlclient-cuda do it. Records were checked
 * when the batch was taken; one that makes no sense is -EPROTO. */
#define DLC_LEFT_OPERATIONS_MAX 8
enum dlc_left_kind {
        DLC_LEFT_BRIGHTNESS = 1, /* blended from black: 0 is black, 1 the picture, more is extrapolated */
        DLC_LEFT_CONTRAST,       /* from the mean of the picture's greys, rounded, as it is before this operation */
        DLC_LEFT_SATURATION,     /* from each pixel's grey */
        DLC_LEFT_HUE,            /* by the amount of turns of the colour wheel, in HSV of 8 bits each */
        DLC_LEFT_GRAYSCALE,      /* three channels that are the grey */
};

struct dlc_left_operation {
        uint32_t kind; /* enum dlc_left_kind */
        float amount;
};

struct dlc_left_operations {
        uint32_t flips; /* 1: left to right, 2: top to bottom, 3: both; before the operations or after them */
        uint32_t n_operations;
        struct dlc_left_operation operations[DLC_LEFT_OPERATIONS_MAX];
        uint32_t scratch[DLC_LEFT_OPERATIONS_MAX]; /* 0; room for a device in its own copy */
};

/* Describes form `idx`, from 0. `size` is sizeof(struct dlc_left_form). Texts and table stay valid until dlc_close().
 * Returns 0; -ENOENT if there are no more; -EINVAL. Never blocks. */
DLC_API int dlc_get_left_form(const struct dlc_loader *loader, uint32_t idx, struct dlc_left_form *ret_form,
                              size_t size);

/* The memory from which batches are taken now (memory_base of dlc_get_info()), for callers that register it with a
 * device: it stays mapped until dlc_let_memory(), also after a restart of the daemon and after dlc_detach(). Each call
 * holds it once more. dlc_close() unmaps it in any case: unregister before. -ESHUTDOWN, -ECONNRESET: there is none now.
 * Never blocks. dlc_let_memory() takes the same `base`, from any thread; -EINVAL: it is not held. */
DLC_API int dlc_hold_memory(struct dlc_loader *loader, void **ret_base, uint64_t *ret_bytes);
DLC_API int dlc_let_memory(struct dlc_loader *loader, const void *base);

/* The parts of dlc_get_info() that are needed most often; 0 or NULL if loader is NULL. */
DLC_API uint64_t dlc_epoch_batches(const struct dlc_loader *loader);
DLC_API uint64_t dlc_epoch_samples(const struct dlc_loader *loader);
DLC_API uint64_t dlc_dataset_samples(const struct dlc_loader *loader);
DLC_API const char *dlc_dataset_digest(const struct dlc_loader *loader);

/* ---- once only ----------------------------------------------------------------------------------------------- */

/* Lets one of many processes do a piece of work while the others wait until it is done: to unpack an archive once per
 * node, or to prepare a folder once per cluster. Needs no daemon; the processes may be started by anything. flock() on
 * a small file selects the process; the kernel releases the lock when its holder dies, and another one takes over.
 *
 *         struct dlc_once_options o = DLC_ONCE_OPTIONS_INIT;
 *         struct dlc_once *once;
 *         o.name = "unpack"; o.key = "v3";
 *         if (dlc_once_open(&o, &once) < 0)
 *                 errx(1, "%s", dlc_last_error());
 *         switch (dlc_once_wait(once, -1)) {
 *         case DLC_ONCE_RUN:
 *                 if (unpack() == 0)
 *                         dlc_once_end(once, DLC_ONCE_DONE, 0, NULL, NULL);
 *                 else
 *                         dlc_once_end(once, DLC_ONCE_FAILED, 1, "disk full", NULL);
 *                 break;
 *         case DLC_ONCE_DONE: break;
 *         case DLC_ONCE_FAILED: errx(1, "%s", dlc_once_get_info(once)->text);
 *         default: errx(1, "%s", dlc_last_error());
 *         }
 *         dlc_once_close(once);
 *
 * A successful attempt is remembered with its key: a later call with the same key returns DLC_ONCE_DONE at once. A
 * failed attempt is reported to the processes that waited for it; a later call makes a new attempt. A handle belongs to
 * one thread at a time. A child of a fork() must call dlc_once_close() on its copy, which leaves the parent's as it is:
 * until then, or until it execs, the child keeps others from taking over if the parent dies. */
enum dlc_once_outcome {
        DLC_ONCE_RUN = 1, /* the caller is to do it, then call dlc_once_end() */
        DLC_ONCE_DONE,    /* it has been done, now or earlier */
        DLC_ONCE_FAILED,  /* the attempt that the caller waited for failed: info says why */
};

#define DLC_ONCE_NAME_MAX   65u      /* bytes, including the NUL, as below */
#define DLC_ONCE_TEXT_MAX   65536u   /* longer texts lose their beginning */
#define DLC_ONCE_RESULT_MAX 1048576u /* longer results are refused */

/* Begin with DLC_ONCE_OPTIONS_INIT; texts are copied by dlc_once_open(). */
struct dlc_once_options {
        size_t size; /* of this struct, as the caller was compiled; set by DLC_ONCE_OPTIONS_INIT */
        const char
                *name; /* of the work: 1 .. 64 letters, digits, '.', '_', '-'; begins with letter or digit; mandatory */

        /* "node" (default): once per node, forgotten when it boots. "cluster": once per folder `dir`, remembered as
         * long as the folder exists. */
        const char *scope;
        const char *key; /* what the work depends on, such as a digest: 1 .. 128 printable characters. Default "-" */

        /* Folder of the small file. Default for "node": /tmp/dataloaderd-once-UID, made with mode 0700. For "cluster":
         * DATALOADERD_ONCE_DIR in the environment; must be a folder that all nodes see and that supports locks. */
        const char *dir;
        bool again; /* do it again even if it is remembered as done; only work done after dlc_once_open() counts */

        /* Called within dlc_once_wait() after 3 s of waiting and then at growing intervals, with a sentence such as
         * "waiting for pid 123 on node1, 10 s". */
        dlc_progress_fn on_progress; /* may be NULL */
        void *userdata;
};

#define DLC_ONCE_OPTIONS_INIT                                                                                          \
        { sizeof(struct dlc_once_options), NULL, NULL, NULL, NULL, false, NULL, NULL }

/* The attempt whose outcome dlc_once_wait() returned. Valid until the next call on the handle. */
struct dlc_once_info {
        uint64_t attempt;   /* 1, 2, ...: the caller's own after DLC_ONCE_RUN */
        int status;         /* as the runner passed it to dlc_once_end(), such as an exit status; 0 after success */
        const char *text;   /* why it failed; else "" */
        const char *result; /* what the runner left for the others; "" if nothing */
        const char *host;   /* where it ran */
        int64_t pid;
        int64_t when;       /* seconds since 1970, by the runner's clock: for people */
        const char *remark; /* a sentence for people, mostly "": the previous runner died, the file was damaged */
};

struct dlc_once;

/* Opens the folder and the file. Does not wait. On success the caller owns *ret_once and closes it.
 * -EINVAL: a wrong option; -EACCES: the folder or the file is another user's, or others may write to it; -ENOLCK: the
 * file system has no locks; or the file system's errno, with a text that names the file. */
DLC_API int dlc_once_open(const struct dlc_once_options *options, struct dlc_once **ret_once);

/* Waits until the work is done or the caller is to do it. timeout_ms: -1 = without limit, 0 = not at all.
 * Returns one of enum dlc_once_outcome; -ETIMEDOUT (also for 0) or -EINTR: call again to wait on; or another errno. It
 * looks again after a tenth of the time waited, at most 50 ms ("node") or 2 s ("cluster"). After DONE, FAILED or RUN a
 * further call returns the same at once. */
DLC_API int dlc_once_wait(struct dlc_once *once, int timeout_ms);

/* Reports how the caller's run ended and lets the others continue. `outcome`: DLC_ONCE_DONE or DLC_ONCE_FAILED; `text`
 * and `result`: UTF-8, may be NULL. -E2BIG: the result is too long; nothing was reported, call again. -ENOSPC and the
 * like: the outcome could not be written, and the next process runs the work. -EINVAL: the caller is not running it.
 * Blocks for the disk. */
DLC_API int dlc_once_end(struct dlc_once *once, enum dlc_once_outcome outcome, int status, const char *text,
                         const char *result);

/* Frees the handle; does nothing if it is NULL. Work that the caller began and did not end is run by the next process,
 * as if the caller had died. Never blocks. */
DLC_API void dlc_once_close(struct dlc_once *once);

DLC_API const struct dlc_once_info *dlc_once_get_info(const struct dlc_once *once);

/* ---- worker processes ---------------------------------------------------------------------------------------- */

/* A pipeline may name functions of the trainer's own: "random_resized_crop(224) python(my)". They are applied to each
 * sample by worker processes, as many as the trainer likes, which it starts and which connect to the daemon with the
 * rank's ticket (struct dlc_info). A worker process takes one sample after the other, works on it where it lies in the
 * rank's batch, and says that it is done; the daemon does the rest. Until a process comes the rank waits; dlc_hold()
 * says so, and after a minute the job ends. What a process does must depend on nothing but the sample, its input and
 * its seed: then the bits are the same with any number of processes. A process that ends loses nothing: its samples are
 * given to others; one over which three processes have ended is damaged. While a process lives nobody else can have its
 * sample, since it may still write there: one that does not come back within limit_ms ends its job, unless a process
 * supervises, which is expected to kill it. One that is stopped (SIGSTOP) is waited for, where the daemon may see that.
 * Several threads of one process are worker processes, too, if each has a handle of its own: they end together.
 *
 * A handle is for one thread at a time, in the process that opened it. */
struct dlc_work_options {
        size_t size;        /* of this struct; set by DLC_WORK_OPTIONS_INIT */
        const char *socket; /* of the daemon: info->socket */
        const char *ticket; /* info->ticket */
        uint64_t worker;    /* a number of the caller's for this process, for dlc_work_ended() */
        bool supervises;    /* no worker process, but the one that starts them: it gets no samples */
        int timeout_ms;     /* for connecting. Default 30,000 */
        int limit_ms;       /* that it may be at a sample, if nobody supervises. 0: a minute; -1: any time */
};

#define DLC_WORK_OPTIONS_INIT                                                                                          \
        { .size = sizeof(struct dlc_work_options), .timeout_ms = 30000 }

/* An array in the rank's batch, in C order without gaps. bfloat16, which C does not have, is 16 bits. Of a whole batch
 * the first dimension is its samples. */
struct dlc_array {
        void *data;
        uint32_t dtype; /* enum dlc_dtype */
        uint32_t n_dims;
        int64_t shape[8];
};

/* A function to be applied to a field. Where input.data is output.data it changes the array in place; else it reads the
 * one, which it may also change, and writes the other. If the part of the pipeline names several fields, the function
 * is called once for all of them: the first one's n_fields says how many, and the steps after it are the others. */
struct dlc_work_step {
        const char *function; /* as the pipeline names it */
        const char *field;
        uint64_t seed; /* of what it draws, together with epoch and sample */
        struct dlc_array input, output;
        const char *parameter; /* as which the function gets the field: its name, the same in all views */
        uint32_t n_fields;     /* of this call; 0: it is another field of the call before */
};

/* A sample; or a whole batch, where the pipeline has python(my, batch=true): such functions have orders of their own,
 * when all samples of the batch are done. Whatever is said of a sample here is true of such a batch, too: one answer is
 * for all of it, and an error ends the job. */
struct dlc_order {
        uint64_t number; /* 1, 2, ...: of the rank's orders, for the log */
        uint64_t epoch;
        uint64_t sample;  /* in the dataset; of a whole batch, the first one, to which its draws belong */
        uint32_t n_steps; /* fields that functions are applied to, one after the other: the same in all orders of a kind
                           */
        const struct dlc_work_step *steps;

        uint32_t n_samples;     /* of the whole batch; 0: it is a sample, and what follows is NULL */
        const int64_t *samples; /* their numbers, in the sequence of the batch */
        /* Of each step: NULL, or, where samples differ in size before the function, n_samples arrays, which are what it
         * is given; steps[i].input is not to be used then. */
        const struct dlc_array *const *lists;
};

struct dlc_work;

/* Connects to the daemon with the rank's ticket and maps the memory of its batches. -ENOENT: no rank of this user has
 * the ticket; -EADDRINUSE: another process supervises. Blocks for timeout_ms at most. */
DLC_API int dlc_work_open(const struct dlc_work_options *options, struct dlc_work **ret_work);

/* Waits for the next sample. 0 with the order, valid until the next call; -ETIMEDOUT (also for timeout_ms 0) or -EINTR:
 * call again; -ECONNRESET: the rank has left, or the daemon has ended: close the handle; -EPROTO: the daemon has closed
 * the connection because of what came through it, as when a function writes to all open descriptors. -1: without limit.
 * The sample before it must have been answered with dlc_work_done(). */
DLC_API int dlc_work_next(struct dlc_work *work, int timeout_ms, const struct dlc_order **ret_order);

/* A pipeline may let the size of what a function delivers vary: "text: python(tokens, dtype=int32, shape=..512)".
 * Then output.shape is the largest that there may be, and the function writes its elements to output.data, in C order
 * without gaps, of the shape that this call says, output.n_dims numbers. Before dlc_work_done(), which takes the
 * largest shape for what nothing is said of. -EINVAL: more elements than declared, or others in a dimension that does
 * not vary. Never blocks. */
DLC_API int dlc_work_deliver(struct dlc_work *work, uint32_t idx_step, const int64_t *shape);

/* Does this dimension of what is delivered for a step vary? The same for all samples. Of orders for samples only, as
 * dlc_work_deliver(): what is made of a whole batch has one shape. */
DLC_API bool dlc_work_varies(const struct dlc_work *work, uint32_t idx_step, uint32_t dim);

/* The sample that dlc_work_next() returned is done; or, with `error`, it is damaged for this reason, of which the first
 * 380 bytes are kept. Where functions usually take less than a fifth of a millisecond, several answers are sent
 * together, at the latest before a call of dlc_work_next() that waits. Never waits for the daemon. */
DLC_API int dlc_work_done(struct dlc_work *work, const char *error);

/* Several samples of one batch, whose places follow one another: `first` is that of the first one, and sample k has its
 * arrays at data + k * stride in bytes, the same shapes, and the number first->number + k. */
struct dlc_run {
        const struct dlc_order *first;
        uint32_t n_samples;
        const uint64_t *samples; /* n_samples: in the dataset */
        const uint64_t *seeds;   /* n_samples times n_steps: of sample k and step i at k * n_steps + i */
        const uint64_t *input_strides, *output_strides; /* n_steps */
        volatile uint64_t *begun; /* a sample's number is stored here before its arrays are touched: if the process ends
                                   * over it, it is known which one it was. That of the first one is there already */
};

/* As dlc_work_next(), for functions that take microseconds: all samples of an order, often one. Valid until the next
 * call. Whoever takes them is to give back the rest if they take longer than some 20 ms. */
DLC_API int dlc_work_next_run(struct dlc_work *work, int timeout_ms, const struct dlc_run **ret_run);

/* The first `n_done` samples of the run are done; with `error`, the one after them is damaged for this reason. Those
 * that remain are given back, and come again, one by one, to this process or another one. -EINVAL: none is done and
 * none is damaged. Never waits for the daemon. */
DLC_API int dlc_work_run_done(struct dlc_work *work, uint32_t n_done, const char *error);

/* For the process that supervises: process `worker` has ended, and how: "was killed by signal 9". It is told with the
 * sample that the process was at. NULL: that sample is not why it ended, as when it was one of several threads of a
 * process: it is dealt again and counts no end. `is_last`: no other one can be started, and the job ends with this
 * text.
 */
DLC_API int dlc_work_ended(struct dlc_work *work, uint64_t worker, const char *text, bool is_last);

/* Closes it; does nothing if it is NULL. A sample that was not answered is given to another process. */
DLC_API void dlc_work_close(struct dlc_work *work);

/* ---- texts --------------------------------------------------------------------------------------------------- */

/* The text of the loader's last error, of any call on it but dlc_release(); "" if there was none. Valid until the next
 * call on it. -EAGAIN and DLC_END_OF_EPOCH are not errors and leave it unchanged. */
DLC_API const char *dlc_error(const struct dlc_loader *loader);

/* The text of the last error of the calling thread, from any function including dlc_open(). "" if there was none. Valid
 * until this thread's next call of the library. */
DLC_API const char *dlc_last_error(void);

/* "uint8", "bytes", ...; NULL if it is not an enum dlc_dtype. */
DLC_API const char *dlc_dtype_name(uint32_t dtype);

/* Bytes of one element (1 for DLC_BYTES); 0 if it is not an enum dlc_dtype. */
DLC_API size_t dlc_dtype_bytes(uint32_t dtype);

/* "0.1.0": the version of the running library, not of this header. */
DLC_API const char *dlc_version(void);

#ifdef __cplusplus
}
#endif

#endif
