#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/dlctl/top/top_amounts.h"
#include "client/dlctl/top/top_view.h"
#include "client/lib/progress/progress_message.h"
#include "proto/base/shown/amounts.h"
#include "proto/base/shown/shorten.h"

#define LABEL_COLUMNS 9u  /* "Workers  " */
#define METER_MIN     12u /* with its brackets */
#define METER_MAX     40u
#define BUSY_MAX      4u /* datasets that are told of */

struct head {
        const struct view *view;
        struct line line;
        unsigned n_left; /* lines */
        emit_fn *emit;
        void *arg;
};

static void head_begin(struct head *head) {
        line_begin(&head->line, head->view->n_columns, head->view->utf8);
}

static void head_end(struct head *head) {
        if (head->n_left == 0)
                return;
        head->n_left--;
        head->emit(head->arg, &head->line);
}

/* ---- the daemon ---------------------------------------------------------------------------------------------- */

static size_t n_ranks(const struct rates *rates) {
        size_t n = 0;

        for (size_t i = 0; i < rates->n_jobs; i++)
                n += rates->jobs[i].job->n_ranks;
        return n;
}

static const char *head_plural(size_t n) {
        return n == 1 ? "" : "s";
}

static void head_add_daemon(struct head *head) {
        const struct view *view = head->view;
        const Dlp__StatusReply *status = view->rates->node.status;
        char up[DURATION_TEXT_MAX], rate[AMOUNT_MAX];
        size_t n = n_ranks(view->rates);

        head_begin(head);
        line_put(&head->line, STYLE_STRONG, "dataloaderd");
        if (view->host[0]) {
                line_put(&head->line, STYLE_PLAIN, " on ");
                line_put(&head->line, STYLE_STRONG, view->host);
        }
        if (status)
                line_format(&head->line, STYLE_PLAIN, ", up %s", format_duration(up, status->up_seconds));
        line_format(&head->line, STYLE_PLAIN, ": %zu job%s, %zu rank%s", view->rates->n_jobs,
                    head_plural(view->rates->n_jobs), n, head_plural(n));
        if (is_known(view->rates->node.samples))
                line_format(&head->line, STYLE_PLAIN, ", %s samples/s", rate_text(rate, view->rates->node.samples));
        if (status && strcmp(status->state, "serving") != 0) {
                line_put(&head->line, STYLE_PLAIN, ", ");
                line_sentence(&head->line, STYLE_FAIR, status->state);
        }
        head_end(head);
}

static void add_away(struct head *head) {
        if (!head->view->away)
                return;
        head_begin(head);
        line_sentence(&head->line, STYLE_BAD, head->view->away);
        head_end(head);
}

/* ---- meters -------------------------------------------------------------------------------------------------- */

/* A label, a meter, and room for words after it. */
static void add_meter(struct head *head, const char *label, double share) {
        unsigned n = head->view->n_columns / 3;
        char percent[AMOUNT_MAX + 4] = "-";

        head_begin(head);
        line_put(&head->line, STYLE_LABEL, label);
        line_to(&head->line, LABEL_COLUMNS);
        n = n < METER_MIN ? METER_MIN : n > METER_MAX ? METER_MAX : n;
        if (is_known(share)) {
                char number[AMOUNT_MAX];

                share = share < 1 ? share : 1; /* a worker's time is told when its sample is done */
                snprintf(percent, sizeof(percent), "%s %%", percent_text(number, share));
        }
        line_meter(&head->line, share, percent, n);
        line_put(&head->line, STYLE_PLAIN, " ");
}

static void head_add_workers(struct head *head) {
        const struct node_rates *rates = &head->view->rates->node;
        uint32_t n_workers = rates->node ? rates->node->n_workers : rates->status ? rates->status->n_workers : 0;

        add_meter(head, "Workers", is_known(rates->workers) && n_workers > 0 ? rates->workers / n_workers : UNKNOWN);
        if (is_known(rates->workers))
                line_format(&head->line, STYLE_PLAIN, "%.1f of %u at work", rates->workers, n_workers);
        else
                line_format(&head->line, STYLE_PLAIN, "%u", n_workers);
        if (is_known(rates->cpus))
                line_format(&head->line, STYLE_PLAIN, ", on %.1f of %.4g CPUs", rates->cpus,
                            (double)rates->node->cpus_milli / 1000);
        head_end(head);
}

static void head_add_memory(struct head *head) {
        const Dlp__StatusReply *status = head->view->rates->node.status;
        char used[BYTES_TEXT_MAX], limit[BYTES_TEXT_MAX];

        if (!status || status->memory_limit_bytes == 0)
                return;
        add_meter(head, "Memory", (double)status->memory_used_bytes / (double)status->memory_limit_bytes);
        line_format(&head->line, STYLE_PLAIN, "%s of %s", format_bytes(used, status->memory_used_bytes),
                    format_bytes(limit, status->memory_limit_bytes));
        head_end(head);
}

