/* dlctl top in a terminal: looks and keys become pictures, until the user has seen enough. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/inquiry/inquiry.h"
#include "client/dlctl/top/top.h"
#include "client/dlctl/top/top_page.h"
#include "client/dlctl/top/top_screen.h"
#include "proto/base/clock.h"
#include "proto/version.h"

#define SECOND_NS   1000000000ull
#define WINDOW_NS   (5 * SECOND_NS) /* rates are of so long: steps may take a second */
#define GLANCES_MAX 64u

struct live {
        struct inquiry inquiry;
        unsigned generation;
        const struct glance *glances[GLANCES_MAX];
        size_t n_glances;
        struct glance *datasets;
        struct top_state state;
        struct rates rates;
        struct items items;
        bool has_rates;
        bool is_stale; /* the picture */
        char host[65];
        uint64_t tick_ns; /* of the next look */
};

static volatile sig_atomic_t is_ended;

static void live_on_end(int number) {
        is_ended = number;
}

/* ---- looks --------------------------------------------------------------------------------------------------- */

static void live_drop_first(struct live *live) {
        glance_free((struct glance *)(uintptr_t)live->glances[0]);
        memmove(live->glances, live->glances + 1, --live->n_glances * sizeof(live->glances[0]));
}

static uint64_t live_age_of(const struct glance *glance, const struct glance *now) {
        return glance->node && now->node && glance->node->now_ns < now->node->now_ns
                       ? now->node->now_ns - glance->node->now_ns
                       : 0;
}

static void forget_rates(struct live *live) {
        items_free(&live->items);
        if (live->has_rates)
                rates_free(&live->rates);
        live->has_rates = false;
}

/* The first one is as old as the window, or the oldest that there is. */
static void live_keep(struct live *live, struct glance *glance) {
        if (live->inquiry.generation != live->generation)
                while (live->n_glances > 0)
                        live_drop_first(live);
        live->generation = live->inquiry.generation;
        while (live->n_glances == GLANCES_MAX ||
               (live->n_glances > 1 && live_age_of(live->glances[1], glance) >= WINDOW_NS))
                live_drop_first(live);
        live->glances[live->n_glances++] = glance;
}

/* It is time for a look: connects if there is no connection, and asks unless it still waits for answers. */
static void live_ask(struct inquiry *inquiry, uint64_t now_ns) {
        bool wanted[N_QUESTIONS] = { [ASK_STATUS] = true, [ASK_JOBS] = true };
        enum reach reach; /* not used: the picture does not say where it was found */

        if (inquiry->is_asking) {
                inquiry_is_late(inquiry, now_ns);
        } else if (inquiry_connect(inquiry, &reach) >= 0) {
                wanted[ASK_DATASETS] = inquiry_wants_datasets(inquiry, now_ns);
                inquiry_begin(inquiry, wanted, now_ns);
        }
}

static void take_look(struct live *live) {
        struct glance *glance, *datasets;

        if (inquiry_take(&live->inquiry, clock_now_ns(), &glance, &datasets) <= 0) {
                live->is_stale |= live->inquiry.away.text[0] != '\0';
                return;
        }
        live->is_stale = true;
        if (live->state.is_paused) {
                glance_free(glance);
                glance_free(datasets);
                return;
        }
        forget_rates(live); /* they lead into the looks */
        live_keep(live, glance);
        if (datasets) {
                glance_free(live->datasets);
                live->datasets = datasets;
        }
        rates_make(live->glances, live->n_glances, &live->rates);
        live->has_rates = true;
}

/* ---- pictures ------------------------------------------------------------------------------------------------ */

/* The lines of the table, of the last look and as the user sorts and filters them. */
static void make_items(struct live *live) {
        items_free(&live->items);
        if (live->has_rates)
                items_make(&live->rates, live->state.sorting, live->state.filter, top_state_opens, &live->state,
                           &live->items);
}

static void live_draw(struct live *live) {
        struct view view = {
                .utf8 = screen_utf8(),
                .host = live->host,
                .away = live->inquiry.away.text[0] ? live->inquiry.away.text : NULL,
                .rates = live->has_rates ? &live->rates : NULL,
                .datasets = live->datasets,
                .sorting = live->state.sorting,
        };
        unsigned n_rows;

        screen_size(&view.n_columns, &n_rows);
        make_items(live);
        screen_begin();
        page_draw(&view, &live->state, &live->items, n_rows, screen_line, NULL);
        screen_end();
}

/* ---- keys ---------------------------------------------------------------------------------------------------- */

