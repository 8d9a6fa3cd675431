/* gpu_jpeg/inside.h: what the library's two files share: the pictures, which know no device, and the device. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/cuda/driver.h"
#include "client/cuda/jpeg/cuda_jpeg.h"
#include "tests/bench/gpu_jpeg/gpu_jpeg.h"

/* A batch as it crosses the link: one block of the host's memory, the structs first. Pointers in them are those of a
 * device's arena, so the block is made anew for another place (pack_place()). */
struct pack {
        uint32_t n;
        uint8_t *bytes; /* [n_bytes] */
        size_t n_bytes, n_bytes_max;
        struct part {
                size_t scan, offsets, x_first, x_count, x_weight, y_first, y_count, y_weight; /* in the block */
                size_t coefficients, samples, pixels, across, out;                            /* in the arena */
        } * parts;
        size_t clear_bytes, arena_bytes; /* of the arena: what is 0 at first, and all */
        uint32_t n_blocks_most, n_pixels_most, n_across_most, n_rows_most; /* of a picture */
};

struct files {
        struct file {
                uint8_t *bytes;
                size_t n_bytes;
        } * all;
        uint32_t n;
};

__attribute__((noreturn, format(printf, 1, 2))) void gj_fail(const char *format, ...);

/* JPEGs in rows. */
void files_read(struct files *files, const char *const *paths, uint32_t n_paths);
void files_free(struct files *files);

/* Batch number `number` of the files. */
void pack_make(struct pack *pack, const struct files *files, uint32_t number, uint32_t batch, uint32_t side,
               int is_whole, uint32_t seed);
void pack_place(struct pack *pack, uint64_t block_at, uint64_t arena_at);
void pack_free(struct pack *pack);

/* The same kernels on the CPU. The picture's pixels and what becomes of them are those of `arena`? 0 if so. */
int pack_differs(const struct pack *pack, uint32_t idx, const struct files *files, uint32_t number, uint32_t side,
                 int is_whole, uint32_t seed, const uint8_t *arena);
