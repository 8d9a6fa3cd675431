/* augment/operation.h: changes of pixels in place, on the canvas of a stage. Private to this floor.
 *
 * A step that does not move pixels passes operations to the fold; they run one after the other, after the geometry of
 * their stage. The fields of a type say whether a later flip or crop may be folded into that geometry, and so be done
 * before the operation, or begins a new stage. */
#pragma once

#include "daemon/augment/canvas.h"
#include "daemon/base/stages.h"
#include "proto/left.h"

#include <stdbool.h>

/* The most operations that one step adds. */
#define STEP_OPERATIONS_MAX 5u

struct operation;

struct operation_type {
        enum dlp_left_kind left_kind; /* what it is called where it is left to the client; 0: it never is */
        bool moves_with_flip;         /* the result on a mirrored picture is the mirrored result */
        bool moves_with_crop;         /* a pixel's result depends on that pixel alone */
        uint32_t n_rows;              /* beside the canvas, of its width: what the operation needs to remember */

        /* Bytes that it needs beside the canvas and those rows, which follow them in operation->rows. NULL: none. */
        uint64_t (*extra_bytes)(const struct operation *operation, uint32_t width, uint32_t height);

        void (*run)(const struct operation *operation, const struct canvas *canvas);
};

struct operation {
        const struct operation_type *type;
        float amount;       /* for a blend, 1 is the unchanged picture; for the hue, turns of the colour wheel */
        enum stage_id step; /* whose time it takes; set by fold_operate() */
        uint8_t *rows;      /* n_rows of them, without gaps; set by who runs it; aligned as malloc() aligns */

        /* What some types need beside the amount; each says what, below. */
        float others[4];
        struct box box;
        uint8_t color[PIXEL_BYTES];
        bool flag;
        uint64_t seed; /* of numbers that are drawn while it runs: a stream of their own, noise.h */
        bool is_grey;  /* the three channels are one, and stay equal; set by fold_operate() */
};

extern const struct operation_type operation_brightness;
extern const struct operation_type operation_contrast;
extern const struct operation_type operation_saturation;
extern const struct operation_type operation_hue;
extern const struct operation_type operation_grayscale; /* has no amount */
extern const struct operation_type operation_invert;    /* has no amount */
extern const struct operation_type operation_posterize; /* amount: the bits that stay, a whole number from 0 to 8 */
extern const struct operation_type operation_solarize;  /* amount: the lowest level that is inverted, a whole number */
extern const struct operation_type operation_solarize_add; /* amount: what levels below 128 grow by, a whole number */
extern const struct operation_type operation_autocontrast; /* has no amount */
extern const struct operation_type operation_equalize;     /* has no amount */
extern const struct operation_type operation_sharpness;    /* a blend from the smoothed picture */
extern const struct operation_type operation_permute;      /* color: which channel comes first, second and third */
extern const struct operation_type operation_erase;        /* box, within the canvas; color, or, with the flag, noise */
extern const struct operation_type operation_holes;        /* others, box, color, flag: operations/erase.c */
extern const struct operation_type operation_jpeg;         /* amount: the quality, 1 to 100 */
extern const struct operation_type operation_aug_mix;      /* all of them: operations/aug_mix/aug_mix_pixels.c */
