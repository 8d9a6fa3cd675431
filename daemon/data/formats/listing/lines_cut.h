/* data/formats/listing/lines_cut.h: where the last line ends of a file that still grows (format.h, cut). */
#pragma once

#include <stdint.h>

uint64_t lines_cut(int fd, uint64_t n_bytes, uint64_t whole);
