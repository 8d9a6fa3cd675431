/* codec/masks/outline.h: what lies within a polygon, as COCO's tools decide it.
 *
 * The corners are put on a grid that is five times as fine as the pixels, and the edges between them are walked on it.
 * Wherever the walk goes from the middle of a pixel's column to the next fine column, the rows below change sides: from
 * outside to inside or back. Nothing is decided by area, so the bits depend on this walk and its rounding alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

#define OUTLINE_COORDINATE_MAX 1048576.0  /* pixels from 0, to either side */
#define OUTLINE_STEPS_MAX      (1u << 28) /* on the fine grid, of all polygons of a sample: about a second */

/* One for all polygons of a sample: a plane for each mask, and then for each polygon begin, corners, end. */
struct outline {
        uint32_t width, height;
        uint8_t *columns; /* `width` bytes, all zero between polygons */
        uint64_t n_steps; /* of all polygons so far */

        uint8_t *plane;                 /* height rows of width; a byte is 0 or 1, and while a polygon is drawn, 2 more
                                         * where sides change */
        uint64_t n_corners;             /* of this polygon */
        int32_t first_x, first_y, x, y; /* its first corner, and the last one, on the fine grid */
        bool has_point;                 /* the next one is that of the walk */
        int32_t u, v;                   /* the last point of the walk */
        uint32_t left, right, top, below; /* pixels where sides change: left <= x < right, top <= y < below */
};

void outline_begin(struct outline *outline, uint8_t *plane);

/* Adds a corner. -EBADMSG: it is not a number, or too far away; -E2BIG: above OUTLINE_STEPS_MAX. */
int outline_add(struct outline *outline, double x, double y, struct why *why);

/* Closes the polygon and sets the pixels within it to 1. -E2BIG as above. After an error no other polygon may follow.
 */
int outline_end(struct outline *outline, struct why *why);
