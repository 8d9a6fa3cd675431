#include "daemon/data/formats/parquet/pages/parquet_runs.h"

void parquet_runs_begin(struct parquet_runs *runs, const uint8_t *bytes, uint64_t n_bytes, uint32_t width) {
        *runs = (struct parquet_runs){ .at = bytes, .end = bytes + n_bytes, .width = width };
}

static bool take_head(struct parquet_runs *runs, uint32_t *ret_head) {
        uint64_t head = 0;

        for (unsigned shift = 0; shift < 35 && runs->at < runs->end; shift += 7) {
                uint8_t byte = *runs->at++;

                head |= (uint64_t)(byte & 0x7f) << shift;
                if (byte & 0x80)
                        continue;
                *ret_head = (uint32_t)head;
                return head <= UINT32_MAX;
        }
        return false;
}

/* The beginning of the next run. */
static bool next_run(struct parquet_runs *runs) {
        uint32_t n_bytes = (runs->width + 7) / 8, head;

        if (runs->is_packed && runs->bit > 0) { /* a packed run ends at a whole byte */
                runs->at++;
                runs->bit = 0;
        }
        if (!take_head(runs, &head))
                return false;
        runs->is_packed = head & 1;
        runs->n_left = runs->is_packed ? (uint64_t)(head >> 1) * 8 : head >> 1;
        if (runs->is_packed)
                return true;
        if ((uint64_t)(runs->end - runs->at) < n_bytes)
                return false;
        runs->value = 0;
        for (uint32_t i = 0; i < n_bytes; i++)
                runs->value |= (uint32_t)*runs->at++ << 8 * i;
        return runs->width == 32 || runs->value >> runs->width == 0;
}

/* The last group of a packed run may be cut after the last value that is needed, so only what is asked for has to be
 * there. */
static bool next_packed(struct parquet_runs *runs, uint32_t *ret_value) {
        uint32_t n_bytes = (runs->bit + runs->width + 7) / 8;
        uint64_t bits = 0;

        if ((uint64_t)(runs->end - runs->at) < n_bytes)
                return false;
        for (uint32_t i = 0; i < n_bytes; i++)
                bits |= (uint64_t)runs->at[i] << 8 * i;
        *ret_value = (uint32_t)(bits >> runs->bit & ((1ull << runs->width) - 1));
        runs->bit += runs->width;
        runs->at += runs->bit / 8;
        runs->bit %= 8;
        return true;
}

bool parquet_runs_next(struct parquet_runs *runs, uint32_t *ret_value) {
        if (runs->width == 0) { /* only one value is possible, and nothing says how often it comes */
                *ret_value = 0;
                return true;
        }
        while (runs->n_left == 0)
                if (!next_run(runs))
                        return false;
        runs->n_left--;
        if (runs->is_packed)
                return next_packed(runs, ret_value);
        *ret_value = runs->value;
        return true;
}

uint32_t parquet_runs_width(uint32_t most) {
        return most == 0 ? 0 : 32 - (uint32_t)__builtin_clz(most);
}
