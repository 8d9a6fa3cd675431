/* A trainer that may be killed at any moment. It writes each batch into a log before it gives the batch back, and
 * begins anew after the last line of that log. For tests/support/kills.py and tests/soak/, which kill it and compare
 * the log with the order.
 *
 *         kill_rank DATASET BATCH SEED LOG PAUSE_US [KEY=VALUE ...]
 *
 * RANK, WORLD_SIZE and DATALOADERD_SOCKET come from the environment. The keys are options of dlc_open(): job, pipeline,
 * order, partition, on_error, epoch and position (where an empty log begins), slots, shuffle. With seeks=N it goes now
 * and then to another place, of which there are N in an epoch, round=M samples from each other; often several times on
 * end, and with batches in its hands, which must not change meanwhile.
 *
 * A line of the log is a batch, written with one system call: EPOCH STEP POSITION SAMPLE ..., a sample is INDEX:HASH,
 * or INDEX/SUBSTITUTE:HASH where another one was served. The hash is FNV-1a over the sample's bytes. A line without
 * samples is a seek: what follows begins there. SIGTERM ends it
 * after the batch at hand. With lose=N it leaves out its N-th line, for a test that this is found out. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/include/dlclient.h"

#define LINE_MAX_BYTES 65536

static volatile sig_atomic_t ended;

static void on_end(int number) {
        ended = 1;
}

static uint64_t hash_of(const uint8_t *bytes, uint64_t n) {
        uint64_t hash = 0xcbf29ce484222325ull;

        for (uint64_t i = 0; i < n; i++)
                hash = (hash ^ bytes[i]) * 0x100000001b3ull;
        return hash;
}

/* Goes to the end of the last whole line. A line that the kill cut is removed: its batch was not done. */
static int resume(int log, uint64_t *epoch, uint64_t *position) {
        static char tail[LINE_MAX_BYTES + 1];
        struct stat status;
        off_t begin, end;
        ssize_t n;
        char *last;

        if (fstat(log, &status) < 0)
                return -errno;
        begin = status.st_size > LINE_MAX_BYTES ? status.st_size - LINE_MAX_BYTES : 0;
        n = pread(log, tail, LINE_MAX_BYTES, begin);
        if (n < 0)
                return -errno;
        while (n > 0 && tail[n - 1] != '\n')
                n--;
        end = begin + n;
        if (ftruncate(log, end) < 0)
                return -errno;
        if (n == 0)
                return 0;
        tail[n - 1] = '\0';
        last = strrchr(tail, '\n');
        last = last ? last + 1 : tail;
        return sscanf(last, "%" SCNu64 " %*u %" SCNu64, epoch, position) == 2 ? 0 : -EINVAL;
}

/* A sample of varying length has a place of its own; the others have equal shares of the tensor. */
static uint64_t sample_hash(const struct dlc_tensor *image, const struct dlc_batch *batch, uint32_t i) {
        uint64_t n_bytes = (uint64_t)image->strides[0];

        if (image->places)
                return hash_of((const uint8_t *)image->data + image->places[i].offset, image->places[i].n_bytes);
        return hash_of((const uint8_t *)image->data + i * n_bytes, n_bytes);
}

static int write_down(int log, const struct dlc_batch *batch) {
        static char line[LINE_MAX_BYTES];
        int n = snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " %" PRIu64, batch->epoch, batch->step,
                         batch->position);

        for (uint32_t i = 0; i < batch->n_samples; i++) {
                n += snprintf(line + n, sizeof(line) - (size_t)n, " %" PRId64, batch->indices[i]);
                if (batch->substitutes && batch->substitutes[i] >= 0)
                        n += snprintf(line + n, sizeof(line) - (size_t)n, "/%" PRId64, batch->substitutes[i]);
                n += snprintf(line + n, sizeof(line) - (size_t)n, ":%" PRIx64,
                              sample_hash(&batch->tensors[0], batch, i));
        }
        line[n++] = '\n';
        return write(log, line, (size_t)n) == n ? 0 : -EIO;
}

/* ---- seeks --------------------------------------------------------------------------------------------------- */

#define N_HELD     2u
#define EPOCHS_MAX 5u

static struct {
        uint64_t n_places, round; /* n_places 0: no seeks */
        uint64_t state;
} seeks = { .round = 1 };

struct lent {
        const struct dlc_batch *batch; /* NULL: none */
        uint64_t hash;
};

static uint64_t draw(uint64_t n) {
        seeks.state = seeks.state * 6364136223846793005ull + 1442695040888963407ull;
        return (seeks.state >> 33) % n;
}

static uint64_t batch_hash(const struct dlc_batch *batch) {
        uint64_t hash = batch->n_samples;

        for (uint32_t i = 0; i < batch->n_samples; i++)
                hash = hash * 0x100000001b3ull + sample_hash(&batch->tensors[0], batch, i) +
                       (uint64_t)batch->indices[i];
        return hash;
}

static int give_back(struct dlc_loader *loader, struct lent *held) {
        bool is_same = !held->batch || batch_hash(held->batch) == held->hash;

        if (held->batch)
                dlc_release(loader, held->batch);
        held->batch = NULL;
        if (!is_same)
                fprintf(stderr, "a batch changed while it was held\n");
        return is_same ? 0 : -EIO;
}

