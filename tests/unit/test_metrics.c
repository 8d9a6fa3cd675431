/* The text that Prometheus reads, made of numbers that are known here. */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/machine/own_process.h"
#include "daemon/ctl/metrics/metrics.h"
#include "daemon/ctl/metrics/metrics_text.h"
#include "tests/support/suite.h"

static void label_is(const char *before, const char *value, const char *expected) {
        char *label = metrics_label(before, "job", value);

        ck_assert_ptr_nonnull(label);
        ck_assert_str_eq(label, expected);
        free(label);
}

START_TEST(a_label_has_any_value_and_is_still_one) {
        label_is(NULL, "train", "job=\"train\"");
        label_is("dataset=\"d\"", "train", "dataset=\"d\",job=\"train\"");
        label_is(NULL, "", "job=\"\"");
        label_is(NULL, "a\"} 1\nb", "job=\"a\\\"} 1\\\\x0ab\"");
        label_is(NULL, "C:\\x", "job=\"C:\\\\x\"");
        label_is(NULL, "gr\xc3\xbc\xc3\x9f", "job=\"gr\xc3\xbc\xc3\x9f\"");
        label_is(NULL, "\xff\xc3", "job=\"\\\\xff\\\\xc3\"");
        label_is(NULL, "\xc2\x85\x1b[31m", "job=\"\\\\xc2\\\\x85\\\\x1b[31m\"");
        label_is(NULL, "a\xe2\x80\xaez", "job=\"a\\\\xe2\\\\x80\\\\xaez\""); /* U+202E */
}
END_TEST

START_TEST(long_labels_stay_different) {
        char one[2000], other[2000], *labels[2];

        memset(one, 'a', sizeof(one));
        one[sizeof(one) - 1] = '\0';
        memcpy(other, one, sizeof(one));
        other[sizeof(other) - 2] = 'b';
        labels[0] = metrics_label(NULL, "dataset", one);
        labels[1] = metrics_label(NULL, "dataset", other);
        ck_assert_uint_le(strlen(labels[0]), METRIC_LABEL_MAX + strlen("dataset=\"\""));
        ck_assert_str_ne(labels[0], labels[1]);
        free(labels[0]);
        free(labels[1]);
        one[METRIC_LABEL_MAX] = '\0';
        labels[0] = metrics_label(NULL, "dataset", one);
        ck_assert_ptr_null(strstr(labels[0], "..."));
        free(labels[0]);
}
END_TEST

static const struct {
        uint64_t number;
        unsigned n_places;
        const char *text;
} DECIMALS[] = {
        { 0, 0, "0" },
        { 0, 9, "0" },
        { 7, 0, "7" },
        { 10, 0, "10" },
        { 1500, 3, "1.5" },
        { 2000, 3, "2" },
        { 5, 9, "0.000000005" },
        { 1000000001, 9, "1.000000001" },
        { UINT64_MAX - 1, 0, "18446744073709551614" },
        { UINT64_MAX - 1, 9, "18446744073.709551614" },
};

START_TEST(numbers_are_exact) {
        struct text text = { .bytes = NULL };

        text_add_decimal(&text, DECIMALS[_i].number, DECIMALS[_i].n_places);
        text_add_bytes(&text, "", 1);
        ck_assert_str_eq(text.bytes, DECIMALS[_i].text);
        free(text.bytes);
}
END_TEST

START_TEST(a_text_grows_and_keeps_all_of_it) {
        struct text text = { .bytes = NULL };

        for (uint32_t i = 0; i < 10000; i++)
                text_add_decimal(&text, 1000000 + i, 0);
        ck_assert_uint_eq(text.n, 70000);
        ck_assert_int_eq(memcmp(text.bytes, "10000001000001", 14), 0);
        ck_assert_int_eq(memcmp(text.bytes + text.n - 7, "1009999", 7), 0);
        free(text.bytes);
}
END_TEST

