/* dlclient.h: finished batches from dataloaderd, in the memory of the program that trains.
 *
 * A loader is one rank's share of one dataset. The daemon reads, decodes and augments; the loader hands out pointers
 * into memory that both share. Nothing is copied and nothing is started in your process: no thread, no signal handler;
 * the library never prints, never exits and never raises SIGPIPE.
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
 * ERRORS. Functions that return int give 0, a positive documented outcome, or a negative errno; outputs are untouched
 * unless it is 0. A text that names the thing and says what to do is left for dlc_error() and dlc_last_error():
 *         -EINVAL           an argument or option; the text names it and what is allowed
 *         -ECONNREFUSED     no daemon can be reached at the socket (not running, another path, no permission)
 *         -ECONNRESET       the daemon has gone and did not come back in time, or closed the connection (the text has
 *                           its reason)
 *         -EPROTONOSUPPORT  library and daemon are of versions that do not understand each other; both are named
 *         -EPROTO           what the daemon sent or wrote makes no sense
 *         -EAGAIN           nothing is ready and timeout_ms was 0
 *         -ETIMEDOUT        the time was over
 *         -EINTR            a signal came while waiting; call again to go on
 *         -ENOBUFS          all slots are held by the caller: release a batch first
 *         -EBADMSG          a sample could not be read or decoded and on_error is "fail": the job has ended
 *         -ESTALE           the dataset changed while the daemon was away
 *         -ESHUTDOWN        the loader was detached
 *         -ECHILD           the loader was opened before a fork(): only its parent can use it
 *         -ENOMEM           no memory
 * dlc_open() also passes on what the daemon refuses with: -ENOENT (no such dataset), -EBUSY (the rank is taken), ...
 *
 * THREADS. A loader belongs to one thread at a time; different loaders are independent. dlc_release() alone may be
 * called from any thread at any time, also while another one waits in dlc_next().
 *
 * FORK. The child of a fork() cannot use the parent's loaders: each call but dlc_close() returns -ECHILD, and the
 * batches' memory is not there. dlc_close() in the child gives up its copy and leaves the parent's loader as it is.
 *
 * COMPATIBILITY. Within libdlclient.so.0 structs grow at their end only. */
#ifndef DLCLIENT_H
#define DLCLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLC_API __attribute__((visibility("default")))

/* dlc_next(): all batches of the epoch have been handed out. */
#define DLC_END_OF_EPOCH 1

struct dlc_loader;

/* ---- opening ------------------------------------------------------------------------------------------------- */

/* Called while dlc_open() waits for something that takes long, and while dlc_next() waits for a dataset that cannot be
 * read (see dlc_hold()); at most once a second, from within that call. `text` is a sentence such as "photos: indexing,
 * 120000 files so far", valid during the call. */
typedef void (*dlc_progress_fn)(void *userdata, const char *text);

/* What is asked for. Begin with DLC_OPTIONS_INIT and set what differs; texts are copied by dlc_open(). */
struct dlc_options {
        size_t size; /* of this struct, as the caller was compiled; set by DLC_OPTIONS_INIT */

        const char *dataset;  /* name of a dataset of the daemon's configuration; the one option that must be set */
        const char *pipeline; /* what is done to a sample, see dataloaderd(8). NULL: "raw", the bytes as stored */
        int batch_size;       /* samples a batch, 1 .. 65536. Default 1 */
        uint64_t seed; /* of order and augmentation. Default 0. All ranks of a job use one seed. Two loaders of one
                        * seed and pipeline have the same order and the same crops: see draws */

        const char *socket; /* NULL: DATALOADERD_SOCKET of the environment, else /run/dataloaderd/dataloaderd.sock */

        /* The ranks of one training run find each other by the job's name; they must agree in everything but the rank.
         * NULL: the run's id (TORCHELASTIC_RUN_ID, SLURM_JOB_ID, Open MPI's job, else MASTER_ADDR:MASTER_PORT), with a
         * single rank the process itself, and the number of the loader within its process. So open the loaders of a
         * program in the same sequence on every rank. */
        const char *job;
        int rank;       /* 0 .. world_size-1. -1: RANK, OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID; none set: 0 */
        int world_size; /* -1: WORLD_SIZE, OMPI_COMM_WORLD_SIZE, PMI_SIZE or SLURM_STEP_NUM_TASKS, as for rank; none
                         * set: 1. Of Slurm only a step of several tasks counts: a batch script or a shell of an
                         * allocation is rank 0 of 1, and dlc_warning() says so */

