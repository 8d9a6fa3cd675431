/* augment/resize/resample.h: resampling, bit-identical to Pillow's Image.resize() for 8-bit RGB.
 *
 * The method (documented by Pillow; src/libImaging/Resample.c is the reference for the results): each output pixel is a
 * weighted sum of the source pixels below a filter, first along the rows, then along the columns. Weights are computed
 * in float64 and kept as integers with 22 binary digits; each of the two passes rounds and clips to 8 bits. All integer
 * sums are exact, so any order of summation gives the same bits; the SIMD forms rely on this.
 *
 * The source is a view, whose edges count as the picture's edges: pixels outside are never read. (So crop, then resize,
 * as torchvision does; not Pillow's resize(box=...).) Only a window of the output is computed, mirrored if asked: a
 * centre crop and a flip after a resize cost nothing. */
#pragma once

#include "daemon/base/box.h"
#include "proto/base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum resize_filter {
        RESIZE_NEAREST, /* no weights: each output pixel is a source pixel */
        RESIZE_BOX,
        RESIZE_BILINEAR,
        RESIZE_HAMMING,
        RESIZE_BICUBIC,
        RESIZE_LANCZOS,
        N_RESIZE_FILTERS,

        /* Without names. For masks: the pixel that torch's "nearest" takes, which counts from the pixels' corners. For
         * pictures of 16 bits: Pillow's nearest, which multiplies there and adds up elsewhere. */
        RESIZE_NEAREST_FLOOR = N_RESIZE_FILTERS,
        RESIZE_NEAREST_CENTER,
};

/* Is each output pixel a source pixel? */
static inline bool resize_chooses(enum resize_filter filter) {
        return filter == RESIZE_NEAREST || filter >= RESIZE_NEAREST_FLOOR;
}

/* Names as in Pillow, in small letters: index = enum resize_filter. */
extern const char *const RESIZE_FILTER_NAMES[N_RESIZE_FILTERS];

/* Which code computes. All forms give the same bits. */
enum resize_code {
        RESIZE_CODE_BEST, /* the fastest form on this CPU */
        RESIZE_CODE_SCALAR,
        RESIZE_CODE_AVX2,
        RESIZE_CODE_NEON,
        N_RESIZE_CODES,
};

/* In small letters: index = enum resize_code. */
extern const char *const RESIZE_CODE_NAMES[N_RESIZE_CODES];

struct resize_job {
        uint32_t width, height; /* of the whole output, at least 1 */
        struct box window;      /* the part of it to compute: not empty, within it */
        enum resize_filter filter;
        bool flip; /* mirror the window, left to right */
};

/* The part of the source that the window depends on; pixels around it are never read. */
void resize_need(uint32_t source_width, uint32_t source_height, const struct resize_job *job, struct box *ret_box);

/* The most memory that an empty resizer may allocate for this, in bytes. `given` as in resizer_begin(). */
uint64_t resize_bytes_needed(uint32_t source_width, uint32_t source_height, const struct box *given,
                             const struct resize_job *job);

/* Owns tables and rows, which grow on demand and are kept: once all sizes have occurred, nothing is allocated. One
 * thread at a time. */
struct resizer;

/* -ENOTSUP: this CPU cannot run the code that was asked for by name. */
int resizer_new(enum resize_code code, struct resizer **ret_resizer, struct why *why);

/* Takes NULL. */
void resizer_free(struct resizer *resizer);

/* Begins a source of source_width x source_height pixels, of which no row has come yet; discards one that was not fed
 * to its end. The window is written to `out`: window.height rows of window.width pixels, `stride` bytes apart. No byte
 * outside of those rows is written, and none outside of the rows that are fed is read. `given` is the part of the
 * source that will come, at least resize_need(); NULL is all of it. -ENOMEM; else 0. */
int resizer_begin(struct resizer *resizer, uint32_t source_width, uint32_t source_height, const struct box *given,
                  const struct resize_job *job, uint8_t *out, size_t stride, struct why *why);

/* Takes the next rows of the given part, any number at a time; they need to stay valid only during the call. Output
 * rows are written as soon as their source rows have come: after the last row the window is complete. More rows than
 * announced are a bug (asserted). */
void resizer_feed(struct resizer *resizer, const struct view *rows);

/* The memory that it holds now, for accounting. */
size_t resizer_bytes(const struct resizer *resizer);

/* Frees that memory. Not while a picture is being fed. */
void resizer_trim(struct resizer *resizer);
