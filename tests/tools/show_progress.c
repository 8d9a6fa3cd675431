/* Plays a staging for whoever looks at its report: tests, and pictures for the documents.
 *
 *   show_progress STYLE N_NODES SECONDS [END [PATH]]
 *
 * STYLE is auto, json or quiet; END is staged, failed, none (the process just waits, to be killed) or crash
 * (exit() without an end). PATH is a dataset's path: with it the progress file is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/staging/run/stage_report.h"
#include "proto/base/clock.h"

#define N_NODES_MAX 2000u
#define GIB         (1ull << 30)

static struct node_progress news[N_NODES_MAX];

static enum report_style style_of(const char *name) {
        static const char *const NAMES[] = { "auto", "json", "quiet" };

        for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
                if (strcmp(name, NAMES[i]) == 0)
                        return (enum report_style)i;
        exit(64);
}

static void play(uint32_t n_nodes, double share) {
        for (uint32_t i = 0; i < n_nodes; i++) {
                double pace = share * (1 - 0.1 * (i * 7 % 5) / 5);

                snprintf(news[i].node, sizeof(news[i].node), "node%u", i + 1);
                snprintf(news[i].doing, sizeof(news[i].doing), "writing n0144%04u/%06u.jpg", (unsigned)(share * 1000),
                         (unsigned)(share * 1281167));
                news[i].n_bytes_total = 12 * GIB;
                news[i].n_bytes_done = (uint64_t)((double)news[i].n_bytes_total * pace);
                news[i].n_bytes_origin = news[i].n_bytes_done / n_nodes;
                news[i].n_files_total = 1281167;
                news[i].n_files_done = (uint64_t)(1281167 * pace);
                news[i].n_retries = i == 1 ? (uint64_t)(share * 10) : 0;
        }
}

int main(int argc, char **argv) {
        const char *end = argc > 4 ? argv[4] : "staged";
        uint32_t n_nodes = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
        double seconds = argc > 3 ? atof(argv[3]) : 1, share = 0;
        uint64_t begin_ns = clock_now_ns();
        struct report *report;
        struct place place;
        struct why why;

        if (argc < 4 || n_nodes > N_NODES_MAX)
                return 64;
        if (argc > 5) {
                if (place_init(&place, argv[5], &why) < 0)
                        return 64;
                mkdir(place.folder, 0755);
        }
        if (report_new(style_of(argv[1]), "photos", argc > 5 ? &place : NULL, true, &report) < 0)
                return 71;
        report_phase(report, "surveying");
        report_update(report, news, 0);
        report_phase(report, "transferring");
        while (share < 1) {
                share = (double)(clock_now_ns() - begin_ns) / 1e9 / seconds;
                play(n_nodes, share < 1 ? share : 1);
                report_update(report, news, n_nodes);
                if (share > 0.5 && !news[0].n_errors && strcmp(end, "none") != 0) {
                        news[0].n_errors = 1;
                        report_say(report, "warning", "node1: n01440764/a.jpg: is not what the manifest says; again");
                }
                usleep(20000);
        }
        if (strcmp(end, "none") == 0)
                pause();
        if (strcmp(end, "crash") == 0)
                exit(70);
        report_end(report, end,
                   strcmp(end, "failed") == 0 ? "node2: /data is full" : "48.0 GiB, version v-8f3a09b2c4d1");
        return 0;
}
