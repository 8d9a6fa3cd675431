/* proto/trace.h: what a trace consists of, as the daemon hands it out and dlctl reads it (`dlctl trace`).
 *
 * It is a row of cells of 64 bytes on a stream socket. Most are events: one piece of somebody's time. A name is a cell
 * that is followed by its text. Numbers are as on this machine: a trace never leaves it in this form. Times are
 * CLOCK_MONOTONIC in ns. What comes from a rank (taken, held, wait) is a claim of its client: the daemon has only
 * clamped it to what is possible. */
#pragma once

#include <stdint.h>

#define DLP_TRACE_EVENTS(ROW)                                                                                          \
        ROW(SAMPLE, "a worker with a sample, or with one of its reads; value: bytes that were read")                   \
        ROW(STAGE, "a part of that; detail: the stage, as it is named")                                                \
        ROW(ROWS, "a worker copies several samples; value: how many")                                                  \
        ROW(COLLATE, "a worker completes a batch; value: its samples")                                                 \
        ROW(TURN, "the planner was awake")                                                                             \
        ROW(PLAN, "a part of that: the planner began a batch; value: its samples")                                     \
        ROW(EPOCH, "likewise: it began an epoch of a rank, whose order it asked for")                                  \
        ROW(ORDER, "an order is made; value: its positions")                                                           \
        ROW(READ, "lane: from requesting bytes of a sample until they were there; value: bytes")                       \
        ROW(QUEUED, "lane: from then until a worker took it")                                                          \
        ROW(FILLING, "lane, of a rank: a batch's slot is being filled; value: its samples")                            \
        ROW(READY, "lane, of a rank: the batch is ready and was not taken yet")                                        \
        ROW(HELD, "lane, of a rank: the trainer has it")                                                               \
        ROW(WAIT, "the trainer of a rank waits for the batch")

enum dlp_trace_kind {
#define ROW(id, prose) DLP_TRACE_##id,
        DLP_TRACE_EVENTS(ROW)
#undef ROW
        DLP_TRACE_KINDS,

        /* Other cells. */
        DLP_TRACE_NAME = 64, /* detail: of what; value: bytes of the text, which fills the cells after it */
        DLP_TRACE_END,       /* the last cell; begin_ns, end_ns: of the trace; value: events that were dropped */
};

enum dlp_trace_named {
        DLP_TRACE_NAMED_STAGE,  /* lane: the number that events have in `detail` */
        DLP_TRACE_NAMED_THREAD, /* thread */
        DLP_TRACE_NAMED_JOB,    /* job */
        DLP_TRACE_NAMED_RANK,   /* job, rank; the text is its user; begin_ns: its process */
};

enum dlp_trace_outcome {
        DLP_TRACE_DONE,      /* the sample is in its place; or no more is known */
        DLP_TRACE_MORE,      /* this read is, another one follows */
        DLP_TRACE_POSTPONED, /* it waits for memory, and is begun again */
        DLP_TRACE_FAILED,    /* it could not be served: on_error decides */
        DLP_TRACE_OPEN,      /* it had not ended when the trace ended */
};

struct dlp_trace_event {
        uint64_t begin_ns, end_ns;
        uint64_t epoch, step, sample, value;
        uint32_t job;    /* as it is named; 0: of none */
        uint32_t rank;   /* in its job */
        uint32_t thread; /* as the kernel numbers it */
        uint16_t lane;   /* events of a lane follow one another: a slot of a rank, or a place for a sample's bytes */
        uint8_t kind;    /* enum dlp_trace_kind */
        uint8_t detail;  /* stages: which; SAMPLE, and what a rank has or waits for: enum dlp_trace_outcome */
};

#define DLP_TRACE_TEXT_MAX 8192u /* bytes of a name */

_Static_assert(sizeof(struct dlp_trace_event) == 64, "a cache line");
