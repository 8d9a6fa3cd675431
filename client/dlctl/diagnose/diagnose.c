/* dlctl diagnose */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/diagnose/confirm.h"
#include "client/dlctl/diagnose/diagnose_record.h"
#include "client/dlctl/diagnose/job_name.h"
#include "client/dlctl/diagnose/patience.h"
#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/waiting.h"
#include "proto/base/clock.h"

#define SECONDS_DEFAULT 5.0
#define SECONDS_MAX     86400.0
/* Shows how far it is: a line that is drawn, or one that is written. Returns early after a signal. */
static void let_pass(double seconds, const char *name) {
        uint64_t began = clock_now_ns(), until = began + (uint64_t)(seconds * 1e9);
        struct dlp_progress progress = { .phase = "looking on", .unit = "s", .total = (uint64_t)ceil(seconds) };

        if (!waiting_is_drawn())
                fprintf(stderr, "dlctl: looking on for %g s\n", seconds);
        for (uint64_t now = began; now < until && !patience_is_over(); now = clock_now_ns()) {
                progress.seconds = (double)(now - began) / 1e9;
                progress.seconds_left = seconds - progress.seconds;
                progress.done = (uint64_t)progress.seconds;
                waiting_draw(name, &progress);
                patience_tick();
        }
        waiting_end();
}

/* What was asked for. */
struct wish {
        const char *name; /* of the job; NULL: all */
        double seconds;
        bool confirms;
};

static int diagnose_judge(const struct glance *before, const struct look *now, struct control *control,
                          const struct wish *wish, cJSON *list) {
        cJSON *record = list_record(list);
        struct confirmation confirmation;
        struct verdict verdict;
        struct look old;
        bool is_known = glance_find(before, now->job, &old);
        int r = EXIT_DONE;

        verdict_make(is_known ? &old : NULL, now, &verdict);
        record_text(record, "name", now->job->name);
        record_text(record, "dataset", now->job->dataset);
        record_text(record, "user", now->job->user);
        if (wish->confirms && !patience_is_over())
                r = confirm_run(control, now->job, &verdict, &confirmation);
        verdict_record(record, &verdict);
        if (wish->confirms && !patience_is_over() && r == EXIT_DONE)
                confirmation_record(record, &confirmation);
        return r;
}

static int judge_all(const struct glance *before, struct control *control, const struct wish *wish, cJSON *list) {
        struct glance *now;
        int r = glance_ask_jobs(control, &now), refused = EXIT_DONE;

        if (r != EXIT_DONE)
                return r;
        for (size_t i = 0; i < now->n_jobs && refused == EXIT_DONE; i++)
                if (!wish->name || strcmp(now->jobs[i].job->name, wish->name) == 0)
                        refused = diagnose_judge(before, &now->jobs[i], control, wish, list);
        if (wish->name && !list->child)
                r = fail(EXIT_REFUSED, "diagnose: the job \"%.128s\" has ended meanwhile", wish->name);
        glance_free(now);
        return r == EXIT_DONE ? refused : r;
}

/* Confirming changes what a trainer gets, so it must be clear whose. */
static int check_confirms(const struct glance *glance, const struct wish *wish) {
        if (!wish->confirms || wish->name || glance->n_jobs <= 1)
                return EXIT_DONE;
        return fail(EXIT_USAGE,
                    "diagnose: --confirm: there are %zu jobs; name the one whose batches may be served again",
                    glance->n_jobs);
}

static int diagnose_look_on(const struct context *context, struct control *control, const struct wish *wish) {
        static const char *const COLUMNS[] = { "name", "dataset", "user", NULL };
        cJSON *record = record_new(), *list = record_list(record, "jobs");
        struct glance *before;
        int r = glance_ask_jobs(control, &before);

        if (r == EXIT_DONE) {
                r = wish->name ? job_name_check(before, "diagnose", wish->name) : check_confirms(before, wish);
                if (r == EXIT_DONE && before->n_jobs > 0)
                        let_pass(wish->seconds, wish->name ? wish->name : "");
                if (r == EXIT_DONE)
                        r = judge_all(before, control, wish, list);
                glance_free(before);
        }
        if (r == EXIT_DONE || list->child) /* a verdict that could not be confirmed is one all the same */
                output_list(context->format, list, COLUMNS, "No jobs: nobody is attached.");
        cJSON_Delete(record);
        return r == EXIT_DONE && patience_is_over() ? EXIT_INTERRUPTED : r;
}

int diagnose_run(struct context *context, const struct command *command, int argc, char **argv) {
        struct wish wish = { .seconds = SECONDS_DEFAULT };
        const struct option_row rows[] = {
                { "seconds", OPTION_REAL, &wish.seconds, "S", "how long to look on (default 5)" },
                { "confirm", OPTION_FLAG, &wish.confirms, NULL,
                  "then serve the job its latest batches again, at least 100 to each rank, and compare: the trainer "
                  "trains on them" },
        };
        struct control *control;
        int r;

        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 0, argc, argv);
        if (r >= 0)
                return r;
        if (!(wish.seconds > 0 && wish.seconds <= SECONDS_MAX))
                return fail(EXIT_USAGE, "diagnose: --seconds: %g is not allowed; write a number above 0, at most %.0f",
                            wish.seconds, SECONDS_MAX);
        r = control_open(context, &control);
        if (r != EXIT_DONE)
                return r;
        patience_begin();
        wish.name = optind < argc ? argv[optind] : NULL;
        r = diagnose_look_on(context, control, &wish);
        control_close(control);
        return r;
}
