/* What a verdict says to people. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/diagnose/job_wait.h"
#include "client/lib/diagnose/verdict.h"
#include "proto/base/text.h"

static const char *const LIMIT_NAMES[] = {
        [VERDICT_NOTHING_YET] = "nothing yet",
        [VERDICT_ENDED] = "ended",
        [VERDICT_OUTAGE] = "outage",
        [VERDICT_ORDER] = "order",
        [VERDICT_RANK] = "rank",
        [VERDICT_TRAINER] = "trainer",
        [VERDICT_READING] = "reading",
        [VERDICT_DECODING] = "decoding",
        [VERDICT_STEP] = "step",
        [VERDICT_LATENCY] = "latency",
};

const char *verdict_limit_name(enum verdict_limit limit) {
        return LIMIT_NAMES[limit];
}

const char *verdict_bound_name(enum verdict_bound bound) {
        return bound == VERDICT_NOT_BOUND ? "not" : bound == VERDICT_MODERATELY ? "moderately" : "highly";
}

/* "2310", "46.2" */
#define NUMBER_MAX 32
static const char *sentence_number(double n, char text[NUMBER_MAX]) {
        snprintf(text, NUMBER_MAX, n < 100 ? "%.3g" : "%.0f", n);
        return text;
}

static double sentence_percent(double share) {
        return share * 100;
}

static const char *sentence_plural(double n) {
        return n == 1 ? "" : "s";
}

struct writer {
        char *text;
        size_t n;
};