/* Two ranks of one job, which say different things. */
static char *example(void) {
        static struct dataset_metrics dataset;
        static struct job_metrics job;
        static struct rank_metrics ranks[2];
        struct metrics metrics = { .version = "1.2",
                                   .datasets = &dataset,
                                   .jobs = &job,
                                   .ranks = ranks,
                                   .n_datasets = 1,
                                   .n_jobs = 1,
                                   .n_ranks = 2 };
        char *text = NULL, *whole;
        size_t n = 0;

        memset(&dataset, 0xff, sizeof(dataset));
        memset(&job, 0, sizeof(job));
        memset(ranks, 0, sizeof(ranks));
        dataset.labels = (char *)(uintptr_t) "dataset=\"d\"";
        dataset.numbers.is_ready = 1;
        job.labels = (char *)(uintptr_t) "dataset=\"d\",job=\"j\"";
        job.stages[STAGE_DECODE] = (struct stage_total){ 1250000000, 1 };
        job.numbers.order_micro = 250000;
        ranks[0].labels = (char *)(uintptr_t) "job=\"j\",rank=\"0\"";
        ranks[1].labels = (char *)(uintptr_t) "job=\"j\",rank=\"1\"";
        ranks[1].numbers.wait_ns = 2500000000;
        ranks[1].meter.waits[0] = 5;
        ranks[1].meter.waits[1] = 2;
        ranks[1].meter.waits[2] = 1;
        ranks[1].meter.waits[DLP_WAIT_BUCKETS - 1] = 4;
        metrics.node.cpus_milli = 1500;
        metrics.node.storage_bytes = NUMBER_UNKNOWN;
        metrics.node.n_samples = 17;
        ck_assert_int_eq(metrics_write(&metrics, &text, &n), 0);
        whole = calloc(1, n + 1);
        memcpy(whole, text, n);
        ck_assert_uint_eq(strlen(whole), n);
        free(text);
        return whole;
}

START_TEST(each_number_has_its_line) {
        static const char *const LINES[] = {
                "\ndataloaderd_build_info{version=\"1.2\"} 1\n",
                "\ndataloaderd_worker_cpus 1.5\n",
                "# TYPE dataloaderd_node_samples_total counter\ndataloaderd_node_samples_total 17\n",
                "# TYPE dataloaderd_node_storage_read_bytes_total counter\n# HELP",
                "\ndataloaderd_dataset_ready{dataset=\"d\"} 1\n# HELP",
                "# TYPE dataloaderd_dataset_samples gauge\n# HELP",
                "\ndataloaderd_job_order_ratio{dataset=\"d\",job=\"j\"} 0.25\n",
                "\ndataloaderd_stage_cpu_seconds_total{dataset=\"d\",job=\"j\",stage=\"decode\"} 1.25\n# HELP",
                "gauge\ndataloaderd_ring_slots{job=\"j\",rank=\"0\"} 0\ndataloaderd_ring_slots{job=\"j\",rank=\"1\"} 0\n",
        };
        char *text = example();

        for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++)
                if (!strstr(text, LINES[i]))
                        ck_abort_msg("%s is missing", LINES[i]);
        free(text);
}
END_TEST

START_TEST(the_histogram_counts_upward_and_ends_with_all) {
        static const char *const LINES[] = {
                "# TYPE dataloaderd_client_next_seconds histogram\n",
                "_bucket{job=\"j\",rank=\"1\",le=\"1e-06\"} 5\n",
                "_bucket{job=\"j\",rank=\"1\",le=\"4e-06\"} 8\n",
                "_bucket{job=\"j\",rank=\"1\",le=\"0.000256\"} 8\n",
                "_bucket{job=\"j\",rank=\"1\",le=\"67.108864\"} 8\n",
                "_bucket{job=\"j\",rank=\"1\",le=\"+Inf\"} 12\n",
                "_sum{job=\"j\",rank=\"1\"} 2.5\n",
                "_count{job=\"j\",rank=\"1\"} 12\n",
                "_count{job=\"j\",rank=\"0\"} 0\n",
        };
        char *text = example();

        for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++)
                if (!strstr(text, LINES[i]))
                        ck_abort_msg("%s is missing", LINES[i]);
        free(text);
}
END_TEST

START_TEST(a_process_knows_what_it_takes) {
        struct own_process process;
        uint64_t all, resident;

        own_process(&process);
        ck_assert_uint_gt(process.resident_bytes, 0);
        ck_assert_uint_ge(process.virtual_bytes, process.resident_bytes);
        ck_assert_uint_ge(process.n_fds, 3);
        ck_assert_uint_ge(process.n_fds_max, process.n_fds);
        ck_assert(own_process_parse("112386 7758 5120 30 0 50000 0\n", &all, &resident));
        ck_assert_uint_eq(all, 112386);
        ck_assert_uint_eq(resident, 7758);
        ck_assert(!own_process_parse("", &all, &resident));
        ck_assert(!own_process_parse("12", &all, &resident));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "labels", a_label_has_any_value_and_is_still_one },
                { "labels", long_labels_stay_different },
                { "numbers", numbers_are_exact, sizeof(DECIMALS) / sizeof(DECIMALS[0]) },
                { "text", a_text_grows_and_keeps_all_of_it },
                { "text", each_number_has_its_line },
                { "text", the_histogram_counts_upward_and_ends_with_all },
                { "process", a_process_knows_what_it_takes },
        };

        return suite_run("metrics", rows, sizeof(rows) / sizeof(rows[0]));
}
