/* resume order: what the first sample at a random position of an order of 10^8 costs, from asking for the order on.
 * resume seek: what going on in the middle of another epoch costs a rank, from dlc_seek() to its first batch.
 *
 * Prints one JSON object. For `seek`, DATALOADERD_SOCKET says where it attaches; the dataset is "photos". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/include/dlclient.h"
#include "daemon/data/orders/order_table.h"

#define N_SAMPLES 100000000ull
#define N_TDPERM  1001
#define N_TORCH   3
#define N_SEEKS   15
#define BATCH     64

static double now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static double median(double *values, size_t n) {
        qsort(values, n, sizeof(*values), by_value);
        return values[n / 2];
}

static uint64_t random_position(void) {
        return ((uint64_t)random() << 31 | (uint64_t)random()) % N_SAMPLES;
}

/* ---- the order alone ----------------------------------------------------------------------------------------- */

static double first_index(struct order_tables *tables, enum dlp_order_kind kind, uint64_t epoch) {
        struct order_spec spec = {
                .terms = { .n_samples = N_SAMPLES, .seed = 1, .epoch = epoch, .shuffle = true, .kind = kind }
        };
        uint64_t position = random_position(), index;
        double begin = now_ms(), ms;
        struct order_table *table;

        if (order_table_get(tables, &spec, &table, NULL) < 0)
                exit(1);
        while (order_table_at(table, position, &index) == ORDER_NOT_YET)
                nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
        ms = now_ms() - begin;
        order_table_put(table);
        return ms;
}

/* torch's shuffle and nothing else, in one go. */
static double whole_shuffle(uint64_t epoch) {
        static struct dlp_torch_random generator;
        void *table = calloc(N_SAMPLES, dlp_shuffle_element_bytes(N_SAMPLES));
        struct dlp_shuffle shuffle;
        double begin = now_ms(), ms;

        if (!table)
                exit(1);
        dlp_torch_seed(&generator, dlp_order_seed(1, epoch));
        dlp_shuffle_init(&shuffle, &generator, table, N_SAMPLES, DLP_TORCH_2_7);
        dlp_shuffle_advance(&shuffle, N_SAMPLES);
        ms = now_ms() - begin;
        free(table);
        return ms;
}

static void measure_order(void) {
        static double tdperm[N_TDPERM], torch[N_TORCH], ratios[N_TORCH];
        struct order_tables *tables;

        if (order_tables_new(&(struct order_tables_options){ 0 }, &tables) < 0)
                exit(1);
        for (size_t i = 0; i < N_TDPERM; i++)
                tdperm[i] = first_index(tables, DLP_ORDER_TDPERM, i);
        for (size_t i = 0; i < N_TORCH; i++) { /* in turns: the machine's speed drifts */
                double whole = whole_shuffle(i);

                torch[i] = first_index(tables, DLP_ORDER_TORCH, i);
                ratios[i] = torch[i] / whole;
        }
        printf("{\"tdperm_ms\": %.6f, \"torch_ms\": %.3f, \"torch_vs_shuffle\": %.4f}\n", median(tdperm, N_TDPERM),
               median(torch, N_TORCH), median(ratios, N_TORCH));
        order_tables_free(tables);
}

/* ---- a rank -------------------------------------------------------------------------------------------------- */

static void check(struct dlc_loader *loader, int r) {
        if (r == 0)
                return;
        fprintf(stderr, "resume: %s\n", loader ? dlc_error(loader) : dlc_last_error());
        exit(1);
}

static void measure_seek(void) {
        static double values[N_SEEKS];
        struct dlc_options options = DLC_OPTIONS_INIT;
        const struct dlc_batch *batch;
        struct dlc_loader *loader = NULL;

        options.dataset = "photos";
        options.pipeline = "random_resized_crop(224) hflip(0.5)";
        options.batch_size = BATCH;
        options.job = "bench-resume";
        check(NULL, dlc_open(&options, &loader));
        check(loader, dlc_next(loader, 30000, &batch));
        dlc_release(loader, batch);
        for (uint64_t i = 0; i < N_SEEKS; i++) {
                double begin;

                nanosleep(&(struct timespec){ .tv_nsec = 400000000 }, NULL); /* the ring is full: the workers rest */
                begin = now_ms();
                check(loader, dlc_seek(loader, 1000 + 7 * i, dlc_dataset_samples(loader) / 2));
                check(loader, dlc_next(loader, 30000, &batch));
                values[i] = now_ms() - begin;
                dlc_release(loader, batch);
        }
        printf("{\"ms\": %.3f, \"n\": %d}\n", median(values, N_SEEKS), N_SEEKS);
        dlc_close(loader);
}

int main(int argc, char **argv) {
        if (argc >= 2 && strcmp(argv[1], "order") == 0)
                measure_order();
        else if (argc >= 2 && strcmp(argv[1], "seek") == 0)
                measure_seek();
        else {
                fprintf(stderr, "usage: resume order|seek\n");
                return 2;
        }
        return 0;
}
