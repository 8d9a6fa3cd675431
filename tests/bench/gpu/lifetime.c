/* Memory that is used again too early: a trainer queues 100 ms of work in front of its reading of a batch, gives the
 * batch back at once, or keeps it while others come, and takes the next one, on several streams. Another stream, which
 * was named to dlc_cuda_use(), reads each batch as well: after as much work, or at once. What they read is compared
 * with what was sent, by sums.
 *
 * Then the same with a rule that the trainer breaks on purpose: it gives batches back on a stream that knows nothing of
 * its reading. Sums must be wrong there, else this harness would see nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/gpu/bench.h"
#include "tests/bench/ready_batches.h"

#define STREAMS    4
#define KEPT       3 /* rounds that a batch is kept for, if it is */
#define ROUNDS_MAX 10000

/* The readings of a round. */
enum reading {
        TAKEN,   /* after the work, on the stream that the batch was taken for */
        BESIDE,  /* on another stream */
        LEAVING, /* before it is given back, if it was kept */
        N_READINGS
};

struct round {
        const struct dlc_cuda_batch *batch; /* NULL: given back */
        uint32_t kind;
};

struct harness {
        const struct bench *bench;
        struct loader loader;
        struct work work;
        uint32_t n_work; /* products that take as long as was asked for */
        cu_stream streams[STREAMS], idle;
        uint32_t *expected; /* sums, by kind */
        cu_pointer sums;    /* N_READINGS for each round */
        struct round rounds[ROUNDS_MAX];
};

/* ---- what is right --------------------------------------------------------------------------------------------- */

static uint32_t sum_of(const uint16_t *elements, uint64_t n_elements) {
        uint32_t sum = 0;

        for (uint64_t i = 0; i < n_elements / 2; i++)
                sum += (elements[2 * i] | (uint32_t)elements[2 * i + 1] << 16) * bench_sum_factor(i);
        return sum;
}

/* uint8 [n, h, w, 3] to [n, 3, h, w] of the table's elements. */
static void finish(const uint8_t *pixels, const uint16_t (*table)[256], uint64_t n_samples, uint64_t n_pixels,
                   uint16_t *out) {
        for (uint64_t i = 0; i < n_samples; i++)
                for (uint64_t k = 0; k < 3; k++)
                        for (uint64_t pixel = 0; pixel < n_pixels; pixel++)
                                *out++ = table[k][pixels[(i * n_pixels + pixel) * 3 + k]];
}

static uint32_t *expect(const struct bench *bench, const struct loader *loader) {
        uint64_t n = batch_bytes(bench), n_kinds = (uint64_t)bench->wish.kinds;
        uint8_t *pixels = malloc(n + n_kinds * READY_STEP);
        uint32_t *sums = calloc(n_kinds, sizeof(*sums));
        uint16_t *out = malloc(n * sizeof(*out));
        struct dlc_left_form form;

        if (!pixels || !sums || !out)
                bench_fail(1, "no memory for what is expected");
        if (dlc_get_left_form(loader->loader, 0, &form, sizeof(form)) < 0 || form.table_bytes != 3ul * 256 * 2)
                bench_fail(1, "lifetime needs a ready_batches with KINDS: pictures that become float16");
        ready_fill(pixels, n + n_kinds * READY_STEP);
        for (uint64_t kind = 0; kind < n_kinds; kind++) {
                finish(pixels + kind * READY_STEP, form.table, (uint64_t)bench->wish.batch,
                       (uint64_t)bench->wish.side * (uint64_t)bench->wish.side, out);
                sums[kind] = sum_of(out, n);
        }
        free(pixels);
        free(out);
        return sums;
}

/* ---- the trainer ----------------------------------------------------------------------------------------------- */