static void take_keys(struct live *live) {
        double delay = live->state.delay;
        enum screen_key key;
        enum press press;
        char character;

        while ((key = screen_key(&press, &character)) != SCREEN_NOTHING) {
                if (live->is_stale) { /* the key came with an answer, or right after another key */
                        make_items(live);
                        top_state_settle(&live->state, &live->items, live->state.n_page);
                }
                live->is_stale = true;
                if (key == SCREEN_PRESS)
                        top_state_press(&live->state, press, character, &live->items);
        }
        if (live->state.delay != delay)
                live->tick_ns = 0;
}

/* ---- the loop ------------------------------------------------------------------------------------------------ */

/* Signals reach the program only while it waits, so that none is missed. */
static void block_signals(sigset_t *ret_while_waiting) {
        static const int NUMBERS[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
        struct sigaction end = { .sa_handler = live_on_end };
        sigset_t blocked;

        sigemptyset(&blocked);
        for (size_t i = 0; i < sizeof(NUMBERS) / sizeof(NUMBERS[0]); i++) {
                sigaction(NUMBERS[i], &end, NULL);
                sigaddset(&blocked, NUMBERS[i]);
        }
        sigaddset(&blocked, SIGWINCH); /* ncurses' own */
        sigaddset(&blocked, SIGTSTP);
        sigprocmask(SIG_BLOCK, &blocked, ret_while_waiting);
        for (size_t i = 0; i < sizeof(NUMBERS) / sizeof(NUMBERS[0]); i++)
                sigdelset(ret_while_waiting, NUMBERS[i]);
        sigdelset(ret_while_waiting, SIGWINCH);
        sigdelset(ret_while_waiting, SIGTSTP);
}

static void live_tick(struct live *live) {
        uint64_t now_ns = clock_now_ns(), delay_ns = (uint64_t)(live->state.delay * (double)SECOND_NS);

        if (now_ns < live->tick_ns)
                return;
        live_ask(&live->inquiry, now_ns);
        live->is_stale |= live->inquiry.away.text[0] != '\0';
        live->tick_ns = live->tick_ns + delay_ns > now_ns ? live->tick_ns + delay_ns : now_ns + delay_ns;
}

/* Until a key, an answer, a signal or the next look. Returns false if the terminal has gone. */
static bool wait_for_something(struct live *live, const sigset_t *mask) {
        struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                { .fd = live->inquiry.is_connected ? live->inquiry.connection.socket : -1,
                                  .events = POLLIN } };
        uint64_t now_ns = clock_now_ns(), left_ns = live->tick_ns > now_ns ? live->tick_ns - now_ns : 0;
        struct timespec left = { (time_t)(left_ns / SECOND_NS), (long)(left_ns % SECOND_NS) };

        if (ppoll(fds, 2, &left, mask) <= 0) {
                live->is_stale |= errno == EINTR; /* it was stopped, and continued */
                return true;
        }
        if (fds[0].revents & (POLLERR | POLLHUP | POLLNVAL))
                return false;
        if (fds[1].revents)
                take_look(live);
        return true;
}

static void live_run(struct live *live) {
        sigset_t mask;

        block_signals(&mask);
        for (bool goes_on = true; goes_on && !is_ended && !live->state.quits;) {
                live_tick(live);
                if (live->is_stale)
                        live_draw(live);
                live->is_stale = false;
                goes_on = wait_for_something(live, &mask);
                take_keys(live);
        }
}

/* What no daemon would make good, such as a path that is too long. Returns an exit code. */
static int check_socket(const struct context *context) {
        struct dli_connection connection;
        struct why reason;
        enum reach reach;
        int r = reach_try(context, "dlctl top " DLP_FULL_VERSION, &connection, &reason, &reach);

        dli_connection_close(&connection);
        return r < 0 && exit_code_of(r) != EXIT_UNREACHABLE ? fail(exit_code_of(r), "%s", reason.text) : EXIT_DONE;
}

int top_live(struct context *context, const struct top_terms *terms) {
        struct live live = { .is_stale = true };
        struct why reason;
        int r;

        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
                return fail(EXIT_USAGE, "top: this is not a terminal: give --once, which prints the table and ends");
        if (context->format == OUTPUT_JSON)
                return fail(EXIT_USAGE, "top: --format json goes with --once");
        r = check_socket(context);
        if (r != EXIT_DONE)
                return r;
        if (screen_open(&reason) < 0)
                return fail(EXIT_REFUSED, "top: %s", reason.text);
        gethostname(live.host, sizeof(live.host) - 1);
        top_state_init(&live.state, terms->sorting, terms->delay, terms->filter, terms->ranks);
        inquiry_init(&live.inquiry, context, "dlctl top " DLP_FULL_VERSION);
        live_run(&live);
        screen_close();
        forget_rates(&live);
        while (live.n_glances > 0)
                live_drop_first(&live);
        glance_free(live.datasets);
        inquiry_close(&live.inquiry);
        return EXIT_DONE;
}
