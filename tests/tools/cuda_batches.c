/* cuda_batches: takes batches on a device, and from another loader the same ones on the CPU, and compares all bytes.
 *
 *      cuda_batches SOCKET DATASET PIPELINE [key=value ...]
 *
 *      batch=N       samples a batch (8)             held=N        batches that are kept while others come (0)
 *      epochs=N      (2)                             slots=N       of each ring (4)
 *      allocate=1    outputs are the caller's        streams=N     the trainer's, in turns; 0: the default stream (1)
 *      pause=MS      after each batch (0)            break=N       leaves the first epoch after N batches, with a seek
 *      forms=0       the daemon finishes pictures    kill=N        ends without closing anything, after N batches
 *      operations=0  the daemon flips and changes    skip=1        damaged samples are left out, not substituted
 *                    colours
 *      late=N        compares a batch N batches later, so that nothing waits for the device meanwhile (4)
 *      use=1         works with batches on a stream besides that of the loop (0)
 *      wait=1        says "batch 10" when it is there, and waits for a daemon that goes away
 *      near=1       asks for memory near to the device, and prints what memory it is
 *      hasty=1      closes right after the last release, while the trainer's streams are still busy
 *
 * The trainer's work is a copy of the batch to memory of its own on the device, queued on its stream right before the
 * batch is released: if a slot, a stage or an output is used again too early, the bytes that arrive are wrong. Prints
 * "batches N bytes N ahead N registered N host N errors N", or the first difference, and ends with 1; with 3 and the
 * sentence if the library refuses. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cuda/driver.h"
#include "client/include/dlclient-cuda.h"

#define HELD_MAX    32
#define KEPT_MAX    64 /* held, and late */
#define STREAMS_MAX 8
#define TENSORS_MAX 32

struct wish {
        int batch, epochs, held, slots, allocate, streams, pause, stop, forms, operations, skip, kill, wait, late,
                hasty, near, use;
};

/* A batch that is being copied back. */
struct kept {
        const struct dlc_cuda_batch *batch; /* NULL: released */
        char **errors; /* of its samples, as the CPU's loader told them; NULL: none is substituted */
        uint32_t n_samples;
        cu_stream stream;
        cu_pointer copies[TENSORS_MAX]; /* on the device */
        uint8_t *expected[TENSORS_MAX];
        size_t n_bytes[TENSORS_MAX];
        void *outputs[TENSORS_MAX]; /* of the caller's own, to be freed after it */
        uint32_t n_tensors;
        uint64_t epoch, step;
};

static const struct driver *driver;
static int n_outputs;                       /* that were allocated and not freed */
static unsigned long long n_host, n_errors; /* tensors that stayed on the host; texts of substituted samples */

__attribute__((noreturn)) static void refuse(const char *text) {
        printf("refused: %s\n", text);
        exit(3);
}

static void check(cu_result result, const char *what) {
        struct why why;

        if (driver_refuse(driver, result, what, &why) < 0)
                refuse(why.text);
}

static int allocate(void *userdata, const struct dlc_tensor *tensor, size_t n_bytes, void *stream, void **ret_data) {
        cu_pointer pointer = 0;

        (void)tensor;
        (void)stream;
        check(driver->allocate(&pointer, n_bytes), "allocate");
        ++*(int *)userdata;
        *ret_data = (void *)(uintptr_t)pointer;
        return 0;
}

static void free_output(void *userdata, void *data, void *stream) {
        (void)stream; /* cuMemFree() waits for all work */
        check(driver->release((cu_pointer)(uintptr_t)data), "free");
        --*(int *)userdata;
}

/* A tensor in pieces: its samples, or its rows if it is of the batch as a whole. */
static uint32_t n_pieces(const struct dlc_batch *batch, const struct dlc_tensor *tensor) {
        return tensor->is_whole ? (uint32_t)tensor->shape[0] : batch->n_samples;
}

/* Where a piece is, from the tensor's data. Returns its bytes; 0: the sample lacks the field, or is empty. */
static size_t piece_at(const struct dlc_tensor *tensor, uint32_t idx, uint64_t *ret_offset) {
        size_t n = dlc_dtype_bytes(tensor->dtype);

        if (tensor->places && !tensor->is_whole) {
                *ret_offset = tensor->places[idx].offset;
                return tensor->places[idx].offset == DLC_ABSENT ? 0 : tensor->places[idx].n_bytes;
        }
        *ret_offset = idx * (uint64_t)tensor->strides[0];
        for (uint32_t i = 1; i < tensor->n_dims; i++)
                n *= (size_t)tensor->shape[i];
        return n;
}

