/* augment/warp/warp_moves.h: tells a fold how a picture is turned, sheared or seen in perspective: which points its pixels
 * show, the same for masks, and where boxes and points go. Private to this floor.
 *
 * The numbers are computed as torchvision's transforms.v2.functional and Pillow's Image.rotate() compute them for a
 * picture of Pillow, in float64; those for masks, boxes and points are then rounded to float32. */
#pragma once

#include "daemon/augment/fold.h"

/* How the pixels are found, and what is where there are none. Masks have the filter "nearest", whatever it says. */
struct warp_look {
        enum warp_filter filter;
        uint8_t fill[PIXEL_BYTES];
};

/* A point in pixels from the top left corner; without one, it is the picture's middle. */
struct warp_center {
        bool is_given;
        double x, y;
};

/* torchvision's affine(). Degrees, clockwise; pixels. */
struct affine {
        double angle, translate_x, translate_y, scale, shear_x, shear_y;
        struct warp_center center;
};

/* Its matrix from points of the result to points of the source, six numbers, about a centre in pixels from wherever
 * both are counted. */
void affine_inverse(const struct affine *affine, double center_x, double center_y, double *ret_matrix);

int fold_affine(struct fold *fold, const struct affine *affine, const struct warp_look *look, struct why *why);

/* Pillow's transform() with AFFINE: point (x, y) shows (m0 x + m1 y + m2, m3 x + m4 y + m5), both from the top left
 * corner. Of pictures alone (asserted): no mask, and no motions are noted. */
int fold_matrix(struct fold *fold, const double matrix[6], const struct warp_look *look, struct why *why);

/* torchvision's rotate(): by `angle` degrees, anticlockwise. `expand`: onto a canvas on which nothing is lost. */
int fold_rotate(struct fold *fold, double angle, bool expand, const struct warp_center *center,
                const struct warp_look *look, struct why *why);

struct corner {
        uint32_t x, y;
};

/* torchvision's perspective(): the middles of the corner pixels go to `corners`: top left, top right, bottom right,
 * bottom left. The picture stays as it is where no perspective does that: it is one pixel wide or high, or three of the
 * corners lie on a line. */
int fold_perspective(struct fold *fold, const struct corner corners[4], const struct warp_look *look, struct why *why);

/* Each pixel by its own displacement, as torchvision's ElasticTransform has it. */
int fold_displace(struct fold *fold, const struct displacement *displacement, const struct warp_look *look,
                  struct why *why);
