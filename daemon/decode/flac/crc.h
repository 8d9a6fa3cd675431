/* decode/flac/crc.h: the checksums of FLAC: of a block's header and of the whole block. Private to this folder. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Polynomial x^8 + x^2 + x + 1, from 0. */
uint8_t flac_crc8(const uint8_t *bytes, size_t n_bytes);

/* Polynomial x^16 + x^15 + x^2 + 1, from 0. The first call makes tables; any thread may be the first. */
uint16_t flac_crc16(const uint8_t *bytes, size_t n_bytes);
