#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/dlctl/diagnose/confirming.h"
#include "client/dlctl/top/top_amounts.h"
#include "client/dlctl/top/top_view.h"
#include "client/lib/diagnose/job_wait.h"
#include "client/lib/progress/progress_message.h"
#include "proto/base/shown/amounts.h"

#define PLACE_COLUMNS 16u /* "epoch 0, step 10": of a rank */
#define TREE_COLUMNS  9u  /* of a rank's line: "  └─ rank" and a blank, without its number */

/* ---- cells --------------------------------------------------------------------------------------------------- */

struct cell {
        const char *text;
        enum style style;
        char buffer[DLP_TEXT_MAX + 64]; /* for texts that are made here */
};

/* As the profilers of torch and TensorFlow have it: 5 % is worth a glance, 20 % is much. */
static enum style style_of_wait(double share) {
        return share >= 0.2 ? STYLE_BAD : share >= 0.05 ? STYLE_FAIR : STYLE_PLAIN;
}

/* In a few words; dlctl diagnose has the whole sentence, and the details do. */
static void print_verdict(const struct verdict *verdict, struct cell *cell) {
        static const enum style STYLES[] = {
                [VERDICT_NOT_BOUND] = STYLE_GOOD, [VERDICT_MODERATELY] = STYLE_FAIR, [VERDICT_HIGHLY] = STYLE_BAD
        };

        cell->style = STYLES[verdict->bound];
        switch (verdict->limit) {
        case VERDICT_TRAINER:
                cell->text = "training";
                break;
        case VERDICT_RANK:
                snprintf(cell->buffer, sizeof(cell->buffer), "rank %lld", (long long)verdict->rank);
                break;
        case VERDICT_READING:
                cell->text = "reading";
                break;
        case VERDICT_ORIGIN:
                cell->text = "the origin";
                break;
        case VERDICT_DECODING:
                cell->text = "decoding";
                break;
        case VERDICT_STEP:
                snprintf(cell->buffer, sizeof(cell->buffer), "%s", verdict->stage);
                break;
        case VERDICT_LATENCY:
                cell->text = "too few batches ahead";
                break;
        default: /* too early, or the status says it */
                cell->style = STYLE_PLAIN;
                break;
        }
}

static void job_status(const struct job_rates *rates, struct cell *cell) {
        const Dlp__Job *job = rates->job;
        char sentence[DLP_TEXT_MAX];
        struct dlp_progress progress;

        if (job->failure[0]) {
                cell->style = STYLE_BAD;
                snprintf(cell->buffer, sizeof(cell->buffer), "failed: %s", job->failure);
        } else if (job_wait_text(job, sentence)[0]) {
                cell->style = STYLE_BAD;
                snprintf(cell->buffer, sizeof(cell->buffer), "on hold: %s", sentence);
        } else if (confirming_text(job, sentence, sizeof(sentence))) {
                cell->style = STYLE_FAIR;
                snprintf(cell->buffer, sizeof(cell->buffer), "confirming: %s", sentence);
        } else if (job->progress && job->progress->phase[0]) {
                cell->style = STYLE_FAIR;
                dli_progress_take(job->progress, &progress);
                snprintf(cell->buffer, sizeof(cell->buffer), "%s", dlp_progress_sentence(&progress, sentence));
        } else if (job->n_ranks == 0) {
                cell->style = STYLE_DIM;
                snprintf(cell->buffer, sizeof(cell->buffer), "no rank is attached");
        } else {
                print_verdict(rates->verdict, cell);
        }
}

static void rank_status(const struct rank_rates *rates, struct cell *cell) {
        char waiting[AMOUNT_MAX];

        cell->style = STYLE_DIM;
        if (rates->waiting >= 1)
                snprintf(cell->buffer, sizeof(cell->buffer), "process %u, has been waiting for %s", rates->rank->pid,
                         seconds_text(waiting, rates->waiting));
        else
                snprintf(cell->buffer, sizeof(cell->buffer), "process %u", rates->rank->pid);
}

/* Of a job, or of one of its ranks. */
static void print_cell(const struct item *item, enum column column, struct cell *cell) {
        const struct top_column *row = &TOP_COLUMNS[column];
        const Dlp__Job *job = item->job->job;
        const Dlp__Rank *rank = item->rank ? item->rank->rank : NULL;
        const double *rates = rank ? item->rank->rates : item->job->rates;
        char *text = cell->buffer;

        cell->text = text;
        text[0] = '\0';
        cell->style = STYLE_PLAIN;
        if (rank && !row->has_ranks)
                return;
        if (row->print) {
                row->print(text, rates[row->rate]);
                if (column == COLUMN_WAIT)
                        cell->style = style_of_wait(rates[RATE_wait]);
                else if (column == COLUMN_DAMAGED && job->n_errors > 0)
                        cell->style = STYLE_FAIR;
                return;
        }
        switch (column) {
        case COLUMN_JOB:
                cell->style = STYLE_STRONG;
                cell->text = rank ? text : job->name;
                break;
        case COLUMN_USER:
                cell->text = rank ? rank->user : job->user;
                break;
        case COLUMN_DATASET:
                if (rank)
                        snprintf(text, sizeof(cell->buffer), "epoch %" PRIu64 ", step %" PRIu64, rank->epoch,
                                 rank->step);
                else
                        cell->text = job->dataset;
                break;
        case COLUMN_RANKS:
                snprintf(text, sizeof(cell->buffer), "%zu/%u", job->n_ranks, job->world);
                break;
        case COLUMN_SLOTS:
                snprintf(text, sizeof(cell->buffer), "%.0f/%.0f", rates[RATE_n_ready], rates[RATE_n_slots]);
                break;
        default:
                if (rank)
                        rank_status(item->rank, cell);
                else
                        job_status(item->job, cell);
                break;
        }
}