/* All pieces of a tensor on the CPU, one after the other. */
static uint8_t *expect(const struct dlc_batch *batch, const struct dlc_tensor *tensor, size_t *ret_n) {
        size_t n_bytes = 0, at = 0;
        uint64_t offset;
        uint8_t *bytes;

        for (uint32_t i = 0; i < n_pieces(batch, tensor); i++)
                n_bytes += piece_at(tensor, i, &offset);
        bytes = malloc(n_bytes + 1);
        assert(bytes);
        for (uint32_t i = 0; i < n_pieces(batch, tensor); i++) {
                size_t n = piece_at(tensor, i, &offset);

                if (n > 0)
                        memcpy(bytes + at, (const uint8_t *)tensor->data + offset, n);
                at += n;
        }
        *ret_n = n_bytes;
        return bytes;
}

static void compare_tensor(const struct kept *kept, uint32_t idx) {
        size_t n = kept->n_bytes[idx];
        uint8_t *bytes = malloc(n);

        assert(bytes);
        check(driver->copy_out(bytes, kept->copies[idx], n, kept->stream), "copying a batch back");
        check(driver->stream_synchronize(kept->stream), "copying a batch back");
        for (size_t i = 0; i < n; i++)
                if (bytes[i] != kept->expected[idx][i]) {
                        printf("epoch %llu, step %llu, tensor %u, byte %zu of %zu: %u, not %u\n",
                               (unsigned long long)kept->epoch, (unsigned long long)kept->step, idx, i, n, bytes[i],
                               kept->expected[idx][i]);
                        exit(1);
                }
        free(bytes);
        check(driver->release(kept->copies[idx]), "free");
}

static void compare(struct kept *kept) {
        for (uint32_t i = 0; i < kept->n_tensors; i++) {
                if (kept->n_bytes[i] > 0)
                        compare_tensor(kept, i);
                free(kept->expected[i]);
        }
        kept->n_tensors = 0;
}

/* Everything that the trainer asked of the batch has been done: is it what it should be? */
static void finish(struct kept *kept) {
        if (kept->n_tensors == 0)
                return;
        check(driver->stream_synchronize(kept->stream), "waiting for the trainer's stream");
        compare(kept);
        for (uint32_t i = 0; i < TENSORS_MAX; i++)
                if (kept->outputs[i])
                        free_output(&n_outputs, kept->outputs[i], kept->stream);
        memset(kept->outputs, 0, sizeof(kept->outputs));
}

/* Copies all pieces to memory of the trainer's, in the order of its stream. */
static void copy(struct kept *kept, uint32_t idx, const struct dlc_batch *batch) {
        const struct dlc_tensor *tensor = &batch->tensors[idx];
        size_t at = 0;

        check(driver->allocate(&kept->copies[idx], kept->n_bytes[idx]), "allocate");
        for (uint32_t i = 0; i < n_pieces(batch, tensor); i++) {
                uint64_t offset;
                size_t n = piece_at(tensor, i, &offset);

                if (n > 0)
                        check(driver->copy_over(kept->copies[idx] + at, (cu_pointer)(uintptr_t)tensor->data + offset, n,
                                                kept->stream),
                              "the trainer's work");
                at += n;
        }
}

static void differs(const struct dlc_tensor *tensor, const char *what) {
        printf("tensor %s: %s\n", tensor->name, what);
        exit(1);
}

/* Everything but the elements. */
static void compare_descriptions(const struct dlc_tensor *mine, const struct dlc_tensor *theirs, uint32_t n_samples) {
        size_t n_shape = mine->n_dims * sizeof(*mine->shape);

        if (strcmp(mine->name, theirs->name) != 0 || mine->dtype != theirs->dtype || mine->n_dims != theirs->n_dims ||
            memcmp(mine->shape, theirs->shape, n_shape) != 0 || mine->is_whole != theirs->is_whole)
                differs(mine, "described otherwise");
        if (!mine->places != !theirs->places || !mine->extents != !theirs->extents)
                differs(mine, "another layout");
        if (mine->extents && memcmp(mine->extents, theirs->extents, n_samples * sizeof(*mine->extents)) != 0)
                differs(mine, "other extents");
        for (uint32_t i = 0; mine->places && i < n_samples; i++)
                if (mine->places[i].n_bytes != theirs->places[i].n_bytes ||
                    (mine->places[i].offset == DLC_ABSENT) != (theirs->places[i].offset == DLC_ABSENT))
                        differs(mine, "other places");
}

