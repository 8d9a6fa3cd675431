/* dlctl order: what a rank gets, computed here. Prints while it shuffles, so that `head` sees something at once. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/options.h"
#include "client/dlctl/text.h"
#include "proto/limits.h"
#include "proto/order/shuffle.h"
#include "proto/order/tdperm.h"

#define STEPS_AT_ONCE 65536u /* of the shuffle, between two looks at what can be printed */

struct order {
        uint64_t n_samples, world, rank, seed, epoch, position;
        bool shuffle;
        enum dlp_order_kind kind;
        enum dlp_partition partition;
        enum output_format format;
        const void *table;        /* of the shuffle, or NULL */
        struct dlp_tdperm tdperm; /* of the computed order */
        uint64_t n_printed;
        uint64_t n_rank_samples;
        struct text text;
};

static void print_index(struct order *order, uint64_t index) {
        if (order->format == OUTPUT_JSON)
                text_string(&order->text, "{\"index\":");
        text_u64(&order->text, index);
        text_string(&order->text, order->format == OUTPUT_JSON ? "}\n" : "\n");
}

static uint64_t index_at(const struct order *order, uint64_t place) {
        if (!order->shuffle)
                return place;
        if (order->kind == DLP_ORDER_TDPERM)
                return dlp_tdperm_at(&order->tdperm, place);
        return dlp_shuffle_element(order->table, order->n_samples, place);
}

/* Prints the rank's samples up to the first whose place in the table is not final. */
static void print_until(struct order *order, uint64_t n_final) {
        for (; order->n_printed < order->n_rank_samples && order->text.error == 0; order->n_printed++) {
                uint64_t position = order->position +
                                    dlp_order_position(order->n_printed, (uint32_t)order->world, (uint32_t)order->rank);
                uint64_t place = position % order->n_samples;

                if (place >= n_final)
                        return;
                print_index(order, index_at(order, place));
        }
}

static int print_shuffled(struct order *order) {
        static struct dlp_torch_random random;
        uint64_t n = order->n_samples, n_final = 0, element = dlp_shuffle_element_bytes(n);
        uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        struct dlp_shuffle shuffle;
        void *table;

        /* The kernel would promise more than it has, and then end somebody. */
        table = n <= memory / element ? calloc(n, element) : NULL;
        if (!table)
                return fail(EXIT_REFUSED,
                            "samples: a shuffle of %" PRIu64 " needs %" PRIu64
                            " MiB of memory, this machine has %" PRIu64
                            " MiB; --order tdperm and --no-shuffle need none",
                            n, n > UINT64_MAX / element ? UINT64_MAX >> 20 : n * element >> 20, memory >> 20);
        order->table = table;
        dlp_torch_seed(&random, dlp_order_seed(order->seed, order->epoch));
        dlp_shuffle_init(&shuffle, &random, table, n, DLP_TORCH_2_7);
        while (n_final < n && order->text.error == 0 && order->n_printed < order->n_rank_samples) {
                n_final = dlp_shuffle_advance(&shuffle, STEPS_AT_ONCE);
                print_until(order, n_final);
        }
        order->table = NULL;
        free(table);
        return EXIT_DONE;
}

static int check(const struct order *order, bool has_samples) {
        if (!has_samples)
                return fail(EXIT_USAGE, "order: --samples is missing\nTry 'dlctl order --help'.");
        if (order->n_samples > DLP_SAMPLES_MAX)
                return fail(EXIT_REFUSED, "samples: %" PRIu64 "; at most %llu are allowed", order->n_samples,
                            DLP_SAMPLES_MAX);
        if (order->world < 1 || order->world > DLP_WORLD_MAX)
                return fail(EXIT_REFUSED, "world: %" PRIu64 "; 1 to %u ranks are allowed", order->world, DLP_WORLD_MAX);
        if (order->rank >= order->world)
                return fail(EXIT_REFUSED, "rank: %" PRIu64 "; 0 to %" PRIu64 " are allowed in a world of %" PRIu64,
                            order->rank, order->world - 1, order->world);
        if (order->position > order->n_samples)
                return fail(EXIT_REFUSED, "position: %" PRIu64 "; 0 to %" PRIu64 " are allowed with so many samples",
                            order->position, order->n_samples);
        if (order->epoch > DLP_EPOCH_MAX)
                return fail(EXIT_REFUSED, "epoch: %" PRIu64 "; 0 to %llu are allowed", order->epoch, DLP_EPOCH_MAX);
        return EXIT_DONE;
}

int order_run(struct context *context, const struct command *command, int argc, char **argv) {
        static struct order order = { .world = 1, .shuffle = true };
        const char *partition = "pad", *name = "torch";
        const struct option_row rows[] = {
                { "samples", OPTION_NUMBER, &order.n_samples, "N", "samples in the dataset" },
                { "world", OPTION_NUMBER, &order.world, "W", "ranks (default 1)" },
                { "rank", OPTION_NUMBER, &order.rank, "R", "whose samples, 0 .. W-1 (default 0)" },
                { "seed", OPTION_NUMBER, &order.seed, "S", "seed (default 0)" },
                { "epoch", OPTION_NUMBER, &order.epoch, "E", "epoch (default 0)" },
                { "no-shuffle", OPTION_FLAG_OFF, &order.shuffle, NULL, "in the dataset's own order" },
                { "partition", OPTION_TEXT, &partition, "P", "pad, drop or exact (default pad)" },
                { "order", OPTION_TEXT, &name, "O", "torch or tdperm (default torch)" },
                { "position", OPTION_NUMBER, &order.position, "P",
                  "what is left of the epoch behind this global position (default 0)" },
        };
        int r;

        order.n_samples = UINT64_MAX;
        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 0, argc, argv);
        if (r >= 0)
                return r;
        r = check(&order, order.n_samples != UINT64_MAX);
        if (r != EXIT_DONE)
                return r;
        if (dlp_partition_from_name(partition, &order.partition) < 0)
                return fail(EXIT_REFUSED, "partition: \"%.64s\" is not known; choose one of: pad drop exact",
                            partition);
        if (dlp_order_kind_from_name(name, &order.kind) < 0)
                return fail(EXIT_REFUSED, "order: \"%.64s\" is not known; choose one of: torch tdperm", name);

        order.format = context->format;
        order.n_rank_samples = dlp_order_rank_samples(order.n_samples - order.position, (uint32_t)order.world,
                                                      (uint32_t)order.rank, order.partition);
        text_init(&order.text, STDOUT_FILENO);
        if (order.shuffle && order.kind == DLP_ORDER_TORCH && order.n_rank_samples > 0)
                r = print_shuffled(&order);
        else if (order.n_rank_samples > 0) {
                dlp_tdperm_init(&order.tdperm, order.seed, order.epoch, order.n_samples);
                print_until(&order, order.n_samples);
        }
        if (text_flush(&order.text) < 0 && order.text.error != -EPIPE)
                return fail(EXIT_REFUSED, "cannot write: %s", strerror(-order.text.error));
        return r;
}
