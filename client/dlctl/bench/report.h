/* dlctl/bench/report.h: what a measurement means: for people, and for programs. */
#pragma once

#include <stdint.h>

#include "client/dlctl/bench/measure.h"
#include "client/dlctl/output.h"

/* What was asked for, besides the measurement. */
struct bench_terms {
        const char *dataset;
        uint32_t batch_size;
        double stored_bytes; /* of a sample, on average; 0: unknown */
        uint64_t n_gpus;     /* 0: not asked for */
        double gpu_rate;     /* samples/s that one takes */
};

enum bench_limit {
        LIMIT_CLIENT,   /* batches are ready at once */
        LIMIT_DECODING, /* the workers */
        LIMIT_SHARED,   /* the workers, of whose time other jobs take a part */
        LIMIT_READING,  /* bytes */
        LIMIT_LATENCY,  /* none of them: too few samples are on their way */
};

/* What keeps it from being faster. */
enum bench_limit bench_limit_of(const struct measured *measured);

/* Of the workers' time, 0 to 1: what this job took, and what all others took. */
double bench_busy_share(const struct measured *measured);
double bench_other_share(const struct measured *measured);

/* Prints it to stdout: as one object a line, or as a block. Returns 0; negative errno: it could not be written, and
 * output_end() will say so. */
int bench_print(enum output_format format, const struct bench_terms *terms, const struct measured *measured);
