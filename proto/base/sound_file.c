#include "proto/base/sound_file.h"

#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"

static bool sound_file_is_wav(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WAVE", 4) == 0;
}

static bool sound_file_is_flac(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 4 && memcmp(bytes, "fLaC", 4) == 0;
}

static bool sound_file_is_ogg(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 4 && memcmp(bytes, "OggS", 4) == 0;
}

/* MPEG audio, layer III: after a tag, or a frame. */
static bool sound_file_is_mp3(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 4 && (memcmp(bytes, "ID3", 3) == 0 || (bytes[0] == 0xff && (bytes[1] & 0xe6) == 0xe2));
}

static const struct sound_file SOUND_FILES[] = {
        { "WAV", { ".wav" }, sound_file_is_wav },
        { "FLAC", { ".flac" }, sound_file_is_flac },
        { "Ogg", { ".ogg", ".oga", ".opus" }, sound_file_is_ogg },
        { "MP3", { ".mp3" }, sound_file_is_mp3 },
};

const struct sound_file *sound_file_of(const uint8_t *bytes, size_t n_bytes) {
        for (size_t i = 0; i < ARRAY_SIZE(SOUND_FILES); i++)
                if (SOUND_FILES[i].is_it(bytes, n_bytes))
                        return &SOUND_FILES[i];
        return NULL;
}

bool sound_file_is_ending(const char *ending) {
        for (size_t i = 0; i < ARRAY_SIZE(SOUND_FILES); i++)
                for (size_t k = 0; k < ARRAY_SIZE(SOUND_FILES[i].endings) && SOUND_FILES[i].endings[k]; k++)
                        if (strcasecmp(SOUND_FILES[i].endings[k] + 1, ending) == 0)
                                return true;
        return false;
}
