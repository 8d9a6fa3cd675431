/* proto/wait_reason.h: why a rank gets no batch: one reason, since when, and a detail.
 *
 * The daemon's planner finds it (pipeline/planner/waits.h), the shared page carries it to the client (proto/ring.h),
 * and replies carry it to dlctl. Only where a person is shown the reason it becomes a sentence, by the one function
 * here: no code parses such a sentence. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/symbol.h"
#include "proto/limits.h"

/* If several are true, the one that stands last in this list counts, but an outage more than the origin. */
enum dlp_wait_reason {
        DLP_WAIT_NOTHING,
        DLP_WAIT_SLOT,    /* all slots are filled, being filled, or the client's. For the planner alone, as the next: */
        DLP_WAIT_ORDER,   /* the epoch's order is not known that far yet (struct dlp_progress tells of it) */
        DLP_WAIT_SAMPLES, /* of a stream: its next batch has not arrived. detail: what the stream waits for */
        DLP_WAIT_MEMORY,  /* there is no memory for the order of a stream to grow. detail: how much it needs */
        DLP_WAIT_ENDING,  /* it is not said how a process of the trainer's ended. detail: its function; from here on */
        DLP_WAIT_FUNCTION, /* a process of the trainer's does not come back from a sample */
        DLP_WAIT_PROCESS,  /* no process of the trainer's is there */
        DLP_WAIT_READ,     /* a read has not come back for long. detail: the file */
        DLP_WAIT_OUTAGE,   /* the dataset cannot be read. detail: which file of it, and the error */
        DLP_WAIT_ORIGIN,   /* bytes that lie elsewhere have not come for long. detail: which, from where, and how that
                              answers */
        DLP_N_WAIT_REASONS,
};

struct dlp_wait {
        uint32_t reason;    /* enum dlp_wait_reason; one that is not known here is shown by its detail alone */
        uint32_t process;   /* FUNCTION: its id */
        uint64_t since_ns;  /* CLOCK_MONOTONIC */
        uint64_t until_ns;  /* OUTAGE: when the job ends; FUNCTION: when the process must be back */
        uint64_t sample;    /* FUNCTION: that the process has, */
        uint64_t n_samples; /* or one of that many from there on. SAMPLES: that the stream has by now */
        char detail[DLP_TEXT_MAX];
};

/* "/data/photos: cats/7.jpg: Input/output error (EIO); trying again for 9 min". `dataset` as the job names it; now_ns
 * of the same clock as the times in `wait`. "" if it waits for nothing. Returns `buffer`. */
const char *dlp_wait_sentence(const struct dlp_wait *wait, const char *dataset, uint64_t now_ns,
                              char buffer[DLP_TEXT_MAX]) DLP_SYMBOL(dlp_wait_sentence);
