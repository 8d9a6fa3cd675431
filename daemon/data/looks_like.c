#include "daemon/data/looks_like.h"

#include <string.h>
#include <strings.h>

#include "daemon/base/little_endian.h"
#include "proto/base/cleanup.h"
#include "proto/base/sound_file.h"
#include "proto/base/utf8.h"

static const char *looks_like_ending_of(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot ? dot + 1 : name;
}

enum field_coding coding_of_file(const char *name) {
        return strcasecmp(looks_like_ending_of(name), "npy") == 0 ? CODING_NPY : CODING_PLAIN;
}

enum field_kind kind_of_file(const char *name) {
        static const char *const PICTURES[] = { "jpg",  "jpeg", "png", "ppm",  "pgm", "pbm", "pnm",
                                                "webp", "bmp",  "tif", "tiff", "gif", "avif" };
        const char *last = looks_like_ending_of(name);

        for (size_t i = 0; i < ARRAY_SIZE(PICTURES); i++)
                if (strcasecmp(last, PICTURES[i]) == 0)
                        return FIELD_PICTURE;
        return sound_file_is_ending(last) ? FIELD_SOUND : FIELD_BYTES;
}

static bool looks_like_begins_with(const uint8_t *bytes, size_t n_bytes, const char *magic, size_t n_magic) {
        return n_bytes >= n_magic && memcmp(bytes, magic, n_magic) == 0;
}

static bool looks_like_pnm(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 8 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
               (bytes[2] == '\n' || bytes[2] == ' ') && ((bytes[3] >= '1' && bytes[3] <= '9') || bytes[3] == '#');
}

static bool looks_like_bmp(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 18 && bytes[0] == 'B' && bytes[1] == 'M' && le32(bytes + 6) == 0 && le16(bytes + 16) == 0;
}

bool looks_like_picture(const uint8_t *bytes, size_t n_bytes) {
        static const struct {
                const char *bytes;
                size_t n;
        } MAGICS[] = {
                { "\xff\xd8\xff", 3 },  { "\x89PNG\r\n\x1a\n", 8 },
                { "GIF87a", 6 },        { "GIF89a", 6 },
                { "II*\0", 4 },         { "MM\0*", 4 },
                { "II\x2b\0\x8\0", 6 }, { "MM\0\x2b\0\x8", 6 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(MAGICS); i++)
                if (looks_like_begins_with(bytes, n_bytes, MAGICS[i].bytes, MAGICS[i].n))
                        return true;
        if (looks_like_begins_with(bytes, n_bytes, "RIFF", 4))
                return n_bytes >= 16 && memcmp(bytes + 8, "WEBPVP8", 7) == 0;
        return looks_like_bmp(bytes, n_bytes) || looks_like_pnm(bytes, n_bytes);
}

/* ---- pictures of more than 8 bits ------------------------------------------------------------------------------ */

static uint32_t tiff_number(const uint8_t *bytes, bool is_big, size_t n) {
        uint32_t number = 0;

        for (size_t i = 0; i < n; i++)
                number |= (uint32_t)bytes[i] << 8 * (is_big ? n - 1 - i : i);
        return number;
}

uint32_t tiff_tags_at(const uint8_t *bytes, size_t n_bytes) {
        if (n_bytes < 8 || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0))
                return 0;
        return tiff_number(bytes + 4, bytes[0] == 'M', 4);
}

/* Tags 258 (bits of a sample) and 277 (samples of a pixel), which are short numbers in the entry itself. */
unsigned tiff_deep_bits(const uint8_t *first_bytes, const uint8_t *tags, size_t n_bytes) {
        bool is_big = first_bytes[0] == 'M';
        uint32_t n_entries = n_bytes >= 2 ? tiff_number(tags, is_big, 2) : 0, bits = 1, samples = 1;

        for (size_t at = 2; n_entries > 0 && at + 12 <= n_bytes; at += 12, n_entries--) {
                uint32_t tag = tiff_number(tags + at, is_big, 2), count = tiff_number(tags + at + 4, is_big, 4);

                if (tag == 258 && count == 1)
                        bits = tiff_number(tags + at + 8, is_big, 2);
                if (tag == 277)
                        samples = tiff_number(tags + at + 8, is_big, 2);
        }
        return bits > 8 && samples == 1 ? bits : 0;
}

/* "P5", width, height, greatest value, with blanks between them. */
static bool is_deep_pgm(const uint8_t *bytes, size_t n_bytes) {
        unsigned numbers[3] = { 0 };
        size_t at = 2;

        for (size_t i = 0; i < 3; i++) {
                while (at < n_bytes &&
                       (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\t' || bytes[at] == '\r'))
                        at++;
                while (at < n_bytes && bytes[at] >= '0' && bytes[at] <= '9' && numbers[i] < 1000000)
                        numbers[i] = numbers[i] * 10 + bytes[at++] - '0';
        }
        return numbers[2] > 255;
}

/* Width, height and the length of the name of Pillow's mode, and the name. */
static bool is_deep_pil(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 16 && le32(bytes + 8) == 4 && memcmp(bytes + 12, "I;16", 4) == 0;
}

unsigned deep_bits(const uint8_t *bytes, size_t n_bytes) {
        uint32_t tags_at = tiff_tags_at(bytes, n_bytes);

        if (n_bytes >= 26 && memcmp(bytes, "\x89PNG", 4) == 0)
                return bytes[24] == 16 && bytes[25] == 0 ? 16
                                                         : 0; /* bits; the kind: grey. With alpha 8 bits are kept */
        if (tags_at > 0)
                return tags_at < n_bytes ? tiff_deep_bits(bytes, bytes + tags_at, n_bytes - tags_at) : 0;
        if (is_deep_pil(bytes, n_bytes))
                return 16;
        return n_bytes >= 8 && memcmp(bytes, "P5", 2) == 0 && is_deep_pgm(bytes, n_bytes) ? 16 : 0;
}

/* Two bytes tell a frame of MPEG audio, which other files begin with as well: in a real one neither the version nor the
 * bit rate nor the sample rate is a reserved one. */
bool looks_like_sound(const uint8_t *bytes, size_t n_bytes) {
        return sound_file_of(bytes, n_bytes) &&
               (bytes[0] != 0xff ||
                ((bytes[1] & 0x18) != 0x08 && (bytes[2] & 0xf0) != 0xf0 && (bytes[2] & 0x0c) != 0x0c));
}

bool looks_like_text(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes == 0 || (!memchr(bytes, '\0', n_bytes) && utf8_valid(bytes, n_bytes) == n_bytes);
}
