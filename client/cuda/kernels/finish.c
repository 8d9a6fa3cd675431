#include "client/cuda/kernels/finish.h"

#include <stddef.h>

/* "any" alone: what all GPUs have room for. 1536 threads is the least that a multiprocessor of today takes, and no
 * kernel needs more than 40 registers. */
#define BLOCKS_EACH 6u

/* Units of a thread. On an H200 short blocks were faster than ones that live as long as the kernel (finish.cu has the
 * figures): the device gives a free place to the next block at once, and what a table costs is hidden by it. */
#define PLANES_ROUNDS 1u
#define FLAT_ROUNDS   4u

enum way {
        WAY_planes,
        WAY_flat,
        WAY_any
};

#define NAME(name, way, channels, bytes) #name,
const char *const dlk_finish_names[] = { DLK_FINISH_KERNELS(NAME) };
const uint32_t dlk_n_finish_names = sizeof(dlk_finish_names) / sizeof(dlk_finish_names[0]);

#define KIND(name, way, channels, bytes) { WAY_##way, channels, bytes },
static const struct {
        enum way way;
        uint32_t n_channels, element_bytes;
} KINDS[] = { DLK_FINISH_KERNELS(KIND) };

/* ---- what is possible ------------------------------------------------------------------------------------------ */

static uint64_t sample_elements(const struct dlk_finish_batch *batch) {
        return (uint64_t)batch->height * batch->width * batch->n_channels;
}

static bool has_sizes(const struct dlk_finish_batch *batch) {
        uint64_t limit = (uint64_t)1 << 31;

        if (batch->n_samples == 0 || batch->height == 0 || batch->width == 0)
                return false;
        if ((uint64_t)batch->height * batch->width >= limit || sample_elements(batch) >= limit)
                return false;
        return (uint64_t)batch->height * batch->width * batch->n_samples < limit;
}

static bool finish_is_possible(const struct dlk_finish_batch *batch) {
        uint32_t bytes = batch->element_bytes;

        if (bytes != 1 && bytes != 2 && bytes != 4)
                return false;
        if (batch->n_channels != 1 && batch->n_channels != 3)
                return false;
        if (!has_sizes(batch) || batch->in_sample_bytes < sample_elements(batch))
                return false;
        if (batch->out_sample_bytes != 0 && batch->out_sample_bytes < sample_elements(batch) * bytes)
                return false;
        if (batch->in == 0 || batch->out == 0 || (batch->table == 0 && bytes > 1))
                return false;
        return (batch->out | batch->out_sample_bytes | batch->table) % bytes == 0;
}

/* ---- how ------------------------------------------------------------------------------------------------------- */

static struct dlk_finish params_of(const struct dlk_finish_batch *batch) {
        uint32_t bytes = batch->element_bytes, n_pixels = batch->height * batch->width;
        struct dlk_finish params = {
                .in = (const uint8_t *)(uintptr_t)batch->in,
                .out = (uint8_t *)(uintptr_t)batch->out,
                .table = (const uint8_t *)(uintptr_t)batch->table,
                .flips = (const uint8_t *)(uintptr_t)batch->flips,
                .in_sample_bytes = batch->in_sample_bytes,
                .out_sample_bytes = batch->out_sample_bytes,
                .out_channel_bytes = batch->channels_first ? (uint64_t)n_pixels * bytes : bytes,
                .out_pixel_bytes = batch->channels_first ? bytes : batch->n_channels * bytes,
                .n_pixels = n_pixels,
                .width = batch->width,
        };

        if (params.out_sample_bytes == 0)
                params.out_sample_bytes = sample_elements(batch) * bytes;
        return params;
}

/* Loads and stores of several bytes are for addresses that are multiples of as many, in each sample and channel. */
static enum way way_of(const struct dlk_finish_batch *batch, const struct dlk_finish *params) {
        uint32_t n_unit = DLK_FINISH_STORE / batch->element_bytes; /* elements; and bytes of one load */
        bool is_flat = !batch->channels_first && batch->n_channels > 1;

        if ((batch->in | batch->in_sample_bytes) % n_unit != 0)
                return WAY_any;
        if ((batch->out | params->out_sample_bytes) % DLK_FINISH_STORE != 0)
                return WAY_any;
        if (is_flat)
                return WAY_flat;
        if (batch->n_channels > 1 && params->out_channel_bytes % DLK_FINISH_STORE != 0)
                return WAY_any;
        if (batch->flips != 0 && batch->width % n_unit != 0) /* a unit would be of two rows */
                return WAY_any;
        return WAY_planes;
}

static uint32_t n_sample_units(const struct dlk_finish_batch *batch, enum way way) {
        uint32_t n_unit = way == WAY_any ? 1 : DLK_FINISH_STORE / batch->element_bytes;
        uint32_t n = batch->height * batch->width * (way == WAY_flat ? batch->n_channels : 1);

        return (n + n_unit - 1) / n_unit;
}

/* The same number of rounds for all threads: otherwise the last round would find most of them with nothing to do. */
static uint64_t n_rounds(enum way way, uint64_t n_units, uint32_t n_multiprocessors) {
        uint64_t n_most = (uint64_t)(n_multiprocessors > 0 ? n_multiprocessors : 1) * BLOCKS_EACH * DLK_FINISH_THREADS;

        if (way == WAY_planes)
                return PLANES_ROUNDS;
        return way == WAY_flat ? FLAT_ROUNDS : (n_units + n_most - 1) / n_most;
}

static uint32_t n_blocks(enum way way, uint64_t n_units, uint32_t n_multiprocessors) {
        uint64_t n_block_units = n_rounds(way, n_units, n_multiprocessors) * DLK_FINISH_THREADS;

        return (uint32_t)((n_units + n_block_units - 1) / n_block_units);
}

static uint32_t idx_name(enum way way, uint32_t n_channels, uint32_t element_bytes) {
        uint32_t i = 0;

        while (KINDS[i].way != way || KINDS[i].n_channels != n_channels || KINDS[i].element_bytes != element_bytes)
                i++; /* each way that is chosen has a kernel for what finish_is_possible() */
        return i;
}

bool dlk_finish_launch(const struct dlk_finish_batch *batch, uint32_t n_multiprocessors,
                       struct dlk_finish_launch *ret_launch) {
        struct dlk_finish_launch launch = { .grid = { 1, 1, 1 }, .block = { DLK_FINISH_THREADS, 1, 1 } };
        enum way way;

        if (!finish_is_possible(batch))
                return false;

        launch.params = params_of(batch);
        way = way_of(batch, &launch.params);
        launch.params.n_sample_units = n_sample_units(batch, way);
        launch.params.n_units = batch->n_samples * launch.params.n_sample_units;
        launch.idx_name = idx_name(way, batch->n_channels, batch->element_bytes);
        launch.grid[0] = n_blocks(way, launch.params.n_units, n_multiprocessors);
        *ret_launch = launch;
        return true;
}
