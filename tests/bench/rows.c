/* rows copy FILE ROW_BYTES THREADS [PIECES] | rows serve BATCHES [BATCH_SIZE [PIPELINE]]: how fast rows of an array
 * come, and how fast they could.
 *
 *   copy   threads that do nothing but copy random rows of the mapped file into room of four batches; each row in one
 *          piece, or in PIECES that lie anywhere, as a sample of tokens consists of documents
 *   serve  a rank of the dataset "tokens" that takes batches of 1,024 rows and gives them back; with a batch size in
 * the dataset's own order, else in torch's
 *
 * Prints one JSON object with rows_per_s, over at least a second after a warm-up. DATALOADERD_SOCKET says where to
 * attach. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/include/dlclient.h"

#define BATCH   1024u
#define N_SLOTS 4u
#define ROWS    400000u /* of one thread */

static double now_s(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct copier {
        pthread_t thread;
        const uint8_t *rows;
        uint8_t *room;
        uint64_t n_rows, row_bytes, seed, n_copies;
        unsigned n_pieces;
};

static void *copy_rows(void *userdata) {
        struct copier *copier = userdata;
        uint64_t x = copier->seed, piece = copier->row_bytes / copier->n_pieces;
        uint64_t n_places = copier->n_rows * copier->n_pieces;

        for (uint64_t i = 0; i < copier->n_copies; i++) {
                uint8_t *row = copier->room + i % (N_SLOTS * BATCH) * copier->row_bytes;

                for (unsigned k = 0; k < copier->n_pieces; k++) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        memcpy(row + k * piece, copier->rows + x % n_places * piece, piece);
                }
        }
        return NULL;
}

static double copy_with(struct copier *copiers, unsigned n_threads, uint64_t n_copies) {
        double begin = now_s();

        for (unsigned i = 0; i < n_threads; i++) {
                copiers[i].n_copies = n_copies;
                if (pthread_create(&copiers[i].thread, NULL, copy_rows, &copiers[i]) != 0)
                        exit(1);
        }
        for (unsigned i = 0; i < n_threads; i++)
                pthread_join(copiers[i].thread, NULL);
        return (double)(n_copies * n_threads) / (now_s() - begin);
}

static double copy(const char *path, uint64_t row_bytes, unsigned n_threads, unsigned n_pieces) {
        struct copier *copiers = calloc(n_threads, sizeof(*copiers));
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat status;
        uint8_t *map;

        if (!copiers || fd < 0 || fstat(fd, &status) < 0)
                exit(1);
        map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
        for (unsigned i = 0; i < n_threads; i++) {
                copiers[i].rows = map + 128; /* as numpy aligns its data */
                copiers[i].n_rows = ((uint64_t)status.st_size - 128) / row_bytes;
                copiers[i].row_bytes = row_bytes;
                copiers[i].n_pieces = n_pieces;
                copiers[i].seed = 88172645463325252u + i;
                copiers[i].room = malloc(N_SLOTS * BATCH * row_bytes);
                if (map == MAP_FAILED || !copiers[i].room)
                        exit(1);
        }
        copy_with(copiers, n_threads, ROWS); /* page tables, room */
        return copy_with(copiers, n_threads, 4 * ROWS);
}

static void take(struct dlc_loader *loader, unsigned n_batches) {
        const struct dlc_batch *batch;

        for (unsigned i = 0; i < n_batches;) {
                int r = dlc_next(loader, -1, &batch);

                if (r == DLC_END_OF_EPOCH)
                        continue; /* the next one follows */
                if (r != 0) {
                        fprintf(stderr, "rows: %s\n", dlc_last_error());
                        exit(1);
                }
                dlc_release(loader, batch);
                i++;
        }
}

static double serve(unsigned n_batches, unsigned batch_size, const char *pipeline) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        struct dlc_loader *loader;
        double begin;

        options.dataset = "tokens";
        options.batch_size = batch_size ? batch_size : BATCH;
        options.shuffle = batch_size == 0;
        options.pipeline = pipeline;
        options.rank = 0;
        options.world_size = 1;
        if (dlc_open(&options, &loader) < 0) {
                fprintf(stderr, "rows: %s\n", dlc_last_error());
                exit(1);
        }
        take(loader, n_batches / 4);
        begin = now_s();
        take(loader, n_batches);
        begin = now_s() - begin;
        dlc_close(loader);
        return (double)n_batches * options.batch_size / begin;
}

int main(int argc, char **argv) {
        double rate;

        if ((argc == 5 || argc == 6) && strcmp(argv[1], "copy") == 0)
                rate = copy(argv[2], strtoull(argv[3], NULL, 10), (unsigned)atoi(argv[4]),
                            argc == 6 ? (unsigned)atoi(argv[5]) : 1);
        else if (argc >= 3 && argc <= 5 && strcmp(argv[1], "serve") == 0)
                rate = serve((unsigned)atoi(argv[2]), argc > 3 ? (unsigned)atoi(argv[3]) : 0,
                             argc > 4 ? argv[4] : NULL);
        else
                return 64;
        printf("{\"rows_per_s\": %.0f}\n", rate);
        return 0;
}
