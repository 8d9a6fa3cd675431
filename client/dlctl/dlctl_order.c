/* dlctl order: the samples that a rank gets, computed here. Prints while it shuffles, so that `head` shows something at
 * once. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/dlctl_text.h"
#include "client/dlctl/orders/dlctl_blocks.h"
#include "client/dlctl/orders/dlctl_made.h"
#include "client/dlctl/waiting.h"
#include "proto/base/clock.h"
#include "proto/base/shown/progress.h"
#include "proto/limits.h"
#include "proto/order/epoch_plan.h"
#include "proto/order/sampler.h"

#define DRAW_AFTER_NS 300000000ull /* what is made at once shows nothing */
#define DRAW_STEPS    16u
#define STEPS_AT_ONCE 65536u /* steps of the shuffle between two checks of what can be printed */

struct order {
        struct dlp_sampler_terms terms;
        struct dlp_sampler sampler;
        struct dlp_blocks blocks;
        struct dlp_epoch_plan plan;
        uint64_t world, rank, batch_size, position, shuffle_buffer; /* as asked for */
        enum dlp_dealing dealing;
        const char *steps; /* text of a sampler; "": none */
        struct option_list columns, parts;
        struct made made;
        enum dlp_partition partition;
        bool drop_last;
        uint64_t n_served; /* samples of the rank that come in batches */
        enum output_format format;
        uint64_t n_printed;
        struct text text;
};

static void print_index(struct order *order, uint64_t index) {
        if (order->format == OUTPUT_JSON)
                text_string(&order->text, "{\"index\":");
        text_u64(&order->text, index);
        text_string(&order->text, order->format == OUTPUT_JSON ? "}\n" : "\n");
}

/* Prints the rank's samples up to the first whose position is not final. */
static void print_until(struct order *order, uint64_t n_final) {
        for (; order->n_printed < order->n_served && order->text.error == 0; order->n_printed++) {
                uint64_t position = dlp_epoch_plan_position(&order->plan, order->n_printed);

                if (position >= n_final)
                        return;
                print_index(order, dlp_sampler_at(&order->sampler, position));
        }
}

/* Checked here, because the kernel would promise more memory than it has and then kill some process. */
static int dlctl_order_take_table(const struct order *order, void **ret_table) {
        uint64_t n_bytes = dlp_sampler_table_bytes(&order->terms);
        uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

        *ret_table = n_bytes > 0 && n_bytes <= memory ? calloc(1, n_bytes) : NULL;
        if (n_bytes == 0 || *ret_table)
                return EXIT_DONE;
        return fail(EXIT_REFUSED,
                    "samples: a shuffle of %" PRIu64 " needs %" PRIu64 " MiB of memory, this machine has %" PRIu64
                    " MiB; --order tdperm and --no-shuffle need none",
                    order->terms.n_samples, n_bytes >> 20, memory >> 20);
}

/* Where what is printed can be seen, that is enough. */
static void dlctl_order_draw(const struct order *order, struct dlp_pace *pace, uint64_t n_final) {
        struct dlp_progress progress = {
                .phase = "making the order", .unit = "samples", .done = n_final, .total = order->plan.terms.n_positions
        };
        uint64_t now = clock_now_ns();

        dlp_pace_add(pace, now, progress.done, progress.total);
        dlp_pace_read(pace, now, &progress);
        if (now - pace->began_ns >= DRAW_AFTER_NS && (order->n_printed == 0 || !isatty(STDOUT_FILENO)))
                waiting_draw("", &progress);
        else if (order->n_printed > 0)
                waiting_end();
}

static int print_all(struct order *order) {
        uint64_t n_final = 0, n_steps = 0;
        struct dlp_pace pace;
        void *table;
        int r;

        r = dlctl_order_take_table(order, &table);
        if (r != EXIT_DONE)
                return r;
        dlp_sampler_init(&order->sampler, &order->terms, table);
        dlp_pace_begin(&pace, clock_now_ns());
        while (n_final < order->plan.terms.n_positions && order->text.error == 0 &&
               order->n_printed < order->n_served) {
                n_final = dlp_sampler_advance(&order->sampler, STEPS_AT_ONCE);
                print_until(order, n_final);
                if (n_steps++ % DRAW_STEPS == 0)
                        dlctl_order_draw(order, &pace, n_final);
        }
        waiting_end();
        free(table);
        return EXIT_DONE;
}

/* ---- an order that a sampler's steps make --------------------------------------------------------------------- */

static void print_pair(struct order *order, const char *name, uint64_t value) {
        text_string(&order->text, name);
        text_u64(&order->text, value);
}

