#include "daemon/staging/run/stage_report.h"

/* Reports are bars (bars.h, stage_screen.h), lines or JSON lines, and go to systemd and the progress file as well. Each
 * is one struct progress, made of the nodes' news. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/staging/run/stage_screen.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/shown/rate.h"
#include "proto/base/text.h"

#define DRAW_NS   100000000ull   /* ten frames a second */
#define TELL_NS   1000000000ull  /* systemd, the progress file, JSON */
#define LINE_NS   10000000000ull /* lines, where there is no terminal */
#define EXTEND_US 90000000ull    /* systemd waits so much longer each time it hears of us */
#define SECOND_NS 1000000000ull
#define WARNINGS  16u /* between two updates; more are counted */

struct report {
        enum report_style style;
        bool is_first, has_bars;
        struct place place; /* of the progress file; path "": there is none */
        uint64_t started_ns, drawn_ns, told_ns, lined_ns;

        struct progress progress; /* `nodes` are those of the last update: not ours */
        struct rate rate;
        struct rate *node_rates; /* of n_node_rates */
        uint64_t *node_speeds;
        uint32_t n_node_rates;
        uint32_t n_warnings; /* since the last update */

        struct bars_look look;
        struct screen screen;
        struct bars_frame frame;
};

/* ---- the terminal -------------------------------------------------------------------------------------------- */

