/* read_samples FOLDER FORMAT bypass|use DEPTH SECONDS [SAMPLES]: what the daemon's reader alone makes of a dataset.
 *
 * Samples come in a random order, DEPTH of them under way, into registered buffers as the daemon's are; nothing is
 * decoded. With SAMPLES this number is read, in as many passes over the dataset as that takes, and SECONDS is ignored.
 * Prints one JSON line: bytes a second, CPU microseconds a sample (of the whole process, submitting included), what
 * went past the page cache. A sample that cannot be read ends it. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/data/dataset.h"
#include "daemon/io/reader.h"
#include "proto/base/clock.h"

#define BUFFER_BYTES (256u << 10)

struct slot;

static struct {
        struct reader *reader;
        const struct dataset *dataset;
        uint64_t *order;
        uint64_t n_samples;
        uint64_t n_limit; /* samples to be read; UINT64_MAX: until end_ns */
        uint64_t end_ns;
        bool past_cache;
        uint64_t n_begun, n_ended, n_bytes;
        uint32_t wake_at;

        pthread_mutex_t lock; /* covers what follows */
        pthread_cond_t came;
        struct slot *back; /* slots whose samples have come */
        uint32_t n_back;
} bench;

/* A request with its path beside it. */
struct slot {
        struct slot *next;
        struct read_request request;
        char path[INDEX_PATH_SIZE];
};

static void fail(const char *text) {
        fprintf(stderr, "read_samples: %s\n", text);
        exit(1);
}

static void locate(struct slot *slot, uint64_t sample) {
        const struct source *index = dataset_source(bench.dataset);
        struct read_request *request = &slot->request;
        struct extent place;

        source_locate(index, sample, 0, &place);
        request->path = place.shard ? place.shard : slot->path;
        if (!place.shard)
                source_name(index, sample, slot->path);
        request->offset = place.offset;
        request->length = place.length;
        request->is_part = place.shard != NULL;
        request->owner = place.shard ? bench.dataset : NULL;
        request->idx_file = place.idx_shard;
        request->past_cache = place.shard && bench.past_cache;
        if (place.length >= BUFFER_BYTES)
                fail("a sample is larger than the buffers");
}

static bool submit_next(struct slot *slot) {
        if (bench.n_begun >= bench.n_limit || (bench.n_limit == UINT64_MAX && clock_now_ns() >= bench.end_ns))
                return false;
        locate(slot, bench.order[bench.n_begun++ % bench.n_samples]);
        reader_submit(bench.reader, &slot->request);
        return true;
}

static void on_read(struct read_request *request) {
        struct slot *slot = request->userdata;

        pthread_mutex_lock(&bench.lock);
        slot->next = bench.back;
        bench.back = slot;
        if (++bench.n_back == bench.wake_at)
                pthread_cond_signal(&bench.came);
        pthread_mutex_unlock(&bench.lock);
}

/* Those that have come back, at least a quarter of all, or the rest. */
static struct slot *wait_for_some(uint32_t n_under_way) {
        struct slot *slots;

        pthread_mutex_lock(&bench.lock);
        if (bench.wake_at > n_under_way)
                bench.wake_at = n_under_way;
        while (bench.n_back < bench.wake_at)
                pthread_cond_wait(&bench.came, &bench.lock);
        slots = bench.back;
        bench.back = NULL;
        bench.n_back = 0;
        pthread_mutex_unlock(&bench.lock);
        return slots;
}

/* Submits the next sample in place of each of them. Returns how many are no longer under way. */
static uint32_t take_back(struct slot *slots) {
        uint32_t n_over = 0;

        while (slots) {
                struct slot *slot = slots;

                slots = slot->next;
                if (slot->request.result < 0)
                        fail(slot->request.why.text);
                bench.n_ended++;
                bench.n_bytes += slot->request.n_bytes;
                n_over += !submit_next(slot);
        }
        return n_over;
}