        bool shuffle;          /* default true: a new order each epoch, torch's for this seed and epoch */
        bool drop_last;        /* leave out a rank's last incomplete batch. Default false */
        const char *partition; /* "pad" (default): all ranks get as many, the last ones repeat samples, as torch's
                                * DistributedSampler does; "drop": the rest is left out; "exact": each sample once */
        const char *order;     /* "torch" (default): the order of torch's samplers. "tdperm": an order of our own that
                                * takes no memory and resumes at once, for datasets of 10^8 samples and more */
        const char *on_error;  /* a damaged sample: "fail" (default) ends the job; "substitute" serves the next one of
                                * the order in its place; "skip" leaves it out, so that batches may be smaller
                                * and a rank may get one fewer: not for ranks that must step together */

        uint64_t first_epoch; /* the daemon begins to prepare this one at once. Default 0 */
        uint64_t n_epochs;    /* and none past so many. Default 0: no end. A seek elsewhere is always possible */
        int n_slots;          /* batches that are prepared ahead or held, 2 .. 64. 0 (default): the daemon's setting */

        /* How long dlc_open() waits for the dataset to be staged and its index to be built, ms. -1 (default): as long
         * as it takes; 0: not at all. */
        int open_timeout_ms;
        dlc_progress_fn on_progress; /* may be NULL */
        void *userdata;              /* handed to on_progress: what it points to lives as long as the loader */

        /* Where first_epoch begins: global positions before it were consumed by an earlier run, and the ranks deal out
         * what is left. Default 0. As dlc_seek(). */
        uint64_t first_position;

        /* When the daemon goes away: "wait" (default): wait for it up to restart_timeout_ms, attach again and go on
         * after the last batch that was handed out; "raise": -ECONNRESET. */
        const char *on_restart;
        int restart_timeout_ms; /* default 300000; -1: as long as it takes */

        /* With on_error "substitute" or "skip": how many damaged samples the job bears before it fails; below 1 a share
         * of the dataset's samples. Each is counted once, whatever rank of this node meets it and how often. 0
         * (default): any number. */
        double max_errors;

        /* Which stream of draws the augmentation takes. Loaders that differ in it alone have the same order and other
         * crops, flips and colours: several views of the same samples, as contrastive learning wants them. Default 0 */
        uint64_t draws;
};

#define DLC_OPTIONS_INIT                                                                                               \
        {                                                                                                              \
                sizeof(struct dlc_options), NULL, NULL, 1, 0, NULL, NULL, -1, -1, true, false, NULL, NULL, NULL, 0, 0, \
                        0, -1, NULL, NULL, 0, NULL, 300000, 0.0, 0                                                     \
        }

/* Attaches as a rank. The daemon begins to fill the rank's slots before this returns.
 * Blocks: until the daemon has answered (a minute at most), and while the dataset is staged or indexed up to
 * open_timeout_ms.
 * On success *ret_loader is the caller's, to be closed with dlc_close(). On failure the text is in dlc_last_error(). */
DLC_API int dlc_open(const struct dlc_options *options, struct dlc_loader **ret_loader);

/* Detaches and frees; NULL is nothing. All batches of the loader and all their memory are gone with it. The rank may
 * attach again at once. Never blocks. */
DLC_API void dlc_close(struct dlc_loader *loader);

/* Gives the rank and its place in the daemon back, but keeps the memory of batches that the caller still holds: they
 * can be read until they are released, and dlc_close() frees the rest. Every other call returns -ESHUTDOWN from then
 * on. Never blocks. For those who hand out batches to code whose end they do not see. */
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
};

#define DLC_ABSENT UINT64_MAX /* offset of a sample that does not have the field; n_bytes is 0 */

/* Where one sample of a ragged tensor lies. */
struct dlc_place {
        uint64_t offset;  /* bytes from the tensor's data; or DLC_ABSENT */
        uint64_t n_bytes; /* of the sample */
};

/* One field of all samples of a batch. The first dimension is the batch; it counts the real samples.
 *
 * Dense (places is NULL): element (i, j, ...) lies at data + i * strides[0] + j * strides[1] + ...; there may be
 * padding between samples. Ragged (places is set): samples are one-dimensional and of different lengths, shape is
 * [n_samples, -1], strides mean nothing, and sample i lies at data + places[i].offset. */
