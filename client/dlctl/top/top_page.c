#include "client/dlctl/top/top_page.h"

#include <stdio.h>
#include <string.h>

#define HEAD_MAX 14u /* lines */

struct page {
        const struct view *view;
        struct top_state *state;
        unsigned n_left; /* rows */
        emit_fn *emit;
        void *arg;
        size_t n_passed; /* lines of a longer page, from its first on */
};

static void top_page_put(struct page *page, const struct line *line) {
        if (page->n_left == 0)
                return;
        page->n_left--;
        page->emit(page->arg, line);
}

static void put_head(void *arg, const struct line *line) {
        top_page_put(arg, line);
}

static void put_blank(struct page *page) {
        struct line line;

        line_begin(&line, page->view->n_columns, page->view->utf8);
        top_page_put(page, &line);
}

/* ---- keys ---------------------------------------------------------------------------------------------------- */

/* Columns of what is said after the keys, which are left out before it is. */
static size_t said_columns(const struct top_state *state) {
        size_t n_filter = strlen(state->filter);

        return (state->is_paused ? 7 : 0) + (n_filter > 0 ? 8 + (n_filter < 20 ? n_filter : 20) : 0);
}

static void put_keys(struct page *page) {
        static const struct {
                const char *key, *does;
        } KEYS[] = {
                { "F1", "Help" }, { "F3", "Search" }, { "F4", "Filter" }, { "F5", "Ranks" },
                { "F6", "Sort" }, { "Enter", "Job" }, { "F10", "Quit" },
        };
        struct line line;

        line_begin(&line, page->view->n_columns, page->view->utf8);
        for (size_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); i++) {
                if (line_left(&line) < strlen(KEYS[i].key) + 7 + said_columns(page->state))
                        break;
                line_put(&line, STYLE_PLAIN, KEYS[i].key);
                line_format(&line, STYLE_KEY, "%-6s", KEYS[i].does);
                line_put(&line, STYLE_PLAIN, " ");
        }
        if (page->state->is_paused)
                line_put(&line, STYLE_FAIR, " paused");
        if (page->state->filter[0]) {
                line_put(&line, STYLE_PLAIN, " filter ");
                line_sentence(&line, STYLE_STRONG, page->state->filter);
        }
        top_page_put(page, &line);
}

static void put_typed(struct page *page) {
        static const struct {
                const char *label, *how;
        } PROMPTS[] = {
                [MODE_SEARCH] = { "Search:", "F3 goes on to the next, Enter ends it" },
                [MODE_FILTER] = { "Filter:", "Enter keeps it, Esc clears it" },
                [MODE_DELAY] = { "Seconds between two looks:", "Enter takes it" },
        };
        const struct top_state *state = page->state;
        bool is_missing = state->mode == MODE_SEARCH && state->is_missing;
        struct line line;

        line_begin(&line, page->view->n_columns, page->view->utf8);
        line_put(&line, STYLE_KEY, PROMPTS[state->mode].label);
        line_put(&line, STYLE_PLAIN, " ");
        line_sentence(&line, is_missing ? STYLE_BAD : STYLE_STRONG, state->typed);
        line_put(&line, STYLE_PLAIN, "_  ");
        line_put(&line, STYLE_DIM, is_missing ? "no job has that" : PROMPTS[state->mode].how);
        top_page_put(page, &line);
}

/* ---- the table ----------------------------------------------------------------------------------------------- */

static void put_nothing(struct page *page) {
        struct line line;

        line_begin(&line, page->view->n_columns, page->view->utf8);
        if (!page->view->rates && page->view->away)
                line_format(&line, STYLE_DIM, "no daemon has answered yet: looking again every %g s",
                            page->state->delay);
        else if (!page->view->rates)
                line_put(&line, STYLE_DIM, "asking the daemon ...");
        else if (page->state->filter[0] && page->view->rates->n_jobs > 0)
                line_put(&line, STYLE_DIM, "no job has that in its name, user or dataset");
        else
                line_put(&line, STYLE_DIM, "no jobs: nobody is attached");
        top_page_put(page, &line);
}

static void put_items(struct page *page, const struct items *items, unsigned n_rows) {
        struct top_state *state = page->state;
        struct layout layout;
        struct line line;

        top_state_settle(state, items, n_rows);
        view_layout(page->view, items, &layout);
        view_titles(page->view, &layout, &line);
        top_page_put(page, &line);
        for (size_t i = 0; i < n_rows && state->first + i < items->n; i++) {
                view_item(page->view, &layout, &items->items[state->first + i], &line);
                line.is_chosen = state->chosen.job != 0 && state->first + i == state->place;
                top_page_put(page, &line);
        }
        if (items->n == 0 && n_rows > 0)
                put_nothing(page);
        for (size_t i = items->n > 0 ? items->n - state->first : 1; i < n_rows; i++)
                put_blank(page);
}

