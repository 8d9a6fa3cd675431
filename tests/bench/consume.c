/* consume MODE DAEMON_PID [BATCHES]: a client that measures. Prints one JSON object.
 *
 *   throughput  images/s, the longest time between two batches, and CPU seconds per 1,000 images (daemon and client
 * together), after a warm-up
 *   first       milliseconds from dlc_open() to the first batch
 *   ready       nanoseconds of dlc_next() for batches that are ready, without those of reading the clock
 *   wake        microseconds from publishing to the return of a dlc_next() that slept, the worker idle after it
 *   wake_busy   the same, the worker going on with the next batch
 *   floor, floor_busy   the same of a bare futex between two threads: what this machine can do
 *   hold        attaches, fills its ring, prints a line, and stays until its standard input ends (memory is looked at)
 *   train       a training with a rank for each further argument, the milliseconds of its step: it sleeps as long, as
 * one does whose GPU computes. It goes on until it is ended, also by the end of whoever started it
 *
 * DATALOADERD_SOCKET, RANK, WORLD_SIZE and BENCH_JOB say where it attaches; the dataset is "photos". BENCH_HEAVY: a
 * pipeline of large pictures in the place of the usual one (throughput), in batches of four. BENCH_PIPELINE: that of
 * throughput, or of train, with BENCH_BATCH; BENCH_LEAVE: "forms" or "operations", which are left as if there were a
 * device, and not done; BENCH_IN_STEP: its ranks wait for each other after each step, as those do that add up
 * gradients. */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/include/dlclient.h"

#define BATCH       64
#define SAMPLES_MAX 20000
#define TOUCH_STEP  4096 /* bytes: the consumer looks at a byte of each page, as a copy to a GPU would */

static double values[SAMPLES_MAX];
static int n_values;
static volatile uint8_t sink;

static uint64_t now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* CPU seconds of a process, from its stat line: fields 14 and 15; they are counted from the bracket that ends the name.
 */
static double cpu_of(int pid) {
        unsigned long long user = 0, kernel = 0;
        char path[64], line[1024];
        const char *rest;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        file = fopen(path, "re");
        if (!file || !fgets(line, sizeof(line), file))
                exit(1);
        fclose(file);
        rest = strrchr(line, ')');
        if (!rest || sscanf(rest + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &kernel) != 2)
                exit(1);
        return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static struct dlc_loader *attach(const char *pipeline, int batch_size, int n_slots) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        const char *leave = getenv("BENCH_LEAVE");
        struct dlc_loader *loader;

        options.dataset = "photos";
        options.pipeline = pipeline;
        options.batch_size = batch_size;
        options.n_slots = n_slots;
        options.job = getenv("BENCH_JOB") ? getenv("BENCH_JOB") : "bench";
        options.partition = "drop";
        options.drop_last = true;
        options.leave_forms = leave != NULL;
        options.leave_operations = leave && strcmp(leave, "operations") == 0;
        if (dlc_open(&options, &loader) < 0) {
                fprintf(stderr, "consume: %s\n", dlc_last_error());
                exit(1);
        }
        return loader;
}

static const struct dlc_batch *next(struct dlc_loader *loader) {
        const struct dlc_batch *batch;
        int r;

        while ((r = dlc_next(loader, 30000, &batch)) == DLC_END_OF_EPOCH)
                ;
        if (r < 0) {
                fprintf(stderr, "consume: %s\n", dlc_error(loader));
                exit(1);
        }
        return batch;
}

static void touch(const struct dlc_batch *batch) {
        const uint8_t *bytes = batch->tensors[0].data;
        int64_t n = batch->n_samples * batch->tensors[0].strides[0];

        for (int64_t i = 0; i < n; i += TOUCH_STEP)
                sink ^= bytes[i];
}