static void make_order(void) {
        uint64_t state = clock_now_ns();

        bench.n_samples = dataset_source(bench.dataset)->n_samples;
        bench.order = calloc(bench.n_samples, sizeof(*bench.order));
        if (!bench.order)
                fail("no memory");
        for (uint64_t i = 0; i < bench.n_samples; i++) {
                uint64_t k;

                state = state * 6364136223846793005ull + 1442695040888963407ull;
                k = (state >> 33) % (i + 1);
                bench.order[i] = bench.order[k];
                bench.order[k] = i;
        }
}

static double cpu_us(void) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void start_reader(uint32_t depth, uint8_t *buffers) {
        struct reader_options options = {
                .depth = depth,
                .buffers = buffers,
                .buffer_bytes = BUFFER_BYTES,
                .n_buffers = depth,
                .done = on_read,
        };
        struct why why;

        if (reader_start(&options, &bench.reader, &why) < 0)
                fail(why.text);
}

static void run(uint32_t depth, double seconds, uint8_t *buffers) {
        struct slot *slots = calloc(depth, sizeof(*slots));
        uint64_t begin_ns = clock_now_ns(), end_ns;
        double began_us = cpu_us(), used_us;
        uint32_t n_under_way = 0;
        struct reader_counts counts;

        bench.end_ns = begin_ns + (uint64_t)(seconds * 1e9);
        bench.wake_at = (depth + 3) / 4;
        for (uint32_t i = 0; i < depth; i++) {
                slots[i].request = (struct read_request){
                        .dir_fd = dataset_root_fd(bench.dataset),
                        .buffer = buffers + (size_t)i * BUFFER_BYTES,
                        .capacity = BUFFER_BYTES,
                        .idx_buffer = (int32_t)i,
                        .userdata = &slots[i],
                };
                n_under_way += submit_next(&slots[i]);
        }
        while (n_under_way > 0)
                n_under_way -= take_back(wait_for_some(n_under_way));
        end_ns = clock_now_ns();
        used_us = cpu_us() - began_us;
        reader_counts(bench.reader, &counts);
        printf("{\"mb_per_s\": %.1f, \"cpu_us\": %.3f, \"samples\": %" PRIu64 ", \"direct\": %" PRIu64
               ", \"slow\": %" PRIu64 ", \"backend\": \"%s\", \"fixed_buffers\": %s}\n",
               (double)bench.n_bytes / 1e6 / ((double)(end_ns - begin_ns) / 1e9), used_us / (double)bench.n_ended,
               bench.n_ended, counts.n_direct, counts.n_slow, reader_report(bench.reader)->backend,
               reader_report(bench.reader)->has_fixed_buffers ? "true" : "false");
        free(slots);
}

int main(int argc, char **argv) {
        struct dataset_spec spec = { .name = "samples" };
        struct dataset *dataset;
        struct why why;
        uint8_t *buffers;
        uint32_t depth;

        if (argc < 6)
                fail("usage: read_samples FOLDER FORMAT bypass|use DEPTH SECONDS [SAMPLES]");
        spec.path = argv[1];
        spec.format = argv[2];
        bench.past_cache = strcmp(argv[3], "bypass") == 0;
        depth = (uint32_t)strtoul(argv[4], NULL, 10);
        bench.n_limit = argc > 6 ? strtoull(argv[6], NULL, 10) : UINT64_MAX;
        if (depth < 1 || depth > 1024 || dataset_open(&spec, "/proc/nowhere", NULL, &dataset, NULL, &why) < 0)
                fail(depth < 1 || depth > 1024 ? "a depth of 1 to 1024" : why.text);
        bench.dataset = dataset;
        make_order();
        pthread_mutex_init(&bench.lock, NULL);
        pthread_cond_init(&bench.came, NULL);
        buffers = mmap(NULL, (size_t)depth * BUFFER_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (buffers == MAP_FAILED)
                fail("no memory for buffers");
        start_reader(depth, buffers);
        run(depth, strtod(argv[5], NULL), buffers);
        reader_stop(bench.reader);
        free(bench.order);
        dataset_unref(dataset);
        return 0;
}