static void add_disk(struct head *head) {
        const struct node_rates *rates = &head->view->rates->node;
        char text[AMOUNT_MAX];

        if (!rates->node || rates->node->read_depth == 0)
                return;
        add_meter(head, "Reads", (double)rates->node->n_reading / (double)rates->node->read_depth);
        line_format(&head->line, STYLE_PLAIN, "%u of %u under way", rates->node->n_reading, rates->node->read_depth);
        if (is_known(rates->bytes))
                line_format(&head->line, STYLE_PLAIN, ", %s", byte_rate_text(text, rates->bytes));
        if (is_known(rates->storage) && rates->bytes > 0)
                line_format(&head->line, STYLE_PLAIN, " (%s from storage)", byte_rate_text(text, rates->storage));
        if (is_known(rates->read_seconds))
                line_format(&head->line, STYLE_PLAIN, ", each %s", seconds_text(text, rates->read_seconds));
        head_end(head);
}

/* What the daemon counts and this program need not know: rare events. */
static void add_counted(struct head *head) {
        const Dlp__StatusReply *status = head->view->rates->node.status;
        char text[LINE_BYTES_MAX];

        if (!status || !*facts_text(text, sizeof(text), status->counters, status->n_counters, true))
                return;
        head_begin(head);
        line_put(&head->line, STYLE_LABEL, "Counted");
        line_to(&head->line, LABEL_COLUMNS);
        line_sentence(&head->line, STYLE_PLAIN, text);
        head_end(head);
}

/* ---- datasets ------------------------------------------------------------------------------------------------ */

static void add_damaged(struct head *head) {
        const struct glance *glance = head->view->datasets;
        const char *gap = ": ";
        uint64_t n = 0;

        for (size_t i = 0; glance && i < glance->n_datasets; i++)
                n += glance->datasets[i]->n_errors;
        if (n == 0)
                return;
        head_begin(head);
        line_put(&head->line, STYLE_LABEL, "Damaged");
        line_to(&head->line, LABEL_COLUMNS);
        line_format(&head->line, STYLE_FAIR, "%" PRIu64 " sample%s", n, head_plural(n));
        for (size_t i = 0; i < glance->n_datasets && line_left(&head->line) > 8; i++) {
                const Dlp__Dataset *dataset = glance->datasets[i];

                if (dataset->n_errors == 0)
                        continue;
                line_put(&head->line, STYLE_PLAIN, gap);
                line_sentence(&head->line, STYLE_PLAIN, dataset->name);
                line_format(&head->line, STYLE_PLAIN, " %" PRIu64, dataset->n_errors);
                gap = ", ";
        }
        head_end(head);
}

/* Is there something to tell of it: it is being made, or it failed? */
static bool is_busy(const Dlp__Dataset *dataset) {
        return (dataset->progress && dataset->progress->phase[0]) || strcmp(dataset->state, "failed") == 0;
}

static void add_progress(struct head *head, const Dlp__Dataset *dataset) {
        char text[DLP_PROGRESS_LINE_MAX];
        struct dlp_progress progress;

        head_begin(head);
        if (dataset->progress && dataset->progress->phase[0]) {
                dli_progress_take(dataset->progress, &progress);
                line_put(
                        &head->line, STYLE_GOOD,
                        dlp_progress_line(&progress, dataset->name, head->view->n_columns + 1, head->view->utf8, text));
        } else {
                char name[LINE_BYTES_MAX];

                shorten(name, sizeof(name), "%s: failed: %s", dataset->name, dataset->text);
                line_sentence(&head->line, STYLE_BAD, name);
        }
        head_end(head);
}

static void add_busy(struct head *head) {
        const struct glance *glance = head->view->datasets;
        unsigned n = 0, limit = head->n_left < BUSY_MAX ? head->n_left : BUSY_MAX;

        for (size_t i = 0; glance && i < glance->n_datasets; i++) {
                if (!is_busy(glance->datasets[i]))
                        continue;
                if (n < limit)
                        add_progress(head, glance->datasets[i]);
                n++;
        }
        if (n <= limit)
                return;
        head_begin(head);
        line_format(&head->line, STYLE_DIM, "and %u more datasets: dlctl datasets", n - limit);
        head_end(head);
}

void view_head(const struct view *view, unsigned n_lines, emit_fn *emit, void *arg) {
        struct head head = { .view = view, .n_left = n_lines, .emit = emit, .arg = arg };

        add_away(&head);
        if (!view->rates)
                return;
        head_add_daemon(&head);
        head_add_workers(&head);
        head_add_memory(&head);
        add_disk(&head);
        add_damaged(&head);
        add_busy(&head);
        add_counted(&head);
}
