#include "daemon/decode/sound.h"

#include <assert.h>
#include <errno.h>
#include <sndfile.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/decode/flac/flac.h"
#include "daemon/decode/vorbis_headers.h"
#include "proto/base/sound_file.h"

#define WAV_UNKNOWN_MIN 0x7ffff000u
#define BLOCK_SAMPLES   4096u /* of all channels together, decoded at once */
#define BLOCKS_A_LOOK   32u   /* between two looks whether the sound is still wanted */

struct sound {
        struct flac *flac; /* our own decoder; NULL: libsndfile's file */
        SNDFILE *file;
        struct sound_info info;
        bool seeks; /* to the exact frame */
        const uint8_t *bytes;
        sf_count_t n_bytes, at;
        struct wanting *wanting; /* NULL: it is wanted */
        size_t n_done;           /* blocks since the last look */
};

/* ---- the bytes as a file ---------------------------------------------------------------------------------------- */

static sf_count_t sound_get_length(void *user) {
        return ((const struct sound *)user)->n_bytes;
}

static sf_count_t sound_seek_to(sf_count_t offset, int whence, void *user) {
        struct sound *sound = user;
        sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? sound->at : sound->n_bytes;

        if (offset < -from || offset > sound->n_bytes - from)
                return -1;
        sound->at = from + offset;
        return sound->at;
}

static sf_count_t sound_read_bytes(void *into, sf_count_t n, void *user) {
        struct sound *sound = user;
        sf_count_t n_left = sound->n_bytes - sound->at;

        if (n > n_left)
                n = n_left;
        if (n <= 0)
                return 0;
        memcpy(into, sound->bytes + sound->at, (size_t)n);
        sound->at += n;
        return n;
}

static sf_count_t write_nothing(const void *from, sf_count_t n, void *user) {
        (void)from;
        (void)n;
        (void)user;
        return 0;
}