/* Gives back the oldest of those that are held, and holds this one. */
static int hold(struct dlc_loader *loader, struct lent held[N_HELD], const struct dlc_batch *batch) {
        int r = give_back(loader, &held[0]);

        held[0] = held[1];
        held[1] = (struct lent){ batch, batch_hash(batch) };
        return r;
}

static int wander(struct dlc_loader *loader, int log) {
        char line[64];
        int r;

        if (draw(6) != 0)
                return 0;
        do {
                uint64_t epoch = draw(EPOCHS_MAX), position = draw(seeks.n_places) * seeks.round;
                int n = snprintf(line, sizeof(line), "%" PRIu64 " 0 %" PRIu64 "\n", epoch, position);

                r = dlc_seek(loader, epoch, position);
                if (r == 0 && write(log, line, (size_t)n) != n)
                        r = -EIO;
        } while (r == 0 && draw(3) == 0);
        return r;
}

static int train_and_seek(struct dlc_loader *loader, int log, useconds_t pause_us) {
        struct lent held[N_HELD] = { { 0 } };
        const struct dlc_batch *batch;
        int r = 0;

        while (!ended && r >= 0) {
                r = dlc_next(loader, 200, &batch);
                if (r == 0) {
                        r = write_down(log, batch);
                        if (r == 0)
                                r = hold(loader, held, batch);
                        usleep(pause_us);
                } else if (r == DLC_END_OF_EPOCH || r == -ETIMEDOUT || r == -EINTR) {
                        r = 0;
                }
                if (r == 0)
                        r = wander(loader, log);
        }
        for (unsigned i = 0; i < N_HELD && r >= 0; i++)
                r = give_back(loader, &held[i]);
        return r;
}

/* ---- the run ------------------------------------------------------------------------------------------------- */

static uint64_t lost_line; /* 0: none */

static int train(struct dlc_loader *loader, int log, useconds_t pause_us) {
        const struct dlc_batch *batch;
        uint64_t n_lines = 0;
        int r = 0;

        while (!ended && r >= 0) {
                r = dlc_next(loader, 200, &batch);
                if (r == DLC_END_OF_EPOCH || r == -ETIMEDOUT || r == -EINTR)
                        r = 0;
                else if (r == 0) {
                        r = ++n_lines == lost_line ? 0 : write_down(log, batch);
                        usleep(pause_us);
                        dlc_release(loader, batch);
                }
        }
        return r;
}

/* The value of "KEY=VALUE" if it is this key's, else NULL. */
static const char *value_of(const char *argument, const char *key) {
        size_t n = strlen(key);

        return strncmp(argument, key, n) == 0 && argument[n] == '=' ? argument + n + 1 : NULL;
}

static int take_option(struct dlc_options *options, const char *argument) {
        const char *value;

        if ((value = value_of(argument, "job")))
                options->job = value;
        else if ((value = value_of(argument, "pipeline")))
                options->pipeline = value;
        else if ((value = value_of(argument, "order")))
                options->order = value;
        else if ((value = value_of(argument, "partition")))
                options->partition = value;
        else if ((value = value_of(argument, "on_error")))
                options->on_error = value;
        else if ((value = value_of(argument, "epoch")))
                options->first_epoch = strtoull(value, NULL, 10);
        else if ((value = value_of(argument, "position")))
                options->first_position = strtoull(value, NULL, 10);
        else if ((value = value_of(argument, "slots")))
                options->n_slots = atoi(value);
        else if ((value = value_of(argument, "shuffle")))
                options->shuffle = atoi(value);
        else if ((value = value_of(argument, "seeks")))
                seeks.n_places = strtoull(value, NULL, 10);
        else if ((value = value_of(argument, "round")))
                seeks.round = strtoull(value, NULL, 10);
        else if ((value = value_of(argument, "lose")))
                lost_line = strtoull(value, NULL, 10);
        else
                return -EINVAL;
        return 0;
}

int main(int argc, char **argv) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        struct sigaction action = { .sa_handler = on_end };
        struct dlc_loader *loader;
        int log, r;

        if (argc < 6)
                return 64;
        options.job = "kills";
        for (int i = 6; i < argc; i++)
                if (take_option(&options, argv[i]) < 0) {
                        fprintf(stderr, "unknown option: %s\n", argv[i]);
                        return 64;
                }
        sigaction(SIGTERM, &action, NULL);
        log = open(argv[4], O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (log < 0 || resume(log, &options.first_epoch, &options.first_position) < 0) {
                fprintf(stderr, "%s: %s\n", argv[4], strerror(errno));
                return 1;
        }
        options.dataset = argv[1];
        options.batch_size = atoi(argv[2]);
        options.seed = strtoull(argv[3], NULL, 10);
        do /* the daemon may be dead just now: the first attach is not waited for by the library */
                r = dlc_open(&options, &loader);
        while ((r == -ECONNREFUSED || r == -ECONNRESET || r == -ESHUTDOWN) && !ended && usleep(5000) == 0);
        if (r < 0 && !ended) {
                fprintf(stderr, "open: %s\n", dlc_last_error());
                return 1;
        }
        if (r < 0)
                return 0;
        seeks.state = options.seed ^ ((uint64_t)getpid() << 32);
        r = (seeks.n_places > 0 ? train_and_seek : train)(loader, log, (useconds_t)atoi(argv[5]));
        if (r < 0)
                fprintf(stderr, "next: %s\n", dlc_error(loader));
        dlc_close(loader);
        return r < 0 ? 1 : 0;
}
