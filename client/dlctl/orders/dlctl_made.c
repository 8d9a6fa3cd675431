#include "client/dlctl/orders/dlctl_made.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/waiting.h"
#include "client/lib/orders/client_making.h"
#include "client/lib/orders/column_file.h"
#include "proto/base/clock.h"

#define DRAW_AFTER_NS 300000000ull /* what is made at once shows nothing */

struct tables {
        struct dlp_column columns[OPTION_LIST_MAX];
        void *values[OPTION_LIST_MAX];
        char names[OPTION_LIST_MAX][DLP_SAMPLER_MAX];
        uint32_t n;
        struct dlp_part parts[OPTION_LIST_MAX];
        uint32_t n_parts;
};

/* ---- what a step asks for -------------------------------------------------------------------------------------- */

static bool go_on(struct dlp_making *making, uint64_t n_done, uint64_t n_total) {
        struct dlp_progress progress = { .phase = "making the order", .unit = "samples" };
        struct made *made = making->userdata;
        uint64_t now = clock_now_ns();

        dlp_pace_add(&made->pace, now, n_done, n_total);
        dlp_pace_read(&made->pace, now, &progress);
        progress.done = n_done;
        progress.total = n_total;
        if (now - made->pace.began_ns >= DRAW_AFTER_NS)
                waiting_draw("", &progress);
        return true; /* nobody ends it but a signal, which ends the program */
}

/* ---- columns and parts ----------------------------------------------------------------------------------------- */

static int dlctl_made_add_column(struct tables *tables, const char *name, size_t n_name, const char *path) {
        struct dlp_column *column = &tables->columns[tables->n];
        struct why why = { "" };
        int r;

        if (n_name == 0 || n_name >= DLP_SAMPLER_MAX || tables->n == OPTION_LIST_MAX)
                return fail(EXIT_USAGE, "order: --column: expected NAME=FILE, and at most %u of them", OPTION_LIST_MAX);
        r = dli_column_file_read(path, column, &tables->values[tables->n], &why);
        if (r < 0)
                return fail(EXIT_REFUSED, "%s", why.text);
        memcpy(tables->names[tables->n], name, n_name);
        tables->names[tables->n][n_name] = '\0';
        column->name = tables->names[tables->n++];
        return EXIT_DONE;
}

static bool dlctl_made_has_column(const struct tables *tables, const char *name) {
        for (uint32_t i = 0; i < tables->n; i++)
                if (strcmp(tables->names[i], name) == 0)
                        return true;
        return false;
}

/* A column that is not given is the name of a file, as in subset(indices.txt). */
static int dlctl_made_read_columns(const struct made_wish *wish, const struct dlp_order_text *text,
                                   struct tables *tables) {
        struct dlp_column_wish wishes[OPTION_LIST_MAX];
        uint32_t n;
        int r = EXIT_DONE;

        for (size_t i = 0; r == EXIT_DONE && i < wish->columns->n; i++) {
                const char *option = wish->columns->values[i], *equals = strchr(option, '=');

                r = dlctl_made_add_column(tables, option, equals ? (size_t)(equals - option) : 0,
                                          equals ? equals + 1 : "");
        }
        n = dlp_order_text_columns(text, wishes, OPTION_LIST_MAX);
        for (uint32_t i = 0; r == EXIT_DONE && i < n && i < OPTION_LIST_MAX; i++) {
                const char *name = wishes[i].name;

                if (dlctl_made_has_column(tables, name))
                        continue;
                if (access(name, F_OK) < 0)
                        return fail(EXIT_REFUSED, "sampler: there is no column \"%s\"; give it as --column %s=FILE",
                                    name, name);
                r = dlctl_made_add_column(tables, name, strlen(name), name);
        }
        return r;
}

static int dlctl_made_read_parts(const struct made_wish *wish, struct tables *tables) {
        uint64_t first = 0;

        for (size_t i = 0; i < wish->parts->n; i++) {
                const char *option = wish->parts->values[i], *equals = strchr(option, '=');
                struct dlp_part *part = &tables->parts[tables->n_parts++];
                char *end = NULL;

                if (equals)
                        part->n_samples = strtoull(equals + 1, &end, 10);
                if (!equals || equals == option || end == equals + 1 || *end || part->n_samples > DLP_SAMPLES_MAX)
                        return fail(EXIT_USAGE, "order: --part: \"%s\"; expected NAME=SAMPLES", option);
                part->name = strndup(option, (size_t)(equals - option));
                part->first = first;
                first += part->n_samples;
                if (!part->name)
                        return fail(EXIT_REFUSED, "order: out of memory");
        }
        if (wish->parts->n > 0 && first != wish->base.n_samples)
                return fail(EXIT_REFUSED, "order: the parts have %" PRIu64 " samples together, --samples says %" PRIu64,
                            first, wish->base.n_samples);
        return EXIT_DONE;
}

static void dlctl_made_free_tables(struct tables *tables) {
        for (uint32_t i = 0; i < tables->n; i++)
                free(tables->values[i]);
        for (uint32_t i = 0; i < tables->n_parts; i++)
                free((char *)(uintptr_t)tables->parts[i].name);
        free(tables);
}

/* ---- the order ------------------------------------------------------------------------------------------------- */

static int dlctl_made_make(const struct made_wish *wish, const struct dlp_order_text *text, struct tables *tables,
                           struct made *made) {
        struct dlp_making_terms terms = { .base = wish->base,
                                          .batch_size = wish->batch_size,
                                          .columns = tables->columns,
                                          .n_columns = tables->n,
                                          .parts = tables->parts,
                                          .n_parts = tables->n_parts };
        struct why why = { "" };
        int r;

        made->making.terms = &terms;
        made->making.why = &why;
        r = dlp_order_make(text, &made->making, &made->order);
        made->making.terms = NULL;
        made->making.why = NULL;
        return r < 0 ? fail(EXIT_REFUSED, "%s", why.text) : EXIT_DONE;
}

int made_make(const struct made_wish *wish, struct made *made) {
        struct dlp_order_text *text = malloc(sizeof(*text));
        struct tables *tables = calloc(1, sizeof(*tables));
        struct why why = { "" };
        int r = EXIT_DONE;

        dli_making_begin(&made->making);
        made->making.go_on = go_on;
        made->making.userdata = made;
        dlp_pace_begin(&made->pace, clock_now_ns());
        if (!text || !tables)
                r = fail(EXIT_REFUSED, "order: out of memory");
        else if (dlp_order_text_parse(wish->sampler, text, &why) < 0)
                r = fail(EXIT_REFUSED, "%s", why.text);
        if (r == EXIT_DONE) {
                const struct dlp_step *grouper = dlp_order_text_grouper(text);

                made->is_batch = grouper && grouper->type->is_batch;
                r = dlctl_made_read_columns(wish, text, tables);
        }
        if (r == EXIT_DONE)
                r = dlctl_made_read_parts(wish, tables);
        if (r == EXIT_DONE)
                r = dlctl_made_make(wish, text, tables, made);
        waiting_end();
        free(text);
        if (tables)
                dlctl_made_free_tables(tables);
        return r;
}

void made_free(struct made *made) {
        if (made->making.release)
                dlp_making_free(&made->making, &made->order);
}
