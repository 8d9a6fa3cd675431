#include "client/dlctl/bench/measure.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/control.h"

#define LOOK_AGAIN_MS 200 /* a signal that comes just before a wait is noticed after this time */
#define TELL_EVERY_NS 200000000ull
#define WARM_UP_NS    1000000000ull /* at most; a quarter of the measured time if that is shorter */

static volatile sig_atomic_t interrupted;

static void measure_on_interrupt(int number) {
        interrupted = 1;
}

bool measure_is_interrupted(void) {
        return interrupted != 0;
}

static void measure_catch_interrupts(void) {
        struct sigaction action = { .sa_handler = measure_on_interrupt }; /* without SA_RESTART: signals end waits */

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
}

static uint64_t now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double seconds_between(uint64_t begin, uint64_t end) {
        return (double)(end - begin) / 1e9;
}

static double own_cpu_s(void) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- what the daemon counts ------------------------------------------------------------------------------------ */

/* At one moment. */
struct counted {
        uint64_t worker_ns;     /* of our job */
        uint64_t all_worker_ns; /* of all that the daemon has served */
        uint32_t n_others;      /* jobs that are shown beside ours */
};

static int measure_ask_jobs(const struct context *context, const char *name, struct counted *ret_counted) {
        Dlp__JobsRequest body = DLP__JOBS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct control *control;
        struct counted counted = { 0 };
        int r = control_open(context, &control);

        if (r != EXIT_DONE)
                return r;
        request.body_case = DLP__REQUEST__BODY_JOBS;
        request.jobs = &body;
        do {
                uint32_t first = body.first;
                Dlp__Reply *reply;

                r = control_ask(control, &request, DLP__REPLY__BODY_JOBS, &reply);
                if (r != EXIT_DONE)
                        break;
                for (size_t i = 0; i < reply->jobs->n_jobs; i++)
                        if (strcmp(reply->jobs->jobs[i]->name, name) == 0)
                                counted.worker_ns = reply->jobs->jobs[i]->worker_ns;
                        else
                                counted.n_others++;
                if (reply->jobs->node)
                        counted.all_worker_ns = reply->jobs->node->worker_ns;
                body.first = reply->jobs->next > first ? reply->jobs->next : 0;
                dlp__reply__free_unpacked(reply, NULL);
        } while (body.first > 0);
        control_close(control);
        *ret_counted = counted;
        return r;
}

static int ask_workers(const struct context *context, uint32_t *ret_n_workers) {
        Dlp__StatusRequest body = DLP__STATUS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct control *control;
        Dlp__Reply *reply;
        int r = control_open(context, &control);

        if (r != EXIT_DONE)
                return r;
        request.body_case = DLP__REQUEST__BODY_STATUS;
        request.status = &body;
        r = control_ask(control, &request, DLP__REPLY__BODY_STATUS, &reply);
        control_close(control);
        if (r != EXIT_DONE)
                return r;
        *ret_n_workers = reply->status->n_workers;
        dlp__reply__free_unpacked(reply, NULL);
        return EXIT_DONE;
}

/* ---- the loop -------------------------------------------------------------------------------------------------- */

struct run {
        struct dlc_loader *loader;
        struct measured *measured;
        const struct context *context;
        uint64_t epoch, begin_ns, told_ns;
        double seconds;
        bool has_progress; /* a line stands on the terminal */
};

static void show_waiting(void *userdata, const char *text) {
        static char shown[DLP_TEXT_MAX];

        if (strncmp(shown, text, sizeof(shown) - 1) == 0)
                return;
        snprintf(shown, sizeof(shown), "%s", text);
        fprintf(stderr, "dlctl: waiting: %s\n", text);
}

static void measure_show_progress(struct run *run, uint64_t now) {
        double past = seconds_between(run->begin_ns, now);

        if (now - run->told_ns < TELL_EVERY_NS || !isatty(STDERR_FILENO))
                return;
        run->told_ns = now;
        run->has_progress = true;
        fprintf(stderr, "\r%.0f of %.0f s: %.0f samples/s\033[K", past, run->seconds,
                past > 0 ? (double)run->measured->n_samples / past : 0);
}

static void end_progress(const struct run *run) {
        if (run->has_progress)
                fputs("\r\033[K", stderr);
}

/* The next batch, of the next epoch if one has ended. Returns 0, or a negative errno: -EINTR after a signal, -ENODATA
 * at the end of a stream. */
static int measure_next(struct run *run, const struct dlc_batch **ret_batch) {
        unsigned n_ends = 0;

        for (;;) {
                int r = interrupted ? -EINTR : dlc_next(run->loader, LOOK_AGAIN_MS, ret_batch);

                if (r == -ETIMEDOUT || (r == -EINTR && !interrupted))
                        continue;
                if (r != DLC_END_OF_EPOCH)
                        return r;
                if (dlc_get_info(run->loader)->is_stream || ++n_ends > 1)
                        return -ENODATA; /* an epoch without a batch: others would have none either */
                r = dlc_set_epoch(run->loader, ++run->epoch);
                if (r < 0)
                        return r;
        }
}

