/* augment/resize/resize.h: resampling with the very bits of Pillow's Image.resize() for 8-bit RGB.
 *
 * The method (docs of Pillow, src/libImaging/Resample.c is the reference for its results): each output pixel is a
 * weighted sum of the source pixels below a filter, first along the rows, then along the columns; weights are computed
 * in float64 and kept as integers with 22 binary digits; each of the two passes rounds and clips to 8 bits. All integer
 * sums are exact, so any sequence of summation gives the same bits, which is what the SIMD forms live on.
 *
 * What is resampled is a view, whose edges are the picture's edges: pixels outside are never looked at. (So crop, then
 * resize, as torchvision does; not Pillow's resize(box=...).) Only a window of the output is computed, mirrored if
 * asked: a centre crop and a flip after a resize cost nothing. */
#pragma once

#include "daemon/base/box.h"
#include "proto/base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum resize_filter {
        RESIZE_NEAREST, /* no weights: each pixel is one of the source's */
        RESIZE_BOX,
        RESIZE_BILINEAR,
        RESIZE_HAMMING,
        RESIZE_BICUBIC,
        RESIZE_LANCZOS,
        N_RESIZE_FILTERS,
};

/* Names as in Pillow, in small letters: index = enum resize_filter. */
extern const char *const RESIZE_FILTER_NAMES[N_RESIZE_FILTERS];

/* Which code computes. All give the same bits. */
enum resize_code {
        RESIZE_CODE_BEST, /* what is known to be fastest on this CPU */
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

/* The part of the source that the window is made of; what lies around it is never looked at. */
void resize_need(uint32_t source_width, uint32_t source_height, const struct resize_job *job, struct box *ret_box);

/* The most memory that a resizer which holds nothing may take for this, in bytes. `given` as in resizer_begin(). */
uint64_t resize_bytes_needed(uint32_t source_width, uint32_t source_height, const struct box *given,
                             const struct resize_job *job);

/* Owns tables and rows, which grow on demand and are kept: nothing is allocated once the sizes have been seen. Of one
 * thread at a time. */
struct resizer;

/* -ENOTSUP: this CPU cannot run the code that was asked for by name. */
int resizer_new(enum resize_code code, struct resizer **ret_resizer, struct why *why);

/* Takes NULL. */
void resizer_free(struct resizer *resizer);

/* Writes the window to `out`: window.height rows of window.width pixels, `stride` bytes apart. Not a byte outside of
 * those rows is written, and none outside of what is fed is read. Begins a source of source_width x source_height
 * pixels, of which nothing is there yet; forgets one that was not fed to its end. `given` is the part of it that will
 * come, at least resize_need(): NULL is all of it. -ENOMEM; else 0. */
int resizer_begin(struct resizer *resizer, uint32_t source_width, uint32_t source_height, const struct box *given,
                  const struct resize_job *job, uint8_t *out, size_t stride, struct why *why);

/* The next rows of the given part, in any portions; they need to live only as long as the call. Output rows are written
 * as soon as what they need has come: with the last row the window is complete. More rows than were to come are a bug
 * (asserted). */
void resizer_feed(struct resizer *resizer, const struct view *rows);

/* What it holds at present, for accounting. */
size_t resizer_bytes(const struct resizer *resizer);

/* Gives all of it back. Not while a picture is being fed. */
void resizer_trim(struct resizer *resizer);
