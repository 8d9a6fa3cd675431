/* decode/picture_format.h: the interface of a picture format. Private to this floor.
 *
 * A format is one file and one row of the table in decode.c. Its state is made when a decoder meets the first picture
 * of that format and lives as long as the decoder. */
#pragma once

#include "daemon/decode/decode.h"

#include <stdbool.h>

/* Memory that grows on demand and is kept. Its content is lost when it grows. */
struct scratch {
        uint8_t *bytes;
        size_t n_bytes;
};

/* Makes room for n_bytes; -EFBIG above the limit, with both numbers. */
int scratch_reserve(struct scratch *scratch, uint64_t n_bytes, const struct decode_limits *limits, struct why *why);

struct picture_format {
        const char *name;
        bool (*probe)(const uint8_t *bytes, size_t n_bytes);
        int (*state_new)(const struct decode_limits *limits, enum decode_jpeg jpeg, void **ret_state);
        void (*state_free)(void *state);

        /* Reads the header and checks its values against the limits. */
        int (*open)(void *state, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info, struct why *why);

        /* Passes the rows of `box` to the sink. `work` is scratch memory for the format. Called once for each
         * picture. */
        int (*read_rows)(void *state, const struct box *box, const struct row_sink *sink, struct scratch *work,
                         struct why *why);

        /* The most bytes that read_rows() may hold for this box, `work` and the library's memory together. Called
         * between open and read. */
        uint64_t (*need)(const void *state, const struct box *box);

        bool has_plain_rows; /* its pixels are stored as they are: only those of a box are read */

        /* decoder_as(), between open and read, for DECODE_NUMBERS, DECODE_WIDE and DECODE_ALPHA; open() goes back to
         * colours. NULL: pictures are opaque and have neither numbers nor 16 bits. */
        int (*as)(void *state, enum decode_as as, struct why *why);

        /* Between open and read: read_rows() will pass on pixels of equal colours, so that DECODE_GREY has nothing to
         * do. NULL: not known. */
        bool (*is_grey)(const void *state);

        /* Numbers as they are stored: decoder_open_bands() and the two after it. All three are NULL, or none. */
        int (*open_bands)(void *state, const uint8_t *bytes, size_t n_bytes, struct band_info *ret_info,
                          struct why *why);
        int (*read_bands)(void *state, uint8_t *out, size_t stride, struct scratch *work, struct why *why);
        uint64_t (*need_bands)(const void *state);

        /* All three may be NULL. bytes: memory that is held in addition to `work`. trim: frees what can be freed, also
         * between open and read. decoded_by: which decoder decoded the last picture, and whether it took over from
         * another one. */
        size_t (*bytes)(const void *state);
        void (*trim)(void *state);
        enum decoded_by (*decoded_by)(const void *state, bool *ret_handed_over);
};

extern const struct picture_format format_bmp;
extern const struct picture_format format_gif;
extern const struct picture_format format_jpeg;
extern const struct picture_format format_pil;
extern const struct picture_format format_png;
extern const struct picture_format format_pnm;
extern const struct picture_format format_tiff;
extern const struct picture_format format_webp;

/* The refusals of `as`: `what` the format has instead, such as "JPEG" or "red and green". -ENOTSUP. */
int refuse_as(enum decode_as as, const char *what, struct why *why);

/* -EFBIG with both numbers if the picture has too many pixels, else 0. */
int check_pixels(const struct decode_limits *limits, uint32_t width, uint32_t height, struct why *why);
