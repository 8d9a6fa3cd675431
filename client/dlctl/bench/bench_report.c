#include "client/dlctl/bench/bench_report.h"

#include <stdio.h>
#include <string.h>

#include "client/dlctl/dlctl_ending.h"

#define OTHER_SHARE    0.05 /* of the workers' time: less is not worth a word */
#define BENCH_TEXT_MAX (BENCH_VERDICT_MAX + 200u)

static double per_second(const struct measured *measured, double amount) {
        return measured->seconds > 0 ? amount / measured->seconds : 0;
}

static double samples_per_second(const struct measured *measured) {
        return per_second(measured, (double)measured->n_samples);
}

static double cpu_seconds(const struct measured *measured) {
        return (double)measured->worker_ns / 1e9 + measured->client_s;
}

static double samples_per_cpu_second(const struct measured *measured) {
        return cpu_seconds(measured) > 0 ? (double)measured->n_samples / cpu_seconds(measured) : 0;
}

static double share_of_workers(const struct measured *measured, uint64_t worker_ns) {
        double share = per_second(measured, (double)worker_ns / 1e9);

        share = measured->n_workers > 0 ? share / measured->n_workers : 0;
        return share < 1 ? share : 1;
}

/* Of the workers' time, 0 to 1: what this job took, and what all others took. */
static double bench_busy_share(const struct measured *measured) {
        return share_of_workers(measured, measured->worker_ns);
}

static double bench_other_share(const struct measured *measured) {
        bool is_more = measured->all_worker_ns > measured->worker_ns; /* the two are not read at the same moment */

        return share_of_workers(measured, is_more ? measured->all_worker_ns - measured->worker_ns : 0);
}

/* The verdict of dlctl diagnose, and what is true beside it. */
static void explain(const struct measured *measured, char text[BENCH_TEXT_MAX]) {
        double other = bench_other_share(measured);
        int n = snprintf(text, BENCH_TEXT_MAX, "%s", measured->verdict);

        if (measured->n_other_jobs > 0)
                n += snprintf(text + n, BENCH_TEXT_MAX - (size_t)n, "; %u other job%s shared the daemon",
                              measured->n_other_jobs, measured->n_other_jobs == 1 ? "" : "s");
        if (other >= OTHER_SHARE)
                snprintf(text + n, BENCH_TEXT_MAX - (size_t)n,
                         "; other jobs take %.0f %% of the workers' time, and this one takes %.0f %%", other * 100,
                         bench_busy_share(measured) * 100);
}

/* ---- for programs ---------------------------------------------------------------------------------------------- */

static int bench_report_print_json(const struct bench_terms *terms, const struct measured *measured) {
        cJSON *record = record_new();
        char text[BENCH_TEXT_MAX];
        int r;

        explain(measured, text);
        record_text(record, "dataset", terms->dataset);
        record_text(record, "pipeline", measured->pipeline);
        record_number(record, "batch_size", terms->batch_size);
        record_number(record, "n_workers", measured->n_workers);
        record_real(record, "seconds", measured->seconds);
        record_number(record, "n_batches", measured->n_batches);
        record_number(record, "n_samples", measured->n_samples);
        record_number(record, "n_skipped", measured->n_skipped);
        record_real(record, "samples_per_second", samples_per_second(measured));
        record_real(record, "samples_per_cpu_second", samples_per_cpu_second(measured));
        record_real(record, "delivered_bytes_per_second", per_second(measured, (double)measured->n_bytes));
        record_real(record, "stored_bytes_per_second", samples_per_second(measured) * terms->stored_bytes);
        record_real(record, "first_batch_seconds", measured->first_batch_s);
        record_real(record, "next_p50_seconds", times_quantile(&measured->times, 0.5) / 1e9);
        record_real(record, "next_p99_seconds", times_quantile(&measured->times, 0.99) / 1e9);
        record_real(record, "worker_busy_share", bench_busy_share(measured));
        record_real(record, "other_jobs_share", bench_other_share(measured));
        record_text(record, "limit", measured->limit);
        record_text(record, "text", text);
        record_number(record, "n_other_jobs", measured->n_other_jobs);
        if (terms->n_gpus > 0)
                record_real(record, "needed_samples_per_second", (double)terms->n_gpus * terms->gpu_rate);
        r = output_record(OUTPUT_JSON, record);
        cJSON_Delete(record);
        return r;
}