static void print_position(struct order *order, uint64_t unit, uint64_t position) {
        const struct dlp_order *made = &order->made.order;

        if (order->format != OUTPUT_JSON) {
                print_index(order, dlp_order_sample(made, position));
                return;
        }
        print_pair(order, "{\"index\":", dlp_order_sample(made, position));
        if (made->starts)
                print_pair(order, ",\"unit\":", unit);
        if (made->pieces) {
                print_pair(order, ",\"begin\":", made->pieces[position].begin);
                print_pair(order, ",\"elements\":", made->pieces[position].n_elements);
        }
        text_string(&order->text, "}\n");
}

static void print_made(struct order *order) {
        const struct dlp_order *made = &order->made.order;

        for (uint64_t k = 0; k < order->n_served && order->text.error == 0; k++) {
                uint64_t unit = dlp_epoch_plan_position(&order->plan, k);

                for (uint64_t i = dlp_order_start(made, unit); i < dlp_order_start(made, unit + 1); i++)
                        print_position(order, unit, i);
        }
}

static int dlctl_order_make(struct order *order) {
        struct made_wish wish = { .sampler = order->steps,
                                  .columns = &order->columns,
                                  .parts = &order->parts,
                                  .base = order->terms,
                                  .batch_size = order->batch_size > 0 ? (uint32_t)order->batch_size : 1 };

        if (order->terms.n_samples == 0)
                return fail(EXIT_REFUSED, "order: a sampler needs a dataset with samples");
        return made_make(&wish, &order->made);
}

static int dlctl_order_check(const struct order *order, bool has_samples) {
        if (!has_samples)
                return fail(EXIT_USAGE, "order: --samples is missing\nTry 'dlctl order --help'.");
        if (order->terms.n_samples > DLP_SAMPLES_MAX)
                return fail(EXIT_REFUSED, "samples: %" PRIu64 "; at most %llu are allowed", order->terms.n_samples,
                            DLP_SAMPLES_MAX);
        if (order->world < 1 || order->world > DLP_WORLD_MAX)
                return fail(EXIT_REFUSED, "world: %" PRIu64 "; 1 to %u ranks are allowed", order->world, DLP_WORLD_MAX);
        if (order->rank >= order->world)
                return fail(EXIT_REFUSED, "rank: %" PRIu64 "; 0 to %" PRIu64 " are allowed in a world of %" PRIu64,
                            order->rank, order->world - 1, order->world);
        if (order->batch_size > DLP_BATCH_MAX)
                return fail(EXIT_REFUSED, "batch: %" PRIu64 "; 1 to %u samples are allowed", order->batch_size,
                            DLP_BATCH_MAX);
        if (order->terms.epoch > DLP_EPOCH_MAX)
                return fail(EXIT_REFUSED, "epoch: %" PRIu64 "; 0 to %llu are allowed", order->terms.epoch,
                            DLP_EPOCH_MAX);
        return EXIT_DONE;
}

static int check_dealing(struct order *order, const char *dealing, const char *partition) {
        if (dlp_dealing_from_name(dealing, &order->dealing) < 0)
                return refuse_choice(EXIT_REFUSED, "dealing", dealing, dlp_dealings);
        if (dlp_partition_from_name(partition, &order->partition) < 0)
                return refuse_choice(EXIT_REFUSED, "partition", partition, "pad drop exact");
        if (order->dealing != DLP_DEALING_STRIDED && order->batch_size == 0)
                return fail(EXIT_USAGE, "order: --dealing %s needs --batch: it deals out whole batches", dealing);
        if (order->drop_last && order->batch_size == 0)
                return fail(EXIT_USAGE, "order: --drop-last needs --batch: it leaves out an incomplete batch");
        return EXIT_DONE;
}

static int dlctl_order_choose(struct order *order, const char *name, const char *blocks) {
        struct dlp_order_choice choice;
        struct why why;

        if (dlp_order_choice_read(name, &choice, &why) < 0)
                return fail(EXIT_REFUSED, "%s", why.text);
        order->terms.kind = choice.kind;
        order->terms.window = choice.window;
        if (choice.kind == DLP_ORDER_BLOCKS) {
                order->terms.blocks = &order->blocks;
                return blocks_read(blocks, order->terms.n_samples, &order->blocks);
        }
        return blocks ? fail(EXIT_REFUSED, "blocks: is for --order blocks") : EXIT_DONE;
}

/* All that is dealt to the rank, less what drop_last leaves out. */
static uint64_t dlctl_order_count_served(const struct dlp_epoch_plan *plan) {
        struct dlp_plan_batch last;

        if (plan->n_batches == 0)
                return 0;
        last = dlp_epoch_plan_batch(plan, plan->n_batches - 1);
        return last.first + last.n_samples;
}

