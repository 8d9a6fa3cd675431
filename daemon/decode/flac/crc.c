#include "daemon/decode/flac/crc.h"

#include <pthread.h>

#define N_AT_ONCE 8

/* [k][byte]: what a byte adds to the checksum if k more bytes follow it. Eight look-ups that do not depend on each
 * other take eight bytes in the time of about two that do. */
static uint16_t tables[N_AT_ONCE][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void crc_make_tables(void) {
        for (unsigned byte = 0; byte < 256; byte++) {
                unsigned crc = byte << 8;

                for (int bit = 0; bit < 8; bit++)
                        crc = crc << 1 ^ (crc & 0x8000 ? 0x8005 : 0);
                tables[0][byte] = (uint16_t)crc;
        }
        for (int k = 1; k < N_AT_ONCE; k++)
                for (unsigned byte = 0; byte < 256; byte++)
                        tables[k][byte] = (uint16_t)(tables[k - 1][byte] << 8 ^ tables[0][tables[k - 1][byte] >> 8]);
}

uint16_t flac_crc16(const uint8_t *bytes, size_t n_bytes) {
        unsigned crc = 0;

        pthread_once(&tables_once, crc_make_tables);
        for (; n_bytes >= N_AT_ONCE; bytes += N_AT_ONCE, n_bytes -= N_AT_ONCE)
                crc = tables[7][bytes[0] ^ crc >> 8] ^ tables[6][bytes[1] ^ (crc & 0xff)] ^ tables[5][bytes[2]] ^
                      tables[4][bytes[3]] ^ tables[3][bytes[4]] ^ tables[2][bytes[5]] ^ tables[1][bytes[6]] ^
                      tables[0][bytes[7]];
        for (; n_bytes > 0; bytes++, n_bytes--)
                crc = (crc << 8 & 0xffff) ^ tables[0][*bytes ^ crc >> 8];
        return (uint16_t)crc;
}

uint8_t flac_crc8(const uint8_t *bytes, size_t n_bytes) {
        unsigned crc = 0;

        for (size_t i = 0; i < n_bytes; i++) {
                crc ^= bytes[i];
                for (int bit = 0; bit < 8; bit++)
                        crc = (crc << 1 ^ (crc & 0x80 ? 0x07 : 0)) & 0xff;
        }
        return (uint8_t)crc;
}
