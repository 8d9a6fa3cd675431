#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/dlctl/diagnose/confirming.h"
#include "client/dlctl/room.h"
#include "client/dlctl/top/top_amounts.h"
#include "client/dlctl/top/top_view.h"
#include "client/dlctl/top/top_words.h"
#include "client/lib/diagnose/job_wait.h"
#include "client/lib/progress/progress_message.h"
#include "proto/base/shown/amounts.h"

#define LABEL_COLUMNS 12u
#define BAR_MAX       30u
#define N_BUCKETS     64u /* of a client's histogram, at most */

struct page {
        const struct view *view;
        const struct job_rates *rates;
        emit_fn *emit;
        void *arg;
};

static void put_heading(struct page *page, const char *text) {
        struct line line;

        line_begin(&line, page->view->n_columns, page->view->utf8);
        page->emit(page->arg, &line);
        line_put(&line, STYLE_STRONG, text);
        page->emit(page->arg, &line);
}

/* A label, and any text beside it. */
static void put_value(struct page *page, const char *label, enum style style, const char *text) {
        if (*text)
                words_emit(page->view, label, LABEL_COLUMNS, style, text, page->emit, page->arg);
}

/* ---- terms --------------------------------------------------------------------------------------------------- */

static void put_terms(struct page *page) {
        const Dlp__Job *job = page->rates->job;
        char text[DLP_TEXT_MAX];

        snprintf(text, sizeof(text), "%zu on this node of %u, batches of %u", job->n_ranks, job->world,
                 job->batch_size);
        put_value(page, "dataset", STYLE_PLAIN, job->dataset);
        put_value(page, "pipeline", STYLE_PLAIN, job->pipeline);
        put_value(page, "ranks", STYLE_PLAIN, text);
        snprintf(text, sizeof(text), "%s, %s, %s, seed %" PRIu64, job->shuffle ? "shuffled" : "in sequence", job->order,
                 job->partition, job->seed);
        put_value(page, "order", STYLE_PLAIN, text);
        put_value(page, "sampler", STYLE_PLAIN, job->sampler);
        if (job->errors_allowed > 0)
                snprintf(text, sizeof(text), "%" PRIu64 " samples, %" PRIu64 " are allowed; on_error %s", job->n_errors,
                         job->errors_allowed, job->on_error);
        else
                snprintf(text, sizeof(text), "%" PRIu64 " samples, any number is allowed; on_error %s", job->n_errors,
                         job->on_error);
        put_value(page, "damaged", job->n_errors > 0 ? STYLE_FAIR : STYLE_PLAIN, text);
        if (job->n_texts_cut > 0) {
                snprintf(text, sizeof(text), "%" PRIu64 " texts at max_length of tokens(), about %" PRIu64 " tokens",
                         job->n_texts_cut, job->n_tokens_cut);
                put_value(page, "cut", STYLE_FAIR, text);
        }
        put_value(page, "counted", STYLE_PLAIN, facts_text(text, sizeof(text), job->numbers, job->n_numbers, false));
        put_value(page, "failed", STYLE_BAD, job->failure);
        put_value(page, "on hold", STYLE_BAD, job_wait_text(job, text));
        if (confirming_text(job, text, sizeof(text)))
                put_value(page, "confirming", STYLE_FAIR, text);
}

static void put_progress(struct page *page) {
        char text[DLP_TEXT_MAX];
        struct dlp_progress progress;

        if (!page->rates->job->progress)
                return;
        dli_progress_take(page->rates->job->progress, &progress);
        put_value(page, "now", STYLE_FAIR, dlp_progress_sentence(&progress, text));
}

/* ---- rates --------------------------------------------------------------------------------------------------- */

/* The wait below which this share of the batches is, in thousandths. */
static double wait_below(const uint64_t *buckets, uint64_t n_batches, unsigned thousandths) {
        double limit = 1e-6, n = 0;

        for (unsigned i = 0; i < N_BUCKETS; i++, limit *= 2) {
                n += (double)buckets[i];
                if (n * 1000 >= (double)n_batches * thousandths)
                        break;
        }
        return limit;
}

static void put_waits(struct page *page) {
        uint64_t buckets[N_BUCKETS] = { 0 }, n_batches = 0;
        char half[AMOUNT_MAX], most[AMOUNT_MAX], text[4 * AMOUNT_MAX];

        for (size_t i = 0; i < page->rates->job->n_ranks; i++) {
                const Dlp__Waiting *waiting = page->rates->job->ranks[i]->waiting;

                for (size_t k = 0; waiting && k < waiting->n_histogram && k < N_BUCKETS; k++) {
                        buckets[k] += waiting->histogram[k];
                        n_batches += waiting->histogram[k];
                }
        }
        if (n_batches == 0)
                return;
        snprintf(text, sizeof(text),
                 "half of the batches took less than %s, 99 %% less than %s, since the ranks attached",
                 seconds_text(half, wait_below(buckets, n_batches, 500)),
                 seconds_text(most, wait_below(buckets, n_batches, 990)));
        put_value(page, "next()", STYLE_PLAIN, text);
}