static bool is_terminal(void) {
        const char *terminal = getenv("TERM");

        return isatty(STDERR_FILENO) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

/* Our own, or one that somebody lent us. */
static bool find_terminal(struct bars_look *ret_look) {
        const char *lent = getenv(REPORT_TERMINAL_VARIABLE);

        *ret_look = bars_look_of_environment();
        return is_terminal() || (lent && bars_look_read(lent, ret_look));
}

void report_lend_terminal(void) {
        struct screen screen = { .fd = STDERR_FILENO };
        struct bars_look look = bars_look_of_environment();
        char text[64];

        if (!is_terminal())
                return;
        screen_measure(&screen, &look);
        bars_look_write(&look, text);
        setenv(REPORT_TERMINAL_VARIABLE, text, 1);
}

/* ---- begin --------------------------------------------------------------------------------------------------- */

int report_new(enum report_style style, const char *dataset, const struct place *place, bool is_first_node,
               struct report **ret_report) {
        struct report *report = calloc(1, sizeof(*report));

        if (!report)
                return -ENOMEM;
        if (place)
                report->place = *place;
        report->style = style;
        report->is_first = is_first_node;
        report->has_bars = is_first_node && style == REPORT_AUTO && find_terminal(&report->look);
        if (report->has_bars)
                report->has_bars = screen_init(&report->screen, STDERR_FILENO) == 0;
        report->started_ns = clock_now_ns();
        report->progress.seconds_left = UINT64_MAX;
        snprintf(report->progress.dataset, sizeof(report->progress.dataset), "%s", dataset);
        text_make_printable(report->progress.dataset); /* systemd reads lines, people terminals */
        snprintf(report->progress.phase, sizeof(report->progress.phase), "beginning");
        *ret_report = report;
        return 0;
}

void report_set_place(struct report *report, const struct place *place) {
        report->place = *place;
}

void report_phase(struct report *report, const char *phase) {
        if (strcmp(report->progress.phase, phase) == 0)
                return;
        snprintf(report->progress.phase, sizeof(report->progress.phase), "%s", phase);
        /* Bytes that are checked are not fetched: each phase has a speed of its own, and is reported at once. */
        rate_reset(&report->rate);
        for (uint32_t i = 0; i < report->n_node_rates; i++)
                rate_reset(&report->node_rates[i]);
        report->drawn_ns = report->told_ns = report->lined_ns = 0;
}

/* ---- sums ---------------------------------------------------------------------------------------------------- */

static void stage_report_add_up(struct progress *progress, const struct node_progress *news, uint32_t n_nodes) {
        progress->n_bytes_total = progress->n_bytes_done = progress->n_bytes_origin = 0;
        progress->n_files_total = progress->n_retries = progress->n_errors = 0;
        progress->n_files_done = n_nodes > 0 ? UINT64_MAX : 0;
        for (uint32_t i = 0; i < n_nodes; i++) {
                progress->n_bytes_total += news[i].n_bytes_total;
                progress->n_bytes_done += news[i].n_bytes_done;
                progress->n_bytes_origin += news[i].n_bytes_origin;
                progress->n_retries += news[i].n_retries;
                progress->n_errors += news[i].n_errors;
                if (news[i].n_files_total > progress->n_files_total)
                        progress->n_files_total = news[i].n_files_total;
                if (news[i].n_files_done < progress->n_files_done)
                        progress->n_files_done = news[i].n_files_done;
        }
        progress->n_nodes = progress->n_listed = n_nodes;
        progress->nodes = (struct node_progress *)(uintptr_t)news;
}

/* Without memory for them the nodes have no speeds: no reason to end. */
static void measure_nodes(struct report *report, uint64_t now, const struct node_progress *news, uint32_t n_nodes) {
        if (report->n_node_rates != n_nodes) {
                free(report->node_rates);
                free(report->node_speeds);
                report->node_rates = calloc(n_nodes, sizeof(*report->node_rates));
                report->node_speeds = calloc(n_nodes, sizeof(*report->node_speeds));
                report->n_node_rates = report->node_rates && report->node_speeds ? n_nodes : 0;
        }
        for (uint32_t i = 0; i < report->n_node_rates; i++) {
                rate_add(&report->node_rates[i], now, news[i].n_bytes_done, news[i].n_bytes_total);
                report->node_speeds[i] = rate_per_second(&report->node_rates[i]);
        }
}

static void stage_report_measure(struct report *report, uint64_t now, const struct node_progress *news,
                                 uint32_t n_nodes) {
        struct progress *progress = &report->progress;

        stage_report_add_up(progress, news, n_nodes);
        rate_add(&report->rate, now, progress->n_bytes_done, progress->n_bytes_total);
        progress->bytes_per_second = rate_per_second(&report->rate);
        progress->seconds_left = rate_seconds_left(&report->rate, now);
        progress->seconds = (now - report->started_ns) / SECOND_NS;
        if (report->has_bars)
                measure_nodes(report, now, news, n_nodes);
}

/* ---- telling ------------------------------------------------------------------------------------------------- */

static void stage_report_draw(struct report *report) {
        screen_measure(&report->screen, &report->look);
        bars_draw(&report->look, &report->progress, report->n_node_rates ? report->node_speeds : NULL, &report->frame);
        screen_show(&report->screen, &report->look, &report->frame);
}

static void stage_report_print_json(char *line) {
        if (line) {
                puts(line);
                fflush(stdout); /* a script waits for it */
        }
        free(line);
}

/* The nodes that are furthest behind: a file of bounded length. */
static void stage_report_write_file(struct report *report) {
        struct node_progress nodes[PROGRESS_NODES_MAX];
        struct progress progress = report->progress;
        uint32_t furthest[PROGRESS_NODES_MAX];
        struct why why;
        int r;

        progress.n_listed = bars_furthest_behind(&report->progress, PROGRESS_NODES_MAX, furthest);
        for (uint32_t i = 0; i < progress.n_listed; i++)
                nodes[i] = report->progress.nodes[furthest[i]];
        progress.nodes = nodes;
        r = progress_write(&report->place, &progress, &why);
        /* The first run may fail before there is a folder: because of its origin, which those who wait want to know. */
        if (r == -ENOENT && mkdir(report->place.folder, 0755) == 0)
                r = progress_write(&report->place, &progress, &why);
        if (r < 0)
                log_debug("stage", "the progress file cannot be written: %s", why.text);
}

static void tell_systemd(const struct report *report) {
        char sentence[DLP_TEXT_MAX];

        sd_notifyf(0, "STATUS=%s: %s\nEXTEND_TIMEOUT_USEC=%llu", report->progress.dataset,
                   progress_sentence(&report->progress, sentence), (unsigned long long)EXTEND_US);
}

static void stage_report_tell(struct report *report) {
        if (report->place.path[0])
                stage_report_write_file(report);
        if (!report->is_first)
                return;
        tell_systemd(report);
        if (report->style == REPORT_JSON)
                stage_report_print_json(progress_line(&report->progress));
}

static bool stage_report_is_due(uint64_t *last_ns, uint64_t now, uint64_t pause_ns) {
        if (*last_ns != 0 && now - *last_ns < pause_ns)
                return false;
        *last_ns = now;
        return true;
}

/* ---- what stays ---------------------------------------------------------------------------------------------- */

static enum log_level stage_report_level_of(const char *level) {
        if (strcmp(level, "error") == 0)
                return LOG_LEVEL_ERROR;
        if (strcmp(level, "warning") == 0)
                return LOG_LEVEL_WARNING;
        return strcmp(level, "debug") == 0 ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;
}

void report_say(struct report *report, const char *level, const char *text) {
        if (!report->is_first || (strcmp(level, "warning") == 0 && report->n_warnings++ >= WARNINGS))
                return;
        if (report->style == REPORT_JSON) {
                stage_report_print_json(progress_message(report->progress.dataset, level, text));
                return;
        }
        if (report->style == REPORT_QUIET && stage_report_level_of(level) != LOG_LEVEL_ERROR)
                return;
        if (report->has_bars && screen_is_stuck(&report->screen))
                return; /* Ctrl-S: other nodes must not wait for a person */
        if (report->has_bars)
                screen_clear(&report->screen, &report->look);
        log_line(stage_report_level_of(level), "stage", "%s: %s", report->progress.dataset, text);
        report->drawn_ns = 0; /* the bars come back with the next update */
}

static void say_more(struct report *report) {
        uint32_t n = report->n_warnings;
        char text[64];

        report->n_warnings = 0;
        if (n <= WARNINGS)
                return;
        snprintf(text, sizeof(text), "... and %u more like that", n - WARNINGS);
        report_say(report, "warning", text);
}

/* ---- how far it is ------------------------------------------------------------------------------------------- */

void report_update(struct report *report, const struct node_progress *news, uint32_t n_nodes) {
        uint64_t now = clock_now_ns();
        bool has_lines = report->is_first && !report->has_bars && report->style == REPORT_AUTO;
        char sentence[DLP_TEXT_MAX];

        if (!stage_report_is_due(&report->drawn_ns, now, DRAW_NS))
                return;
        say_more(report);
        stage_report_measure(report, now, news, n_nodes);
        if (report->has_bars)
                stage_report_draw(report);
        if (stage_report_is_due(&report->told_ns, now, TELL_NS))
                stage_report_tell(report);
        if (has_lines && stage_report_is_due(&report->lined_ns, now, LINE_NS))
                log_info("stage", "%s: %s", report->progress.dataset, progress_sentence(&report->progress, sentence));
        report->progress.nodes = NULL; /* the caller's */
        report->progress.n_listed = 0;
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

static void end_file(struct report *report, bool is_good) {
        char path[PATH_MAX];

        if (!report->place.path[0])
                return;
        if (!is_good)
                stage_report_write_file(report);
        else if (place_file(&report->place, "progress", "", path) == 0)
                unlink(path);
}

void report_end(struct report *report, const char *result, const char *text) {
        bool is_good, is_stuck = false;

        if (!report)
                return;
        is_good = strcmp(result, "failed") != 0;
        snprintf(report->progress.result, sizeof(report->progress.result), "%s", result);
        snprintf(report->progress.text, sizeof(report->progress.text), "%s", text);
        text_make_printable(report->progress.text);
        text = report->progress.text;
        report->progress.seconds = (clock_now_ns() - report->started_ns) / SECOND_NS;
        report->progress.seconds_left = UINT64_MAX;
        if (is_good) { /* what came since the last update is in it, too */
                report->progress.n_bytes_done = report->progress.n_bytes_total;
                report->progress.n_files_done = report->progress.n_files_total;
        }
        end_file(report, is_good);
        if (report->has_bars) {
                is_stuck = screen_is_stuck(&report->screen);
                screen_fini(&report->screen, &report->look);
        }
        if (report->is_first) {
                sd_notifyf(0, "STATUS=%s: %s%s%.300s", report->progress.dataset, result, *text ? ": " : "", text);
                if (report->style == REPORT_JSON)
                        stage_report_print_json(progress_line(&report->progress));
                else if (!is_stuck && (!is_good || report->style != REPORT_QUIET))
                        log_line(is_good ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "stage", "%s: %s%s%s",
                                 report->progress.dataset, result, *text ? ": " : "", text);
        }
        free(report->node_rates);
        free(report->node_speeds);
        free(report);
}
