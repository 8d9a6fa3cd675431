/* data/formats/parquet/pages/parquet_runs.h: small numbers as runs: levels, and indices into a dictionary.
 *
 * A run is one value many times, or a group of values of a few bits each, packed from the lowest bit on. The input
 * comes from a file: too few bytes end it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct parquet_runs {
        const uint8_t *at, *end;
        uint32_t width;  /* bits of a value, at most 32 */
        uint64_t n_left; /* values of the current run */
        bool is_packed;
        uint32_t value; /* of a run of equal ones */
        uint32_t bit;   /* of a packed run: where the next value begins, from `at` on, below 8 */
};

/* Begins to read n_bytes of values of `width` bits. */
void parquet_runs_begin(struct parquet_runs *runs, const uint8_t *bytes, uint64_t n_bytes, uint32_t width);

/* The next value. False if there is none. */
bool parquet_runs_next(struct parquet_runs *runs, uint32_t *ret_value);

/* The bits that numbers from 0 to `most` take. */
uint32_t parquet_runs_width(uint32_t most);