static void put_verdict(struct page *page) {
        const struct verdict *verdict = page->rates->verdict;
        enum style style = verdict->bound == VERDICT_HIGHLY       ? STYLE_BAD
                           : verdict->bound == VERDICT_MODERATELY ? STYLE_FAIR
                                                                  : STYLE_GOOD;

        if (verdict->limit == VERDICT_ENDED || verdict->limit == VERDICT_OUTAGE) /* said below */
                return;
        put_value(page, "verdict", verdict->limit == VERDICT_NOTHING_YET ? STYLE_DIM : style, verdict->sentence);
        if (verdict->limit != VERDICT_NOTHING_YET)
                put_value(page, "advice", STYLE_PLAIN, verdict->advice);
}

static void put_rates(struct page *page) {
        const struct job_rates *rates = page->rates;
        char samples[AMOUNT_MAX], tokens[AMOUNT_MAX], bytes[AMOUNT_MAX], each[AMOUNT_MAX], text[5 * AMOUNT_MAX];
        double n_tokens = rates->verdict->tokens;

        if (!is_known(rates->samples))
                return;
        snprintf(text, sizeof(text), "%s samples/s, %s%sread %s, each read %s", rate_text(samples, rates->samples),
                 n_tokens > 0 ? rate_text(tokens, n_tokens) : "", n_tokens > 0 ? " tokens/s, " : "",
                 byte_rate_text(bytes, rates->bytes), seconds_text(each, rates->read_seconds));
        put_value(page, "rate", STYLE_PLAIN, text);
        if (!is_known(rates->wait))
                return;
        snprintf(text, sizeof(text),
                 "%s %% of the time of the rank that waits most; a batch was ready %s %% of the time",
                 percent_text(samples, rates->wait), percent_text(bytes, rates->ready));
        put_value(page, "waits", rates->wait >= 0.2 ? STYLE_BAD : rates->wait >= 0.05 ? STYLE_FAIR : STYLE_GOOD, text);
}

/* ---- stages -------------------------------------------------------------------------------------------------- */

static unsigned longest_stage(const struct job_rates *rates) {
        unsigned n = 0;

        for (size_t i = 0; i < rates->n_stages; i++)
                n = strlen(rates->stages[i].name) > n ? (unsigned)strlen(rates->stages[i].name) : n;
        return n < 24 ? n : 24;
}

static void put_stages(struct page *page) {
        const struct job_rates *rates = page->rates;
        unsigned n_name = longest_stage(rates), n_bar = page->view->n_columns / 3;
        char text[AMOUNT_MAX];

        if (rates->n_stages == 0)
                return;
        put_heading(page, "Where the workers' time goes");
        for (size_t i = 0; i < rates->n_stages; i++) {
                const struct stage_rates *stage = &rates->stages[i];
                struct line line;

                line_begin(&line, page->view->n_columns, page->view->utf8);
                line_cell(&line, STYLE_PLAIN, stage->name, n_name, false);
                line_format(&line, STYLE_STRONG, " %4s %% ", percent_text(text, stage->share));
                line_bar(&line, STYLE_GOOD, stage->share, n_bar < BAR_MAX ? n_bar : BAR_MAX);
                line_format(&line, STYLE_PLAIN, " %6s a sample", seconds_text(text, stage->per_sample));
                line_format(&line, STYLE_DIM, ", %.2f workers", stage->workers);
                page->emit(page->arg, &line);
        }
}

/* ---- ranks --------------------------------------------------------------------------------------------------- */

static bool is_this(const void *arg, struct item_key job) {
        return key_of(arg, NULL).job == job.job;
}

static void put_ranks(struct page *page) {
        struct rates alone = { .jobs = (struct job_rates *)(uintptr_t)page->rates, .n_jobs = 1 };
        struct layout layout;
        struct items items, ranks;
        struct line line;

        if (page->rates->job->n_ranks == 0)
                return;
        put_heading(page, "Ranks");
        items_make(&alone, page->view->sorting, "", is_this, page->rates, &items);
        ranks = (struct items){ .items = items.items + 1, .n = items.n - 1 };
        view_layout(page->view, &ranks, &layout);
        view_titles(page->view, &layout, &line);
        page->emit(page->arg, &line);
        for (size_t i = 0; i < ranks.n; i++) {
                view_item(page->view, &layout, &ranks.items[i], &line);
                page->emit(page->arg, &line);
        }
        items_free(&items);
}

void view_details(const struct view *view, const struct job_rates *job, emit_fn *emit, void *arg) {
        struct page page = { .view = view, .rates = job, .emit = emit, .arg = arg };
        struct line line;

        line_begin(&line, view->n_columns, view->utf8);
        line_put(&line, STYLE_PLAIN, "job ");
        line_sentence(&line, STYLE_STRONG, job->job->name);
        if (job->job->user[0]) {
                line_put(&line, STYLE_PLAIN, " of ");
                line_sentence(&line, STYLE_STRONG, job->job->user);
        }
        emit(arg, &line);
        put_verdict(&page);
        put_rates(&page);
        put_waits(&page);
        put_progress(&page);
        put_terms(&page);
        put_stages(&page);
        put_ranks(&page);
}
