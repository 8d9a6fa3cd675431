#include "tests/support/glances.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/control.h"

/* glance.c also asks a daemon, which does not happen here. */
int control_ask(struct control *control, Dlp__Request *request, Dlp__Reply__BodyCase body, Dlp__Reply **ret_reply) {
        (void)control;
        (void)request;
        (void)body;
        (void)ret_reply;
        abort();
}

void tell(struct told *told, uint64_t now_ns) {
        memset(told, 0, sizeof(*told));
        dlp__status_reply__init(&told->status);
        dlp__node__init(&told->node);
        told->status.state = (char *)"serving";
        told->status.up_seconds = 12;
        told->status.memory_limit_bytes = 8ull << 30;
        told->status.memory_used_bytes = 2ull << 30;
        told->node.now_ns = now_ns;
        told->node.n_workers = 4;
        told->node.cpus_milli = 4000;
        told->node.read_depth = 64;
        told->node.n_reading = 16;
        told->glance.status = &told->status;
        told->glance.node = &told->node;
        told->glance.jobs = told->looks;
        told->glance.datasets = told->dataset_pointers;
}

Dlp__Job *tell_job(struct told *told, const char *name, const char *dataset, uint64_t n_samples) {
        Dlp__Job *job = &told->jobs[told->glance.n_jobs];

        dlp__job__init(job);
        job->name = (char *)(uintptr_t)name;
        job->dataset = (char *)(uintptr_t)dataset;
        job->user = (char *)"alice";
        job->world = 8;
        job->now_ns = told->node.now_ns;
        job->n_samples = n_samples;
        job->ranks = &told->rank_pointers[told->n_ranks];
        told->looks[told->glance.n_jobs++] = (struct look){ job, &told->node };
        return job;
}

Dlp__Rank *tell_rank(struct told *told, uint32_t number, uint64_t age_ns, uint64_t wait_ns, uint64_t busy_ns) {
        Dlp__Rank *rank = &told->ranks[told->n_ranks];
        Dlp__Waiting *waiting = &told->waiting[told->n_ranks];
        Dlp__Job *job = &told->jobs[told->glance.n_jobs - 1];

        dlp__rank__init(rank);
        dlp__waiting__init(waiting);
        rank->rank = number;
        rank->pid = 1000 + number;
        rank->user = (char *)"alice";
        rank->age_ns = age_ns;
        rank->n_slots = 4;
        rank->n_ready = 3;
        rank->n_samples = age_ns / SECOND * 100;
        rank->n_batches = age_ns / SECOND * 10;
        rank->waiting = waiting;
        waiting->n_batches = rank->n_batches;
        waiting->wait_ns = wait_ns;
        waiting->busy_ns = busy_ns;
        waiting->empty_ns = wait_ns * 2;
        told->rank_pointers[told->n_ranks++] = rank;
        job->n_ranks++;
        return rank;
}

void tell_stage(struct told *told, size_t i, const char *name, uint64_t taken_ns) {
        Dlp__Job *job = &told->jobs[told->glance.n_jobs - 1];

        dlp__stage__init(&told->stages[i]);
        told->stages[i].name = (char *)(uintptr_t)name;
        told->stages[i].taken_ns = taken_ns;
        told->stage_pointers[i] = &told->stages[i];
        job->stages = told->stage_pointers;
        job->n_stages = i + 1;
}

Dlp__Dataset *tell_dataset(struct told *told, const char *name, const char *state) {
        Dlp__Dataset *dataset = &told->datasets[told->glance.n_datasets];

        dlp__dataset__init(dataset);
        dataset->name = (char *)(uintptr_t)name;
        dataset->state = (char *)(uintptr_t)state;
        told->dataset_pointers[told->glance.n_datasets++] = dataset;
        return dataset;
}
