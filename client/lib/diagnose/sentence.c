/* What a verdict says to people. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/diagnose/job_wait.h"
#include "client/lib/diagnose/verdict.h"
#include "proto/base/shown/amounts.h"
#include "proto/base/text.h"

static const char *const LIMIT_NAMES[] = {
        [VERDICT_NOTHING_YET] = "nothing yet",
        [VERDICT_ENDED] = "ended",
        [VERDICT_OUTAGE] = "outage",
        [VERDICT_ORDER] = "order",
        [VERDICT_RANK] = "rank",
        [VERDICT_TRAINER] = "trainer",
        [VERDICT_READING] = "reading",
        [VERDICT_ORIGIN] = "origin",
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

/* "the origin s3://bucket/cats: first byte after ..." */
static void say_origin(struct writer *w, const struct verdict *v) {
        char text[DLP_TEXT_MAX], one[BYTES_TEXT_MAX], other[BYTES_TEXT_MAX];

        write_to(w, "for the origin%s%s", v->origin.url[0] ? " " : "", v->origin.url);
        if (dlp_origin_text(&v->origin, text)[0])
                write_to(w, ": %s", text);
        if (v->origin.trouble[0])
                write_to(w, "; the last retry was needed because of: %s", v->origin.trouble);
        write_to(w, ". %s of %s are in the cache", format_bytes(one, v->origin.cached_bytes),
                 format_bytes(other, v->origin.total_bytes));
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
        case VERDICT_ORIGIN:
                if (job->wait_reason)
                        write_to(w, "on hold: the trainer waits ");
                else
                        say_waits(w, v);
                say_origin(w, v);
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

#define SMALL_FILE_BYTES (1u << 20) /* a request for less costs more in waiting than in bytes */
#define MANY_FILES       1000u
#define NEARLY_ALL       0.9

static void advise_more(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void advise_more(struct writer *w, const char *format, ...) {
        char text[VERDICT_TEXT_MAX];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        write_to(w, "%s%s", w->n > 0 ? "; " : "", text);
}

/* What helps follows from what was measured, the surest first. */
static void advise_origin(struct writer *w, const struct verdict *v) {
        const struct dlp_origin *o = &v->origin;
        uint64_t each = o->n_files > 0 ? o->total_bytes / o->n_files : 0;
        bool is_small = o->n_files >= MANY_FILES && each < SMALL_FILE_BYTES;
        char one[BYTES_TEXT_MAX], other[BYTES_TEXT_MAX];

        if (o->total_bytes > o->cache_limit)
                advise_more(w, "raise cache_limit (now %s) to %s: then later epochs ask the origin for nothing",
                            format_bytes(one, o->cache_limit), format_bytes(other, o->total_bytes));
        if (o->n_paused > 0)
                advise_more(w, "it limits how much it answers (429, 503): ask for a higher limit, or name a mirror");
        if (is_small)
                advise_more(w,
                            "keep the samples in shards (tar, Parquet, MDS) instead of %llu files of %s, which are a "
                            "request each",
                            (unsigned long long)o->n_files, format_bytes(one, each));
        else if ((double)o->cached_bytes < NEARLY_ALL * (double)o->total_bytes)
                advise_more(w, "order=\"blocks\" needs a few shards at a time, and not parts of all of them at once");
        if (o->n_ahead >= o->n_connections && o->n_paused == 0)
                advise_more(w,
                            "all %u connections are in use: try connections = %u, a faster link, or a mirror that is "
                            "nearer",
                            o->n_connections, 2 * o->n_connections);
        if (w->n == 0)
                advise_more(w, "look at the origin, and at the link to it");
        say_prediction(w, v, "if its bytes were here, up to");
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
        case VERDICT_ORIGIN:
                advise_origin(w, v);
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
