#include "daemon/decode/exif.h"

#include <stdbool.h>
#include <string.h>

#include "daemon/base/little_endian.h"

#define TAG_ORIENTATION 0x0112u
#define ENTRY_BYTES     12u
#define UPRIGHT         1u

/* A part of the file. */
struct exif_part {
        const uint8_t *bytes;
        size_t n_bytes;
};

static uint32_t exif_be16(const uint8_t *bytes) {
        return (uint32_t)bytes[0] << 8 | bytes[1];
}

static uint32_t exif_be32(const uint8_t *bytes) {
        return exif_be16(bytes) << 16 | exif_be16(bytes + 2);
}

static bool exif_begins_with(const uint8_t *bytes, size_t n_bytes, const char *magic, size_t n_magic) {
        return n_bytes >= n_magic && memcmp(bytes, magic, n_magic) == 0;
}

/* ---- EXIF itself: a TIFF without pictures ------------------------------------------------------------------------ */

/* Types 1, 3 and 4 are whole numbers of 1, 2 and 4 bytes. */
static uint32_t exif_read_value(const uint8_t *entry, bool is_big) {
        const uint8_t *value = entry + 8;
        uint32_t type = is_big ? exif_be16(entry + 2) : le16(entry + 2);
        uint32_t count = is_big ? exif_be32(entry + 4) : le32(entry + 4);

        if (count != 1)
                return UPRIGHT;
        switch (type) {
        case 1:
                return value[0];
        case 3:
                return is_big ? exif_be16(value) : le16(value);
        case 4:
                return is_big ? exif_be32(value) : le32(value);
        default:
                return UPRIGHT;
        }
}

static uint32_t read_tiff(struct exif_part part) {
        bool is_big = exif_begins_with(part.bytes, part.n_bytes, "MM\0*", 4);
        uint32_t at, n;

        if (part.n_bytes < 8 || (!is_big && !exif_begins_with(part.bytes, part.n_bytes, "II*\0", 4)))
                return UPRIGHT;
        at = is_big ? exif_be32(part.bytes + 4) : le32(part.bytes + 4);
        if (at > part.n_bytes - 2)
                return UPRIGHT;
        n = is_big ? exif_be16(part.bytes + at) : le16(part.bytes + at);
        for (uint64_t entry = (uint64_t)at + 2; n > 0 && entry + ENTRY_BYTES <= part.n_bytes;
             n--, entry += ENTRY_BYTES) {
                const uint8_t *bytes = part.bytes + entry;
                uint32_t value;

                if ((is_big ? exif_be16(bytes) : le16(bytes)) != TAG_ORIENTATION)
                        continue;
                value = exif_read_value(bytes, is_big);
                return value >= 1 && value <= 8 ? value : UPRIGHT;
        }
        return UPRIGHT;
}

/* ---- where it lies ----------------------------------------------------------------------------------------------- */

/* JPEG: the first APP1 that begins so. Segments end where the entropy-coded data begin. */
static struct exif_part find_in_jpeg(const uint8_t *bytes, size_t n_bytes) {
        size_t at = 2;

        while (at + 4 <= n_bytes && bytes[at] == 0xff) {
                uint32_t marker = bytes[at + 1], n = exif_be16(bytes + at + 2);

                if (marker == 0xff) { /* fill */
                        at++;
                        continue;
                }
                if (marker == 0xda || marker == 0xd9 || n < 2 || n > n_bytes - at - 2)
                        break;
                if (marker == 0xe1 && exif_begins_with(bytes + at + 4, n - 2, "Exif\0", 6))
                        return (struct exif_part){ bytes + at + 10, n - 8 };
                at += 2 + n;
        }
        return (struct exif_part){ NULL, 0 };
}

/* PNG: a chunk eXIf, before or after the pixels. */
static struct exif_part find_in_png(const uint8_t *bytes, size_t n_bytes) {
        size_t at = 8;

        while (n_bytes - at >= 12) {
                size_t n = exif_be32(bytes + at);

                if (n > n_bytes - at - 12)
                        break;
                if (memcmp(bytes + at + 4, "eXIf", 4) == 0)
                        return (struct exif_part){ bytes + at + 8, n };
                at += n + 12;
        }
        return (struct exif_part){ NULL, 0 };
}

/* WebP: a chunk EXIF, of which some writers copied JPEG's first six bytes. */
static struct exif_part find_in_webp(const uint8_t *bytes, size_t n_bytes) {
        size_t at = 12;

        while (n_bytes - at >= 8) {
                size_t n = le32(bytes + at + 4), padded = n + n % 2;

                if (n > n_bytes - at - 8)
                        break;
                if (memcmp(bytes + at, "EXIF", 4) == 0) {
                        size_t n_head = exif_begins_with(bytes + at + 8, n, "Exif\0", 6) ? 6 : 0;

                        return (struct exif_part){ bytes + at + 8 + n_head, n - n_head };
                }
                if (padded > n_bytes - at - 8)
                        break;
                at += 8 + padded;
        }
        return (struct exif_part){ NULL, 0 };
}

uint32_t exif_orientation(const uint8_t *bytes, size_t n_bytes) {
        struct exif_part part = { NULL, 0 };

        if (exif_begins_with(bytes, n_bytes, "\xff\xd8", 2))
                part = find_in_jpeg(bytes, n_bytes);
        else if (exif_begins_with(bytes, n_bytes, "\x89PNG\r\n\x1a\n", 8))
                part = find_in_png(bytes, n_bytes);
        else if (n_bytes >= 12 && exif_begins_with(bytes, n_bytes, "RIFF", 4) && memcmp(bytes + 8, "WEBP", 4) == 0)
                part = find_in_webp(bytes, n_bytes);
        return part.bytes ? read_tiff(part) : UPRIGHT;
}