/* ---- layout -------------------------------------------------------------------------------------------------- */

#define MEASURED_MAX 300u /* lines that are looked at for the widths */

static unsigned width_wanted(const struct view *view, const struct items *items, enum column column) {
        unsigned widest = (unsigned)strlen(TOP_COLUMNS[column].title);

        for (size_t i = 0; i < items->n && i < MEASURED_MAX; i++) {
                struct cell cell;
                unsigned n;

                print_cell(&items->items[i], column, &cell);
                n = columns_of(cell.text, view->utf8);
                if (column == COLUMN_JOB && items->items[i].rank)
                        n = TREE_COLUMNS + 4;
                widest = n > widest ? n : widest;
        }
        return widest < TOP_COLUMNS[column].least  ? TOP_COLUMNS[column].least
               : widest > TOP_COLUMNS[column].most ? TOP_COLUMNS[column].most
                                                   : widest;
}

/* Jobs have to be told apart before anything else is of use. */
static unsigned least_of_job(const struct view *view, const struct items *items) {
        unsigned wanted = width_wanted(view, items, COLUMN_JOB), room = view->n_columns / 5;

        if (room < TOP_COLUMNS[COLUMN_JOB].least)
                room = TOP_COLUMNS[COLUMN_JOB].least;
        return wanted < room ? wanted : room;
}

static bool has_ranks_alone(const struct items *items) {
        return items->n > 0 && items->items[0].rank;
}

/* What ranks have nothing of, or all the same, is left out where there are only ranks. */
static bool top_table_is_wanted(const struct items *items, enum column column) {
        return !has_ranks_alone(items) || (TOP_COLUMNS[column].has_ranks && column != COLUMN_USER);
}

void view_layout(const struct view *view, const struct items *items, struct layout *ret_layout) {
        unsigned used = 0, wanted[N_COLUMNS], least[N_COLUMNS];

        *ret_layout = (struct layout){ { 0 } };
        for (unsigned i = 0; i < N_COLUMNS; i++)
                least[i] = TOP_COLUMNS[i].least;
        least[COLUMN_JOB] = least_of_job(view, items);
        if (has_ranks_alone(items))
                least[COLUMN_DATASET] = PLACE_COLUMNS;
        for (unsigned importance = 0; importance < N_COLUMNS; importance++)
                for (unsigned i = 0; i < N_COLUMNS; i++) {
                        unsigned n = least[i] + (used > 0);

                        if (TOP_COLUMNS[i].importance != importance || used + n > view->n_columns ||
                            !top_table_is_wanted(items, (enum column)i))
                                continue;
                        ret_layout->widths[i] = least[i];
                        used += n;
                }
        for (unsigned i = 0; i < N_COLUMNS; i++)
                wanted[i] = ret_layout->widths[i] > 0 ? width_wanted(view, items, (enum column)i) : 0;
        for (bool grows = true; grows && used < view->n_columns;) { /* all alike, the last has the rest */
                grows = false;
                for (unsigned i = 0; i < N_COLUMNS && used < view->n_columns; i++)
                        if (i != COLUMN_STATUS && ret_layout->widths[i] < wanted[i]) {
                                ret_layout->widths[i]++;
                                used++;
                                grows = true;
                        }
        }
        if (ret_layout->widths[COLUMN_STATUS] > 0)
                ret_layout->widths[COLUMN_STATUS] += view->n_columns - used;
}

/* ---- lines --------------------------------------------------------------------------------------------------- */

void view_titles(const struct view *view, const struct layout *layout, struct line *line) {
        line_begin(line, view->n_columns, view->utf8);
        line->fill = STYLE_TITLE;
        for (unsigned i = 0; i < N_COLUMNS; i++) {
                bool sorts = view->sorting.column == (enum column)i;
                char title[24];

                if (layout->widths[i] == 0)
                        continue;
                if (line->text.n_columns > 0)
                        line_put(line, STYLE_TITLE, " ");
                snprintf(title, sizeof(title), "%s", TOP_COLUMNS[i].title);
                line_cell(line, sorts ? STYLE_SORTED : STYLE_TITLE, title, layout->widths[i], TOP_COLUMNS[i].right);
        }
}

/* "  ├─ rank 3" */
static void put_tree(const struct item *item, unsigned n_columns, struct line *line) {
        const char *utf8 = item->is_last ? " └─" : " ├─", *plain = item->is_last ? " `-" : " |-";
        unsigned begin = line->text.n_columns;

        line_put(line, STYLE_DIM, line->text.utf8 ? utf8 : plain);
        line_format(line, STYLE_PLAIN, " rank %u", item->rank->rank->rank);
        line_to(line, begin + n_columns);
}

void view_item(const struct view *view, const struct layout *layout, const struct item *item, struct line *line) {
        struct cell cell;

        line_begin(line, view->n_columns, view->utf8);
        for (unsigned i = 0; i < N_COLUMNS; i++) {
                if (layout->widths[i] == 0)
                        continue;
                if (line->text.n_columns > 0)
                        line_to(line, line->text.n_columns + 1);
                if (i == COLUMN_JOB && item->rank) {
                        put_tree(item, layout->widths[i], line);
                        continue;
                }
                print_cell(item, (enum column)i, &cell);
                if (i == COLUMN_STATUS)
                        line_sentence(line, cell.style, cell.text);
                else
                        line_cell(line, cell.style, cell.text, layout->widths[i], TOP_COLUMNS[i].right);
        }
}
