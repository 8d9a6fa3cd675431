/* codec/masks/segments.h: the segmentations of a sample as a JSON array, as COCO's annotations have them: of each
 * object an array of polygons, [[x, y, x, y, ...], ...], or run lengths, {"size": [height, width], "counts": [...]},
 * whose counts may also be a text.
 *
 * The bytes may be anything. Errors name the mask by its number, from 0. */
#pragma once

#include "daemon/base/json/json_scan.h"
#include "daemon/codec/masks/outline.h"

struct segments {
        struct json_scan scan;
        uint64_t number; /* of the next mask */
        struct outline outline;
};

/* How many there are. Reads all of the text. -EBADMSG, -E2BIG: it is not such an array. */
int segments_count(const void *text, size_t n_bytes, uint64_t *ret_n, struct why *why);

/* Begins with the first one. All masks have the size of their picture. `columns` is memory for `width` bytes. */
void segments_begin(struct segments *segments, const void *text, size_t n_bytes, uint32_t width, uint32_t height,
                    uint8_t *columns);

/* Draws the next one, of as many as there are, onto a plane of height rows of width bytes: 1 within the object, else
 * 0. -EBADMSG, -E2BIG: it is not one, or has another size. After an error there is no next one. */
int segments_draw(struct segments *segments, uint8_t *plane, struct why *why);

/* Passes over the next one. */
int segments_skip(struct segments *segments, struct why *why);
