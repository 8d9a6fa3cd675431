/* decode/decode.h: the bytes of a picture file -> RGB pixels, as Pillow's convert("RGB") gives them.
 *
 * The format is told from the first bytes, never from a name: JPEG, PNG, WebP, BMP, PNM, TIFF and GIF are handled, a
 * dozen others are recognised so that the error can name them. Alpha is dropped, not blended; EXIF orientation is
 * ignored, but not the orientation of a TIFF; of an animation the first frame counts, of a TIFF the first page.
 *
 * A picture is read in three steps, because what is needed of it is decided between the first and the second:
 *
 *      decoder_open()          looks at the header: how large is it?
 *      ...                     the caller draws its crop
 *      decoder_read()          the pixels of the crop, or decoder_read_into() for the whole picture
 *
 * A decoder belongs to one thread at a time. It keeps its memory and its libraries' state from picture to picture, so
 * that a worker makes one decoder and feeds it a million files. All functions may compute for as long as the picture
 * is large, but never block.
 *
 * What is not needed is not looked at: of a JPEG, the scan after the box's last row; of a PNG, the rows below. Damage
 * there is not seen, and the pixels are served; a box with the last pixel is judged as the whole picture is. One
 * kind of damage is seen wherever the box lies: a file that was cut. Where the end is missing (EOI, IEND, the size in
 * RIFF's header), the whole picture is decoded and has the last word.
 *
 * Errors: -EBADMSG the file is damaged or cut short, -ENOTSUP a format or variant that is not handled, -EFBIG above a
 * limit, -ENOMEM. After any of them the decoder is ready for the next picture. */
#pragma once

#include "daemon/base/box.h"
#include "daemon/base/rows.h"
#include "proto/base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a picture may cost at most. A file of a few hundred bytes can ask for gigabytes or for hours. */
struct decode_limits {
        uint64_t max_pixels;        /* width * height; checked before any memory is reserved */
        uint32_t max_scans;         /* of a progressive JPEG; ordinary ones have 10, hostile ones thousands. Large
                                     * pictures may have fewer: see DECODE_SCAN_PIXELS */
        uint64_t max_scratch_bytes; /* of one decoder: pixels of pictures that are read in part, coefficients */
};

#define DECODE_SCAN_PIXELS (1ull << 28) /* scans times pixels of a progressive JPEG; a second or so of work ... */
#define DECODE_SCANS_ANY   32u          /* ... but this many at any size, unless max_scans is less */

#define DECODE_LIMITS_DEFAULT                                                                                          \
        ((struct decode_limits){ .max_pixels = 256ull << 20, .max_scans = 500, .max_scratch_bytes = 1ull << 30 })

/* Who decodes JPEG. Both give the same bits. */
enum decode_jpeg {
        DECODE_JPEG_AUTO,    /* our own decoder what it handles, libjpeg-turbo the rest */
        DECODE_JPEG_LIBJPEG, /* libjpeg-turbo everything */
};

/* Who decoded the last picture. */
enum decoded_by {
        DECODED_BY_BASELINE, /* decode/jpeg/baseline.h */
        DECODED_BY_LIBJPEG,
        DECODED_BY_OTHERS, /* all other formats */
        N_DECODED_BY,
};

/* What the header says. */
struct image_info {
        uint32_t width, height; /* pixels, at least 1 */
        const char *format;     /* "JPEG", "PNG", ...; static */
};

struct decoder;

int decoder_new(const struct decode_limits *limits, enum decode_jpeg jpeg, struct decoder **ret_decoder,
                struct why *why);

/* Takes NULL. Views are gone afterwards. */
void decoder_free(struct decoder *decoder);

/* Begins a picture; ends the one before. `bytes` must stay where they are until decoder_close() or the next
 * decoder_open(). */
int decoder_open(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info,
                 struct why *why);

/* Decodes the pixels of `box`, which lies within the picture (asserted). The view is the box: its pixel (0, 0)
 * is the picture's (box.x, box.y). It belongs to the decoder and is valid until decoder_close() or the next
 * decoder_open(). Once a picture: after an error or a success the picture has to be opened again. */
int decoder_read(struct decoder *decoder, const struct box *box, struct view *ret_view, struct why *why);

/* Decodes the pixels of `box` (as above) and hands them over in bands of whole rows, from the top down, while they are
 * still in the cache (base/rows.h). Nothing of the size of the box is kept if the format can do without. Also returns
 * what the sink returned. Once a picture, as above. */
int decoder_read_rows(struct decoder *decoder, const struct box *box, const struct row_sink *sink, struct why *why);

/* Decodes the whole picture straight to `out`: info.height rows of info.width pixels, `stride` bytes apart. Nothing
 * else is touched; after an error the rows hold rubbish. Once a picture, as above. */
int decoder_read_into(struct decoder *decoder, uint8_t *out, size_t stride, struct why *why);

/* Ends the picture. Scratch above DECODE_SCRATCH_KEEP is given back, so that one giant does not cost memory for good.
 */
void decoder_close(struct decoder *decoder);

#define DECODE_SCRATCH_KEEP (64u << 20) /* bytes */

/* Of the last successful read. Handed over: our own decoder began it and gave up half-way. */
enum decoded_by decoder_decoded_by(const struct decoder *decoder);
bool decoder_handed_over(const struct decoder *decoder);

/* The most memory that decoder_read_rows() may hold for this box of the open picture, the library's included, in bytes.
 * decoder_read() keeps the pixels of the box besides. For whoever pays before it is used. */
uint64_t decoder_need(const struct decoder *decoder, const struct box *box);

/* What the decoder holds at present, for accounting. The libraries' own few hundred KiB are not in it. */
size_t decoder_scratch_bytes(const struct decoder *decoder);

/* Gives back all that it keeps for later pictures. An open one may be read afterwards. */
void decoder_trim(struct decoder *decoder);