/* Queues the trainer's reading of a batch. */
static void read_batch(const struct harness *harness, const struct dlc_cuda_batch *batch, uint32_t idx_round,
                       enum reading reading, cu_stream stream) {
        struct bench_sum params = {
                .words = batch->batch.tensors[0].data,
                .sum = (uint32_t *)(uintptr_t)(harness->sums +
                                               ((uint64_t)idx_round * N_READINGS + reading) * sizeof(uint32_t)),
                .n_words = batch_bytes(harness->bench) / 2,
        };
        void *parameters[] = { &params };
        const struct bench *bench = harness->bench;

        bench_check(bench,
                    bench->driver->launch(bench->sum, bench->n_multiprocessors * 4, 1, 1, BENCH_THREADS, 1, 1, 0,
                                          stream, parameters, NULL),
                    "reading a batch");
}

static void queue_work(const struct harness *harness, cu_stream stream) {
        for (uint32_t i = 0; i < harness->n_work; i++)
                work_queue(&harness->work, harness->bench, stream);
}

/* One that was kept is read once more before it goes. */
static void give_back(struct harness *harness, uint32_t i, bool was_kept) {
        cu_stream stream = harness->streams[i % STREAMS];
        struct round *round = &harness->rounds[i];

        if (!round->batch)
                return;
        if (was_kept)
                read_batch(harness, round->batch, i, LEAVING, stream);
        loader_release(&harness->loader, round->batch, stream);
        round->batch = NULL;
}

/* Another stream reads it: one that has as much to do before that, which is still to come when the batch is given back,
 * or one that does it at once. */
static void read_beside(const struct harness *harness, uint32_t i) {
        const struct dlc_cuda_batch *batch = harness->rounds[i].batch;
        cu_stream stream = i % 2 == 0 ? harness->streams[(i + 1) % STREAMS] : harness->idle;

        if (dlc_cuda_use(harness->loader.cuda, batch, stream) < 0)
                bench_fail(1, "%s", dlc_cuda_last_error());
        if (stream != harness->idle)
                queue_work(harness, stream);
        read_batch(harness, batch, i, BESIDE, stream);
}

static void take_round(struct harness *harness, uint32_t i) {
        cu_stream stream = harness->streams[i % STREAMS];
        struct round *round = &harness->rounds[i];

        round->batch = loader_next(&harness->loader, stream);
        round->kind = (uint32_t)(round->batch->batch.step % (uint64_t)harness->bench->wish.kinds);
        queue_work(harness, stream);
        read_batch(harness, round->batch, i, TAKEN, stream);
        read_beside(harness, i);
        if (i % 2 == 0)
                give_back(harness, i, false);
        else if (i >= KEPT)
                give_back(harness, i - KEPT + 1, true);
}

/* Breaks the rule: the batch goes back on a stream that does not wait for its reading, which is queued after it. */
static void take_wrong_round(struct harness *harness, uint32_t i) {
        cu_stream stream = harness->streams[i % STREAMS];
        struct round *round = &harness->rounds[i];
        const struct dlc_cuda_batch *batch = loader_next(&harness->loader, stream);
        struct dlc_cuda_batch copy = *batch;
        struct dlc_tensor image = batch->batch.tensors[0];

        copy.batch.tensors = &image;
        round->kind = (uint32_t)(batch->batch.step % (uint64_t)harness->bench->wish.kinds);
        queue_work(harness, stream);
        loader_release(&harness->loader, batch, harness->idle);
        read_batch(harness, &copy, i, TAKEN, stream);
}

/* ---- the harness ----------------------------------------------------------------------------------------------- */

static void harness_open(struct harness *harness, const struct bench *bench, uint32_t n_rounds, int n_batches) {
        double ms;

        memset(harness, 0, sizeof(*harness));
        harness->bench = bench;
        work_open(&harness->work, bench);
        ms = work_ms(&harness->work, bench);
        harness->n_work = (uint32_t)(bench->wish.work_ms / ms) + 1;
        for (int i = 0; i < STREAMS; i++)
                harness->streams[i] = bench_stream(bench);
        harness->idle = bench_stream(bench);
        harness->sums = bench_allocate(bench, (uint64_t)n_rounds * N_READINGS * sizeof(uint32_t));
        bench_check(
                bench,
                bench->extra.fill(harness->sums, 0, (uint64_t)n_rounds * N_READINGS * sizeof(uint32_t), bench->stream),
                "sums");
        bench_check(bench, bench->driver->stream_synchronize(bench->stream), "sums");
        loader_open(&harness->loader, bench, n_batches);
        harness->expected = expect(bench, &harness->loader);
}

