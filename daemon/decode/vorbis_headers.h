/* decode/vorbis_headers.h: are the three headers of an Ogg Vorbis file whole?
 *
 * libsndfile (1.2.0) leaks what libvorbis allocated if one of them is missing or damaged, so they are read here first,
 * by libogg and libvorbis themselves. Headers that ask for more memory than an encoder
 * ever needs are refused (vorbis_codebooks.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

/* 0: they are, or the first stream of the file is not Vorbis. -EBADMSG, -ENOMEM. Does not block. */
int vorbis_headers_check(const uint8_t *bytes, size_t n_bytes, struct why *why);