int order_run(struct context *context, const struct command *command, int argc, char **argv) {
        static struct order order = { .terms = { .shuffle = true }, .world = 1, .steps = "" };
        struct dlp_epoch_terms epoch_terms;
        const char *dealing = "strided", *partition = "pad", *name = "torch", *blocks = NULL;
        const struct option_row rows[] = {
                { "samples", OPTION_NUMBER, &order.terms.n_samples, "N", "samples in the dataset" },
                { "world", OPTION_NUMBER, &order.world, "W", "ranks (default 1)" },
                { "rank", OPTION_NUMBER, &order.rank, "R", "whose samples, 0 .. W-1 (default 0)" },
                { "seed", OPTION_NUMBER, &order.terms.seed, "S", "seed (default 0)" },
                { "epoch", OPTION_NUMBER, &order.terms.epoch, "E", "epoch (default 0)" },
                { "no-shuffle", OPTION_FLAG_OFF, &order.terms.shuffle, NULL, "in the dataset's own order" },
                { "dealing", OPTION_TEXT, &dealing, "D",
                  "how samples are dealt to ranks: strided, or in whole batches: chunk or batch (default strided)" },
                { "batch", OPTION_NUMBER, &order.batch_size, "B",
                  "samples a batch, for --dealing chunk and batch, and for samplers" },
                { "drop-last", OPTION_FLAG, &order.drop_last, NULL, "leave out the last batch if it is incomplete" },
                { "partition", OPTION_TEXT, &partition, "P", "pad, drop or exact (default pad)" },
                { "order", OPTION_TEXT, &name, "torch|tdperm|buffer|blocks",
                  "how it is shuffled (default torch); also blocks(window=N)" },
                { "blocks", OPTION_TEXT, &blocks, "FILE",
                  "samples of each block of --order blocks, one number a line; or one number for all (default 1024)" },
                { "shuffle-buffer", OPTION_NUMBER, &order.shuffle_buffer, "N",
                  "samples in the shuffle buffer of --order buffer (default 1000)" },
                { "sampler", OPTION_TEXT, &order.steps, "SAMPLER",
                  "steps that make the order, such as weighted(column=w)" },
                { "column", OPTION_LIST, &order.columns, "NAME=FILE",
                  "numbers for the sampler, one a line; may be given several times" },
                { "part", OPTION_LIST, &order.parts, "NAME=SAMPLES",
                  "of a dataset of several: one of them, in their sequence" },
                { "position", OPTION_NUMBER, &order.position, "P",
                  "the rest of the epoch from this global position on (default 0)" },
        };
        int r;

        order.terms.n_samples = UINT64_MAX;
        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 0, argc, argv);
        if (r >= 0)
                return r;
        r = dlctl_order_check(&order, order.terms.n_samples != UINT64_MAX);
        if (r != EXIT_DONE)
                return r;
        r = check_dealing(&order, dealing, partition);
        if (r != EXIT_DONE)
                return r;
        r = dlctl_order_choose(&order, name, blocks);
        if (r != EXIT_DONE)
                return r;

        if (order.shuffle_buffer > 0 && order.terms.kind != DLP_ORDER_BUFFER)
                return fail(EXIT_REFUSED, "shuffle-buffer: is for --order buffer");
        if (order.shuffle_buffer > DLP_BUFFER_MAX)
                return fail(EXIT_REFUSED, "shuffle-buffer: %" PRIu64 "; at most %u samples are allowed",
                            order.shuffle_buffer, DLP_BUFFER_MAX);
        order.terms.shuffle_buffer = (uint32_t)order.shuffle_buffer;

        order.format = context->format;
        if (order.steps[0]) {
                r = dlctl_order_make(&order);
                if (r != EXIT_DONE) {
                        made_free(&order.made);
                        return r;
                }
        }
        epoch_terms = (struct dlp_epoch_terms){ .n_positions = order.steps[0] ? order.made.order.n_units
                                                                              : dlp_sampler_n_positions(&order.terms),
                                                .world = (uint32_t)order.world,
                                                .batch_size = order.batch_size > 0 ? (uint32_t)order.batch_size : 1,
                                                .dealing = order.dealing,
                                                .partition = order.partition,
                                                .drop_last = order.drop_last };
        if (order.position > epoch_terms.n_positions) {
                made_free(&order.made);
                return fail(EXIT_REFUSED,
                            "position: %" PRIu64 "; 0 to %" PRIu64 ", the positions of an epoch, are allowed",
                            order.position, epoch_terms.n_positions);
        }
        order.plan = dlp_epoch_plan_make(&epoch_terms, (uint32_t)order.rank, order.position);
        order.n_served = dlctl_order_count_served(&order.plan);
        text_init(&order.text, STDOUT_FILENO);
        if (order.steps[0])
                print_made(&order);
        else
                r = order.n_served > 0 ? print_all(&order) : EXIT_DONE;
        made_free(&order.made);
        free((uint64_t *)(uintptr_t)order.blocks.ends);
        text_flush(&order.text);
        return r;
}
