#include "client/dlctl/trace/counts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct edge {
        uint64_t at_ns;
        uint32_t job, rank;
        uint8_t kind;
        int8_t change;
};

static bool is_counted(const struct dlp_trace_event *event) {
        return event->kind == DLP_TRACE_READ || event->kind == DLP_TRACE_QUEUED || event->kind == DLP_TRACE_READY;
}

/* Reads and queues are counted for all ranks together. */
static struct edge edge_of(const struct dlp_trace_event *event, uint64_t at_ns, int8_t change) {
        bool is_ready = event->kind == DLP_TRACE_READY;

        return (struct edge){ .at_ns = at_ns,
                              .job = is_ready ? event->job : 0,
                              .rank = is_ready ? event->rank : 0,
                              .kind = event->kind,
                              .change = change };
}

static int compare_counter(const struct edge *one, const struct edge *other) {
        if (one->kind != other->kind)
                return one->kind < other->kind ? -1 : 1;
        if (one->job != other->job)
                return one->job < other->job ? -1 : 1;
        return one->rank < other->rank ? -1 : one->rank > other->rank;
}

static int counts_compare(const void *a, const void *b) {
        const struct edge *one = a, *other = b;
        int r = compare_counter(one, other);

        if (r != 0)
                return r;
        return one->at_ns < other->at_ns ? -1 : one->at_ns > other->at_ns;
}

/* Perfetto calls a counter by both names, one after the other; chrome://tracing shows the first one. */
static void begin_counter(struct tracks *tracks, const struct edge *edge, struct count *count) {
        count->value = 0;
        count->pid = tracks->recorded->pid;
        if (edge->kind == DLP_TRACE_READ) {
                snprintf(count->name, sizeof(count->name), "reads");
                count->what = "under way";
        } else if (edge->kind == DLP_TRACE_QUEUED) {
                snprintf(count->name, sizeof(count->name), "queued");
                count->what = "samples";
        } else {
                snprintf(count->name, sizeof(count->name), "rank %u: ready", edge->rank);
                count->what = "batches";
                count->pid = tracks_rank_pid(tracks, edge->job, edge->rank);
        }
}

int counts_tell(struct tracks *tracks, void (*tell)(void *userdata, const struct count *count), void *userdata,
                struct why *why) {
        size_t n_events = tracks->recorded->n_events, n = 0;
        struct edge *edges = calloc(2 * n_events + 1, sizeof(*edges));
        struct count count;

        if (!edges)
                return why_errno(why, -ENOMEM, "trace");
        for (size_t i = 0; i < n_events; i++) {
                const struct dlp_trace_event *event = tracks->events[i];

                if (!is_counted(event) || event->begin_ns == event->end_ns)
                        continue;
                edges[n++] = edge_of(event, event->begin_ns, 1);
                edges[n++] = edge_of(event, event->end_ns, -1);
        }
        qsort(edges, n, sizeof(*edges), counts_compare);
        for (size_t i = 0; i < n; i++) {
                bool is_same = i + 1 < n && counts_compare(&edges[i], &edges[i + 1]) == 0;

                if (i == 0 || compare_counter(&edges[i - 1], &edges[i]) != 0)
                        begin_counter(tracks, &edges[i], &count);
                count.value += edges[i].change;
                count.at_ns = edges[i].at_ns;
                if (!is_same) /* of several changes at once, the last one */
                        tell(userdata, &count);
        }
        free(edges);
        return 0;
}
