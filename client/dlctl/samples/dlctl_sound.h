/* dlctl/samples/dlctl_sound.h: what a sound file is, in a few words. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/dlctl/dlctl_text.h"

/* Prints "sound, FLAC, 16000 Hz, 2 channels, 1.250 s" if these bytes are a sound file. Returns false if they are not,
 * or cannot be read, and prints nothing then. */
bool sound_print(struct text *text, const uint8_t *bytes, uint64_t n_bytes);