/* ---- for people ------------------------------------------------------------------------------------------------ */

/* "3,812", "0.53" */
static const char *grouped(double number, char *text, size_t size) {
        char digits[40];
        size_t n, at = 0;

        snprintf(digits, sizeof(digits), number < 100 ? "%.3g" : "%.0f", number);
        n = strlen(digits);
        for (size_t i = 0; i < n && at + 2 < size; i++) {
                if (number >= 100 && i > 0 && (n - i) % 3 == 0)
                        text[at++] = ',';
                text[at++] = digits[i];
        }
        text[at] = '\0';
        return text;
}

static void print_row(const char *name, double number, const char *unit) {
        char text[64];

        printf("  %-18s %s%s\n", name, grouped(number, text, sizeof(text)), unit);
}

static const char *duration(double seconds, char *text, size_t size) {
        if (seconds < 1e-6)
                snprintf(text, size, "%.0f ns", seconds * 1e9);
        else if (seconds < 1e-3)
                snprintf(text, size, "%.3g us", seconds * 1e6);
        else if (seconds < 1)
                snprintf(text, size, "%.3g ms", seconds * 1e3);
        else
                snprintf(text, size, "%.3g s", seconds);
        return text;
}

static void print_needed(const struct bench_terms *terms, double rate) {
        double needed = (double)terms->n_gpus * terms->gpu_rate;
        char one[64], all[64], each[64];

        if (terms->n_gpus == 0) {
                printf("  %-18s 1 GPU that takes %s samples/s, or 8 that take %s each\n", "enough for",
                       grouped(rate, one, sizeof(one)), grouped(rate / 8, each, sizeof(each)));
                return;
        }
        printf("  %-18s %llu GPU%s at %s samples/s need %s samples/s: ", "needed", (unsigned long long)terms->n_gpus,
               terms->n_gpus == 1 ? "" : "s", grouped(terms->gpu_rate, each, sizeof(each)),
               grouped(needed, all, sizeof(all)));
        if (rate >= needed)
                printf("this node delivers %.3g times that\n", rate / needed);
        else
                printf("this node delivers %.0f %% of that, enough for %.1f\n", rate / needed * 100,
                       rate / terms->gpu_rate);
}

static void bench_report_print_text(const struct bench_terms *terms, const struct measured *measured) {
        double rate = samples_per_second(measured);
        char text[BENCH_TEXT_MAX], p50[32], p99[32];

        printf("%s: %s\n", terms->dataset, measured->pipeline);
        printf("batches of %u, %u worker%s, %.3g s\n", terms->batch_size, measured->n_workers,
               measured->n_workers == 1 ? "" : "s", measured->seconds);
        print_row("rate", rate, " samples/s");
        print_row("per CPU", samples_per_cpu_second(measured), " samples/s of the workers and this client");
        print_row("delivered", per_second(measured, (double)measured->n_bytes) / 1e6, " MB/s");
        if (terms->stored_bytes > 0)
                print_row("read", rate * terms->stored_bytes / 1e6, " MB/s, as far as the samples are of average size");
        printf("  %-18s %s\n", "first batch", duration(measured->first_batch_s, text, sizeof(text)));
        printf("  %-18s p50 %s, p99 %s\n", "next()",
               duration(times_quantile(&measured->times, 0.5) / 1e9, p50, sizeof(p50)),
               duration(times_quantile(&measured->times, 0.99) / 1e9, p99, sizeof(p99)));
        explain(measured, text);
        printf("  %-18s %s: %s\n", "limit", measured->limit, text);
        if (measured->n_skipped > 0)
                printf("  %-18s %llu samples were left out, see dlctl errors\n", "damaged",
                       (unsigned long long)measured->n_skipped);
        print_needed(terms, rate);
}

int bench_print(enum output_format format, const struct bench_terms *terms, const struct measured *measured) {
        if (format == OUTPUT_JSON)
                return bench_report_print_json(terms, measured);
        bench_report_print_text(terms, measured);
        return output_flush();
}
