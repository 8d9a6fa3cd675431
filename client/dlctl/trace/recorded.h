/* dlctl/trace/recorded.h: a trace as it has come from the daemon: events in no particular order, and names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/trace.h"

#define RECORDED_MAX   (8u << 20)         /* events: half a gigabyte, and a file that viewers hardly open any more */
#define RECORDED_TIME  ((int64_t)1 << 61) /* ns: no time is later, */
#define RECORDED_AHEAD ((int64_t)1 << 62) /* and no clock ahead by more, so that both can be added: until 2116 */

struct recorded_name {
        enum dlp_trace_named what;
        uint32_t job, rank, thread, number;
        uint32_t pid; /* of a rank */
        char *text;
};

struct recorded {
        uint32_t pid;     /* of the daemon */
        int64_t ahead_ns; /* the clock of the day is ahead of the events' times by this */
        uint64_t begin_ns, end_ns;
        uint64_t n_dropped;
        bool is_whole; /* its end has come */
        struct dlp_trace_event *events;
        size_t n_events, capacity;
        struct recorded_name *names;
        size_t n_names;

        struct dlp_trace_event cell; /* that is being received, */
        size_t n_bytes;              /* and how much of it is there */
        struct recorded_name *open;  /* the name whose text is being received; NULL: none */
        size_t n_text, n_left;       /* of that: bytes that are there, and that are not */
};

/* Takes in what has come. -EPROTO: it is not a trace; -ENOMEM; -ENOSPC: there are RECORDED_MAX events already. */
int recorded_take(struct recorded *recorded, const uint8_t *bytes, size_t n_bytes, struct why *why);

/* The name, or NULL. */
const struct recorded_name *recorded_job(const struct recorded *recorded, uint32_t job);
const struct recorded_name *recorded_rank(const struct recorded *recorded, uint32_t job, uint32_t rank);
const char *recorded_stage(const struct recorded *recorded, uint32_t number);

void recorded_fini(struct recorded *recorded);
