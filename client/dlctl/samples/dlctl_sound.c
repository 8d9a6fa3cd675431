#include "client/dlctl/samples/dlctl_sound.h"

#include <sndfile.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/sound_file.h"

/* ---- the bytes as a file ---------------------------------------------------------------------------------------- */

struct opened {
        const uint8_t *bytes;
        sf_count_t n_bytes, at;
};

static sf_count_t dlctl_sound_get_length(void *user) {
        return ((const struct opened *)user)->n_bytes;
}

static sf_count_t dlctl_sound_seek_to(sf_count_t offset, int whence, void *user) {
        struct opened *opened = user;
        sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? opened->at : opened->n_bytes;

        if (offset < -from || offset > opened->n_bytes - from)
                return -1;
        return opened->at = from + offset;
}

static sf_count_t dlctl_sound_read_bytes(void *into, sf_count_t n, void *user) {
        struct opened *opened = user;

        if (n > opened->n_bytes - opened->at)
                n = opened->n_bytes - opened->at;
        if (n <= 0)
                return 0;
        memcpy(into, opened->bytes + opened->at, (size_t)n);
        opened->at += n;
        return n;
}

static sf_count_t dlctl_sound_get_place(void *user) {
        return ((const struct opened *)user)->at;
}

/* ---- what is printed -------------------------------------------------------------------------------------------- */

bool sound_print(struct text *text, const uint8_t *bytes, uint64_t n_bytes) {
        SF_VIRTUAL_IO io = { dlctl_sound_get_length, dlctl_sound_seek_to, dlctl_sound_read_bytes, NULL,
                             dlctl_sound_get_place };
        struct opened opened = { .bytes = bytes, .n_bytes = (sf_count_t)n_bytes };
        SF_INFO info = { 0 };
        const struct sound_file *kind = sound_file_of(bytes, n_bytes);
        SNDFILE *file = kind ? sf_open_virtual(&io, SFM_READ, &info, &opened) : NULL;
        bool is_opus = file && (info.format & SF_FORMAT_SUBMASK) == SF_FORMAT_OPUS;
        char words[128];

        if (!file)
                return false;
        sf_close(file);
        snprintf(words, sizeof(words), "sound, %s, %d Hz, %d channel%s, ", is_opus ? "Opus" : kind->name,
                 info.samplerate, info.channels, info.channels == 1 ? "" : "s");
        text_string(text, words);
        if (info.frames < 0 || info.frames > UINT32_MAX || info.samplerate < 1)
                snprintf(words, sizeof(words), "of unknown length");
        else
                snprintf(words, sizeof(words), "%.3f s", (double)info.frames / info.samplerate);
        text_string(text, words);
        return true;
}