/* Queues the trainer's work with the batch. What stays on the host is compared at once. */
static void work(struct kept *kept, const struct dlc_cuda_batch *batch, const struct dlc_batch *expected) {
        assert(batch->batch.n_tensors == expected->n_tensors && batch->batch.n_tensors <= TENSORS_MAX);
        kept->n_tensors = expected->n_tensors;
        kept->epoch = expected->epoch;
        kept->step = expected->step;
        for (uint32_t i = 0; i < expected->n_tensors; i++) {
                compare_descriptions(&batch->batch.tensors[i], &expected->tensors[i], expected->n_samples);
                kept->expected[i] = expect(expected, &expected->tensors[i], &kept->n_bytes[i]);
                if (batch->host_tensors >> i & 1) {
                        size_t n;
                        uint8_t *mine = expect(&batch->batch, &batch->batch.tensors[i], &n);

                        if (n != kept->n_bytes[i] || memcmp(mine, kept->expected[i], n) != 0)
                                differs(&batch->batch.tensors[i], "other bytes on the host");
                        free(mine);
                        kept->n_bytes[i] = 0;
                        n_host++;
                } else if (kept->n_bytes[i] > 0) {
                        copy(kept, i, &batch->batch);
                }
        }
}

static void compare_arrays(const struct dlc_batch *mine, const struct dlc_batch *theirs) {
        if (mine->epoch == theirs->epoch && mine->step == theirs->step && mine->n_samples == theirs->n_samples &&
            mine->position == theirs->position &&
            memcmp(mine->indices, theirs->indices, mine->n_samples * sizeof(int64_t)) == 0 &&
            memcmp(mine->served, theirs->served, mine->n_samples * sizeof(int64_t)) == 0 &&
            mine->n_substituted == theirs->n_substituted && !mine->substitutes == !theirs->substitutes)
                return;
        printf("epoch %llu, step %llu: another batch than epoch %llu, step %llu\n", (unsigned long long)mine->epoch,
               (unsigned long long)mine->step, (unsigned long long)theirs->epoch, (unsigned long long)theirs->step);
        exit(1);
}

/* Why samples were substituted, as the loader without a device says it. */
static void keep_errors(struct kept *kept, struct dlc_loader *plain, const struct dlc_batch *expected) {
        kept->n_samples = expected->n_samples;
        if (expected->n_substituted == 0)
                return;
        kept->errors = calloc(expected->n_samples, sizeof(*kept->errors));
        assert(kept->errors);
        for (uint32_t i = 0; i < expected->n_samples; i++) {
                const char *text = dlc_sample_error(plain, expected, i);

                kept->errors[i] = text ? strdup(text) : NULL;
        }
}

/* Right before the batch is released: its slot may have been filled again long ago. */
static void compare_errors(struct kept *kept, struct dlc_cuda *cuda) {
        for (uint32_t i = 0; i < kept->n_samples; i++) {
                const char *mine = dlc_cuda_sample_error(cuda, kept->batch, i);
                char *theirs = kept->errors ? kept->errors[i] : NULL;

                if (!mine != !theirs || (mine && strcmp(mine, theirs) != 0)) {
                        printf("epoch %llu, step %llu, sample %u: the error \"%s\", not \"%s\"\n",
                               (unsigned long long)kept->epoch, (unsigned long long)kept->step, i, mine ? mine : "",
                               theirs ? theirs : "");
                        exit(1);
                }
                n_errors += mine != NULL;
                free(theirs);
        }
        free(kept->errors);
        kept->errors = NULL;
        kept->batch = NULL;
}

static int wished(const char *arguments[], const char *key, int initial) {
        for (; *arguments; arguments++)
                if (strncmp(*arguments, key, strlen(key)) == 0 && (*arguments)[strlen(key)] == '=')
                        return atoi(*arguments + strlen(key) + 1);
        return initial;
}

