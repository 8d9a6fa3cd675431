/* decode/decode.h: the bytes of a picture file -> pixels, as Pillow gives them: RGB, or what decoder_as() names.
 *
 * The format is recognised by the first bytes, never by a name: JPEG, PNG, WebP, BMP, PNM, TIFF and GIF are decoded,
 * and the pixels that libraries of shards store (pil.c); a dozen others are recognised so that the error can name them.
 * Alpha is not part of the colours: it is dropped, not blended, and can be read on its own. EXIF orientation is ignored
 * (decode/exif.h says it), but not the orientation of a TIFF; only the first frame of an animation and the first page
 * of a TIFF are used.
 *
 * A picture is read in three steps, because the needed part is decided between the first and the last:
 *
 *      decoder_open()          looks at the header: how large is it?
 *      ...                     the caller draws its crop
 *      decoder_read_rows()     the pixels of the crop, or decoder_read_into() for the whole picture
 *
 * A decoder belongs to one thread at a time. It keeps its memory and its libraries' state from picture to picture, so
 * that a worker makes one decoder for a million files. All functions may compute for a time that depends on the
 * picture's size, but never block.
 *
 * A decoder does not read what the box does not need: in a JPEG, the scan after the box's last row; in a PNG, the rows
 * below. Damage there is not noticed, and the pixels are served; a box with the last pixel gets the same result as the
 * whole picture. One kind of damage is noticed wherever the box lies: a file that was cut. If the end is missing (EOI,
 * IEND, the size in RIFF's header), the whole picture is decoded, and that result counts.
 *
 * Errors: -EBADMSG the file is damaged or cut short, -ENOTSUP a format or variant that is not handled, -EFBIG above a
 * limit, -ENOMEM. After any of them the decoder is ready for the next picture. */
#pragma once

#include "daemon/base/box.h"
#include "daemon/base/rows.h"
#include "proto/base/why.h"
#include "proto/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that a picture may cost. A file of a few hundred bytes can demand gigabytes or hours. */
struct decode_limits {
        uint64_t max_pixels;        /* width * height; checked before any memory is reserved */
        uint64_t max_step_pixels;   /* of all steps of a pipeline, for one sample; 0: any number */
        uint32_t max_scans;         /* of a progressive JPEG; ordinary ones have 10, hostile ones thousands. Large
                                     * pictures may have fewer: see DECODE_SCAN_PIXELS */
        uint64_t max_scratch_bytes; /* of one decoder: pixels of pictures that are read in part, coefficients */
};

#define DECODE_SCAN_PIXELS (1ull << 28) /* scans times pixels of a progressive JPEG; a second or so of work ... */
#define DECODE_SCANS_ANY   32u          /* ... but at least this many at any size, unless max_scans is smaller */

#define DECODE_LIMITS_DEFAULT                                                                                          \
        ((struct decode_limits){ .max_pixels = 256ull << 20, .max_scans = 500, .max_scratch_bytes = 1ull << 30 })

/* Which decoder decodes JPEG. Both give the same bits. */
enum decode_jpeg {
        DECODE_JPEG_AUTO,    /* our own decoder for the files that it handles, libjpeg-turbo for the rest */
        DECODE_JPEG_LIBJPEG, /* libjpeg-turbo for everything */
};

/* Which decoder decoded the last picture. */
enum decoded_by {
        DECODED_BY_BASELINE, /* decode/jpeg/baseline.h */
        DECODED_BY_LIBJPEG,
        DECODED_BY_OTHERS, /* all other formats */
        N_DECODED_BY,
};

/* What becomes of a picture's samples. A pixel always has PIXEL_BYTES, so that all that comes after the decoder works
 * on any of them. */
enum decode_as {
        DECODE_COLORS,  /* red, green, blue: convert("RGB") */
        DECODE_GREY,    /* their grey three times: convert("L") */
        DECODE_NUMBERS, /* three times what Pillow gives without a conversion: the index in a palette, the level of
                         * grey, 0 or 1 for one bit */
        DECODE_WIDE,    /* grey of 16 bits: low byte, high byte, 0 */
        DECODE_ALPHA,   /* three times how opaque it is: the last channel of convert("RGBA") */
};

