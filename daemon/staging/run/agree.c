#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "daemon/base/threads/thread.h"
#include "daemon/staging/run/run.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/shorten.h"

struct opinion {
        int32_t result;
        char text[DLP_TEXT_MAX];
};

void run_lost(struct run *run, const struct why *why) {
        run_end_report(run, "failed", why->text);
        cluster_abort(run->cluster, EX_UNAVAILABLE);
}

void *run_gather(struct run *run, const void *mine, uint64_t n_bytes) {
        void *all = calloc(run->n_nodes, n_bytes + 1);
        struct why why;

        if (!all)
                why_errno(&why, -ENOMEM, "%u nodes", run->n_nodes);
        if (!all || cluster_gather(run->cluster, mine, n_bytes, all, &why) < 0)
                run_lost(run, &why);
        return all;
}

void run_share(struct run *run, uint32_t from, void *bytes, uint64_t n_bytes) {
        struct why why;

        if (cluster_share(run->cluster, from, bytes, n_bytes, &why) < 0)
                run_lost(run, &why);
}

int agree(struct run *run, int r, struct why *why) {
        _cleanup_(freep) struct opinion *all = NULL;
        struct opinion mine = { .result = r };

        if (r < 0)
                snprintf(mine.text, sizeof(mine.text), "%s", why->text);
        all = run_gather(run, &mine, sizeof(mine));
        for (uint32_t node = 0; node < run->n_nodes; node++) {
                if (all[node].result >= 0)
                        continue;
                all[node].text[sizeof(all[node].text) - 1] = '\0';
                if (run->n_nodes == 1)
                        return why_set(why, all[node].result, "%s", all[node].text);
                return why_set(why, all[node].result, "%s: %s", cluster_name(run->cluster, node), all[node].text);
        }
        return 0;
}

/* ---- looking after the cluster ---- */

static void take_news(struct run *run, struct node_progress *news) {
        const struct transfer_counts *counts = &run->counts;

        memset(news, 0, sizeof(*news));
        snprintf(news->node, sizeof(news->node), "%s", cluster_name(run->cluster, run->node));
        snprintf(news->doing, sizeof(news->doing), "%s", run->doing);
        news->n_bytes_total = run->n_bytes_total;
        news->n_files_total = run->n_files_total;
        news->n_bytes_done = atomic_load(&counts->n_bytes_done) + atomic_load(&run->n_bytes_before);
        news->n_bytes_origin = atomic_load(&counts->n_bytes_origin);
        news->n_files_done = atomic_load(&counts->n_files_done) + atomic_load(&run->n_steps_done);
        news->n_retries = atomic_load(&counts->n_retries);
        news->n_errors = atomic_load(&counts->n_errors);
        pthread_mutex_lock(&run->report_lock);
        memcpy(news->last_error, run->last_said, sizeof(news->last_error));
        pthread_mutex_unlock(&run->report_lock);
}

static void agree_say(struct run *run, const char *level, const char *text) {
        pthread_mutex_lock(&run->report_lock);
        if (run->report)
                report_say(run->report, level, text);
        pthread_mutex_unlock(&run->report_lock);
}

/* What another node said, once. */
static void agree_hear(struct run *run, uint32_t node, const char *text) {
        char line[DLP_TEXT_MAX];

        if (!text[0] || strcmp(run->heard[node], text) == 0)
                return;
        snprintf(run->heard[node], sizeof(run->heard[node]), "%s", text);
        snprintf(line, sizeof(line), "%s: %s", cluster_name(run->cluster, node), run->heard[node]);
        agree_say(run, "warning", line);
}

void run_hear_all(struct run *run) {
        char(*all)[sizeof(run->last_said)] = run_gather(run, run->last_said, sizeof(run->last_said));

        for (uint32_t node = 1; run->node == 0 && node < run->n_nodes; node++) {
                all[node][sizeof(all[node]) - 1] = '\0';
                agree_hear(run, node, all[node]);
        }
        free(all);
}

