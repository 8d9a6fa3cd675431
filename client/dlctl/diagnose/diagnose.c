/* dlctl diagnose */

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/diagnose/jobs_seen.h"
#include "client/dlctl/diagnose/record.h"
#include "client/dlctl/options.h"
#include "client/dlctl/waiting.h"
#include "proto/base/clock.h"
#include "proto/base/nearest.h"

#define SECONDS_DEFAULT 5.0
#define SECONDS_MAX     86400.0
#define TICK_NS         50000000

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
        interrupted = 1;
}

static void catch_interrupts(void) {
        struct sigaction action = { .sa_handler = on_interrupt }; /* without SA_RESTART: signals end waits */

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
}

/* Shows how far it is: a line that is drawn, or one that is written. Returns early after a signal. */
static void let_pass(double seconds, const char *name) {
        const struct timespec tick = { .tv_nsec = TICK_NS };
        uint64_t began = clock_now_ns(), until = began + (uint64_t)(seconds * 1e9);
        struct dlp_progress progress = { .phase = "looking on", .unit = "s", .total = (uint64_t)ceil(seconds) };

        if (!waiting_is_drawn())
                fprintf(stderr, "dlctl: looking on for %g s\n", seconds);
        for (uint64_t now = began; now < until && !interrupted; now = clock_now_ns()) {
                progress.seconds = (double)(now - began) / 1e9;
                progress.seconds_left = seconds - progress.seconds;
                progress.done = (uint64_t)progress.seconds;
                waiting_draw(name, &progress);
                nanosleep(&tick, NULL);
        }
        waiting_end();
}

/* Is there a job with this name? If not, says which are. Returns an exit code. */
static int check_name(const struct jobs_seen *jobs, const char *name) {
        struct nearest nearest;
        char names[400] = "";
        size_t n = 0;

        nearest_begin(&nearest, name, strlen(name));
        for (size_t i = 0; i < jobs_seen_count(jobs); i++) {
                const Dlp__Job *job = jobs_seen_at(jobs, i).job;

                if (strcmp(job->name, name) == 0)
                        return EXIT_DONE;
                nearest_offer(&nearest, job->name);
                if (n < sizeof(names))
                        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%.128s", n > 0 ? ", " : "", job->name);
        }
        if (n == 0)
                return fail(EXIT_REFUSED, "diagnose: there is no job \"%.128s\": nobody is attached", name);
        return fail(EXIT_REFUSED, "diagnose: there is no job \"%.128s\"%s; there are: %s", name, nearest_hint(&nearest),
                    names);
}

static void judge(const struct jobs_seen *before, const struct look *now, cJSON *list) {
        cJSON *record = list_record(list);
        struct verdict verdict;
        struct look old;
        bool is_known = jobs_seen_find(before, now->job, &old);

        verdict_make(is_known ? &old : NULL, now, &verdict);
        record_text(record, "name", now->job->name);
        record_text(record, "dataset", now->job->dataset);
        record_text(record, "user", now->job->user);
        verdict_record(record, &verdict);
}

static int judge_all(const struct jobs_seen *before, struct control *control, const char *name, cJSON *list) {
        struct jobs_seen now;
        int r = jobs_seen_ask(control, &now);

        if (r != EXIT_DONE)
                return r;
        for (size_t i = 0; i < jobs_seen_count(&now); i++) {
                struct look look = jobs_seen_at(&now, i);

                if (!name || strcmp(look.job->name, name) == 0)
                        judge(before, &look, list);
        }
        if (name && !list->child)
                r = fail(EXIT_REFUSED, "diagnose: the job \"%.128s\" has ended meanwhile", name);
        jobs_seen_free(&now);
        return r;
}

static int look_on(const struct context *context, struct control *control, const char *name, double seconds) {
        static const char *const COLUMNS[] = { "name", "dataset", "user", NULL };
        cJSON *record = record_new(), *list = record_list(record, "jobs");
        struct jobs_seen before;
        int r = jobs_seen_ask(control, &before);

        if (r == EXIT_DONE) {
                if (name)
                        r = check_name(&before, name);
                if (r == EXIT_DONE && jobs_seen_count(&before) > 0)
                        let_pass(seconds, name ? name : "");
                if (r == EXIT_DONE)
                        r = judge_all(&before, control, name, list);
                jobs_seen_free(&before);
        }
        if (r == EXIT_DONE)
                output_list(context->format, list, COLUMNS, "No jobs: nobody is attached.");
        cJSON_Delete(record);
        return r == EXIT_DONE && interrupted ? EXIT_INTERRUPTED : r;
}

int diagnose_run(struct context *context, const struct command *command, int argc, char **argv) {
        double seconds = SECONDS_DEFAULT;
        const struct option_row rows[] = {
                { "seconds", OPTION_REAL, &seconds, "S", "how long to look on (default 5)" },
        };
        struct control *control;
        int r;

        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 0, argc, argv);
        if (r >= 0)
                return r;
        if (!(seconds > 0 && seconds <= SECONDS_MAX))
                return fail(EXIT_USAGE, "diagnose: --seconds: %g is not allowed; write a number above 0, at most %.0f",
                            seconds, SECONDS_MAX);
        r = control_open(context, &control);
        if (r != EXIT_DONE)
                return r;
        catch_interrupts();
        r = look_on(context, control, optind < argc ? argv[optind] : NULL, seconds);
        control_close(control);
        return r;
}