static struct dlc_loader *open_loader(char *arguments[], const struct wish *wish, bool leave_forms, const char *job) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        char bus_id[DLC_CUDA_BUS_ID_MAX];
        struct dlc_loader *loader;

        if (wish->near && dlc_cuda_get_bus_id(-1, bus_id, sizeof(bus_id)) < 0)
                refuse(dlc_cuda_last_error());
        if (wish->near)
                options.near_device = bus_id;
        options.socket = arguments[1];
        options.dataset = arguments[2];
        options.pipeline = arguments[3];
        options.batch_size = wish->batch;
        options.n_slots = wish->slots;
        options.leave_forms = leave_forms;
        options.leave_operations = leave_forms && wish->operations != 0;
        options.on_error = wish->skip ? "skip" : "substitute";
        options.job = job;
        options.rank = 0;
        options.world_size = 1;
        if (dlc_open(&options, &loader) < 0)
                refuse(dlc_last_error());
        if (wish->near)
                printf("memory: %s\n", dlc_get_info(loader)->memory);
        return loader;
}

struct run {
        struct wish wish;
        struct dlc_loader *plain;
        struct dlc_cuda *cuda;
        struct kept kept[KEPT_MAX];
        cu_stream streams[STREAMS_MAX], side;
        uint64_t n_batches;
};

static void take_one(struct run *run, const struct dlc_cuda_batch *batch, cu_stream stream) {
        struct kept *kept = &run->kept[run->n_batches % (uint64_t)(run->wish.held + run->wish.late + 1)];
        const struct dlc_batch *expected;

        if (dlc_next(run->plain, -1, &expected) != 0)
                refuse(dlc_last_error());
        compare_arrays(&batch->batch, expected);
        if (run->wish.use) {
                stream = run->side;
                if (dlc_cuda_use(run->cuda, batch, stream) < 0)
                        refuse(dlc_cuda_last_error());
        }
        finish(kept);
        memset(kept, 0, sizeof(*kept));
        kept->stream = stream;
        work(kept, batch, expected);
        kept->batch = batch;
        keep_errors(kept, run->plain, expected);
        if (dlc_release(run->plain, expected) < 0)
                refuse(dlc_last_error());
        for (uint32_t i = 0; i < batch->batch.n_tensors && run->wish.allocate; i++)
                if (!(batch->host_tensors >> i & 1))
                        kept->outputs[i] = batch->batch.tensors[i].data;
        run->n_batches++;
        if (run->wish.wait && run->n_batches == 10)
                printf("batch 10\n");
        if (run->wish.pause > 0)
                usleep((useconds_t)run->wish.pause * 1000);
        if (run->wish.kill > 0 && run->n_batches == (uint64_t)run->wish.kill)
                _exit(0);
}

static void give_back(struct run *run, const struct dlc_cuda_batch *batch, cu_stream stream) {
        for (int i = 0; i < KEPT_MAX; i++)
                if (run->kept[i].batch == batch)
                        compare_errors(&run->kept[i], run->cuda);
        if (dlc_cuda_release(run->cuda, batch, stream) < 0)
                refuse(dlc_cuda_last_error());
}

static void epoch(struct run *run, uint64_t epoch) {
        const struct dlc_cuda_batch *batch, *held[HELD_MAX] = { NULL };
        cu_stream streams[HELD_MAX];
        int n = run->wish.held, r;

        if (dlc_cuda_set_epoch(run->cuda, epoch) < 0)
                refuse(dlc_cuda_last_error());
        if (dlc_set_epoch(run->plain, epoch) < 0)
                refuse(dlc_last_error());
        for (int i = 0;; i++) {
                cu_stream stream = run->streams[run->n_batches % STREAMS_MAX];
                int at = i % (n + 1);

                r = dlc_cuda_next(run->cuda, -1, stream, &batch);
                if (r != 0)
                        break;
                take_one(run, batch, stream);
                if (held[at])
                        give_back(run, held[at], streams[at]);
                held[at] = batch;
                streams[at] = stream;
                if (n == 0) {
                        give_back(run, batch, stream);
                        held[at] = NULL;
                }
                if (epoch == 0 && run->wish.stop == i + 1)
                        break;
        }
        if (r < 0)
                refuse(dlc_cuda_last_error());
        for (int i = 0; i <= n; i++)
                if (held[i])
                        give_back(run, held[i], streams[i]);
        if (r == DLC_END_OF_EPOCH) {
                const struct dlc_batch *none;

                if (dlc_next(run->plain, -1, &none) != DLC_END_OF_EPOCH) {
                        printf("epoch %llu ends too early\n", (unsigned long long)epoch);
                        exit(1);
                }
        }
}