struct dlc_tensor {
        const char *name;               /* "image", "label" */
        uint32_t dtype;                 /* enum dlc_dtype */
        uint32_t n_dims;                /* 1 .. 8 */
        const int64_t *shape;           /* n_dims elements */
        const int64_t *strides;         /* n_dims, bytes, none negative */
        void *data;                     /* little-endian; the caller's own until release, also to write to */
        const struct dlc_place *places; /* n_samples, or NULL */
        uint64_t reserved[2];           /* zero */
};

/* A batch. It and everything it points to stays as it is until dlc_release() or dlc_close(). */
struct dlc_batch {
        uint64_t epoch;
        uint64_t step; /* batch of this rank within the epoch: 0, 1, ... */
        uint32_t n_samples;
        uint32_t n_tensors;
        const struct dlc_tensor *tensors;
        const int64_t *indices;     /* n_samples: which samples of the dataset, as the order says. What lies in the
                                     * batch is `served`: look targets of your own up by that */
        const int64_t *substitutes; /* NULL if all samples are themselves, else n_samples: the index of the sample that
                                     * was served in the place of a damaged one, or -1 */
        uint32_t n_substituted;
        uint32_t idx_slot;   /* 0 .. n_slots-1: which piece of the ring this is, for those who register memory once */
        uint64_t sequence;   /* batches of this loader before it, those skipped by a seek included */
        uint64_t planned_ns; /* CLOCK_MONOTONIC: when the daemon began to fill it, */
        uint64_t ready_ns;   /* and when it was ready */
        uint32_t n_skipped;  /* on_error "skip": damaged samples that were left out of it */
        uint32_t reserved;
        uint64_t position;     /* global position of the epoch after this batch, once all ranks have had theirs of this
                                * step: where dlc_seek() goes on with the next one */
        const int64_t *served; /* n_samples: which samples lie here. As indices, but for samples that were substituted:
                                * there it is the substitute. Never NULL */
};

/* Hands out the next batch of the epoch.
 *
 * Returns 0 with a batch in *ret_batch, which must be given back with dlc_release(); DLC_END_OF_EPOCH (positive) when
 * the rank's batches of this epoch have all been handed out; or a negative errno. After DLC_END_OF_EPOCH the next call
 * begins the following epoch, unless dlc_set_epoch() chooses another one. (In torch, forgetting set_epoch() repeats the
 * order of the same epoch; here the order always moves on.)
 *
 * timeout_ms: how long to wait for a batch, -1 = without end, 0 = not at all (-EAGAIN). A batch that is ready costs no
 * system call. Batches that were ready when the daemon died are still handed out before -ECONNRESET.
 * The one call that may block longer is that which begins an epoch past n_epochs: the daemon has to be asked.
 * When the daemon goes away, batches that were ready are still handed out; then, with on_restart "wait", the call waits
 * for its return within timeout_ms (-ETIMEDOUT; the next call goes on waiting) and restart_timeout_ms (-ECONNRESET),
 * and continues with the batch after the last one that was handed out. Batches held by the caller stay as they are;
 * memory that is registered with a GPU is not (info: n_restarts). A batch all of whose samples were skipped is passed
 * over: `step` then jumps. -EBADMSG, -ECONNRESET, -ESTALE and -EPROTO are final: the loader returns them again until it
 * is closed. */
DLC_API int dlc_next(struct dlc_loader *loader, int timeout_ms, const struct dlc_batch **ret_batch);

/* Gives a batch back, so that its slot can be filled again. In any order, from any thread; never blocks. After the call
 * the batch and its memory must not be touched. -EINVAL: this loader did not hand it out, or it was released before;
 * the text is in dlc_last_error() of the calling thread. */
DLC_API int dlc_release(struct dlc_loader *loader, const struct dlc_batch *batch);

/* Why a sample of a held batch was substituted: a text such as "dog/7.jpg: truncated". NULL if it was not, or if
 * the text was not kept (16 are, a batch). Valid as long as the batch. */
DLC_API const char *dlc_sample_error(struct dlc_loader *loader, const struct dlc_batch *batch, uint32_t idx_sample);

/* Selects the epoch (at most 2^32-1) whose batches follow, from its beginning. Free of cost for the epoch that is next
 * anyway, and nothing at all at the start of this very epoch. Otherwise, or in the middle of an epoch, the daemon is
 * asked to go on there: what it had prepared is thrown away, and the call blocks for its answer (a minute at most).
 * Batches held by the caller stay valid. */
DLC_API int dlc_set_epoch(struct dlc_loader *loader, uint64_t epoch);