static int by_value(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

/* What reading the clock itself costs, so that tens of nanoseconds can be told. */
static double clock_ns(void) {
        enum {
                N = 1001
        };
        static double pairs[N];

        for (int i = 0; i < N; i++) {
                uint64_t begin = now_ns();

                pairs[i] = (double)(now_ns() - begin);
        }
        qsort(pairs, N, sizeof(double), by_value);
        return pairs[N / 2];
}

static void print_quantiles(void) {
        qsort(values, (size_t)n_values, sizeof(double), by_value);
        printf("{\"p50\": %.3f, \"p99\": %.3f, \"n\": %d}\n", values[n_values / 2], values[(int)(n_values * 0.99)],
               n_values);
}

static void measure_throughput(int pid, int n_batches) {
        const char *heavy = getenv("BENCH_HEAVY"), *given = getenv("BENCH_PIPELINE");
        struct dlc_loader *loader = heavy ? attach(heavy, 4, 2)
                                          : attach(given ? given : "random_resized_crop(224) hflip(0.5)", BATCH, 0);
        int n_warm = 8;
        uint64_t begin = 0, last = 0, gap = 0;
        double cpu = 0, seconds;

        for (int i = 0; i < n_warm + n_batches; i++) {
                const struct dlc_batch *batch;

                if (i == n_warm) { /* the ring, full at the start, is empty by now: the rate is the workers' */
                        cpu = cpu_of(pid) + cpu_of(getpid());
                        begin = now_ns();
                }
                batch = next(loader);
                if (i > n_warm && now_ns() - last > gap)
                        gap = now_ns() - last;
                last = now_ns();
                touch(batch);
                dlc_release(loader, batch);
        }
        seconds = (double)(now_ns() - begin) / 1e9;
        cpu = cpu_of(pid) + cpu_of(getpid()) - cpu;
        printf("{\"images_per_s\": %.1f, \"gap_ms\": %.1f, \"cpu_s_per_1000\": %.4f}\n", n_batches * BATCH / seconds,
               (double)gap / 1e6, cpu / (n_batches * BATCH) * 1000);
        dlc_close(loader);
}

static void measure_first(void) {
        uint64_t begin = now_ns();
        struct dlc_loader *loader = attach("random_resized_crop(224) hflip(0.5)", BATCH, 0);
        const struct dlc_batch *batch = next(loader);

        printf("{\"ms\": %.3f}\n", (double)(now_ns() - begin) / 1e6);
        dlc_release(loader, batch);
        dlc_close(loader);
}

/* A ring as trainers have it: full; a batch is taken and looked at, then the next one. All but one of its slots in a
 * row, so that the daemon is not at work beside us. */
static void measure_ready(void) {
        enum {
                SLOTS = 4,
                ROUNDS = 400
        };
        struct dlc_loader *loader = attach("center_crop(32)", BATCH, SLOTS);
        double clock = clock_ns();

        for (int round = 0; round < ROUNDS; round++) {
                const struct dlc_batch *batches[SLOTS];
                int n_held = 0;

                usleep(round ? 100000 : 1000000); /* until the ring is full again */
                for (int i = 0; i < SLOTS - 1; i++) {
                        uint64_t begin, end;
                        int r;

                        begin = now_ns();
                        r = dlc_next(loader, 0, &batches[n_held]);
                        end = now_ns();
                        if (r < 0)
                                break; /* it was not ready: not what is measured */
                        if (r != 0)
                                continue; /* an epoch's end */
                        values[n_values++] = (double)(end - begin) - clock;
                        touch(batches[n_held++]);
                }
                for (int i = 0; i < n_held; i++)
                        dlc_release(loader, batches[i]);
        }
        print_quantiles();
        dlc_close(loader);
}

/* If we hold all slots except one, the worker has nothing to do after the batch that wakes us; else it goes on
 * decoding. */
static void measure_wake(int n_batches, int is_busy) {
        struct dlc_loader *loader = attach("random_resized_crop(224) hflip(0.5)", 16, 2);
        const struct dlc_batch *held = is_busy ? NULL : next(loader);

        for (int i = 0; i < n_batches && n_values < SAMPLES_MAX; i++) {
                uint64_t asked = now_ns(), got;
                const struct dlc_batch *batch = next(loader);

                got = now_ns();
                if (batch->ready_ns > asked + 100000) /* asked for long before it was ready: it slept */
                        values[n_values++] = (double)(got - batch->ready_ns) / 1e3;
                if (held)
                        dlc_release(loader, held);
                if (is_busy)
                        dlc_release(loader, batch);
                else
                        held = batch;
        }
        if (n_values == 0) {
                fprintf(stderr, "consume: never slept\n");
                exit(1);
        }
        print_quantiles();
        dlc_close(loader);
}

/* ---- the floor of waking: a bare futex between two threads ------------------------------------------------------- */

static _Atomic uint32_t floor_word;
static _Atomic uint64_t floor_sent_ns;

static void *floor_sleeper(void *userdata) {
        for (int i = 0; i < n_values; i++) {
                while (atomic_load(&floor_word) == 0)
                        syscall(SYS_futex, &floor_word, FUTEX_WAIT, 0, NULL, NULL, 0);
                values[i] = (double)(now_ns() - atomic_load(&floor_sent_ns)) / 1e3;
                atomic_store(&floor_word, 0);
        }
        return userdata;
}

/* The waker has slept, or computed, as long as sixteen pictures take. */
static void measure_floor(int n, int is_busy) {
        pthread_t sleeper;

        n_values = n;
        if (pthread_create(&sleeper, NULL, floor_sleeper, NULL) != 0)
                exit(1);
        for (int i = 0; i < n; i++) {
                uint64_t until = now_ns() + 12000000;

                if (is_busy)
                        while (now_ns() < until)
                                ;
                else
                        usleep(12000);
                atomic_store(&floor_sent_ns, now_ns());
                atomic_store(&floor_word, 1);
                syscall(SYS_futex, &floor_word, FUTEX_WAKE, 1, NULL, NULL, 0);
        }
        pthread_join(sleeper, NULL);
        print_quantiles();
}

static void hold(void) {
        struct dlc_loader *loader = attach("random_resized_crop(224) hflip(0.5)", BATCH, 0);
        const struct dlc_batch *batch = next(loader);
        char line[8];

        touch(batch);
        dlc_release(loader, batch);
        usleep(500000); /* the ring fills */
        printf("{\"ring_bytes\": %llu}\n", (unsigned long long)dlc_get_info(loader)->memory_bytes);
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
                dlc_close(loader);
}

/* A rank of a training: in_step, if there is one, is where ranks wait for each other after each step. */
static void train(int step_ms, pthread_barrier_t *in_step) {
        const char *pipeline = getenv("BENCH_PIPELINE"), *size = getenv("BENCH_BATCH");
        struct dlc_loader *loader;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        loader = attach(pipeline ? pipeline : "random_resized_crop(224) hflip(0.5)", size ? atoi(size) : BATCH, 0);
        for (;;) {
                const struct dlc_batch *batch = next(loader);

                touch(batch);
                dlc_release(loader, batch);
                usleep((useconds_t)step_ms * 1000);
                if (in_step)
                        pthread_barrier_wait(in_step);
        }
}

/* One process a rank; they are ended with this one. */
static void train_ranks(char **steps_ms, int n) {
        pthread_barrier_t *in_step = NULL;
        pthread_barrierattr_t shared;
        char number[16];

        if (getenv("BENCH_IN_STEP")) {
                in_step = mmap(NULL, sizeof(*in_step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                if (in_step == MAP_FAILED || pthread_barrierattr_init(&shared) != 0 ||
                    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) != 0 ||
                    pthread_barrier_init(in_step, &shared, (unsigned)n) != 0)
                        exit(1);
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(number, sizeof(number), "%d", n);
        setenv("WORLD_SIZE", number, 1);
        for (int rank = 0; rank < n; rank++) {
                pid_t pid = fork();

                if (pid < 0)
                        exit(1);
                if (pid == 0) {
                        snprintf(number, sizeof(number), "%d", rank);
                        setenv("RANK", number, 1);
                        train(atoi(steps_ms[rank]), in_step);
                }
        }
        wait(NULL); /* none ends of itself */
        exit(1);
}

int main(int argc, char **argv) {
        const char *mode = argc > 2 ? argv[1] : "";
        int pid = argc > 2 ? atoi(argv[2]) : 0, n = argc > 3 ? atoi(argv[3]) : 100;

        if (strcmp(mode, "throughput") == 0)
                measure_throughput(pid, n);
        else if (strcmp(mode, "first") == 0)
                measure_first();
        else if (strcmp(mode, "ready") == 0)
                measure_ready();
        else if (strcmp(mode, "wake") == 0 || strcmp(mode, "wake_busy") == 0)
                measure_wake(n, strcmp(mode, "wake_busy") == 0);
        else if (strcmp(mode, "floor") == 0 || strcmp(mode, "floor_busy") == 0)
                measure_floor(n, strcmp(mode, "floor_busy") == 0);
        else if (strcmp(mode, "hold") == 0)
                hold();
        else if (strcmp(mode, "train") == 0)
                train_ranks(argv + 3, argc - 3);
        else {
                fprintf(stderr, "usage: consume throughput|first|ready|wake|wake_busy|floor|floor_busy|hold|train "
                                "DAEMON_PID [BATCHES | MILLISECONDS...]\n");
                return 2;
        }
        return 0;
}