/* In a window of few rows the table has at least two of them, and its titles. */
static void draw_table(struct page *page, const struct items *items) {
        unsigned n_rows = page->n_left, n_foot = n_rows >= 5, n_head = n_rows > 3 + n_foot ? n_rows - 3 - n_foot : 0;
        bool types = page->state->mode >= MODE_SEARCH;
        unsigned n_least = n_rows / 2;

        n_foot = types && n_rows > 0 ? 1 : n_foot;
        if (n_head > HEAD_MAX)
                n_head = HEAD_MAX;
        if (n_head > n_least)
                n_head = n_least;
        view_head(page->view, n_head, put_head, page);
        if (page->n_left > n_foot + 8)
                put_blank(page);
        if (page->n_left > n_foot)
                put_items(page, items, page->n_left - n_foot - 1);
        if (types)
                put_typed(page);
        else
                put_keys(page);
}

/* ---- pages that scroll --------------------------------------------------------------------------------------- */

static void count_line(void *arg, const struct line *line) {
        struct page *page = arg;

        (void)line;
        page->n_passed++;
}

static void put_scrolled(void *arg, const struct line *line) {
        struct page *page = arg;

        if (page->n_passed++ >= page->state->scroll && page->n_left > 1)
                top_page_put(page, line);
}

/* `draw` emits a page of any length; its last row says how to leave it. */
static void draw_scrolled(struct page *page,
                          void (*draw)(const struct view *, const struct job_rates *, emit_fn *, void *),
                          const struct job_rates *job) {
        unsigned n_rows = page->n_left > 0 ? page->n_left - 1 : 0;
        struct line line;

        draw(page->view, job, count_line, page);
        page->state->n_page = n_rows;
        page->state->n_scroll = page->n_passed > n_rows ? page->n_passed - n_rows : 0;
        if (page->state->scroll > page->state->n_scroll)
                page->state->scroll = page->state->n_scroll;
        page->n_passed = 0;
        draw(page->view, job, put_scrolled, page);
        while (page->n_left > 1)
                put_blank(page);
        line_begin(&line, page->view->n_columns, page->view->utf8);
        line_put(&line, STYLE_PLAIN, "Esc");
        line_put(&line, STYLE_KEY, "Back  ");
        if (page->state->n_scroll > 0)
                line_put(&line, STYLE_DIM, " more with the arrows");
        if (page->state->is_paused)
                line_put(&line, STYLE_FAIR, " paused");
        top_page_put(page, &line);
}

static void draw_help(const struct view *view, const struct job_rates *job, emit_fn *emit, void *arg) {
        (void)job;
        view_help(view, emit, arg);
}

static const struct job_rates *chosen_job(const struct top_state *state, const struct rates *rates) {
        for (size_t i = 0; rates && i < rates->n_jobs; i++)
                if (key_of(&rates->jobs[i], NULL).job == state->chosen.job)
                        return &rates->jobs[i];
        return NULL;
}

static void draw_details(const struct view *view, const struct job_rates *job, emit_fn *emit, void *arg) {
        struct line line;

        if (view->away) {
                line_begin(&line, view->n_columns, view->utf8);
                line_sentence(&line, STYLE_BAD, view->away);
                emit(arg, &line);
        }
        if (job) {
                view_details(view, job, emit, arg);
                return;
        }
        line_begin(&line, view->n_columns, view->utf8);
        line_put(&line, STYLE_DIM, "the job has ended");
        emit(arg, &line);
}

/* ---- columns to choose from ---------------------------------------------------------------------------------- */

static void draw_sort(struct page *page) {
        size_t n_rows = page->n_left > 1 ? page->n_left - 1 : 0, choice = page->state->choice;
        size_t first = choice >= n_rows && n_rows > 0 ? choice + 1 - n_rows : 0;
        struct line line;

        line_begin(&line, page->view->n_columns, page->view->utf8);
        line_put(&line, STYLE_TITLE, "Sort by");
        top_page_put(page, &line);
        for (size_t i = first; page->n_left > 0 && top_state_column(i) != N_COLUMNS; i++) {
                line_begin(&line, page->view->n_columns, page->view->utf8);
                line_format(&line, STYLE_PLAIN, "  %s", TOP_COLUMNS[top_state_column(i)].title);
                line.is_chosen = i == choice;
                top_page_put(page, &line);
        }
        while (page->n_left > 0)
                put_blank(page);
}

void page_draw(const struct view *view, struct top_state *state, const struct items *items, unsigned n_rows,
               emit_fn *emit, void *arg) {
        struct page page = { .view = view, .state = state, .n_left = n_rows, .emit = emit, .arg = arg };

        switch (state->mode) {
        case MODE_DETAILS:
                draw_scrolled(&page, draw_details, chosen_job(state, view->rates));
                break;
        case MODE_HELP:
                draw_scrolled(&page, draw_help, NULL);
                break;
        case MODE_SORT:
                draw_sort(&page);
                break;
        default:
                draw_table(&page, items);
                break;
        }
}
