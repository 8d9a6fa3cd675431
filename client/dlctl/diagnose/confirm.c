#include "client/dlctl/diagnose/confirm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/dlctl/diagnose/patience.h"
#include "client/dlctl/glance.h"
#include "client/dlctl/waiting.h"
#include "proto/base/clock.h"

#define BATCHES_LEAST  100u /* of each rank: work that a trainer has given to a GPU ahead of time counts little then */
#define BATCHES_MOST   1000u
#define SECONDS_WANTED 3.0            /* of a quick trainer more batches are needed for a steady rate */
#define SERVING_NS     60000000000ull /* of a slow one fewer will do */
#define STANDSTILL_NS  60000000000ull
#define COUNTED_LEAST  10u /* of each rank, else nothing can be said */
#define WARM_UP        10  /* the first tenth does not count */
#define CLOSE          0.10
#define WAITS          0.05

/* One confirmation under way. */
struct course {
        struct control *control;
        const Dlp__Job *job;
        struct glance *first, *last; /* looks while all ranks were served again; NULL: not yet */
        uint64_t serving_ns;         /* since when the trainer takes them; 0: not yet */
        uint64_t moved_ns;           /* when something came last */
        uint32_t moved;              /* how much had come by then */
};

static int confirm_ask(const struct course *course, uint32_t n_batches, bool end, Dlp__Reply **ret_reply) {
        Dlp__ReplayRequest body = DLP__REPLAY_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;

        body.job = course->job->name;
        body.n_batches = n_batches;
        body.end = end;
        request.body_case = DLP__REQUEST__BODY_REPLAY;
        request.replay = &body;
        return control_ask(course->control, &request, DLP__REPLY__BODY_REPLAY, ret_reply);
}

static int end_early(const struct course *course) {
        Dlp__Reply *reply;
        int r = confirm_ask(course, 0, true, &reply);

        if (r == EXIT_DONE)
                dlp__reply__free_unpacked(reply, NULL);
        return r;
}

/* At the rate at which a rank takes them if it does not wait. */
static uint32_t batches_wanted(const Dlp__Job *job, const struct verdict *verdict) {
        double a_second = (double)verdict->n_batches / fmax(verdict->seconds, 1e-3) / fmax(1, (double)job->n_ranks) *
                          verdict->demand / fmax(verdict->rate, 1e-3);
        double n = ceil(a_second * SECONDS_WANTED);

        return n < BATCHES_LEAST ? BATCHES_LEAST : n > BATCHES_MOST ? BATCHES_MOST : (uint32_t)n;
}

static bool is_serving(const Dlp__ReplayReply *replay) {
        return strcmp(replay->state, "serving") == 0 || strcmp(replay->state, "done") == 0;
}

static void confirm_show(const char *name, const Dlp__ReplayReply *replay) {
        struct dlp_progress progress = { .unit = "batches", .seconds_left = -1 };

        snprintf(progress.phase, sizeof(progress.phase), "%s",
                 is_serving(replay) ? "serving batches again" : "keeping batches to serve again");
        progress.done = is_serving(replay) ? replay->n_least : replay->n_kept;
        progress.total = is_serving(replay) ? replay->n_total : replay->n_to_keep;
        waiting_draw(name, &progress);
}

/* Has nothing come for too long, or has the trainer had its time? */
static bool confirm_is_too_late(struct course *course, const Dlp__ReplayReply *replay) {
        uint64_t now = clock_now_ns();
        uint32_t moved = replay->n_kept + replay->n_least + (is_serving(replay) ? 1 : 0);

        if (course->moved_ns == 0 || moved != course->moved)
                course->moved_ns = now;
        course->moved = moved;
        if (replay->n_least > 0 && course->serving_ns == 0)
                course->serving_ns = now;
        return now - course->moved_ns > STANDSTILL_NS ||
               (course->serving_ns != 0 && now - course->serving_ns > SERVING_NS);
}

/* Looks on while the ranks are served again. The look of the turn before counts if at least one more batch was still to
 * come after it. */
