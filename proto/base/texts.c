#include "proto/base/texts.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lists of texts are read in place");

static uint64_t texts_word_at(const uint8_t *bytes, uint64_t i) {
        uint64_t word;

        memcpy(&word, bytes + 8 * i, sizeof(word));
        return word;
}

bool texts_open(const void *bytes, uint64_t n_bytes, struct texts *ret_texts) {
        struct texts texts;
        uint64_t before = 0;

        if (n_bytes < 8)
                return false;
        texts.n = texts_word_at(bytes, 0);
        texts.ends = (const uint8_t *)bytes + 8;
        if (texts.n > (n_bytes - 8) / 8)
                return false;
        texts.bytes = texts.ends + 8 * texts.n;
        for (uint64_t i = 0; i < texts.n; i++) {
                uint64_t end = texts_word_at(texts.ends, i);

                if (end < before)
                        return false;
                before = end;
        }
        if (before != n_bytes - 8 - 8 * texts.n)
                return false;
        *ret_texts = texts;
        return true;
}

const uint8_t *texts_at(const struct texts *texts, uint64_t i, uint64_t *ret_n_bytes) {
        uint64_t begin = i == 0 ? 0 : texts_word_at(texts->ends, i - 1);

        *ret_n_bytes = texts_word_at(texts->ends, i) - begin;
        return texts->bytes + begin;
}
