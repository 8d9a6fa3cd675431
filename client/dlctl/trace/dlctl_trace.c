/* dlctl trace: what the daemon did for some seconds, as a file for a viewer. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_ending.h"
#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/trace/chrome.h"
#include "client/dlctl/waiting.h"
#include "proto/base/clock.h"

#define SECONDS_MAX 3600.0
#define POLL_MS     100
#define EARLY_S     0.1
#define GONE_MS     1000           /* until the end of a daemon shows on its other socket */
#define REST_NS     30000000000ull /* how long the rest may take to come once the time is over */

/* Why the end is missing. */
struct cut {
        int code; /* the exit code that goes with it; EXIT_DONE: it is there */
        struct why why;
};

struct wish {
        double seconds;
        const char *path;
        bool force;
        const char *job; /* NULL: all */
};

static volatile sig_atomic_t interrupted;

/* The first signal ends the trace, and what there is of it is written. The second one ends dlctl. */
static void dlctl_trace_on_interrupt(int number) {
        if (interrupted) {
                traced_file_unlink();
                _exit(EXIT_INTERRUPTED);
        }
        interrupted = 1;
}

static void dlctl_trace_catch_interrupts(void) {
        struct sigaction action = { .sa_handler =
                                            dlctl_trace_on_interrupt }; /* without SA_RESTART: signals end waits */

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGHUP, &action, NULL);
        signal(SIGPIPE, SIG_IGN); /* a reader of standard output that has gone is an error of writing, */
        signal(SIGXFSZ, SIG_IGN); /* and so is a file that is longer than is allowed */
}

/* ---- receiving ------------------------------------------------------------------------------------------------- */

struct reception {
        int fd;
        struct recorded *recorded;
        uint64_t began_ns, seconds_ns;
        bool is_asked_to_end;
        bool is_cut; /* it ended before the daemon had sent all */
};

static void dlctl_trace_show(const struct reception *reception, uint64_t now_ns) {
        struct dlp_progress progress = { .phase = "tracing", .unit = "s", .seconds_left = -1 };

        progress.total = reception->seconds_ns / 1000000000u;
        progress.done = (now_ns - reception->began_ns) / 1000000000u;
        if (progress.total >= 2 && progress.done <= progress.total)
                waiting_draw("", &progress);
}

static void ask_to_end(struct reception *reception) {
        if (!reception->is_asked_to_end)
                shutdown(reception->fd, SHUT_WR);
        reception->is_asked_to_end = true;
}