void run_say(struct run *run, const char *level, const char *text) {
        if (run->node != 0 && strcmp(level, "info") != 0) {
                pthread_mutex_lock(&run->report_lock);
                shorten(run->last_said, sizeof(run->last_said), "%s", text);
                pthread_mutex_unlock(&run->report_lock);
        }
        agree_say(run, level, text);
}

int run_look(void *userdata, struct why *why) {
        struct run *run = userdata;
        int r;

        take_news(run, &run->latest);
        r = cluster_tell(run->cluster, &run->latest, why);
        if (run->node == 0)
                for (uint32_t node = 0; node < run->n_nodes; node++) {
                        run->news[node] = *cluster_news(run->cluster, node);
                        if (node > 0)
                                agree_hear(run, node, run->news[node].last_error);
                }
        else
                run->news[0] = run->latest;
        pthread_mutex_lock(&run->report_lock);
        if (run->report)
                report_update(run->report, run->news, run->node == 0 ? run->n_nodes : 1);
        pthread_mutex_unlock(&run->report_lock);
        return r;
}

void run_phase(struct run *run, const char *phase) {
        snprintf(run->doing, sizeof(run->doing), "%s", phase);
        pthread_mutex_lock(&run->report_lock);
        report_phase(run->report, phase);
        pthread_mutex_unlock(&run->report_lock);
}

void run_end_report(struct run *run, const char *result, const char *text) {
        pthread_mutex_lock(&run->report_lock);
        report_end(TAKE_PTR(run->report), result, text);
        pthread_mutex_unlock(&run->report_lock);
}

static void *aside_main(void *argument) {
        struct aside *aside = argument;

        aside->result = aside->step(aside->run, aside->argument, &aside->why);
        atomic_store(&aside->is_done, true);
        return NULL;
}

int aside_start(struct aside *aside, struct run *run, run_step *step, void *argument, struct why *why) {
        int r;

        *aside = (struct aside){ .run = run, .step = step, .argument = argument };
        r = thread_start(&aside->thread, "step", aside_main, aside);
        return r < 0 ? why_errno(why, r, "a thread") : 0;
}

int aside_wait(struct aside *aside, struct why *why) {
        static const struct timespec PAUSE = { .tv_nsec = 10000000 };

        while (!atomic_load(&aside->is_done)) {
                if (run_look(aside->run, why) < 0)
                        run_lost(aside->run, why);
                nanosleep(&PAUSE, NULL);
        }
        thread_join(aside->thread);
        return aside->result < 0 ? why_set(why, aside->result, "%s", aside->why.text) : aside->result;
}

int run_aside(struct run *run, run_step *step, void *argument, struct why *why) {
        struct aside aside;
        int r = aside_start(&aside, run, step, argument, why);

        return r < 0 ? r : aside_wait(&aside, why);
}

void share_text(struct run *run, uint32_t from, char **text, size_t *n_bytes) {
        uint64_t n = run->node == from ? *n_bytes : 0;
        struct why why;

        run_share(run, from, &n, sizeof(n));
        if (run->node != from) {
                *text = malloc(n + 1);
                *n_bytes = n;
                if (!*text) {
                        why_errno(&why, -ENOMEM, "a text of %llu bytes", (unsigned long long)n);
                        run_lost(run, &why);
                }
                (*text)[n] = '\0';
        }
        run_share(run, from, *text, n);
}

int share_plan(struct run *run, const char *what, struct plan **plan, struct why *why) {
        _cleanup_(freep) char *text = NULL;
        size_t n_bytes = 0;
        int r = run->node == 0 ? plan_write(*plan, &text, &n_bytes) : 0;

        r = agree(run, r < 0 ? why_errno(why, r, "%s", what) : 0, why);
        if (r < 0)
                return r;
        share_text(run, 0, &text, &n_bytes);
        if (!*plan)
                r = plan_parse(text, n_bytes, what, NULL, false, plan, why);
        return agree(run, r, why);
}