/* Goes on in the middle of an epoch, also at another world size or batch size than those that got there: `position` is
 * a global position, 0 .. the dataset's samples; the ranks deal out the rest. After the last one the epoch
 * has no batches left. Asks the daemon as dlc_set_epoch() does, in a few milliseconds whatever the position. */
DLC_API int dlc_seek(struct dlc_loader *loader, uint64_t epoch, uint64_t position);

/* Where a run that resumes would go on: after the batches that were released, in their order. A batch that is held
 * counts as not done, and so do all after it. After the last batch of an epoch position is the dataset's samples, and
 * once DLC_END_OF_EPOCH was told, (epoch + 1, 0). Returns 0 or a negative errno. */
DLC_API int dlc_get_cursor(struct dlc_loader *loader, uint64_t *ret_epoch, uint64_t *ret_position);

/* Where a run with these options stands that takes n_batches batches more of each rank from (epoch, position) on, over
 * a dataset of n_samples. After an epoch's last batch that is the
 * beginning of the next epoch, so that n_batches = 0 says whether anything is left of an epoch at a position. An epoch
 * in which no rank has a batch counts as one batch. Asks no daemon and needs no loader; does not block; any thread.
 * Returns 0; -EINVAL for options that dlc_open() would refuse without asking, for a position above the epoch's end, for
 * an epoch above 2^32-1 (the result may be 2^32, after the last one): the text is in dlc_last_error() of the calling
 * thread. */
DLC_API int dlc_cursor_after(const struct dlc_options *options, uint64_t n_samples, uint64_t epoch, uint64_t position,
                             uint64_t n_batches, uint64_t *ret_epoch, uint64_t *ret_position);

/* A descriptor for poll(), select() and event loops: call dlc_next(loader, 0, &b) until it returns -EAGAIN, then wait
 * for POLLIN, then call again. (Readable means "look again", not "a batch is there".) Only to be polled; it is the
 * loader's and closes with it. Negative errno for a loader that cannot be used here. */
DLC_API int dlc_fd(const struct dlc_loader *loader);

/* ---- what was obtained --------------------------------------------------------------------------------------- */

struct dlc_info {
        uint64_t dataset_samples;   /* samples in the dataset */
        uint64_t epoch_samples;     /* that this rank gets in an epoch */
        uint64_t epoch_batches;     /* that they make */
        const char *dataset_digest; /* hex: names the dataset's content and the sequence of its samples */
        const char *pipeline;       /* in its canonical spelling */
        const char *job;
        const char *memory; /* for people: "huge pages (transparent), locked, node 0" */
        uint32_t rank;
        uint32_t world_size;
        uint32_t batch_size;
        uint32_t n_slots;
        void *memory_base;     /* all slots of this rank lie here: what a GPU's driver may register */
        uint64_t memory_bytes; /* multiple of the page size */
        uint32_t n_restarts;   /* of the daemon that this loader has lived through; raised when memory_base changes */
        uint32_t is_waiting;   /* 1: the daemon is gone and dlc_next() waits for its return */
};

/* Never NULL for a loader; valid until dlc_close(). Constant, but for what a restart of the daemon changes: memory and
 * what is behind it. */
DLC_API const struct dlc_info *dlc_get_info(const struct dlc_loader *loader);

/* What is allowed and perhaps not meant: a sentence for people, to be shown once. NULL: nothing (more). Ask after
 * dlc_open(), and after an epoch's end: then it names ranks of this node, as far as the launcher tells them, that have
 * never attached, if rank and world_size came from the environment. The daemon is asked for that once; if ranks are
 * missing the call waits until 5 s after the opening for those that are late. Valid until the next call on the loader.
 */
DLC_API const char *dlc_warning(struct dlc_loader *loader);

/* What the environment says of this process's place in its run, as dlc_open() takes it for what is -1. */
struct dlc_launch {
        int rank;             /* 0 if nothing is said */
        int world_size;       /* 1 if nothing is said */
        const char *launcher; /* the variable that told the rank, such as "SLURM_PROCID"; NULL: nothing is said */
        const char *run;      /* the run's name, with which the default name of a job begins; "": none */
        const char *remark;   /* what was found and left aside, as dlc_warning() says it; "" */
};

/* Fills in the first `size` bytes of it (pass sizeof(struct dlc_launch)). 0, or -EINVAL for variables that make no
 * sense. Texts are valid until this thread's next call. */
DLC_API int dlc_get_launch(struct dlc_launch *ret_launch, size_t size);

