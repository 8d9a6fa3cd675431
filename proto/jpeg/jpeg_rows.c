#include "proto/jpeg/jpeg_rows.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum marker {
        SOF0 = 0xc0, /* baseline */
        SOF1 = 0xc1, /* extended sequential: the same with 8 bits a sample, with wider steps */
        DHT = 0xc4,
        RST0 = 0xd0,
        SOI = 0xd8,
        EOI = 0xd9,
        SOS = 0xda,
        DQT = 0xdb,
        DRI = 0xdd,
        APP0 = 0xe0,
        APP15 = 0xef,
        COM = 0xfe,
};

#define N_STEP_TABLES 4u
#define JFIF_BYTES    14u /* a shorter segment is not JFIF's, for libjpeg */
#define N_RESTARTS    8u
#define BLOCK         8u /* samples along a side */
#define ROW_BYTES_MIN 3u /* a byte of codes, a marker */
#define FRAME_HEAD    6u
#define SCAN_TAIL     3u

/* The values that were read so far. */
struct reading {
        struct dlp_jpeg *jpeg;
        const uint8_t *steps[N_STEP_TABLES]; /* in the file; NULL: not there */
        bool is_wide[N_STEP_TABLES];         /* 16 bits a step */
        bool has_codes[2][DLP_JPEG_CODES];   /* DC, AC */
        uint8_t ids[DLP_JPEG_COMPONENTS], sampling[DLP_JPEG_COMPONENTS], idx_steps[DLP_JPEG_COMPONENTS];
        bool has_frame, has_jfif;
        uint32_t restart_interval;
        uint32_t n_rows; /* that offsets are there for; 0: none */
};

/* The content of a marker segment. */
struct rows_segment {
        const uint8_t *bytes;
        size_t n;
};

