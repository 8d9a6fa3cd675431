/* Times what makes orders, without a daemon: bench/orders SAMPLER COLUMN N [BATCH].
 *
 * The column, of N values, is made of a rule: "weights" are float64 of which some are 0, "weights32" the same as
 * float32, "lengths" int32 from 1 to 2048 as texts have them, "labels" int32 of 1000 classes. Prints a line of JSON:
 * seconds to the first position, seconds to the last one, CPU seconds, and the most memory taken. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base/clock.h"
#include "proto/order/making/order_text.h"

static uint64_t begin_ns, first_ns, n_bytes_now, n_bytes_peak;

static void *allocate(struct dlp_making *making, uint64_t n_bytes) {
        void *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        (void)making;
        if (memory == MAP_FAILED)
                return NULL;
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
        (void)order;
        if (making->is_last && first_ns == 0 && n_final > 0)
                first_ns = clock_now_ns();
}

static uint64_t mixed(uint64_t i) {
        i *= 0x9e3779b97f4a7c15ull;
        i = (i ^ i >> 32) * 0xd6e8feb86659fd93ull;
        return (i ^ i >> 32) >> 11;
}

/* Most texts are short: the logarithm of their length is even. */
static int32_t length_of(uint64_t i) {
        return (int32_t)exp2((double)mixed(i) * 0x1p-53 * 11);
}

static struct dlp_column make_column(const char *name, uint64_t n) {
        struct dlp_column column = { .name = name, .n_values = n, .n_samples = n };
        bool is_wide = strcmp(name, "weights") == 0;
        void *values = malloc(n * (is_wide ? sizeof(double) : sizeof(float)));

        if (!values)
                exit(EXIT_FAILURE);
        for (uint64_t i = 0; i < n; i++) {
                double weight = i % 17 == 0 ? 0 : (double)(mixed(i) % 1000) + 1;

                if (is_wide)
                        ((double *)values)[i] = weight;
                else if (strcmp(name, "weights32") == 0)
                        ((float *)values)[i] = (float)weight;
                else if (strcmp(name, "lengths") == 0)
                        ((int32_t *)values)[i] = length_of(i);
                else
                        ((int32_t *)values)[i] = (int32_t)(mixed(i) % 1000 * (mixed(i) % 1000) / 1000);
        }
        column.values = values;
        column.dtype = is_wide                          ? DLP_DTYPE_FLOAT64
                       : strcmp(name, "weights32") == 0 ? DLP_DTYPE_FLOAT32
                                                        : DLP_DTYPE_INT32;
        return column;
}

int main(int argc, char **argv) {
        uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : 0, end_ns, sum = 0;
        struct dlp_making making = { .allocate = allocate, .release = release, .go_on = go_on, .publish = publish };
        static struct dlp_order_text text;
        struct dlp_making_terms terms = { .base = { .n_samples = n, .shuffle = true }, .n_columns = 1 };
        struct dlp_column column;
        struct dlp_order order;
        struct timespec cpu_before, cpu;
        struct why why = { "" };

        if (n == 0) {
                fprintf(stderr, "usage: orders SAMPLER weights|weights32|lengths|labels N [BATCH]\n");
                return EXIT_FAILURE;
        }
        terms.batch_size = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 32;
        column = make_column(argv[2], n);
        terms.columns = &column;
        making.terms = &terms;
        making.why = &why;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_before);
        begin_ns = clock_now_ns();
        if (dlp_order_text_parse(argv[1], &text, &why) < 0 || dlp_order_make(&text, &making, &order) < 0) {
                fprintf(stderr, "%s\n", why.text);
                return EXIT_FAILURE;
        }
        end_ns = clock_now_ns();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        for (uint64_t i = 0; i < order.n_positions; i++)
                sum = sum * 31 + dlp_order_sample(&order, i);
        printf("{\"first_s\": %.6f, \"whole_s\": %.6f, \"cpu_s\": %.6f, \"bytes_a_sample\": %.3f, "
               "\"positions\": %llu, \"digest\": \"%016llx\"}\n",
               (double)((first_ns ? first_ns : end_ns) - begin_ns) / 1e9, (double)(end_ns - begin_ns) / 1e9,
               (double)(cpu.tv_sec - cpu_before.tv_sec) + (double)(cpu.tv_nsec - cpu_before.tv_nsec) / 1e9,
               (double)n_bytes_peak / (double)n, (unsigned long long)order.n_positions, (unsigned long long)sum);
        dlp_making_free(&making, &order);
        free((void *)(uintptr_t)column.values);
        return EXIT_SUCCESS;
}