/* Counted since dlc_open(). Times are of CLOCK_MONOTONIC, in nanoseconds. */
struct dlc_stats {
        uint64_t n_batches;     /* handed out */
        uint64_t n_samples;     /* in them */
        uint64_t n_substituted; /* samples */
        uint64_t n_skipped;     /* samples */
        uint64_t n_waits;       /* calls of dlc_next() that found no batch ready */
        uint64_t waited_ns;     /* in them, restarts included */
        uint64_t restart_ns;    /* of that: while the daemon was gone */
        uint64_t opened_ns;     /* when dlc_open() returned */
        uint64_t read_ns;       /* of the batches handed out, summed over their samples: waiting for bytes, */
        uint64_t queued_ns;     /* waiting for a worker, */
        uint64_t decode_ns;     /* and being decoded and augmented */
        uint32_t n_ready;       /* now: batches that are ready, */
        uint32_t n_held;        /* and held by the caller */
        uint32_t n_slots;
        uint32_t n_restarts;
        uint64_t hold_ns; /* of waited_ns: while the job was on hold (dlc_hold()) */
};

/* Fills in the first `size` bytes of it (pass sizeof(struct dlc_stats)). 0 or a negative errno. */
DLC_API int dlc_get_stats(struct dlc_loader *loader, struct dlc_stats *ret_stats, size_t size);

/* Is the job on hold because its dataset cannot be read (a mount that is gone, a server that does not answer)? Then the
 * sentence why, such as "on hold: /data/photos: cats/7.jpg: Input/output error (EIO); trying again for 9 min"; else
 * NULL. Also if a read has not come back for 5 s ("... reading cats/7.jpg has not come back for 12 s"). No sample is
 * lost meanwhile; after the daemon's outage_timeout the job ends and dlc_next() returns -EBADMSG with the reason,
 * except that for a read which hangs it waits for as long as that takes. Valid until the next call on the loader. Never
 * blocks. */
DLC_API const char *dlc_hold(struct dlc_loader *loader);

/* Classes of the dataset, in the order of their labels. The names are asked for once (blocks a moment) and stay until
 * dlc_close(). A daemon that is away is waited for as dlc_next() does it, up to restart_timeout_ms (-EINTR: a signal
 * came, call again). dlc_n_classes() returns a negative errno if they cannot be obtained; dlc_class_name() NULL for a
 * label that does not exist. */
DLC_API int64_t dlc_n_classes(struct dlc_loader *loader);
DLC_API const char *dlc_class_name(struct dlc_loader *loader, uint64_t label);

/* The most asked for of it, 0 or NULL without a loader. */
DLC_API uint64_t dlc_epoch_batches(const struct dlc_loader *loader);
DLC_API uint64_t dlc_epoch_samples(const struct dlc_loader *loader);
DLC_API uint64_t dlc_dataset_samples(const struct dlc_loader *loader);
DLC_API const char *dlc_dataset_digest(const struct dlc_loader *loader);

/* ---- once only ----------------------------------------------------------------------------------------------- */

/* Lets one process of many do a piece of work while the others wait for its end: to unpack an archive once per node,
 * to prepare a folder once per cluster. Needs no daemon; the processes may be started by anything. What holds them
 * apart is flock() on a small file, which the kernel lets go of whenever its holder dies: another one takes over then.
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
 * An attempt that is done is remembered with its key: whoever comes later with the same key is told so at once. An
 * attempt that failed is told to those who waited for it; who comes later makes a new one. A handle belongs to one
 * thread at a time. A child of a fork() must dlc_once_close() its copy, which leaves the parent's as it is: until then,
 * or until it execs, the child keeps others from taking over if the parent dies. */
enum dlc_once_outcome {
        DLC_ONCE_RUN = 1, /* it is the caller's: do it, then dlc_once_end() */
        DLC_ONCE_DONE,    /* it has been done, now or earlier */
        DLC_ONCE_FAILED,  /* the attempt that the caller waited for failed: info says how */
};

#define DLC_ONCE_NAME_MAX   65u      /* bytes with NUL, as below */
#define DLC_ONCE_TEXT_MAX   65536u   /* longer texts lose their beginning */
#define DLC_ONCE_RESULT_MAX 1048576u /* longer results are refused */

/* Begin with DLC_ONCE_OPTIONS_INIT; texts are copied by dlc_once_open(). */
struct dlc_once_options {
        size_t size;      /* of this struct, as the caller was compiled; set by DLC_ONCE_OPTIONS_INIT */
        const char *name; /* of the work: 1 .. 64 letters, digits, '.', '_', '-', none of these first. Must be set */