static int confirm_turn(struct course *course, bool *ret_is_over) {
        struct glance *now = NULL;
        Dlp__Reply *reply = NULL;
        const Dlp__ReplayReply *replay;
        int r = EXIT_DONE;

        if (course->first)
                r = glance_ask_jobs(course->control, &now);
        if (r == EXIT_DONE)
                r = confirm_ask(course, 0, false, &reply);
        if (r != EXIT_DONE) {
                glance_free(now);
                return r;
        }
        replay = reply->replay;
        confirm_show(course->job->name, replay);
        if (now && replay->n_most < replay->n_total) {
                glance_free(course->last);
                course->last = now;
        } else {
                glance_free(now);
        }
        if (!course->first && replay->n_least * WARM_UP >= replay->n_total && replay->n_least > 0)
                r = glance_ask_jobs(course->control, &course->first);
        *ret_is_over = strcmp(replay->state, "done") == 0 && replay->n_least >= replay->n_total;
        if (r == EXIT_DONE && replay->end[0] && !course->last) {
                waiting_end();
                r = fail(EXIT_REFUSED, "diagnose: cannot be confirmed: %s", replay->end);
        } else if (r == EXIT_DONE && !*ret_is_over && (patience_is_over() || confirm_is_too_late(course, replay))) {
                r = end_early(course);
                *ret_is_over = true;
        }
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

/* Two looks, both while all ranks were served again, give a verdict of that time alone. */
static int confirm_judge(const struct course *course, struct confirmation *confirmation) {
        struct look before, now;
        struct verdict verdict;

        if (course->job->n_ranks > 1 && (!course->first || !course->last))
                return fail(EXIT_REFUSED, "diagnose: cannot be confirmed: there was no time in which all ranks were "
                                          "served again: they do not wait for each other, and have drifted apart");
        if (!course->first || !course->last || !glance_find(course->first, course->job, &before) ||
            !glance_find(course->last, course->job, &now))
                return fail(EXIT_REFUSED, "diagnose: cannot be confirmed: the trainer took too few of the batches that "
                                          "were served again");
        verdict_make(&before, &now, &verdict);
        confirmation->n_batches = verdict.n_batches;
        confirmation->seconds = verdict.seconds;
        confirmation->rate = verdict.rate;
        confirmation->wait_share = verdict.wait_share;
        if (verdict.n_batches < (uint64_t)COUNTED_LEAST * now.job->n_ranks)
                return fail(
                        EXIT_REFUSED,
                        "diagnose: cannot be confirmed: the trainer took only %llu batches in %.0f s; %u of each rank "
                        "are needed",
                        (unsigned long long)verdict.n_batches, verdict.seconds, COUNTED_LEAST);
        return EXIT_DONE;
}

/* ---- what it says to people -------------------------------------------------------------------------------------- */

static const char *how_close(double ratio, char text[64]) {
        double percent = fabs(ratio - 1) * 100;

        if (percent < 0.5)
                snprintf(text, 64, "as predicted");
        else
                snprintf(text, 64, "%.0f %% %s than predicted", percent, ratio > 1 ? "more" : "less");
        return text;
}

/* Fills in the sentence from the numbers. */
static void confirm_say(struct confirmation *c) {
        double ratio = c->predicted > 0 ? c->rate / c->predicted : 0;
        bool is_close = fabs(ratio - 1) <= CLOSE;
        char close[64], *end = c->sentence + sizeof(c->sentence), *at = c->sentence;

        if (c->wait_share >= WAITS) {
                snprintf(c->sentence, sizeof(c->sentence),
                         "not confirmed: the trainer waited for %.0f %% of the time although nothing had to be read or "
                         "decoded: it takes batches faster than they can be copied (%.4g samples/s)",
                         c->wait_share * 100, c->rate);
                return;
        }
        at += snprintf(at, (size_t)(end - at),
                       "%s: with its batches always ready the trainer takes %.4g samples/s, %s (%.4g)",
                       is_close ? "confirmed" : "not confirmed", c->rate, how_close(ratio, close), c->predicted);
        if (!is_close)
                snprintf(at, (size_t)(end - at), "; %s",
                         ratio < 1 ? "that is the most that any change to its data can give"
                                   : "its steps are slower while its batches are prepared on the same CPUs, or were "
                                     "slower than usual while they were looked on");
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

int confirm_run(struct control *control, const Dlp__Job *job, const struct verdict *verdict,
                struct confirmation *ret_confirmation) {
        struct course course = { .control = control, .job = job };
        struct confirmation confirmation = { .predicted = verdict->demand };
        uint32_t n_wanted = batches_wanted(job, verdict);
        Dlp__Reply *reply;
        bool is_over = false;
        int r;

        if (!(verdict->demand > 0) || verdict->limit == VERDICT_NOTHING_YET)
                return fail(EXIT_REFUSED, "diagnose: nothing was predicted that could be confirmed: %s",
                            verdict->sentence);
        r = confirm_ask(&course, n_wanted, false, &reply);
        if (r != EXIT_DONE)
                return r;
        dlp__reply__free_unpacked(reply, NULL);
        if (!waiting_is_drawn())
                fprintf(stderr, "dlctl: serving each rank its latest batches again, %u in all\n", n_wanted);
        while (r == EXIT_DONE && !is_over) {
                patience_tick();
                r = confirm_turn(&course, &is_over);
        }
        waiting_end();
        if (r == EXIT_DONE && patience_is_over())
                r = EXIT_INTERRUPTED;
        if (r == EXIT_DONE)
                r = confirm_judge(&course, &confirmation);
        glance_free(course.first);
        glance_free(course.last);
        if (r != EXIT_DONE)
                return r;
        confirm_say(&confirmation);
        *ret_confirmation = confirmation;
        return EXIT_DONE;
}