static void write_to(struct writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void write_to(struct writer *writer, const char *format, ...) {
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(writer->text + writer->n, VERDICT_TEXT_MAX - writer->n, format, arguments);
        va_end(arguments);
        if (n > 0)
                writer->n += (size_t)n < VERDICT_TEXT_MAX - writer->n ? (size_t)n : VERDICT_TEXT_MAX - writer->n - 1;
}

/* ---- whether, and what limits ---------------------------------------------------------------------------------- */

static void say_waits(struct writer *w, const struct verdict *v) {
        write_to(w, "%s input-bound: ", verdict_bound_name(v->bound));
        if (v->rank >= 0)
                write_to(w,
                         "rank %lld waits for %.0f %% of the time while the others find their batches, and so holds "
                         "all of them: ",
                         (long long)v->rank, sentence_percent(v->wait_share));
        else
                write_to(w, "the trainer waits for %.0f %% of the time: ", sentence_percent(v->wait_share));
}

static void say_workers(struct writer *w, const struct verdict *v) {
        write_to(w, "%u worker%s %s busy for %.0f %% of the time", v->n_workers, sentence_plural(v->n_workers),
                 v->n_workers == 1 ? "is" : "are", sentence_percent(v->worker_share));
        if (v->other_share >= 0.05)
                write_to(w, " that other jobs leave");
}

static void say_limit(struct writer *w, const struct verdict *v) {
        switch (v->limit) {
        case VERDICT_READING:
                write_to(w,
                         "for bytes. Of the samples that may be under way at once, %.0f %% are being read, which "
                         "takes %.3g ms each; ",
                         sentence_percent(v->reading_share), v->read_ms);
                say_workers(w, v);
                break;
        case VERDICT_DECODING:
                write_to(w, "for decoding and augmentation. ");
                say_workers(w, v);
                if (v->stage[0])
                        write_to(w, ", %.0f %% of that with %s", sentence_percent(v->stage_share), v->stage);
                break;
        case VERDICT_STEP:
                write_to(w, "for the step %s. ", v->stage);
                say_workers(w, v);
                write_to(w, ", %.0f %% of that with this step", sentence_percent(v->stage_share));
                break;
        default:
                write_to(w, "too few batches are prepared ahead. ");
                say_workers(w, v);
                write_to(w, ", and storage for %.0f %%", sentence_percent(v->reading_share));
                break;
        }
}

static void say_sentence(struct writer *w, const Dlp__Job *job, const struct verdict *v) {
        char text[DLP_TEXT_MAX];

        switch (v->limit) {
        case VERDICT_NOTHING_YET:
                if (job->n_ranks == 0)
                        write_to(w, "not known: no rank is attached");
                else
                        write_to(w, "not known yet: %llu batch%s taken in %.3g s", (unsigned long long)v->n_batches,
                                 v->n_batches == 1 ? " was" : "es were", v->seconds);
                if (job->n_ranks > 0 && v->bound != VERDICT_NOT_BOUND)
                        write_to(w, ", for %.0f %% of which the trainer waited", sentence_percent(v->wait_share));
                break;
        case VERDICT_ENDED:
                write_to(w, "the job has ended: %s", job->failure);
                break;
        case VERDICT_OUTAGE:
                write_to(w, "on hold: %s", job_wait_text(job, text));
                break;
        case VERDICT_ORDER:
                write_to(w, "the order of its epoch is being made, and no batch can be prepared before that");
                break;
        case VERDICT_RANK:
                write_to(w, "%s input-bound: rank %lld takes fewer batches than the others, and finds them ready",
                         verdict_bound_name(v->bound), (long long)v->rank);
                break;
        case VERDICT_TRAINER:
                write_to(w,
                         "not input-bound: the trainer waits for %.1f %% of the time. The training step takes the "
                         "time",
                         sentence_percent(v->wait_share));
                break;
        default:
                say_waits(w, v);
                say_limit(w, v);
        }
}

/* ---- what to change -------------------------------------------------------------------------------------------- */

static void say_prediction(struct writer *w, const struct verdict *v, const char *how) {
        char predicted[NUMBER_MAX], rate[NUMBER_MAX];

        if (v->predicted > 0)
                write_to(w, ": %s %s samples/s instead of %s", how, sentence_number(v->predicted, predicted),
                         sentence_number(v->rate, rate));
}

static void advise_workers(struct writer *w, const struct verdict *v) {
        if (v->n_workers_advised > v->n_workers) {
                write_to(w, "give the daemon %u workers (dlctl workers %u, and workers in its configuration)",
                         v->n_workers_advised, v->n_workers_advised);
                say_prediction(w, v, "about");
                return;
        }
        write_to(w, "give the daemon more CPUs (it may use %.3g)%s%s%s", v->cpus,
                 v->other_share >= 0.05 ? ", end other jobs" : "",
                 v->cpu_share > 0 && v->cpu_share < 0.8 ? ", take other programs off them" : "",
                 v->has_pictures ? ", or store smaller pictures"
                 : v->has_tokens ? ", or store tokens in place of texts"
                                 : "");
        say_prediction(w, v, "with twice the CPUs about");
}

static void advise_step(struct writer *w, const struct verdict *v) {
        write_to(w, "do %s on the GPU, make it cheaper, or give the daemon more CPUs", v->stage);
        say_prediction(w, v, "without the step about");
}

static void advise_headroom(struct writer *w, const struct verdict *v) {
        double supply = v->supply_workers <= 0                  ? v->supply_storage
                        : v->supply_storage <= 0                ? v->supply_workers
                        : v->supply_workers < v->supply_storage ? v->supply_workers
                                                                : v->supply_storage;
        char text[NUMBER_MAX];

        write_to(w, "nothing to change: without any wait it would be %.3g times as fast",
                 v->wait_share < 1 ? 1 / (1 - v->wait_share) : 1);
        if (supply > v->rate && v->rate > 0)
                write_to(w, ", and the daemon could deliver %s times as much", sentence_number(supply / v->rate, text));
}

/* The trainer's own functions may hang: nobody looks at that before worker_timeout. */
static void advise_looking(struct writer *w, const Dlp__Job *job, const struct verdict *v) {
        const char *function = strstr(job->pipeline, "python(");
        int n = function ? (int)strcspn(function, ",)") : 0;

        write_to(w, "look for longer (dlctl diagnose --seconds 60)");
        if (function && v->n_batches == 0 && v->bound != VERDICT_NOT_BOUND)
                write_to(w, "; if it stays so, look at the function %.*s), whose processes belong to the trainer", n,
                         function);
}

static void say_advice(struct writer *w, const Dlp__Job *job, const struct verdict *v) {
        switch (v->limit) {
        case VERDICT_NOTHING_YET:
                advise_looking(w, job, v);
                break;
        case VERDICT_ENDED:
                write_to(w, "start it again, once the reason is cured");
                break;
        case VERDICT_OUTAGE:
                write_to(w, "look at its mount or server; it goes on by itself");
                break;
        case VERDICT_ORDER:
                write_to(w, "wait for it, or use an order that needs no table (order=\"tdperm\", without a sampler)");
                break;
        case VERDICT_RANK:
                write_to(w, "look at what rank %lld does beside training (its GPU, its CPU, what it saves)",
                         (long long)v->rank);
                say_prediction(w, v, "as quick as the others it would be up to");
                break;
        case VERDICT_TRAINER:
                advise_headroom(w, v);
                break;
        case VERDICT_READING:
                write_to(w, "put the dataset on a faster disk or into memory, or read less of it");
                say_prediction(w, v, "up to");
                break;
        case VERDICT_DECODING:
                advise_workers(w, v);
                break;
        case VERDICT_STEP:
                advise_step(w, v);
                break;
        case VERDICT_LATENCY:
                write_to(w, "prepare more batches ahead (slots of the loader or of the configuration, now %u)",
                         v->n_slots);
                say_prediction(w, v, "up to");
                break;
        }
}

void verdict_say(const Dlp__Job *job, struct verdict *verdict) {
        struct writer sentence = { .text = verdict->sentence }, advice = { .text = verdict->advice };

        verdict->sentence[0] = verdict->advice[0] = '\0';
        say_sentence(&sentence, job, verdict);
        say_advice(&advice, job, verdict);
        text_make_printable(verdict->sentence);
        text_make_printable(verdict->advice);
}
