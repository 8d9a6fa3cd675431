/* tools/prepare_folder.c: prepares an image folder as staging does, without an origin and without MPI.
 *
 *      prepare_folder IN OUT STEPS [SHARD_BYTES [N_WORKERS [NODE N_NODES]]]
 *
 * OUT is made if it is missing; shards that are there are kept. Prints what came of it as "key value" lines; a failure
 * is a sentence on stderr and exit status 1. SIGTERM cancels. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/dataset.h"
#include "daemon/staging/prepare/prepare.h"
#include "daemon/store/record/record_steps.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"

static _Atomic bool is_cancelled;

static void on_signal(int number) {
        (void)number;
        atomic_store(&is_cancelled, true);
}

static void print_report(const struct prepare_options *options, const struct prepare_report *report) {
        printf("shards %" PRIu64 "\n", prepare_n_shards(options->index, options->shard_bytes));
        printf("samples %" PRIu64 "\n", report->n_samples);
        printf("kept %" PRIu64 "\n", report->n_kept_as_is);
        if (report->n_kept_as_is)
                printf("first %s\n", report->first_kept.text);
}

static int run(char *const *arguments, int n, struct why *why) {
        _cleanup_(dataset_unrefp) struct dataset *dataset = NULL;
        _cleanup_(closep) int out_fd = -1;
        struct prepare_options options = { .steps = arguments[2], .shard_bytes = 256u << 20, .n_nodes = 1 };
        struct dataset_spec spec = { .name = "prepared", .path = arguments[0], .format = "imagefolder" };
        struct prepare_report report;
        int r;

        r = steps_check(options.steps, why);
        if (r == 0) /* an index that cannot be saved lives in memory */
                r = dataset_open(&spec, "/proc/nowhere", NULL, &dataset, NULL, why);
        if (r < 0)
                return r;
        if ((mkdir(arguments[1], 0755) < 0 && errno != EEXIST) ||
            (out_fd = open(arguments[1], O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
                return why_errno(why, -errno, "cannot make %s", arguments[1]);
        if (n > 3 && parse_bytes(arguments[3], &options.shard_bytes) < 0)
                return why_set(why, -EINVAL, "%s is not a number of bytes", arguments[3]);
        options.n_workers = n > 4 ? (uint32_t)atoi(arguments[4]) : 0;
        options.node = n > 6 ? (uint32_t)atoi(arguments[5]) : 0;
        options.n_nodes = n > 6 ? (uint32_t)atoi(arguments[6]) : 1;
        options.index = dataset_source(dataset);
        options.root_fd = dataset_root_fd(dataset);
        options.out_fd = out_fd;
        options.cancel = &is_cancelled;
        r = prepare_run(&options, &report, why);
        if (r == 0)
                print_report(&options, &report);
        return r;
}

int main(int argc, char **argv) {
        struct why why = {};
        int r;

        if (argc < 4 || argc > 8 || argc == 7) {
                fputs("usage: prepare_folder IN OUT STEPS [SHARD_BYTES [N_WORKERS [NODE N_NODES]]]\n", stderr);
                return 64;
        }
        signal(SIGTERM, on_signal);
        r = run(argv + 1, argc - 1, &why);
        if (r < 0)
                fprintf(stderr, "prepare_folder: %s\n", r == -ECANCELED ? "cancelled" : why.text);
        return r < 0;
}
