/* proto/base/sound_file.h: which files of sound are handled: WAV, FLAC, Ogg (Vorbis, Opus), MP3.
 *
 * libsndfile knows forty formats, and asks some of them for nothing but a good size. So only these are given to it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/symbol.h"

/* By its first bytes. */
bool sound_file_is_known(const uint8_t *bytes, size_t n_bytes) DLP_SYMBOL(sound_file_is_known);
