#include "daemon/ctl/node.h"

#include "daemon/base/machine/own_io.h"
#include "proto/base/clock.h"

void node_fill(struct server *server, Dlp__Node *node) {
        struct pipeline *pipeline = server->options.pipeline;
        struct counters *counters = pipeline_counters(pipeline);

        node->now_ns = clock_now_ns();
        node->n_workers = pipeline_n_workers(pipeline);
        node->cpus_milli = pool_cpus_milli(pipeline_pool(pipeline));
        node->worker_ns = counter_get(&counters->decode_ns) + counter_get(&counters->collate_ns);
        node->worker_cpu_ns = counter_get(&counters->worker_cpu_ns);
        node->read_depth = pipeline_n_tasks(pipeline);
        node->n_reading = pipeline_n_reading(pipeline);
        node->n_samples = counter_get(&counters->n_samples);
        node->n_reads = counter_get(&counters->n_reads);
        node->n_bytes_read = counter_get(&counters->n_bytes_read);
        node->read_ns = counter_get(&counters->read_ns);
        node->queued_ns = counter_get(&counters->queued_ns);
        node->has_storage_bytes = own_storage_bytes(&node->storage_bytes);
}
