/* decode/sound.h: the bytes of a sound file -> float32 samples, as python-soundfile's read(dtype="float32") gives them.
 *
 * WAV, FLAC, Ogg (Vorbis and Opus) and MP3, told by their first bytes; through libsndfile, except the usual FLAC
 * files, which decode/flac/ reads. A whole number of b bits becomes itself / 2^(b - 1); floats stay as they are. Files
 * that name other files are not read.
 *
 * What a header claims is not trusted: it says how much is asked for, and sound_read() fails if that is not there. A
 * WAV or FLAC that was cut is damaged; an Ogg or MP3 that was cut between two pages or frames is a shorter sound. WAV
 * and FLAC are read from the wanted frame on; what lies outside the part is not looked at. Ogg and MP3 do not seek to
 * the exact frame, so they are decoded from the beginning and the first part is dropped.
 *
 * A sound belongs to one thread at a time. All functions compute for a time that depends on the length of the sound
 * and never block. Errors: -EBADMSG damaged or cut short, -ENOTSUP not handled, -ENOMEM, -ECANCELED. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/wanting.h"
#include "proto/base/why.h"

#define SOUND_CHANNELS_MAX 8u
#define SOUND_RATE_MAX     1000000u
#define SOUND_BYTES        (2u << 20) /* what libsndfile and its codecs hold for one sound, about: charged, not enforced */

struct sound;

struct sound_info {
        uint64_t n_frames;   /* that the file claims; below 2^32 */
        uint32_t rate;       /* frames a second; 1 to SOUND_RATE_MAX */
        uint32_t n_channels; /* 1 to SOUND_CHANNELS_MAX */
};

/* Reads the header. `bytes` must stay valid until sound_close(). */
int sound_open(const uint8_t *bytes, size_t n_bytes, struct sound **ret_sound, struct sound_info *ret_info,
               struct why *why);

/* From now on reading asks now and then whether the sound is still wanted. NULL: it does not ask. */
void sound_set_wanting(struct sound *sound, struct wanting *wanting);

/* Writes `n_frames` frames from frame `first` on to `out`: `n_out_channels` floats each, which is 1 (the mean of all
 * channels) or the number of channels (asserted). The part lies within info.n_frames (asserted). Once a sound. */
int sound_read(struct sound *sound, uint64_t first, uint64_t n_frames, uint32_t n_out_channels, float *out,
               struct why *why);

/* Takes NULL. */
void sound_close(struct sound *sound);
