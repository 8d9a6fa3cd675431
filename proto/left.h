/* proto/left.h: what of a sample's steps is left to a client that finishes pictures on a device.
 *
 * Where a picture's pipeline ends with flips and steps that change colours, and the client asks for it
 * (Attach.leave_operations), the daemon makes their draws as ever, but does not do them. It writes what is to be done
 * after the sample's pixels, in the slot:
 *
 *      sample i of the tensor      pixels, uint8 [height, width, channels]; bytes up to the record are 0
 *      + LeftForm.operations_at    struct dlp_left_operations
 *      + strides[0]                sample i + 1
 *
 * Both numbers are multiples of DLP_LEFT_ALIGN, and a tensor's last sample has its record, too. */
#pragma once

#include <stdint.h>

#include "proto/layout.h"

/* The format of the records, raised when an old client would misread them. A client says up to which it knows. */
#define DLP_LEFT_OPERATIONS_FORMAT 1u

#define DLP_LEFT_OPERATIONS_MAX 8u /* of a sample: color_jitter twice; further steps before them are done here */
#define DLP_LEFT_PIXELS_MAX     (1u << 24) /* of a sample: the sum of their greys fits into 32 bits */
#define DLP_LEFT_ALIGN          64u        /* bytes */

/* One after the other, each rounded to 8 bits, as in daemon/augment/operations. */
enum dlp_left_kind {
        DLP_LEFT_BRIGHTNESS = 1,
        DLP_LEFT_CONTRAST,
        DLP_LEFT_SATURATION,
        DLP_LEFT_HUE,
        DLP_LEFT_GRAYSCALE,
};

#define DLP_LEFT_MIRRORED    1u /* left to right */
#define DLP_LEFT_UPSIDE_DOWN 2u

struct dlp_left_operation {
        uint32_t kind; /* enum dlp_left_kind */
        float amount;  /* of a blend, 0 and more; of the hue, turns of the colour wheel, -0.5 to 0.5; else 0 */
};

struct dlp_left_operations {
        uint32_t flips; /* before the operations or after them: that is the same */
        uint32_t n_operations;
        struct dlp_left_operation operations[DLP_LEFT_OPERATIONS_MAX]; /* beyond n_operations: 0 */
        uint32_t scratch[DLP_LEFT_OPERATIONS_MAX]; /* 0: room for the device, so that it needs no memory beside it */
};

_Static_assert(sizeof(struct dlp_left_operations) == 104, "packed without holes");