/* Receives until the daemon has sent all, or has ended. */
static int dlctl_trace_receive(struct reception *reception, struct why *why) {
        static uint8_t buffer[1u << 18];
        uint64_t now_ns;
        ssize_t n;
        int r;

        for (;;) {
                struct pollfd waits = { .fd = reception->fd, .events = POLLIN };

                now_ns = clock_now_ns();
                if (interrupted)
                        ask_to_end(reception);
                else
                        dlctl_trace_show(reception, now_ns);
                if (now_ns - reception->began_ns > reception->seconds_ns + REST_NS)
                        return why_set(why, -ETIMEDOUT, "the daemon does not end the trace");
                poll(&waits, 1, POLL_MS);
                n = recv(reception->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (n <= 0) {
                        reception->is_cut = !reception->recorded->is_whole;
                        return 0;
                }
                r = recorded_take(reception->recorded, buffer, (size_t)n, why);
                if (r == -ENOSPC) {
                        fprintf(stderr, "dlctl: %s\n", why->text);
                        return 0;
                }
                if (r < 0)
                        return r;
        }
}

/* What the daemon says of itself. */
static int dlctl_trace_take_answer(struct recorded *recorded, const Dlp__TraceReply *reply, struct why *why) {
        if (reply->ahead_ns > RECORDED_AHEAD || reply->ahead_ns < -RECORDED_AHEAD)
                return why_set(why, -EPROTO, "trace: the daemon's clock is too far from its other one");
        recorded->pid = reply->pid;
        recorded->ahead_ns = reply->ahead_ns;
        recorded->begin_ns = clock_now_ns();
        if (reply->n_jobs == 0)
                fprintf(stderr, "dlctl: no job is running now\n");
        return 0;
}

/* A daemon that ends closes both sockets; one that goes on has given the trace up. */
static void explain_cut(struct control *control, struct cut *cut) {
        bool has_ended = control_wait_end(control, GONE_MS);

        cut->code = has_ended ? EXIT_UNREACHABLE : EXIT_REFUSED;
        why_set(&cut->why, 0, "the daemon at %s %s", control_socket(control),
                has_ended ? "ended while it was traced" : "broke the trace off");
}

/* Asks for a trace, and receives it. Returns an exit code: EXIT_DONE also if it was cut off, which `cut` then says. */
static int trace(const struct context *context, const struct wish *wish, struct recorded *recorded, struct cut *cut) {
        Dlp__TraceRequest body = DLP__TRACE_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct reception reception = { .recorded = recorded, .seconds_ns = (uint64_t)(wish->seconds * 1e9) };
        struct control *control;
        Dlp__Reply *reply;
        struct why why;
        int r = control_open(context, &control);

        cut->code = EXIT_DONE;
        if (r != EXIT_DONE)
                return r;
        body.duration_ms = (uint32_t)(wish->seconds * 1000);
        body.job = wish->job ? (char *)(uintptr_t)wish->job : body.job;
        request.body_case = DLP__REQUEST__BODY_TRACE;
        request.trace = &body;
        r = control_ask_for(control, &request, DLP__REPLY__BODY_TRACE, &reply, &reception.fd, 1);
        if (r == EXIT_DONE) {
                r = dlctl_trace_take_answer(recorded, reply->trace, &why);
                dlp__reply__free_unpacked(reply, NULL);
                reception.began_ns = recorded->begin_ns;
                if (r == 0)
                        r = dlctl_trace_receive(&reception, &why);
                waiting_end();
                close(reception.fd);
                if (reception.is_cut)
                        explain_cut(control, cut);
                r = r < 0 ? fail(exit_code_of(r), "%s", why.text) : EXIT_DONE;
        }
        control_close(control);
        return r;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static bool is_standard_output(const struct wish *wish) {
        return strcmp(wish->path, "-") == 0;
}

static void dlctl_trace_tell(const struct context *context, const struct wish *wish, const struct recorded *recorded) {
        cJSON *record;

        double seconds = (double)(recorded->end_ns - recorded->begin_ns) / 1e9;

        if (recorded->is_whole && !interrupted && seconds < wish->seconds - EARLY_S)
                fprintf(stderr, "dlctl: the trace ends after %.1f s: another one was asked for\n", seconds);
        if (recorded->n_dropped > 0)
                fprintf(stderr,
                        "dlctl: %llu events are missing: they came faster than they could be taken; trace one JOB, or "
                        "for fewer seconds\n",
                        (unsigned long long)recorded->n_dropped);
        if (is_standard_output(wish))
                return;
        record = record_new();
        record_text(record, "file", wish->path);
        record_number(record, "traced_ns", recorded->end_ns - recorded->begin_ns);
        record_number(record, "n_events", recorded->n_events);
        record_number(record, "n_dropped", recorded->n_dropped);
        output_record(context->format, record);
        cJSON_Delete(record);
}

static int trace_to_file(const struct context *context, const struct wish *wish) {
        struct recorded recorded = { 0 };
        struct traced_file *file;
        struct cut cut;
        struct why why;
        int r, code;

        r = traced_file_begin(wish->path, wish->force, &file, &why);
        if (r < 0)
                return fail(EXIT_REFUSED, "%s", why.text);
        code = trace(context, wish, &recorded, &cut);
        if (code != EXIT_DONE) {
                traced_file_drop(file);
                recorded_fini(&recorded);
                return code;
        }
        if (!recorded.is_whole)
                recorded.end_ns = clock_now_ns();
        r = chrome_write(file, &recorded, &why);
        if (r < 0)
                traced_file_drop(file);
        else
                r = traced_file_end(file, &why);
        if (r == 0)
                dlctl_trace_tell(context, wish, &recorded);
        recorded_fini(&recorded);
        if (r < 0 && is_standard_output(wish)) {
                output_failed(-r); /* output_end() says it */
                return EXIT_REFUSED;
        }
        if (r < 0)
                return fail(EXIT_REFUSED, "%s", why.text);
        if (cut.code != EXIT_DONE)
                return fail(cut.code, "%s: what had come by then is in %.400s, which viewers open", cut.why.text,
                            is_standard_output(wish) ? "the output" : wish->path);
        return interrupted ? EXIT_INTERRUPTED : EXIT_DONE;
}

/* Beside each other, in the order of time. */
static const char *default_path(void) {
        static char path[64];
        time_t now = time(NULL);
        struct tm local;

        if (!localtime_r(&now, &local) || strftime(path, sizeof(path), "trace-%Y%m%d-%H%M%S.json.gz", &local) == 0)
                return "trace.json.gz";
        return path;
}

int trace_run(struct context *context, const struct command *command, int argc, char **argv) {
        struct wish wish = { .seconds = 5 };
        const struct option_row rows[] = {
                { "seconds", OPTION_REAL, &wish.seconds, "S", "for how long (default 5)" },
                { "output", OPTION_TEXT, &wish.path, "FILE",
                  "where to write it (default: trace-DATE-TIME.json.gz here); compressed if the name ends with .gz; - "
                  "is standard output",
                  'o' },
                { "force", OPTION_FLAG, &wish.force, NULL, "replace FILE if it exists" },
        };
        int r;

        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 0, argc, argv);
        if (r >= 0)
                return r;
        if (!(wish.seconds >= 0.001 && wish.seconds <= SECONDS_MAX))
                return fail(EXIT_USAGE, "trace: --seconds: %g is not allowed; write a number from 0.001 to %.0f",
                            wish.seconds, SECONDS_MAX);
        if (optind < argc)
                wish.job = argv[optind];
        if (!wish.path)
                wish.path = default_path();
        dlctl_trace_catch_interrupts();
        return trace_to_file(context, &wish);
}
