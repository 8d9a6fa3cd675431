#include "daemon/decode/jpeg/header.h"

#include <string.h>

#define N_TABLES      4u     /* of a kind */
#define MAX_DIMENSION 65500u /* libjpeg's; the format allows up to 65535 */
#define MIN_H2_WIDTH  5u     /* libjpeg upsamples narrower pictures with half the chroma in another way */

enum marker {
        SOF0 = 0xc0, /* baseline */
        SOF1 = 0xc1, /* extended sequential: the same with 8 bits a sample */
        DHT = 0xc4,
        SOI = 0xd8,
        EOI = 0xd9,
        SOS = 0xda,
        DQT = 0xdb,
        DRI = 0xdd,
        APP0 = 0xe0,
        APP14 = 0xee,
        APP15 = 0xef,
        COM = 0xfe,
};

/* The values that were read so far. */
struct reading {
        struct jpeg_header *header;
        struct jpeg_divisors divisors[N_TABLES];
        struct huffman_definition codes[2][N_TABLES]; /* DC, AC */
        uint8_t ids[JPEG_COMPONENTS], sampling[JPEG_COMPONENTS], idx_divisors[JPEG_COMPONENTS];
        bool has_frame, has_jfif, has_adobe;
        uint8_t adobe_transform;
};

/* The content of a marker segment. */
struct marker_segment {
        const uint8_t *bytes;
        size_t n;
};

static unsigned read_16(const uint8_t *bytes) {
        return (unsigned)bytes[0] << 8 | bytes[1];
}

/* ---- one marker segment each: 0 or BASELINE_HANDS_OVER ---------------------------------------------------------- */

static int read_divisors(struct reading *reading, struct marker_segment segment) {
        while (segment.n > 0) {
                unsigned idx = segment.bytes[0] & 15, precision = segment.bytes[0] >> 4;
                size_t n = 1 + JPEG_COEFFICIENTS * (precision + 1);

                if (idx >= N_TABLES || precision > 1 || segment.n < n)
                        return BASELINE_HANDS_OVER;
                reading->divisors[idx] = (struct jpeg_divisors){ segment.bytes + 1, precision == 1 };
                segment.bytes += n;
                segment.n -= n;
        }
        return 0;
}

static int header_read_codes(struct reading *reading, struct marker_segment segment) {
        while (segment.n > 0) {
                unsigned kind = segment.bytes[0] >> 4, idx = segment.bytes[0] & 15;
                size_t n = HUFFMAN_LENGTHS;

                if (kind > 1 || idx >= N_TABLES || segment.n < 1 + HUFFMAN_LENGTHS)
                        return BASELINE_HANDS_OVER;
                for (size_t i = 1; i <= HUFFMAN_LENGTHS; i++)
                        n += segment.bytes[i];
                if (n > HUFFMAN_DEFINITION_MAX || segment.n < 1 + n)
                        return BASELINE_HANDS_OVER;
                reading->codes[kind][idx] = (struct huffman_definition){ segment.bytes + 1, n };
                segment.bytes += 1 + n;
                segment.n -= 1 + n;
        }
        return 0;
}

static int header_read_frame(struct reading *reading, struct marker_segment segment) {
        struct jpeg_header *header = reading->header;
        const uint8_t *at = segment.bytes;

        if (reading->has_frame || segment.n < 6 || at[0] != 8)
                return BASELINE_HANDS_OVER;
        reading->has_frame = true;
        header->height = read_16(at + 1); /* 0: the height comes after the scan */
        header->width = read_16(at + 3);
        header->n_components = at[5];
        if (header->height == 0 || header->height > MAX_DIMENSION || header->width == 0 ||
            header->width > MAX_DIMENSION)
                return BASELINE_HANDS_OVER;
        if ((header->n_components != 1 && header->n_components != 3) ||
            segment.n != 6 + 3 * (size_t)header->n_components)
                return BASELINE_HANDS_OVER;
        for (uint32_t c = 0; c < header->n_components; c++) {
                reading->ids[c] = at[6 + 3 * c];
                reading->sampling[c] = at[7 + 3 * c];
                reading->idx_divisors[c] = at[8 + 3 * c];
        }
        return 0;
}

/* Reads what JFIF and Adobe say about the colours. libjpeg warns of a major version of JFIF other than 1. */
static int read_application(struct reading *reading, unsigned marker, struct marker_segment segment) {
        if (marker == APP0 && segment.n >= 14 && memcmp(segment.bytes, "JFIF", 5) == 0) {
                reading->has_jfif = true;
                return segment.bytes[5] == 1 ? 0 : BASELINE_HANDS_OVER;
        }
        if (marker == APP14 && segment.n >= 12 && memcmp(segment.bytes, "Adobe", 5) == 0) {
                reading->has_adobe = true;
                reading->adobe_transform = segment.bytes[11];
        }
        return 0;
}

static int read_restarts(struct reading *reading, struct marker_segment segment) {
        if (segment.n != 2)
                return BASELINE_HANDS_OVER;
        reading->header->restart_interval = read_16(segment.bytes);
        return 0;
}