int main(int n_arguments, char *arguments[]) {
        static const char *none[] = { NULL };
        const char **keys = n_arguments > 4 ? (const char **)(uintptr_t)(arguments + 4) : none;
        struct dlc_cuda_options options = DLC_CUDA_OPTIONS_INIT;
        struct dlc_cuda_info info;
        struct dlc_loader *loader;
        struct run run = { 0 };
        struct why why;

        if (n_arguments < 4)
                return 2;
        setvbuf(stdout, NULL, _IOLBF, 0);
        run.wish = (struct wish){ .batch = wished(keys, "batch", 8),
                                  .epochs = wished(keys, "epochs", 2),
                                  .held = wished(keys, "held", 0),
                                  .slots = wished(keys, "slots", 4),
                                  .allocate = wished(keys, "allocate", 0),
                                  .streams = wished(keys, "streams", 1),
                                  .pause = wished(keys, "pause", 0),
                                  .stop = wished(keys, "break", 0),
                                  .forms = wished(keys, "forms", 1),
                                  .operations = wished(keys, "operations", 1),
                                  .skip = wished(keys, "skip", 0),
                                  .kill = wished(keys, "kill", 0),
                                  .wait = wished(keys, "wait", 0),
                                  .late = wished(keys, "late", 4),
                                  .hasty = wished(keys, "hasty", 0),
                                  .near = wished(keys, "near", 0),
                                  .use = wished(keys, "use", 0) };
        loader = open_loader(arguments, &run.wish, run.wish.forms != 0, "device");
        run.plain = open_loader(arguments, &run.wish, false, "plain");
        options.n_batches = run.wish.held > 0 ? run.wish.held + 2 : 1; /* the oldest is released after the next */
        options.device = wished(keys, "device", -1);
        if (run.wish.allocate) {
                options.allocate = allocate;
                options.free = free_output;
                options.userdata = &n_outputs;
        }
        if (dlc_cuda_open(loader, &options, &run.cuda) < 0)
                refuse(dlc_cuda_last_error());
        if (driver_find(&driver, &why) < 0)
                refuse(why.text);
        cu_context context;
        check(driver->context_retain(&context, 0), "context");
        check(driver->context_push(context), "context");
        for (int i = 0; i < STREAMS_MAX && run.wish.streams > 0; i++) {
                if (i < run.wish.streams)
                        check(driver->stream_create(&run.streams[i], CU_STREAM_NON_BLOCKING), "stream");
                else
                        run.streams[i] = run.streams[i % run.wish.streams];
        }
        check(driver->stream_create(&run.side, CU_STREAM_NON_BLOCKING), "stream");
        for (int e = 0; e < run.wish.epochs; e++)
                epoch(&run, (uint64_t)e);
        for (int i = 0; i < KEPT_MAX && !run.wish.hasty; i++)
                finish(&run.kept[i]);
        dlc_cuda_get_info(run.cuda, &info, sizeof(info));
        printf("batches %llu bytes %llu ahead %llu registered %llu host %llu errors %llu%s%s\n",
               (unsigned long long)run.n_batches, (unsigned long long)info.copied_bytes,
               (unsigned long long)info.n_ahead, (unsigned long long)info.registered_bytes, n_host, n_errors,
               info.remark[0] ? " remark: " : "", info.remark);
        dlc_cuda_close(run.cuda);
        for (int i = 0; i < KEPT_MAX; i++)
                finish(&run.kept[i]);
        if (n_outputs > 0)
                refuse("outputs of the caller's are left");
        dlc_close(loader);
        dlc_close(run.plain);
        check(driver->stream_destroy(run.side), "stream");
        for (int i = 0; i < run.wish.streams && i < STREAMS_MAX; i++)
                check(driver->stream_destroy(run.streams[i]), "stream");
        driver->context_pop(&context);
        driver->context_release(0);
        return 0;
}