static sf_count_t sound_get_place(void *user) {
        return ((const struct sound *)user)->at;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* libsndfile delivers what is there of a WAV that was cut. 0 and the largest numbers stand for a length that the writer
 * did not know. */
static int check_wav_is_whole(const uint8_t *bytes, size_t n_bytes, struct why *why) {
        size_t at = 12;

        while (n_bytes - at >= 8) {
                uint32_t n = le32(bytes + at + 4);
                bool is_data = memcmp(bytes + at, "data", 4) == 0;

                at += 8;
                if (is_data && n > n_bytes - at && n < WAV_UNKNOWN_MIN)
                        return why_set(why, -EBADMSG, "is cut short: %zu of the %u bytes of samples are there",
                                       n_bytes - at, n);
                if (is_data || n > n_bytes - at)
                        break;
                at += n + (n & 1);
                if (at > n_bytes)
                        break;
        }
        return 0;
}

static int check_container(const uint8_t *bytes, size_t n_bytes, struct why *why) {
        if (memcmp(bytes, "OggS", 4) == 0)
                return vorbis_headers_check(bytes, n_bytes, why);
        return memcmp(bytes, "RIFF", 4) == 0 ? check_wav_is_whole(bytes, n_bytes, why) : 0;
}

static int check_info(const SF_INFO *info, struct why *why) {
        if (info->channels < 1 || (uint32_t)info->channels > SOUND_CHANNELS_MAX)
                return why_set(why, -ENOTSUP, "has %d channels; 1 to %u are handled", info->channels,
                               SOUND_CHANNELS_MAX);
        if (info->samplerate < 1 || (uint32_t)info->samplerate > SOUND_RATE_MAX)
                return why_set(why, -ENOTSUP, "has %d frames a second; 1 to %u are handled", info->samplerate,
                               SOUND_RATE_MAX);
        if (info->frames < 0 || info->frames > UINT32_MAX)
                return why_set(why, -ENOTSUP, "its header does not say how long it is, or claims more than %u frames",
                               UINT32_MAX);
        return 0;
}

static int open_with_libsndfile(struct sound *sound, struct why *why) {
        static const SF_VIRTUAL_IO STATIC_IO = { sound_get_length, sound_seek_to, sound_read_bytes, write_nothing,
                                                 sound_get_place };
        SF_VIRTUAL_IO io = STATIC_IO;
        SF_INFO info = { 0 };
        int format, r;

        sound->file = sf_open_virtual(&io, SFM_READ, &info, sound);
        if (!sound->file)
                return why_set(why, -EBADMSG, "is damaged, or a variant that libsndfile does not read");
        r = check_info(&info, why);
        if (r < 0)
                return r;
        format = info.format & SF_FORMAT_TYPEMASK;
        sound->seeks = format == SF_FORMAT_WAV || format == SF_FORMAT_WAVEX || format == SF_FORMAT_FLAC;
        sound->info = (struct sound_info){ (uint64_t)info.frames, (uint32_t)info.samplerate, (uint32_t)info.channels };
        return 0;
}

int sound_open(const uint8_t *bytes, size_t n_bytes, struct sound **ret_sound, struct sound_info *ret_info,
               struct why *why) {
        struct sound *sound;
        int r;

        if (n_bytes < 12 || !sound_file_of(bytes, n_bytes))
                return why_set(why, -ENOTSUP,
                               "is not a sound file that is handled: WAV, FLAC, Ogg (Vorbis, Opus), MP3");
        r = check_container(bytes, n_bytes, why);
        if (r < 0)
                return r;
        sound = calloc(1, sizeof(*sound));
        if (!sound)
                return why_errno(why, -ENOMEM, "a sound");
        sound->bytes = bytes;
        sound->n_bytes = (sf_count_t)n_bytes;
        r = flac_open(bytes, n_bytes, &sound->flac, &sound->info);
        if (r == -ENOTSUP)
                r = open_with_libsndfile(sound, why);
        else if (r < 0)
                why_errno(why, r, "a sound");
        if (r < 0) {
                sound_close(sound);
                return r;
        }
        *ret_info = sound->info;
        *ret_sound = sound;
        return 0;
}

void sound_set_wanting(struct sound *sound, struct wanting *wanting) {
        sound->wanting = wanting;
}

void sound_close(struct sound *sound) {
        if (!sound)
                return;
        flac_close(sound->flac);
        if (sound->file)
                sf_close(sound->file);
        free(sound);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The next frames, at most a block. -EBADMSG if they are not all there. */
static int sound_read_block(struct sound *sound, float *block, uint64_t n_frames, uint64_t frame, struct why *why) {
        sf_count_t n;

        if (!wanting_goes_on(sound->wanting, &sound->n_done, 1, BLOCKS_A_LOOK))
                return why_set(why, -ECANCELED, "nobody wants the sample any more");
        if (sound->flac) /* why it is damaged is libsndfile's to say */
                return flac_read(sound->flac, block, n_frames);
        n = sf_readf_float(sound->file, block, (sf_count_t)n_frames);
        if (n == (sf_count_t)n_frames && sf_error(sound->file) == SF_ERR_NO_ERROR)
                return 0;
        return why_set(why, -EBADMSG, "is damaged or cut short near frame %llu of the %llu that its header claims",
                       (unsigned long long)(frame + (n > 0 ? (uint64_t)n : 0)),
                       (unsigned long long)sound->info.n_frames);
}

static int sound_skip_to(struct sound *sound, uint64_t first, uint64_t end, struct why *why) {
        float block[BLOCK_SAMPLES];
        uint64_t n_block = BLOCK_SAMPLES / sound->info.n_channels;
        int r = 0;

        if (sound->flac)
                return flac_seek(sound->flac, first, end);
        if (first == 0)
                return 0;
        if (sound->seeks) {
                if (sf_seek(sound->file, (sf_count_t)first, SEEK_SET) == (sf_count_t)first)
                        return 0;
                return why_set(why, -EBADMSG, "is damaged or cut short: frame %llu is not found",
                               (unsigned long long)first);
        }
        for (uint64_t at = 0; at < first && r == 0; at += n_block)
                r = sound_read_block(sound, block, first - at < n_block ? first - at : n_block, at, why);
        return r;
}

static void sound_mix(const float *block, uint64_t n_frames, uint32_t n_channels, float *out) {
        for (uint64_t i = 0; i < n_frames; i++) {
                float sum = block[i * n_channels];

                for (uint32_t k = 1; k < n_channels; k++)
                        sum += block[i * n_channels + k];
                out[i] = sum / (float)n_channels;
        }
}

static int sound_read_part(struct sound *sound, uint64_t first, uint64_t n_frames, uint32_t n_out_channels, float *out,
                           struct why *why) {
        uint32_t n_channels = sound->info.n_channels;
        uint64_t n_block = BLOCK_SAMPLES / n_channels;
        float block[BLOCK_SAMPLES];
        int r = sound_skip_to(sound, first, first + n_frames, why);

        for (uint64_t at = 0; at < n_frames && r == 0; at += n_block) {
                uint64_t n = n_frames - at < n_block ? n_frames - at : n_block;

                if (n_out_channels == n_channels) {
                        r = sound_read_block(sound, out + at * n_channels, n, first + at, why);
                        continue;
                }
                r = sound_read_block(sound, block, n, first + at, why);
                if (r == 0)
                        sound_mix(block, n, n_channels, out + at);
        }
        return r;
}

int sound_read(struct sound *sound, uint64_t first, uint64_t n_frames, uint32_t n_out_channels, float *out,
               struct why *why) {
        assert(n_out_channels == 1 || n_out_channels == sound->info.n_channels);
        assert(first <= sound->info.n_frames && n_frames <= sound->info.n_frames - first);
        if (n_frames == 0)
                return 0;
        if (sound->flac) {
                struct sound_info info = sound->info;
                int r;

                r = sound_read_part(sound, first, n_frames, n_out_channels, out, why);
                if (r == 0 || r == -ECANCELED)
                        return r;
                flac_close(sound->flac); /* libsndfile says what is wrong with it */
                sound->flac = NULL;
                r = open_with_libsndfile(sound, why);
                if (r == 0 && memcmp(&info, &sound->info, sizeof(info)) != 0)
                        r = why_set(why, -EBADMSG, "is damaged: its header can be read in two ways");
                if (r < 0)
                        return r;
        }
        return sound_read_part(sound, first, n_frames, n_out_channels, out, why);
}
