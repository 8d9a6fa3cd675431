/* decode/exif.h: how a picture has to be turned to be upright, as cameras note it.
 *
 * EXIF's Orientation in JPEG, PNG and WebP. (The orientation of a TIFF is part of its pixels' layout, and its decoder
 * has applied it.) XMP is not read. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EXIF_UPRIGHT 1u

/* Returns EXIF_UPRIGHT (as it is) to 8, numbered as in EXIF; EXIF_UPRIGHT if the file says nothing, or something that
 * has no meaning. Reads no byte outside of the file, whatever is in it. Looks at the headers of a file's parts, not at
 * pixels. */
uint32_t exif_orientation(const uint8_t *bytes, size_t n_bytes);
