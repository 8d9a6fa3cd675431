#include "client/lib/orders/client_made.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/lib/loader.h"
#include "client/lib/orders/client_making.h"
#include "proto/order/making/order_text.h"

#define COLUMNS_MAX (DLI_COLUMNS_MAX + DLP_ORDER_STEPS_MAX * DLP_ARGUMENTS_MAX)

struct tables {
        struct dlp_order_text text;
        struct dlp_column columns[COLUMNS_MAX];
        void *asked[COLUMNS_MAX]; /* owned: values that the daemon told */
        uint32_t n;
        void *given; /* the trainer's columns, mapped */
        uint64_t n_given_bytes;
        struct dlp_part parts[DLP_PARTS_MAX];
        uint32_t n_parts;
};

static void tables_free(struct tables *tables) {
        if (!tables)
                return;
        for (uint32_t i = 0; i < tables->n; i++)
                free(tables->asked[i]);
        if (tables->given)
                munmap(tables->given, tables->n_given_bytes);
        free(tables);
}

/* ---- columns and parts ----------------------------------------------------------------------------------------- */

static int client_made_take_given(const struct dli_columns *given, struct tables *tables, struct why *why) {
        for (uint32_t i = 0; i < given->n; i++) {
                const Dlp__Column *column = &given->columns[i];
                uint64_t end = column->offset + column->n_values * dlp_dtype_bytes(column->dtype);

                if (end > tables->n_given_bytes)
                        tables->n_given_bytes = end;
        }
        if (given->n == 0)
                return 0;
        tables->given = mmap(NULL, tables->n_given_bytes, PROT_READ, MAP_SHARED, given->fd, 0);
        if (tables->given == MAP_FAILED) {
                tables->given = NULL;
                return why_errno(why, -errno, "columns");
        }
        for (uint32_t i = 0; i < given->n; i++) {
                const Dlp__Column *column = &given->columns[i];

                tables->columns[tables->n++] = (struct dlp_column){ .name = column->name,
                                                                    .dtype = column->dtype,
                                                                    .values = (uint8_t *)tables->given + column->offset,
                                                                    .n_values = column->n_values,
                                                                    .n_samples = column->n_values };
        }
        return 0;
}

static bool client_made_has_column(const struct tables *tables, const char *name) {
        for (uint32_t i = 0; i < tables->n; i++)
                if (strcmp(tables->columns[i].name, name) == 0)
                        return true;
        return false;
}

static int ask_columns(struct dlc_loader *loader, struct tables *tables) {
        struct dlp_column_wish wishes[DLP_ORDER_STEPS_MAX * DLP_ARGUMENTS_MAX];
        uint32_t n = dlp_order_text_columns(&tables->text, wishes, DLP_ORDER_STEPS_MAX * DLP_ARGUMENTS_MAX);
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < n; i++) {
                if (client_made_has_column(tables, wishes[i].name))
                        continue;
                r = dli_samples_column(loader, &wishes[i], &tables->columns[tables->n], &tables->asked[tables->n]);
                if (r == 0)
                        tables->n++;
        }
        return r;
}

static void client_made_take_parts(const struct dlc_loader *loader, struct tables *tables) {
        for (uint32_t i = 0; i < loader->n_parts; i++)
                tables->parts[i] = (struct dlp_part){ .name = loader->parts[i].name,
                                                      .first = loader->parts[i].first,
                                                      .n_samples = loader->parts[i].n_samples };
        tables->n_parts = loader->n_parts;
}

/* ---- what a rank gets ------------------------------------------------------------------------------------------ */

static uint64_t client_made_count(const struct dlp_order *order, const struct dlp_epoch_plan *plan) {
        uint64_t n = 0;

        if (!order->starts)
                return plan->n_samples;
        for (uint64_t k = 0; k < plan->n_samples; k++) {
                uint64_t unit = dlp_epoch_plan_position(plan, k);

                n += dlp_order_start(order, unit + 1) - dlp_order_start(order, unit);
        }
        return n;
}

static void client_made_fill(const struct dlp_order *order, const struct dlp_epoch_plan *plan, int64_t *samples) {
        for (uint64_t k = 0; k < plan->n_samples; k++) {
                uint64_t unit = dlp_epoch_plan_position(plan, k);

                for (uint64_t i = dlp_order_start(order, unit); i < dlp_order_start(order, unit + 1); i++)
                        *samples++ = (int64_t)dlp_order_sample(order, i);
        }
}

static int client_made_deal(struct dlc_loader *loader, const struct dlp_order *order, struct dli_made *made) {
        struct dlp_epoch_terms terms = dli_epoch_terms(loader);
        struct dlp_epoch_plan plan;

        terms.n_positions = order->n_units;
        for (uint32_t rank = 0; rank < terms.world; rank++) {
                plan = dlp_epoch_plan_make(&terms, rank, 0);
                made->n_all += client_made_count(order, &plan);
        }
        plan = dlp_epoch_plan_make(&terms, loader->info.rank, 0);
        made->n = client_made_count(order, &plan);
        made->samples = malloc((made->n + 1) * sizeof(*made->samples)); /* + 1: never an allocation of 0 bytes */
        if (!made->samples)
                return why_set(&loader->reason, -ENOMEM, "no memory for an order of %llu samples",
                               (unsigned long long)made->n);
        client_made_fill(order, &plan, made->samples);
        return 0;
}

static int client_made_make(struct dlc_loader *loader, struct tables *tables, struct dli_made *made) {
        struct dlp_making_terms terms = { .base = dli_sampler_terms(loader, made->epoch),
                                          .batch_size = (uint32_t)loader->options.batch_size,
                                          .columns = tables->columns,
                                          .n_columns = tables->n,
                                          .parts = tables->parts,
                                          .n_parts = tables->n_parts };
        struct dlp_making making;
        struct dlp_order order;
        int r;

        dli_making_begin(&making);
        making.terms = &terms;
        making.why = &loader->reason;
        r = dlp_order_make(&tables->text, &making, &order);
        if (r < 0)
                return r;
        r = client_made_deal(loader, &order, made);
        dlp_making_free(&making, &order);
        return r;
}

int dli_made_make(struct dlc_loader *loader, uint64_t epoch, struct dli_made *ret_made) {
        struct tables *tables = calloc(1, sizeof(*tables));
        struct dli_made made = { .epoch = epoch };
        int r;

        if (!tables)
                return why_set(&loader->reason, -ENOMEM, "no memory for the tables of a sampler");
        r = dlp_order_text_parse(loader->sampler, &tables->text, &loader->reason);
        if (r == 0)
                r = client_made_take_given(&loader->columns, tables, &loader->reason);
        if (r == 0)
                r = ask_columns(loader, tables);
        if (r == 0)
                r = dli_samples_blocks(loader);
        if (r == 0) {
                client_made_take_parts(loader, tables);
                r = client_made_make(loader, tables, &made);
        }
        tables_free(tables);
        if (r == 0)
                *ret_made = made;
        return r;
}
