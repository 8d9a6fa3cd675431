/* dlctl/trace/tracks.h: the rows of a viewer, and which event is drawn in which.
 *
 * Viewers know processes and their threads, and the events of a thread must lie side by side or within each other. What
 * happens in a thread of the daemon is drawn in that thread. Reads are several at a time: they get rows of their own,
 * as many as there were at once. The slots of a rank's ring and its waits are rows of the trainer's process, so
 * that they are seen beside the profile of its own threads. Such rows have numbers that no thread can have. */
#pragma once

#include "client/dlctl/trace/recorded.h"

#define TRACK_NAME_MAX  192u
#define TRACK_NO_THREAD 4194304u /* the kernel gives no thread this number or a higher one */
#define TRACK_DEPTH     8u

struct track {
        uint32_t pid, tid;
        char name[TRACK_NAME_MAX];
        uint64_t ends[TRACK_DEPTH]; /* of the events that are open where the drawing is, the outermost first */
        unsigned depth;
        /* what it is for */
        enum dlp_trace_kind kind; /* one of those that are drawn there */
        uint32_t job, rank, number;
};

struct process {
        uint32_t pid;
        char name[TRACK_NAME_MAX];
};

struct tracks {
        const struct recorded *recorded;
        const struct dlp_trace_event **events; /* by their begin; of several that begin together, the longest first */
        struct track *tracks;
        size_t n_tracks;
        struct process *processes;
        size_t n_processes;
};

/* Sorts the events. `recorded` stays the caller's, and unchanged. -ENOMEM. */
int tracks_new(const struct recorded *recorded, struct tracks *ret_tracks, struct why *why);
void tracks_fini(struct tracks *tracks);

/* The row of the event; NULL: it is not drawn in any, or there is no memory. In the order of `events`. */
struct track *tracks_place(struct tracks *tracks, const struct dlp_trace_event *event);

/* Where the event ends in its row: within what it lies in. Call it once for each, after tracks_place(). */
uint64_t track_end_of(struct track *track, const struct dlp_trace_event *event);

/* The trainer of a rank, as a process of the viewer. */
uint32_t tracks_rank_pid(struct tracks *tracks, uint32_t job, uint32_t rank);