/* The values from the header. */
struct image_info {
        uint32_t width, height; /* pixels, at least 1 */
        const char *format;     /* "JPEG", "PNG", ...; static */
};

/* The numbers of a picture as they are stored: any number of bands, each pixel's together. */
struct band_info {
        uint32_t width, height, n_bands;
        enum dlp_dtype dtype; /* of each number */
};

struct decoder;

int decoder_new(const struct decode_limits *limits, enum decode_jpeg jpeg, struct decoder **ret_decoder,
                struct why *why);

/* Takes NULL. Views are invalid afterwards. */
void decoder_free(struct decoder *decoder);

/* Begins a picture and ends the one before. `bytes` must stay valid until decoder_close() or the next
 * decoder_open(). */
int decoder_open(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info,
                 struct why *why);

/* Says what the open picture's pixels shall be; without it they are DECODE_COLORS. 0; DECODE_OPAQUE if alpha is asked
 * for and all of it is 255, which need not be read then; -ENOTSUP for a format or variant that has no such samples,
 * with what it is. After decoder_open(), before anything is read. */
#define DECODE_OPAQUE 1
int decoder_as(struct decoder *decoder, enum decode_as as, struct why *why);

/* Decodes the pixels of `box`, which lies within the picture (asserted), and passes them to the sink in bands of whole
 * rows, from the top down, while they are still in the cache (base/rows.h). Avoids memory of the box's size if the
 * format allows it. Also returns an error of the sink. Call it once for each picture: after an error or a success, the
 * picture has to be opened again. */
int decoder_read_rows(struct decoder *decoder, const struct box *box, const struct row_sink *sink, struct why *why);

/* Decodes the whole picture straight to `out`: info.height rows of info.width pixels, `stride` bytes apart. Nothing
 * else is written; after an error the rows are undefined. Once for each picture, as above. */
int decoder_read_into(struct decoder *decoder, uint8_t *out, size_t stride, struct why *why);

/* The same for a box of the picture: box->height rows of box->width pixels. */
int decoder_read_box(struct decoder *decoder, const struct box *box, uint8_t *out, size_t stride, struct why *why);

/* In place of decoder_open(), for pictures whose numbers are not colours; of TIFF alone. */
int decoder_open_bands(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, struct band_info *ret_info,
                       struct why *why);

/* Writes all of them: rows of width x n_bands numbers of this machine, `stride` bytes apart. Whole pictures only:
 * nothing is turned or converted. Once for each picture. decoder_need_bands(): the most memory that it may hold beside
 * `out`. */
int decoder_read_bands(struct decoder *decoder, uint8_t *out, size_t stride, struct why *why);
uint64_t decoder_need_bands(const struct decoder *decoder);

/* Ends the picture. Scratch above DECODE_SCRATCH_KEEP is freed, so that one huge picture does not cost memory for ever.
 */
void decoder_close(struct decoder *decoder);

#define DECODE_SCRATCH_KEEP (64u << 20) /* bytes */

/* About the last successful read. Handed over: our own decoder began it and gave up half-way. */
enum decoded_by decoder_decoded_by(const struct decoder *decoder);
bool decoder_handed_over(const struct decoder *decoder);

/* The most bytes that decoder_read_rows() may hold for this box of the open picture, including the library's memory.
 * For callers that reserve memory before they use it. */
uint64_t decoder_need(const struct decoder *decoder, const struct box *box);

/* How much work it is to read this box of the open picture, to compare boxes of one picture. Of a photo that is a JPEG,
 * two thirds of a pixel's time are its bits, which are read for all pixels above the box, too. */
#define DECODE_WORK_BITS   8u /* of a pixel; ... */
#define DECODE_WORK_PIXELS 4u
#define DECODE_WORK_COPY   1u /* more, to write a pixel to memory and to read it there */
uint64_t decoder_work(const struct decoder *decoder, const struct box *box);

/* The memory that the decoder holds now, for accounting, without a few hundred KiB of the libraries. */
size_t decoder_scratch_bytes(const struct decoder *decoder);

/* Frees everything that it keeps for later pictures. An open picture may still be read afterwards. */
void decoder_trim(struct decoder *decoder);
