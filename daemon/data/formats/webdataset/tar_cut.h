/* data/formats/webdataset/tar_cut.h: where the last sample ends of an archive that still grows (format.h, cut). A sample is whole
 * once the next one has begun. */
#pragma once

#include <stdint.h>

#define TAR_CUT_ZEROS 1024u /* the end mark that an archive needs there */

uint64_t tar_cut(int fd, uint64_t n_bytes, uint64_t whole);
