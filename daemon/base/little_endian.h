/* base/little_endian.h: numbers in the bytes of files, lowest byte first, wherever they lie. */
#pragma once

#include <stdint.h>

static inline uint16_t le16(const uint8_t *bytes) {
        return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t le24(const uint8_t *bytes) {
        return le16(bytes) | (uint32_t)bytes[2] << 16;
}

static inline uint32_t le32(const uint8_t *bytes) {
        return le24(bytes) | (uint32_t)bytes[3] << 24;
}

static inline uint64_t le64(const uint8_t *bytes) {
        return le32(bytes) | (uint64_t)le32(bytes + 4) << 32;
}
