/* data/formats/tfrecord/crc32c.h: CRC-32C (Castagnoli), the checksum in TFRecord files. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The checksum of n_bytes bytes, as fast as this machine can compute it. Any thread. */
uint32_t crc32c(const void *bytes, size_t n_bytes);

/* The same for machines without an instruction for it: about 2 GB/s. */
uint32_t crc32c_by_table(const void *bytes, size_t n_bytes);

/* TFRecord stores checksums in this form. */
static inline uint32_t crc32c_masked(uint32_t crc) {
        return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
