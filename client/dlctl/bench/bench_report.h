/* dlctl/bench/bench_report.h: what a measurement means: for people, and for programs. */
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

/* Prints it to stdout: as one object a line, or as a block. Returns 0; negative errno: it could not be written, and
 * output_end() will say so. */
int bench_print(enum output_format format, const struct bench_terms *terms, const struct measured *measured);
