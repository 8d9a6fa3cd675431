/* ready_batches BATCH SIDE: what a ring and the client cost when nothing has to be read or decoded.
 *
 * Plays the daemon's part with proto's own ring: copies a batch of pictures that lies ready into each free slot and
 * publishes it, as a worker process of other loaders sends an array that lies ready. Prints the socket's path, serves
 * until standard input ends. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/order/philox.h"
#include "tests/support/stand_in.h"

static struct stand_in_manners *served;

/* The stand-in asserts as tests do, so it runs as one. */
START_TEST(serve) {
        struct stand_in *stand_in = stand_in_start(served);
        char byte;

        printf("%s\n", stand_in_path(stand_in));
        fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0)
                continue;
        stand_in_stop(stand_in);
}
END_TEST

int main(int argc, char **argv) {
        uint32_t batch_size = argc == 3 ? (uint32_t)atoi(argv[1]) : 0, side = argc == 3 ? (uint32_t)atoi(argv[2]) : 0;
        struct stand_in_manners manners = { .n_samples = 1ull << 40, .ready_side = side };
        Suite *suite = suite_create("ready_batches");
        TCase *tcase = tcase_create("serve");
        SRunner *runner;
        struct dlp_philox philox;
        uint8_t *ready;
        size_t n_bytes;
        int n_failed;

        if (batch_size < 1 || batch_size > 4096 || side < 1 || side > 4096) {
                fprintf(stderr, "usage: ready_batches BATCH SIDE\n");
                return 2;
        }
        n_bytes = 3ull * side * side * batch_size;
        ready = malloc(n_bytes);
        if (!ready)
                return 1;
        dlp_philox_init(&philox, 1, 0, 0, 0);
        for (size_t i = 0; i < n_bytes; i++)
                ready[i] = (uint8_t)dlp_philox_u32(&philox);

        manners.ready = ready;
        served = &manners;
        tcase_add_test(tcase, serve);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_set_fork_status(runner, CK_NOFORK);
        srunner_run_all(runner, CK_SILENT);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        free(ready);
        return n_failed > 0;
}