static uint64_t measure_bytes_of(const struct dlc_batch *batch) {
        uint64_t n_bytes = 0;

        for (uint32_t i = 0; i < batch->n_tensors; i++) {
                const struct dlc_tensor *tensor = &batch->tensors[i];

                if (!tensor->places)
                        n_bytes += (uint64_t)(tensor->shape[0] * tensor->strides[0]);
                for (uint32_t k = 0; tensor->places && k < batch->n_samples; k++)
                        if (tensor->places[k].offset != DLC_ABSENT)
                                n_bytes += tensor->places[k].n_bytes;
        }
        return n_bytes;
}

/* Takes batches and gives them back until `end`. */
static int take_until(struct run *run, uint64_t end, bool is_measured) {
        struct measured *measured = run->measured;
        uint64_t now = now_ns();
        int r = 0;

        while (r == 0 && now < end) {
                const struct dlc_batch *batch;
                uint64_t before = now;

                r = measure_next(run, &batch);
                now = now_ns();
                if (r < 0)
                        break;
                if (is_measured) {
                        times_add(&measured->times, now - before);
                        measured->waited_ns += now - before;
                        measured->n_batches++;
                        measured->n_samples += batch->n_samples;
                        measured->n_bytes += measure_bytes_of(batch);
                        measure_show_progress(run, now);
                }
                dlc_release(run->loader, batch);
        }
        return r;
}

/* Rings are full when the loop begins, and caches cold: neither is what comes later. */
static int warm_up(struct run *run) {
        uint64_t opened = now_ns(), longest = (uint64_t)(run->seconds / 4 * 1e9);
        const struct dlc_batch *batch;
        int r = measure_next(run, &batch);

        if (r < 0)
                return r;
        dlc_release(run->loader, batch);
        run->measured->first_batch_s += seconds_between(opened, now_ns());
        return take_until(run, now_ns() + (longest < WARM_UP_NS ? longest : WARM_UP_NS), false);
}

/* Differences of what daemon and library have counted. */
static int measure_count(struct run *run, const char *job, bool is_end) {
        struct measured *measured = run->measured;
        uint64_t sign = is_end ? 1 : UINT64_MAX; /* at the beginning what has been counted is subtracted */
        struct dlc_diagnosis found;
        struct counted counted;
        struct dlc_stats stats;
        int r = measure_ask_jobs(run->context, job, &counted);

        if (r != EXIT_DONE)
                return r;
        do /* that of the end is about the time between the two */
                r = dlc_diagnose(run->loader, &found, sizeof(found));
        while (r == -EINTR && !interrupted);
        if (r == 0)
                snprintf(measured->limit, sizeof(measured->limit), "%s", found.limit);
        if (r == 0)
                snprintf(measured->verdict, sizeof(measured->verdict), "%s; %s", found.verdict, found.advice);
        if (r == 0 || r == -EINTR)
                r = dlc_get_stats(run->loader, &stats, sizeof(stats));
        if (r < 0)
                return fail(exit_code_of(r), "%s", dlc_error(run->loader));
        measured->n_other_jobs = counted.n_others;
        measured->worker_ns += sign * counted.worker_ns;
        measured->all_worker_ns += sign * counted.all_worker_ns;
        measured->n_skipped += sign * stats.n_skipped;
        measured->client_s += is_end ? own_cpu_s() : -own_cpu_s();
        return EXIT_DONE;
}

static int measure_conclude(struct run *run, int r) {
        if (r == -EINTR || interrupted)
                return EXIT_INTERRUPTED;
        if (r == -ENODATA && run->measured->n_batches == 0)
                return fail(EXIT_REFUSED, "the dataset had no sample left to measure with");
        return r < 0 && r != -ENODATA ? fail(exit_code_of(r), "%s", dlc_error(run->loader)) : EXIT_DONE;
}

static int run_loop(struct run *run, const char *job) {
        int r = warm_up(run), counted;

        if (r < 0)
                return measure_conclude(run, r);
        r = measure_count(run, job, false);
        if (r != EXIT_DONE)
                return r;
        run->begin_ns = now_ns();
        r = take_until(run, run->begin_ns + (uint64_t)(run->seconds * 1e9), true);
        run->measured->seconds = seconds_between(run->begin_ns, now_ns());
        end_progress(run);
        counted = measure_count(run, job, true);
        r = measure_conclude(run, r);
        return r == EXIT_DONE ? counted : r;
}

int measure(const struct context *context, const struct dlc_options *options, double seconds,
            struct measured *ret_measured) {
        struct run run = { .measured = ret_measured, .context = context, .seconds = seconds };
        struct dlc_options o = *options;
        uint64_t begin = now_ns();
        char job[64];
        int r;

        measure_catch_interrupts();
        *ret_measured = (struct measured){ 0 };
        snprintf(job, sizeof(job), "bench-%ld@%lld", (long)getpid(), (long long)time(NULL));
        o.job = job;
        o.on_progress = show_waiting;
        r = dlc_open(&o, &run.loader);
        if (r < 0)
                return interrupted ? EXIT_INTERRUPTED : fail(exit_code_of(r), "%s", dlc_last_error());
        ret_measured->first_batch_s = seconds_between(begin, now_ns());
        for (const char *warning; (warning = dlc_warning(run.loader));)
                fprintf(stderr, "dlctl: warning: %s\n", warning);
        snprintf(ret_measured->pipeline, sizeof(ret_measured->pipeline), "%s", dlc_get_info(run.loader)->pipeline);
        r = ask_workers(context, &ret_measured->n_workers);
        if (r == EXIT_DONE)
                r = run_loop(&run, job);
        dlc_close(run.loader);
        return r;
}
