/* From the loader to the GPU, as fast as it goes, and beside a trainer's matrix products.
 *
 * In turns: the link alone; the loader alone; the products alone; both at once; the products with the loader at the
 * pace of a trainer. The products run on a stream and in a thread of their own. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/gpu/bench.h"

#define REPEATS_MAX 101
#define AHEAD       4 /* products that are queued at a time: the device never waits for the host */

/* ---- the products ---------------------------------------------------------------------------------------------- */

struct trainer {
        const struct bench *bench;
        const struct work *work;
        pthread_t thread;
        atomic_bool is_over;
        double rate;        /* products a second */
        double cpu_seconds; /* of its thread */
};

static double thread_cpu_seconds(void) {
        struct timespec used;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void *train(void *userdata) {
        struct trainer *trainer = userdata;
        const struct bench *bench = trainer->bench;
        const struct driver *driver = bench->driver;
        cu_event done[AHEAD];
        cu_context context;
        cu_stream stream;
        double begin = 0, seconds;
        uint64_t n = 0;

        bench_check(bench, driver->context_push(bench->context), "the trainer");
        stream = bench_stream(bench);
        for (int i = 0; i < AHEAD; i++)
                bench_check(bench, driver->event_create(&done[i], CU_EVENT_DISABLE_TIMING), "the trainer");
        for (; n < AHEAD || !atomic_load(&trainer->is_over); n++) {
                cu_event event = done[n % AHEAD];

                if (n >= AHEAD)
                        bench_check(bench, driver->event_synchronize(event), "the trainer");
                if (n == AHEAD)
                        begin = seconds_now(); /* the first one has been done just now */
                work_queue(trainer->work, bench, stream);
                bench_check(bench, driver->event_record(event, stream), "the trainer");
        }
        bench_check(bench, driver->stream_synchronize(stream), "the trainer");
        seconds = seconds_now() - begin;
        trainer->rate = n > AHEAD ? (double)(n - 1) / seconds : 0;
        for (int i = 0; i < AHEAD; i++)
                driver->event_destroy(done[i]);
        driver->stream_destroy(stream);
        driver->context_pop(&context);
        trainer->cpu_seconds = thread_cpu_seconds();
        return NULL;
}

static void trainer_start(struct trainer *trainer, const struct bench *bench, const struct work *work) {
        trainer->bench = bench;
        trainer->work = work;
        atomic_store(&trainer->is_over, false);
        if (pthread_create(&trainer->thread, NULL, train, trainer) != 0)
                bench_fail(1, "no thread for the trainer");
}

static void trainer_stop(struct trainer *trainer) {
        atomic_store(&trainer->is_over, true);
        pthread_join(trainer->thread, NULL);
}

/* ---- the loader ------------------------------------------------------------------------------------------------ */

struct loaded {
        double images_per_s, gb_per_s;
        double client_cpu, daemon_cpu; /* seconds for 1,000 images */
};

static double own_cpu_seconds(void) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double daemon_cpu_seconds(const struct bench *bench) {
        return bench->wish.pid > 0 ? cpu_seconds_of(bench->wish.pid) : 0;
}

/* Takes batches for as long as was asked for; `pace` images a second at most, 0: as many as come. */
static struct loaded take(const struct bench *bench, const struct loader *loader, double pace) {
        const struct driver *driver = bench->driver;
        double cpu = own_cpu_seconds(), daemon_cpu = daemon_cpu_seconds(bench), begin = seconds_now(), seconds;
        uint64_t n_images = 0, n_bytes = loader_info(loader).copied_bytes;
        struct loaded loaded;

        while (seconds_now() - begin < bench->wish.seconds) {
                const struct dlc_cuda_batch *batch = loader_next(loader, bench->stream);

                n_images += batch->batch.n_samples;
                loader_release(loader, batch, bench->stream);
                if (pace > 0) {
                        double early = (double)n_images / pace - (seconds_now() - begin);

                        if (early > 0)
                                usleep((useconds_t)(early * 1e6));
                }
        }
        bench_check(bench, driver->stream_synchronize(bench->stream), "waiting for the last batch");
        seconds = seconds_now() - begin;
        n_bytes = loader_info(loader).copied_bytes - n_bytes;
        loaded.images_per_s = (double)n_images / seconds;
        loaded.gb_per_s = (double)n_bytes / seconds / 1e9;
        loaded.client_cpu = (own_cpu_seconds() - cpu) * 1000 / (double)n_images;
        loaded.daemon_cpu = (daemon_cpu_seconds(bench) - daemon_cpu) * 1000 / (double)n_images;
        return loaded;
}

/* ---- in turns -------------------------------------------------------------------------------------------------- */

enum figure {
        LINK,
        ALONE,
        ALONE_OF_LINK,
        BESIDE,
        BESIDE_OF_LINK,
        SLOWDOWN,
        PACED,
        PACED_SLOWDOWN,
        CLIENT_CPU,
        DAEMON_CPU,
        PRODUCTS,
        N_FIGURES
};

static const char *const FIGURES[N_FIGURES] = {
        [LINK] = "link",
        [ALONE] = "alone",
        [ALONE_OF_LINK] = "alone_of_link",
        [BESIDE] = "beside",
        [BESIDE_OF_LINK] = "beside_of_link",
        [SLOWDOWN] = "slowdown",
        [PACED] = "paced",
        [PACED_SLOWDOWN] = "paced_slowdown",
        [CLIENT_CPU] = "client_cpu",
        [DAEMON_CPU] = "daemon_cpu",
        [PRODUCTS] = "products",
};

struct turn {
        const struct bench *bench;
        const struct loader *loader;
        const struct work *work;
        const uint8_t *memory;
        uint64_t memory_bytes;
        cu_pointer to;
};

static double products_alone(const struct turn *turn) {
        struct trainer trainer = { 0 };

        trainer_start(&trainer, turn->bench, turn->work);
        usleep((useconds_t)(turn->bench->wish.seconds * 1e6));
        trainer_stop(&trainer);
        return trainer.rate;
}

static struct loaded products_beside(const struct turn *turn, double pace, double *ret_products) {
        struct trainer trainer = { 0 };
        struct loaded loaded;

        trainer_start(&trainer, turn->bench, turn->work);
        loaded = take(turn->bench, turn->loader, pace);
        trainer_stop(&trainer);
        *ret_products = trainer.rate;
        return loaded;
}

static void take_turn(const struct turn *turn, double figures[N_FIGURES]) {
        double link = link_rate(turn->bench, turn->memory, turn->memory_bytes, turn->to), beside_products, products;
        struct loaded alone = take(turn->bench, turn->loader, 0), beside, paced;

        figures[LINK] = link;
        figures[ALONE] = alone.images_per_s;
        figures[ALONE_OF_LINK] = alone.gb_per_s / link;
        figures[CLIENT_CPU] = alone.client_cpu;
        figures[DAEMON_CPU] = alone.daemon_cpu;
        products = products_alone(turn);
        figures[PRODUCTS] = products;
        beside = products_beside(turn, 0, &beside_products);
        figures[BESIDE] = beside.images_per_s;
        figures[BESIDE_OF_LINK] = beside.gb_per_s / link;
        figures[SLOWDOWN] = (1 - beside_products / products) * 100;
        paced = products_beside(turn, turn->bench->wish.pace, &beside_products);
        figures[PACED] = paced.images_per_s;
        figures[PACED_SLOWDOWN] = (1 - beside_products / products) * 100;
}

static void print(const struct bench *bench, double values[N_FIGURES][REPEATS_MAX], uint32_t n, double kernel_ms) {
        double images_per_s = 0;

        printf("{");
        for (int i = 0; i < N_FIGURES; i++) {
                struct summary summary = summarise(values[i], n);

                if (i == ALONE)
                        images_per_s = summary.median;
                printf("\"%s\": %.6f, \"%s_low\": %.6f, \"%s_high\": %.6f, ", FIGURES[i], summary.median, FIGURES[i],
                       summary.low, FIGURES[i], summary.high);
        }
        printf("\"kernel_us\": %.3f, \"gpu_share\": %.6f}\n", kernel_ms * 1000,
               images_per_s / bench->wish.batch * kernel_ms / 1000 * 100);
}

void measure_rate(const struct bench *bench) {
        static double values[N_FIGURES][REPEATS_MAX];
        struct turn turn = { .bench = bench };
        uint32_t n = (uint32_t)bench->wish.repeats;
        struct loader loader;
        struct work work;
        void *memory;

        if (n > REPEATS_MAX)
                bench_fail(2, "repeats: at most %d", REPEATS_MAX);
        work_open(&work, bench);
        loader_open(&loader, bench, 2);
        if (dlc_hold_memory(loader.loader, &memory, &turn.memory_bytes) < 0)
                bench_fail(1, "%s", dlc_last_error());
        turn.loader = &loader;
        turn.work = &work;
        turn.memory = memory;
        turn.to = bench_allocate(bench, batch_bytes(bench));
        for (uint32_t i = 0; i < n; i++) {
                double figures[N_FIGURES];

                take_turn(&turn, figures);
                for (int k = 0; k < N_FIGURES; k++)
                        values[k][i] = figures[k];
        }
        bench_free(bench, turn.to);
        dlc_let_memory(loader.loader, memory);
        loader_close(&loader);
        print(bench, values, n, finish_ms(bench, 2, true));
        work_close(&work, bench);
}
