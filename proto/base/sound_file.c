#include "proto/base/sound_file.h"

#include <string.h>

bool sound_file_is_known(const uint8_t *bytes, size_t n_bytes) {
        if (n_bytes < 12)
                return false;
        return (memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WAVE", 4) == 0) || memcmp(bytes, "fLaC", 4) == 0 ||
               memcmp(bytes, "OggS", 4) == 0 || memcmp(bytes, "ID3", 3) == 0 ||
               (bytes[0] == 0xff && (bytes[1] & 0xe6) == 0xe2); /* MPEG audio, layer III */
}
