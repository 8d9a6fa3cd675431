#include "client/dlctl/trace/tracks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACKS_MAX 65536u

static int tracks_compare(const void *a, const void *b) {
        const struct dlp_trace_event *one = *(const struct dlp_trace_event *const *)a;
        const struct dlp_trace_event *other = *(const struct dlp_trace_event *const *)b;

        if (one->begin_ns != other->begin_ns)
                return one->begin_ns < other->begin_ns ? -1 : 1;
        if (one->end_ns != other->end_ns)
                return one->end_ns > other->end_ns ? -1 : 1;
        return one->kind < other->kind ? -1 : one->kind > other->kind; /* a sample before its stage */
}

int tracks_new(const struct recorded *recorded, struct tracks *ret_tracks, struct why *why) {
        struct tracks tracks = { .recorded = recorded };

        tracks.events = calloc(recorded->n_events + 1, sizeof(*tracks.events));
        if (!tracks.events)
                return why_errno(why, -ENOMEM, "trace");
        for (size_t i = 0; i < recorded->n_events; i++)
                tracks.events[i] = &recorded->events[i];
        qsort(tracks.events, recorded->n_events, sizeof(*tracks.events), tracks_compare);
        *ret_tracks = tracks;
        return 0;
}

void tracks_fini(struct tracks *tracks) {
        free(tracks->events);
        free(tracks->tracks);
        free(tracks->processes);
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

static void add_process(struct tracks *tracks, uint32_t pid, const char *name) {
        struct process *grown;

        for (size_t i = 0; i < tracks->n_processes; i++)
                if (tracks->processes[i].pid == pid)
                        return;
        grown = realloc(tracks->processes, (tracks->n_processes + 1) * sizeof(*grown));
        if (!grown)
                return;
        tracks->processes = grown;
        grown[tracks->n_processes].pid = pid;
        snprintf(grown[tracks->n_processes++].name, TRACK_NAME_MAX, "%s", name);
}

/* "rank 3", or "ranks 0 to 7" of a process that has several. */
static void name_ranks(const struct recorded *recorded, uint32_t pid, uint32_t rank, char text[48]) {
        uint32_t first = rank, last = rank;

        for (size_t i = 0; i < recorded->n_names; i++) {
                const struct recorded_name *name = &recorded->names[i];

                if (name->what != DLP_TRACE_NAMED_RANK || name->pid != pid)
                        continue;
                first = name->rank < first ? name->rank : first;
                last = name->rank > last ? name->rank : last;
        }
        if (first == last)
                snprintf(text, 48, "rank %u", rank);
        else
                snprintf(text, 48, "ranks %u to %u", first, last);
}

/* A trainer whose process is not known (it is in a pid namespace that the daemon does not see) gets a number. */
uint32_t tracks_rank_pid(struct tracks *tracks, uint32_t job, uint32_t rank) {
        const struct recorded_name *named = recorded_rank(tracks->recorded, job, rank);
        const struct recorded_name *of = recorded_job(tracks->recorded, job);
        uint32_t pid = named && named->pid > 0 ? named->pid : TRACK_NO_THREAD + 1024 * job + rank;
        char name[TRACK_NAME_MAX], ranks[48];

        name_ranks(tracks->recorded, pid, rank, ranks);
        snprintf(name, sizeof(name), "trainer: job %.128s, %s", of ? of->text : "?", ranks);
        add_process(tracks, pid, name);
        return pid;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static struct track *tracks_find(struct tracks *tracks, enum dlp_trace_kind kind, uint32_t job, uint32_t rank,
                                 uint32_t number) {
        for (size_t i = 0; i < tracks->n_tracks; i++) {
                struct track *track = &tracks->tracks[i];

                if (track->kind == kind && track->number == number && track->job == job && track->rank == rank)
                        return track;
        }
        return NULL;
}

static bool has_number(const struct tracks *tracks, uint32_t pid, uint32_t tid) {
        for (size_t i = 0; i < tracks->n_tracks; i++)
                if (tracks->tracks[i].tid == tid && tracks->tracks[i].pid == pid)
                        return true;
        return false;
}

/* With the next number that is free, should it be taken: of very many ranks, or of a trainer that is the daemon. */
static struct track *tracks_add(struct tracks *tracks, const struct track *track) {
        struct track *grown;

        if (tracks->n_tracks == TRACKS_MAX)
                return NULL;
        grown = realloc(tracks->tracks, (tracks->n_tracks + 1) * sizeof(*grown));
        if (!grown)
                return NULL;
        tracks->tracks = grown;
        grown[tracks->n_tracks] = *track;
        while (has_number(tracks, track->pid, grown[tracks->n_tracks].tid))
                grown[tracks->n_tracks].tid++;
        return &grown[tracks->n_tracks++];
}

static struct track *of_thread(struct tracks *tracks, const struct dlp_trace_event *event) {
        struct track *found = tracks_find(tracks, DLP_TRACE_SAMPLE, 0, 0, event->thread);
        struct track track = {
                .pid = tracks->recorded->pid, .tid = event->thread, .kind = DLP_TRACE_SAMPLE, .number = event->thread
        };

        if (found)
                return found;
        snprintf(track.name, sizeof(track.name), "thread %u", event->thread);
        for (size_t i = 0; i < tracks->recorded->n_names; i++) {
                const struct recorded_name *name = &tracks->recorded->names[i];

                if (name->what == DLP_TRACE_NAMED_THREAD && name->thread == event->thread)
                        snprintf(track.name, sizeof(track.name), "%.64s", name->text);
        }
        add_process(tracks, track.pid, "dataloaderd");
        return tracks_add(tracks, &track);
}

/* The first row in which no read is under way. */
static struct track *of_read(struct tracks *tracks, const struct dlp_trace_event *event) {
        struct track track = { .pid = tracks->recorded->pid, .kind = DLP_TRACE_READ };

        for (size_t i = 0; i < tracks->n_tracks; i++) {
                struct track *other = &tracks->tracks[i];

                if (other->kind != DLP_TRACE_READ)
                        continue;
                if (other->ends[0] <= event->begin_ns)
                        return other;
                track.number++;
        }
        track.tid = TRACK_NO_THREAD + track.number;
        snprintf(track.name, sizeof(track.name), "reads %u", track.number + 1);
        add_process(tracks, track.pid, "dataloaderd");
        return tracks_add(tracks, &track);
}

/* Where the daemon counts several trainers as one process, each rank has its own numbers there. */
static struct track *of_rank(struct tracks *tracks, const struct dlp_trace_event *event) {
        bool is_wait = event->kind == DLP_TRACE_WAIT;
        enum dlp_trace_kind kind = is_wait ? DLP_TRACE_WAIT : DLP_TRACE_READY;
        uint32_t number = is_wait ? 0 : 1u + event->lane;
        struct track *found = tracks_find(tracks, kind, event->job, event->rank, number);
        struct track track = { .kind = kind, .job = event->job, .rank = event->rank, .number = number };

        if (found)
                return found;
        track.pid = tracks_rank_pid(tracks, event->job, event->rank);
        track.tid = TRACK_NO_THREAD + 128 * (event->rank + 1024 * event->job) % 1000000000u + number;
        if (is_wait)
                snprintf(track.name, sizeof(track.name), "rank %u waits", event->rank);
        else
                snprintf(track.name, sizeof(track.name), "rank %u slot %u", event->rank, event->lane);
        return tracks_add(tracks, &track);
}

struct track *tracks_place(struct tracks *tracks, const struct dlp_trace_event *event) {
        switch (event->kind) {
        case DLP_TRACE_READ:
                return of_read(tracks, event);
        case DLP_TRACE_QUEUED: /* as many as there are samples under way: only their number is drawn */
                return NULL;
        case DLP_TRACE_FILLING:
        case DLP_TRACE_READY:
        case DLP_TRACE_HELD:
        case DLP_TRACE_WAIT:
                return of_rank(tracks, event);
        default:
                return of_thread(tracks, event);
        }
}

uint64_t track_end_of(struct track *track, const struct dlp_trace_event *event) {
        uint64_t end_ns = event->end_ns;

        while (track->depth > 0 && track->ends[track->depth - 1] <= event->begin_ns)
                track->depth--;
        if (track->depth > 0 && end_ns > track->ends[track->depth - 1])
                end_ns = track->ends[track->depth - 1];
        if (track->depth == TRACK_DEPTH) /* never: of what lies that deep, only the begin is drawn */
                return event->begin_ns;
        track->ends[track->depth++] = end_ns;
        return end_ns;
}