        /* "node" (default): once per node, forgotten when it boots. "cluster": once per folder `dir`, remembered as
         * long as the folder. */
        const char *scope;
        const char *key; /* what the work depends on, such as a digest: 1 .. 128 printable characters. Default "-" */

        /* Where the small file lies. Default for "node": /tmp/dataloaderd-once-UID, made with mode 0700. For "cluster":
         * DATALOADERD_ONCE_DIR of the environment; must be a folder that all nodes see and that has locks. */
        const char *dir;
        bool again; /* do it again, though it is remembered; done counts if it was after dlc_once_open() */

        /* Called within dlc_once_wait() after 3 s of waiting and then ever more seldom, with a sentence such as
         * "waiting for pid 123 on node1, 10 s". */
        dlc_progress_fn on_progress; /* may be NULL */
        void *userdata;
};

#define DLC_ONCE_OPTIONS_INIT                                                                                          \
        { sizeof(struct dlc_once_options), NULL, NULL, NULL, NULL, false, NULL, NULL }

/* What is known of the attempt that dlc_once_wait() ended with. Valid until the next call on the handle. */
struct dlc_once_info {
        uint64_t attempt;   /* 1, 2, ...: the caller's own if it is to run */
        int status;         /* as the runner gave it to dlc_once_end(): an exit status, say; 0 if it is done */
        const char *text;   /* why it failed; "" */
        const char *result; /* what the runner left for the others; "" */
        const char *host;   /* who ran it */
        int64_t pid;
        int64_t when;       /* seconds since 1970, by the runner's clock: for people */
        const char *remark; /* a sentence for people, "" mostly: the runner before died, the file was damaged */
};

struct dlc_once;

/* Finds the folder and the file. Does not wait. On success *ret_once is the caller's, to be closed.
 * -EINVAL: an option; -EACCES: the folder or the file is another user's, or others may write to it; -ENOLCK: the file
 * system has no locks; or what the file system says, with a text that names the file. */
DLC_API int dlc_once_open(const struct dlc_once_options *options, struct dlc_once **ret_once);

/* Waits for the work to be done or to become the caller's. timeout_ms: -1 = without end, 0 = not at all.
 * Returns one of enum dlc_once_outcome; -ETIMEDOUT (also for 0) or -EINTR: call again to go on waiting; or another
 * errno. Looks again after a tenth of the time waited, at most 50 ms ("node") or 2 s ("cluster"). After DONE, FAILED or
 * RUN it returns the same at once. */
DLC_API int dlc_once_wait(struct dlc_once *once, int timeout_ms);

/* Tells how the caller's run ended and lets the others go on. `outcome`: DLC_ONCE_DONE or DLC_ONCE_FAILED; `text` and
 * `result`: UTF-8, may be NULL. -E2BIG: the result is too long; nothing was told, call again. -ENOSPC and the like: it
 * could not be written and is the next one's to run. -EINVAL: not the caller's to end. Blocks for the disk. */
DLC_API int dlc_once_end(struct dlc_once *once, enum dlc_once_outcome outcome, int status, const char *text,
                         const char *result);

/* Frees the handle; NULL is nothing. Work that was the caller's and was not ended is the next one's to run, as if the
 * caller had died. Never blocks. */
DLC_API void dlc_once_close(struct dlc_once *once);

DLC_API const struct dlc_once_info *dlc_once_get_info(const struct dlc_once *once);

/* ---- texts --------------------------------------------------------------------------------------------------- */

/* The text of the loader's last error, of any call on it but dlc_release(); "" if there was none. Valid until the next
 * call on it. -EAGAIN and DLC_END_OF_EPOCH are no errors and leave it as it is. */
DLC_API const char *dlc_error(const struct dlc_loader *loader);

/* The text of the last error of the calling thread, whichever function it came from: dlc_open() included. "" if there
 * was none. Valid until this thread's next call of the library. */
DLC_API const char *dlc_last_error(void);

/* "uint8", "bytes", ...; NULL for what is none. */
DLC_API const char *dlc_dtype_name(uint32_t dtype);

/* Bytes of one element (1 for DLC_BYTES); 0 for what is none. */
DLC_API size_t dlc_dtype_bytes(uint32_t dtype);

/* "0.1.0": of the library that runs, not of this header. */
DLC_API const char *dlc_version(void);

#ifdef __cplusplus
}
#endif

#endif