static void harness_close(struct harness *harness) {
        const struct bench *bench = harness->bench;

        loader_close(&harness->loader);
        bench_free(bench, harness->sums);
        for (int i = 0; i < STREAMS; i++)
                bench->driver->stream_destroy(harness->streams[i]);
        bench->driver->stream_destroy(harness->idle);
        work_close(&harness->work, bench);
        free(harness->expected);
}

static bool is_right(const struct harness *harness, uint32_t i, const uint32_t sums[N_READINGS], bool is_control) {
        uint32_t right = harness->expected[harness->rounds[i].kind];
        bool was_kept = i % 2 == 1;

        if (is_control)
                return sums[TAKEN] == right;
        return sums[TAKEN] == right && sums[BESIDE] == right && (!was_kept || sums[LEAVING] == right);
}

/* How many rounds read something else than was sent; the first is told. */
static uint32_t count_wrong(const struct harness *harness, uint32_t n_rounds, bool is_control) {
        const struct bench *bench = harness->bench;
        uint32_t(*sums)[N_READINGS] = calloc(n_rounds, sizeof(*sums)), n_wrong = 0;

        if (!sums)
                bench_fail(1, "no memory for sums");
        for (int i = 0; i < STREAMS; i++)
                bench_check(bench, bench->driver->stream_synchronize(harness->streams[i]), "the trainer's work");
        bench_check(bench, bench->driver->stream_synchronize(harness->idle), "the trainer's work");
        bench_check(bench, bench->driver->copy_out(sums, harness->sums, n_rounds * sizeof(*sums), bench->stream),
                    "copying sums back");
        bench_check(bench, bench->driver->stream_synchronize(bench->stream), "copying sums back");
        for (uint32_t i = 0; i < n_rounds; i++) {
                if (is_right(harness, i, sums[i], is_control))
                        continue;
                if (n_wrong++ == 0 && !is_control)
                        fprintf(stderr,
                                "gpu: lifetime: round %u read %08x, another stream %08x, and %08x before it went; %08x "
                                "was sent\n",
                                i, sums[i][TAKEN], sums[i][BESIDE], sums[i][LEAVING],
                                harness->expected[harness->rounds[i].kind]);
        }
        free(sums);
        return n_wrong;
}

static uint32_t run(const struct bench *bench, uint32_t n_rounds, bool is_control, uint32_t *ret_n_work) {
        static struct harness harness;
        uint32_t n_wrong;

        harness_open(&harness, bench, n_rounds, is_control ? 1 : KEPT + 2);
        for (uint32_t i = 0; i < n_rounds; i++)
                if (is_control)
                        take_wrong_round(&harness, i);
                else
                        take_round(&harness, i);
        for (uint32_t i = 0; i < n_rounds; i++)
                give_back(&harness, i, true);
        n_wrong = count_wrong(&harness, n_rounds, is_control);
        *ret_n_work = harness.n_work;
        harness_close(&harness);
        return n_wrong;
}

void measure_lifetime(const struct bench *bench) {
        uint32_t n = (uint32_t)bench->wish.n, n_control = n / 5 + 1, n_work, n_wrong, n_control_wrong;

        if (n < 1 || n > ROUNDS_MAX)
                bench_fail(2, "n: 1 to %d", ROUNDS_MAX);
        n_wrong = run(bench, n, false, &n_work);
        n_control_wrong = run(bench, n_control, true, &n_work);
        printf("{\"n\": %u, \"wrong\": %u, \"control_n\": %u, \"control_wrong\": %u, \"n_work\": %u}\n", n, n_wrong,
               n_control, n_control_wrong, n_work);
}
