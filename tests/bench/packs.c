/* Times packs and batches of documents as long as real ones, without a daemon: bench/packs SAMPLER N [BATCH [PLAIN]].
 *
 * The column "tokens" has N lengths whose logarithm is normal: a median of 320 tokens, 1 of 150 longer than 4,096, as
 * web text has them. Prints one line: seconds of the grouper and of the order before it, units, the share of them that
 * is filled, the most memory, what was planned for it. A fourth argument leaves the epoch in the samples' sequence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "proto/base/clock.h"
#include "proto/order/making/order_text.h"

static uint64_t n_bytes_now, n_bytes_peak;

static void *allocate(struct dlp_making *making, uint64_t n_bytes) {
        void *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED) {
                why_set(making->why, -1, "no memory");
                return NULL;
        }
        n_bytes_now += n_bytes;
        n_bytes_peak = n_bytes_now > n_bytes_peak ? n_bytes_now : n_bytes_peak;
        return memory;
}

static void release(struct dlp_making *making, void *memory, uint64_t n_bytes) {
        (void)making;
        if (!memory)
                return;
        n_bytes_now -= n_bytes;
        munmap(memory, n_bytes);
}

static bool go_on(struct dlp_making *making, uint64_t n_done, uint64_t n_total) {
        (void)making;
        (void)n_done;
        (void)n_total;
        return true;
}

static void publish(struct dlp_making *making, const struct dlp_order *order, uint64_t n_final) {
        (void)making;
        (void)order;
        (void)n_final;
}

static double uniform(uint64_t i) {
        i = (i + 1) * 0x9e3779b97f4a7c15ull;
        i = (i ^ i >> 32) * 0xd6e8feb86659fd93ull;
        i = (i ^ i >> 32) * 0xd6e8feb86659fd93ull;
        return ((double)(i >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller's: two uniform numbers make a normal one. */
static int32_t length_of(uint64_t i) {
        double normal = sqrt(-2 * log(uniform(2 * i))) * cos(6.283185307179586 * uniform(2 * i + 1));
        double length = 320 * exp(1.03 * normal);

        return length < 1 ? 1 : length > 1e6 ? 1000000 : (int32_t)length;
}

static int32_t *make_lengths(uint64_t n) {
        int32_t *lengths = malloc(n * sizeof(*lengths));

        if (!lengths)
                exit(EXIT_FAILURE);
        for (uint64_t i = 0; i < n; i++)
                lengths[i] = length_of(i);
        return lengths;
}

/* Elements of samples over those that units take, which are as long as their longest sample, or as a pack. */
static double filled(const struct dlp_order_text *text, const struct dlp_order *order, const int32_t *lengths) {
        const struct dlp_step *grouper = dlp_order_text_grouper(text);
        uint64_t n_used = 0, n_taken = 0;

        for (uint64_t u = 0; grouper && u < order->n_units; u++) {
                uint64_t n_samples = order->starts[u + 1] - order->starts[u], longest = 0;

                for (uint64_t i = order->starts[u]; i < order->starts[u + 1]; i++) {
                        uint64_t n = order->pieces ? order->pieces[i].n_elements
                                                   : (uint64_t)lengths[dlp_order_sample(order, i)];

                        n_used += n;
                        longest = n > longest ? n : longest;
                }
                n_taken += grouper->type->is_batch ? longest * n_samples : grouper->values[0].whole;
        }
        return n_taken > 0 ? (double)n_used / (double)n_taken : 1;
}

static double cpu_s(void) {
        struct timespec now;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct took {
        double cpu, wall;
};

static struct took make(struct dlp_making *making, const char *sampler, struct dlp_order_text *text,
                        struct dlp_order *order) {
        uint64_t begin_ns = clock_now_ns();
        double begin_s = cpu_s();

        n_bytes_peak = n_bytes_now;
        if (dlp_order_text_parse(sampler, text, making->why) < 0 || dlp_order_make(text, making, order) < 0) {
                fprintf(stderr, "%s\n", making->why->text);
                exit(EXIT_FAILURE);
        }
        return (struct took){ .cpu = cpu_s() - begin_s, .wall = (double)(clock_now_ns() - begin_ns) / 1e9 };
}

int main(int argc, char **argv) {
        uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
        struct dlp_making making = { .allocate = allocate, .release = release, .go_on = go_on, .publish = publish };
        static struct dlp_order_text text;
        struct dlp_making_terms terms = { .base = { .n_samples = n, .shuffle = argc <= 4 }, .n_columns = 1 };
        struct dlp_column column = { .name = "tokens", .dtype = DLP_DTYPE_INT32, .n_values = n, .n_samples = n };
        struct dlp_order order;
        struct why why = { "" };
        int32_t *lengths;
        struct took before, whole;

        if (n == 0) {
                fprintf(stderr, "usage: packs SAMPLER N [BATCH [PLAIN]]\n");
                return EXIT_FAILURE;
        }
        terms.batch_size = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 32;
        column.values = lengths = make_lengths(n);
        terms.columns = &column;
        making.terms = &terms;
        making.why = &why;
        before = make(&making, "", &text, &order);
        dlp_making_free(&making, &order);
        whole = make(&making, argv[1], &text, &order);
        printf("{\"sampler\":\"%s\",\"n\":%llu,\"batch\":%u,\"cpu_seconds\":%.3f,\"cpu_seconds_before\":%.3f,"
               "\"seconds\":%.3f,\"seconds_before\":%.3f,\"units\":%llu,"
               "\"positions\":%llu,\"filled\":%.6f,\"peak_bytes\":%llu,\"planned_bytes\":%llu}\n",
               argv[1], (unsigned long long)n, terms.batch_size, whole.cpu - before.cpu, before.cpu,
               whole.wall - before.wall, before.wall, (unsigned long long)order.n_units,
               (unsigned long long)order.n_positions, filled(&text, &order, lengths), (unsigned long long)n_bytes_peak,
               (unsigned long long)(dlp_order_bytes_max(&text, &terms) + dlp_order_scratch_max(&text, &terms)));
        dlp_making_free(&making, &order);
        free(lengths);
        return EXIT_SUCCESS;
}
