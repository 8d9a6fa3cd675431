#include "daemon/data/formats/tfrecord/crc32c.h"

/* The instruction takes eight bytes and gives its result three cycles later, but can begin anew each cycle. So three
 * lanes that lie one after the other are computed at the same time, and then combined: appending a lane of zeroes to
 * data is a linear function of their checksum, and a table has it for each byte of a checksum. */

#include <pthread.h>
#include <string.h>

#include "daemon/base/little_endian.h"

#define POLYNOMIAL 0x82f63b78u /* bits reversed */
#define LANE_BYTES 1024u

static struct {
        uint32_t slices[8][256]; /* [k][b]: the byte b, followed by k zeroes */
        uint32_t lane[4][256];   /* [k][b]: the byte k of a checksum is b, and a lane of zeroes follows */
} tables;

static uint32_t crc32c_take_byte(uint32_t crc, uint8_t byte) {
        return crc >> 8 ^ tables.slices[0][(crc ^ byte) & 0xff];
}

static uint32_t append_zeroes(uint32_t crc, size_t n) {
        for (size_t i = 0; i < n; i++)
                crc = crc32c_take_byte(crc, 0);
        return crc;
}

static void crc32c_make_tables(void) {
        for (uint32_t b = 0; b < 256; b++) {
                uint32_t crc = b;

                for (unsigned bit = 0; bit < 8; bit++)
                        crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
                tables.slices[0][b] = crc;
        }
        for (unsigned k = 1; k < 8; k++)
                for (uint32_t b = 0; b < 256; b++)
                        tables.slices[k][b] = append_zeroes(tables.slices[k - 1][b], 1);
        for (unsigned k = 0; k < 4; k++)
                for (unsigned bit = 0; bit < 8; bit++) {
                        uint32_t crc = append_zeroes(1u << (8 * k + bit), LANE_BYTES);

                        for (uint32_t b = 0; b < 256; b++)
                                if (b & 1u << bit)
                                        tables.lane[k][b] ^= crc;
                }
}

static void have_tables(void) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, crc32c_make_tables);
}

uint32_t crc32c_by_table(const void *bytes, size_t n_bytes) {
        const uint8_t *at = bytes;
        uint32_t crc = UINT32_MAX;

        have_tables();
        for (; n_bytes >= 8; at += 8, n_bytes -= 8) {
                uint32_t low = crc ^ le32(at), high = le32(at + 4);

                crc = tables.slices[7][low & 0xff] ^ tables.slices[6][low >> 8 & 0xff] ^
                      tables.slices[5][low >> 16 & 0xff] ^ tables.slices[4][low >> 24] ^ tables.slices[3][high & 0xff] ^
                      tables.slices[2][high >> 8 & 0xff] ^ tables.slices[1][high >> 16 & 0xff] ^
                      tables.slices[0][high >> 24];
        }
        for (; n_bytes > 0; at++, n_bytes--)
                crc = crc32c_take_byte(crc, *at);
        return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

#define SSE42 __attribute__((target("sse4.2")))

static uint32_t append_lane(uint32_t crc) {
        return tables.lane[0][crc & 0xff] ^ tables.lane[1][crc >> 8 & 0xff] ^ tables.lane[2][crc >> 16 & 0xff] ^
               tables.lane[3][crc >> 24];
}

SSE42 static uint64_t crc32c_take_word(uint64_t crc, const uint8_t *at) {
        uint64_t word;

        memcpy(&word, at, sizeof(word));
        return _mm_crc32_u64(crc, word);
}

SSE42 static uint32_t crc32c_sse42(const uint8_t *at, size_t n_bytes) {
        uint64_t crc = UINT32_MAX;

        for (; n_bytes >= 3 * LANE_BYTES; at += 3 * LANE_BYTES, n_bytes -= 3 * LANE_BYTES) {
                uint64_t second = 0, third = 0;

                for (size_t i = 0; i < LANE_BYTES; i += 8) {
                        crc = crc32c_take_word(crc, at + i);
                        second = crc32c_take_word(second, at + LANE_BYTES + i);
                        third = crc32c_take_word(third, at + 2 * LANE_BYTES + i);
                }
                crc = append_lane((uint32_t)(append_lane((uint32_t)crc) ^ second)) ^ third;
        }
        for (; n_bytes >= 8; at += 8, n_bytes -= 8)
                crc = crc32c_take_word(crc, at);
        for (; n_bytes > 0; at++, n_bytes--)
                crc = _mm_crc32_u8((uint32_t)crc, *at);
        return ~(uint32_t)crc;
}

uint32_t crc32c(const void *bytes, size_t n_bytes) {
        if (!__builtin_cpu_supports("sse4.2"))
                return crc32c_by_table(bytes, n_bytes);
        have_tables();
        return crc32c_sse42(bytes, n_bytes);
}

#else

uint32_t crc32c(const void *bytes, size_t n_bytes) {
        return crc32c_by_table(bytes, n_bytes);
}
#endif