/* Accepts only one scan with all components, in the frame's order and with all coefficients. */
static int header_read_scan(struct reading *reading, struct marker_segment segment) {
        struct jpeg_header *header = reading->header;
        uint32_t n = header->n_components;
        const uint8_t *at = segment.bytes;

        if (!reading->has_frame || segment.n != 4 + 2 * (size_t)n || at[0] != n)
                return BASELINE_HANDS_OVER;
        for (uint32_t c = 0; c < n; c++) {
                unsigned dc = at[2 + 2 * c] >> 4, ac = at[2 + 2 * c] & 15;

                if (at[1 + 2 * c] != reading->ids[c] || dc >= N_TABLES || ac >= N_TABLES)
                        return BASELINE_HANDS_OVER;
                header->dc[c] = reading->codes[0][dc];
                header->ac[c] = reading->codes[1][ac];
        }
        at += 1 + 2 * n;
        return at[0] == 0 && at[1] == JPEG_COEFFICIENTS - 1 && at[2] == 0 ? 0 : BASELINE_HANDS_OVER;
}

static int header_read_segment(struct reading *reading, unsigned marker, struct marker_segment segment) {
        switch (marker) {
        case DQT:
                return read_divisors(reading, segment);
        case DHT:
                return header_read_codes(reading, segment);
        case SOF0:
        case SOF1:
                return header_read_frame(reading, segment);
        case DRI:
                return read_restarts(reading, segment);
        case SOS:
                return header_read_scan(reading, segment);
        case COM:
                return 0;
        default: /* progressive, arithmetic, lossless, a height that comes later, ... */
                return marker >= APP0 && marker <= APP15 ? read_application(reading, marker, segment)
                                                         : BASELINE_HANDS_OVER;
        }
}

/* ---- the whole header ---------------------------------------------------------------------------------------- */

/* Marker by marker up to the scan, whose first byte is returned in `ret_scan`. */
static int read_segments(struct reading *reading, const uint8_t *at, const uint8_t *end, const uint8_t **ret_scan) {
        unsigned marker;

        do {
                size_t n;
                int r;

                if (end - at < 4 || *at != 0xff)
                        return BASELINE_HANDS_OVER;
                while (at < end && *at == 0xff) /* more than one is allowed */
                        at++;
                if (end - at < 3)
                        return BASELINE_HANDS_OVER;
                marker = *at++;
                n = read_16(at); /* includes itself */
                if (n < 2 || n > (size_t)(end - at))
                        return BASELINE_HANDS_OVER;
                r = header_read_segment(reading, marker, (struct marker_segment){ at + 2, n - 2 });
                if (r != 0)
                        return r;
                at += n;
        } while (marker != SOS);

        *ret_scan = at;
        return 0;
}

/* libjpeg takes three components for YCbCr because of JFIF, then because of Adobe, then because of the usual ids; its
 * further guesses are left to it. */
static bool is_ycbcr(const struct reading *reading) {
        if (reading->has_jfif)
                return true;
        if (reading->has_adobe)
                return reading->adobe_transform == 1;
        return reading->ids[0] == 1 && reading->ids[1] == 2 && reading->ids[2] == 3;
}

static int check_colours(struct reading *reading) {
        struct jpeg_header *header = reading->header;
        const uint8_t *sampling = reading->sampling;

        header->h = sampling[0] >> 4;
        header->v = sampling[0] & 15;
        if (header->n_components == 1)
                return sampling[0] == 0x11 ? 0 : BASELINE_HANDS_OVER;

        if (!is_ycbcr(reading) || reading->ids[0] == reading->ids[1] || reading->ids[0] == reading->ids[2] ||
            reading->ids[1] == reading->ids[2])
                return BASELINE_HANDS_OVER;
        if (header->h < 1 || header->h > 2 || header->v < 1 || header->v > 2 || sampling[1] != 0x11 ||
            sampling[2] != 0x11)
                return BASELINE_HANDS_OVER;
        return header->h == 2 && header->width < MIN_H2_WIDTH ? BASELINE_HANDS_OVER : 0;
}

static int check_tables(struct reading *reading) {
        struct jpeg_header *header = reading->header;

        for (uint32_t c = 0; c < header->n_components; c++) {
                if (reading->idx_divisors[c] >= N_TABLES)
                        return BASELINE_HANDS_OVER;
                header->divisors[c] = reading->divisors[reading->idx_divisors[c]];
                if (!header->divisors[c].bytes || !header->dc[c].bytes || !header->ac[c].bytes)
                        return BASELINE_HANDS_OVER;
        }
        return 0;
}

/* A file that was cut has no end marker; libjpeg's result counts for it, wherever the box lies. */
static bool header_has_end(const uint8_t *scan, const uint8_t *end) {
        while (end - scan >= 2) {
                const uint8_t *at = memrchr(scan + 1, EOI, (size_t)(end - scan) - 1);

                if (!at)
                        return false;
                if (at[-1] == 0xff)
                        return true;
                end = at;
        }
        return false;
}

int jpeg_header_read(const uint8_t *bytes, size_t n_bytes, struct jpeg_header *ret_header) {
        struct jpeg_header header = { .end = bytes + n_bytes };
        struct reading reading = { .header = &header };

        if (n_bytes < 4 || bytes[0] != 0xff || bytes[1] != SOI)
                return BASELINE_HANDS_OVER;
        if (read_segments(&reading, bytes + 2, header.end, &header.scan) != 0)
                return BASELINE_HANDS_OVER;
        if (check_colours(&reading) != 0 || check_tables(&reading) != 0 || !header_has_end(header.scan, header.end))
                return BASELINE_HANDS_OVER;
        *ret_header = header;
        return 0;
}
