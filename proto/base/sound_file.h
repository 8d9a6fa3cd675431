/* proto/base/sound_file.h: which files of sound are handled: a row each, for the daemon and for dlctl.
 *
 * libsndfile knows forty formats, and asks some of them for nothing but a good size. So only these are given to it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/symbol.h"

struct sound_file {
        const char *name;       /* "WAV" */
        const char *endings[3]; /* of its files' names, with the dot; the usual one comes first */
        bool (*is_it)(const uint8_t *bytes, size_t n_bytes);
};

/* By its first bytes, 12 at most; NULL: of another kind. */
const struct sound_file *sound_file_of(const uint8_t *bytes, size_t n_bytes) DLP_SYMBOL(sound_file_of);

/* Do names of sound files end so? Without the dot, in upper or lower case. */
bool sound_file_is_ending(const char *ending) DLP_SYMBOL(sound_file_is_ending);