static const uint8_t ZIGZAG[DLP_JPEG_COEFFICIENTS] = {
        0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
        41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
        30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

static uint32_t jpeg_rows_be16(const uint8_t *bytes) {
        return (uint32_t)bytes[0] << 8 | bytes[1];
}

static uint32_t jpeg_rows_le32(const uint8_t *bytes) {
        return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* ---- one marker segment each: what is wrong with it; NULL: nothing ----------------------------------------------- */

static const char *jpeg_rows_read_steps(struct reading *reading, struct rows_segment segment) {
        while (segment.n > 0) {
                unsigned idx = segment.bytes[0] & 15, precision = segment.bytes[0] >> 4;
                size_t n = 1 + DLP_JPEG_COEFFICIENTS * (precision + 1);

                if (idx >= N_STEP_TABLES || precision > 1 || segment.n < n)
                        return "steps of quantisation that are none";
                reading->steps[idx] = segment.bytes + 1;
                reading->is_wide[idx] = precision == 1;
                segment.bytes += n;
                segment.n -= n;
        }
        return NULL;
}

static const char *jpeg_rows_read_codes(struct reading *reading, struct rows_segment segment) {
        while (segment.n > 0) {
                unsigned kind = segment.bytes[0] >> 4, idx = segment.bytes[0] & 15;
                size_t n = DLP_JPEG_CODE_MAX;

                if (kind > 1 || idx >= DLP_JPEG_CODES || segment.n < 1 + DLP_JPEG_CODE_MAX)
                        return "more tables of codes than two of each kind";
                for (size_t i = 1; i <= DLP_JPEG_CODE_MAX; i++)
                        n += segment.bytes[i];
                if (segment.n < 1 + n ||
                    !dlp_jpeg_codes_read(segment.bytes + 1, n, kind == 1,
                                         kind == 1 ? &reading->jpeg->ac[idx] : &reading->jpeg->dc[idx]))
                        return "a table of codes that is none of a baseline file";
                reading->has_codes[kind][idx] = true;
                segment.bytes += 1 + n;
                segment.n -= 1 + n;
        }
        return NULL;
}

static const char *jpeg_rows_read_frame(struct reading *reading, struct rows_segment segment) {
        struct dlp_jpeg *jpeg = reading->jpeg;
        const uint8_t *at = segment.bytes;

        if (reading->has_frame || segment.n < FRAME_HEAD || at[0] != 8)
                return "two frames, or one of other than 8 bits";
        reading->has_frame = true;
        jpeg->height = jpeg_rows_be16(at + 1);
        jpeg->width = jpeg_rows_be16(at + 3);
        jpeg->n_components = at[5];
        if (jpeg->height == 0 || jpeg->height > DLP_JPEG_SIDE_MAX || jpeg->width == 0 ||
            jpeg->width > DLP_JPEG_SIDE_MAX)
                return "a side of no pixel, or of too many";
        if ((jpeg->n_components != 1 && jpeg->n_components != DLP_JPEG_COMPONENTS) ||
            segment.n != FRAME_HEAD + 3 * (size_t)jpeg->n_components)
                return "other than one or three components";
        for (uint32_t c = 0; c < jpeg->n_components; c++) {
                reading->ids[c] = at[FRAME_HEAD + 3 * c];
                reading->sampling[c] = at[FRAME_HEAD + 1 + 3 * c];
                reading->idx_steps[c] = at[FRAME_HEAD + 2 + 3 * c];
        }
        return NULL;
}

static const char *jpeg_rows_read_index(struct reading *reading, struct rows_segment segment) {
        const uint8_t *at = segment.bytes;

        if (segment.n < DLP_JPEG_ROWS_AT_OFFSETS || memcmp(at, DLP_JPEG_ROWS_MAGIC, sizeof(DLP_JPEG_ROWS_MAGIC)) != 0)
                return NULL; /* somebody else's */
        if (reading->n_rows > 0 || jpeg_rows_le32(at + DLP_JPEG_ROWS_AT_VERSION) != DLP_JPEG_ROWS_VERSION)
                return "offsets of rows twice, or of an unknown version";
        reading->n_rows = jpeg_rows_le32(at + DLP_JPEG_ROWS_AT_COUNT);
        if (reading->n_rows == 0 || reading->n_rows > DLP_JPEG_ROWS_MAX ||
            segment.n != DLP_JPEG_ROWS_BYTES(reading->n_rows))
                return "another number of rows than offsets";
        reading->jpeg->offsets = at + DLP_JPEG_ROWS_AT_OFFSETS;
        return NULL;
}

/* One scan with all components, in the frame's order and with all coefficients. */
static const char *jpeg_rows_read_scan(struct reading *reading, struct rows_segment segment) {
        struct dlp_jpeg *jpeg = reading->jpeg;
        uint32_t n = jpeg->n_components;
        const uint8_t *at = segment.bytes;

        if (!reading->has_frame || segment.n != 1 + 2 * (size_t)n + SCAN_TAIL || at[0] != n)
                return "a scan without a frame, or not of all components";
        for (uint32_t c = 0; c < n; c++) {
                uint32_t dc = at[2 + 2 * c] >> 4, ac = at[2 + 2 * c] & 15;

                if (at[1 + 2 * c] != reading->ids[c] || dc >= DLP_JPEG_CODES || ac >= DLP_JPEG_CODES ||
                    !reading->has_codes[0][dc] || !reading->has_codes[1][ac])
                        return "a scan whose codes are missing";
                jpeg->components[c].idx_dc = dc;
                jpeg->components[c].idx_ac = ac;
        }
        at += 1 + 2 * n;
        return at[0] == 0 && at[1] == DLP_JPEG_COEFFICIENTS - 1 && at[2] == 0 ? NULL : "a scan of some coefficients";
}

static const char *jpeg_rows_read_segment(struct reading *reading, unsigned marker, struct rows_segment segment) {
        switch (marker) {
        case DQT:
                return jpeg_rows_read_steps(reading, segment);
        case DHT:
                return jpeg_rows_read_codes(reading, segment);
        case SOF0:
        case SOF1:
                return jpeg_rows_read_frame(reading, segment);
        case DRI:
                if (segment.n != 2)
                        return "a restart interval of other than two bytes";
                reading->restart_interval = jpeg_rows_be16(segment.bytes);
                return NULL;
        case SOS:
                return jpeg_rows_read_scan(reading, segment);
        case APP0:
                reading->has_jfif |= segment.n >= JFIF_BYTES && memcmp(segment.bytes, "JFIF", 5) == 0;
                return NULL;
        case APP15:
                return jpeg_rows_read_index(reading, segment);
        default: /* progressive, arithmetic, lossless, a height that comes later, ... */
                return (marker > APP0 && marker < APP15) || marker == COM ? NULL : "not a baseline file";
        }
}

/* ---- the whole header -------------------------------------------------------------------------------------------- */

static const char *jpeg_rows_read_header(struct reading *reading, const uint8_t *bytes, size_t n_bytes) {
        size_t at = 2;
        unsigned marker;

        if (n_bytes < 4 || bytes[0] != 0xff || bytes[1] != SOI)
                return "not a JPEG";
        do {
                const char *wrong;
                size_t n;

                if (n_bytes - at < 4 || bytes[at] != 0xff)
                        return "a header that ends too early";
                marker = bytes[at + 1];
                n = jpeg_rows_be16(bytes + at + 2); /* counts itself */
                if (n < 2 || n > n_bytes - at - 2)
                        return "a segment that leads out of the file";
                wrong = jpeg_rows_read_segment(reading, marker, (struct rows_segment){ bytes + at + 4, n - 2 });
                if (wrong)
                        return wrong;
                at += 2 + n;
        } while (marker != SOS);
        reading->jpeg->scan_at = at;
        return NULL;
}

/* Three components are YCbCr because JFIF says so. */
static const char *check_sampling(struct reading *reading) {
        struct dlp_jpeg *jpeg = reading->jpeg;
        const uint8_t *sampling = reading->sampling;

        if (!reading->has_jfif)
                return "not of JFIF's colours";
        jpeg->h = sampling[0] >> 4;
        jpeg->v = sampling[0] & 15;
        if (jpeg->h < 1 || jpeg->h > 2 || jpeg->v < 1 || jpeg->v > 2)
                return "unusual sampling factors";
        for (uint32_t c = 1; c < jpeg->n_components; c++)
                if (sampling[c] != 0x11)
                        return "unusual sampling factors";
        if (jpeg->n_components == 1 && sampling[0] != 0x11)
                return "unusual sampling factors";
        return NULL;
}

static void set_sizes(struct dlp_jpeg *jpeg) {
        jpeg->n_mcus_x = (jpeg->width + BLOCK * jpeg->h - 1) / (BLOCK * jpeg->h);
        jpeg->n_rows = (jpeg->height + BLOCK * jpeg->v - 1) / (BLOCK * jpeg->v);
        for (uint32_t c = 0; c < jpeg->n_components; c++) {
                jpeg->components[c].n_blocks_x = jpeg->n_mcus_x * (c == 0 ? jpeg->h : 1);
                jpeg->components[c].n_blocks_y = jpeg->n_rows * (c == 0 ? jpeg->v : 1);
        }
}

static const char *jpeg_rows_set_steps(struct reading *reading) {
        for (uint32_t c = 0; c < reading->jpeg->n_components; c++) {
                uint32_t idx = reading->idx_steps[c];
                const uint8_t *from = idx < N_STEP_TABLES ? reading->steps[idx] : NULL;

                if (!from)
                        return "steps of quantisation are missing";
                for (uint32_t k = 0; k < DLP_JPEG_COEFFICIENTS; k++)
                        reading->jpeg->components[c].steps[ZIGZAG[k]] =
                                (uint16_t)(reading->is_wide[idx] ? jpeg_rows_be16(from + 2 * k) : from[k]);
        }
        return NULL;
}

/* Each row ends where its marker is. */
static const char *jpeg_rows_check_rows(const struct reading *reading, const uint8_t *bytes, size_t n_bytes) {
        const struct dlp_jpeg *jpeg = reading->jpeg;
        const uint8_t *scan = bytes + jpeg->scan_at;
        uint64_t n_scan = n_bytes - jpeg->scan_at;

        if (reading->n_rows != jpeg->n_rows || reading->restart_interval != jpeg->n_mcus_x)
                return reading->n_rows ? "offsets of other rows than the picture has" : "no offsets of rows";
        if (dlp_jpeg_offset(jpeg, 0) != 0)
                return "offsets that do not begin with the scan";
        for (uint32_t row = 0; row < jpeg->n_rows; row++) {
                uint32_t begin = dlp_jpeg_offset(jpeg, row), end = dlp_jpeg_offset(jpeg, row + 1);
                unsigned marker = row + 1 == jpeg->n_rows ? EOI : RST0 + row % N_RESTARTS;

                if (end > n_scan || end < begin || end - begin < ROW_BYTES_MIN || scan[end - 2] != 0xff ||
                    scan[end - 1] != marker)
                        return "offsets that are not those of the markers";
        }
        return NULL;
}

int dlp_jpeg_read(const uint8_t *bytes, size_t n_bytes, struct dlp_jpeg *ret_jpeg, struct why *why) {
        struct dlp_jpeg jpeg = { 0 };
        struct reading reading = { .jpeg = &jpeg };
        const char *wrong = jpeg_rows_read_header(&reading, bytes, n_bytes);

        if (!wrong)
                wrong = check_sampling(&reading);
        if (!wrong) {
                set_sizes(&jpeg);
                wrong = jpeg_rows_set_steps(&reading);
        }
        if (!wrong)
                wrong = jpeg_rows_check_rows(&reading, bytes, n_bytes);
        if (wrong)
                return why_set(why, -EBADMSG, "JPEG in rows: %s", wrong);
        *ret_jpeg = jpeg;
        return 0;
}
