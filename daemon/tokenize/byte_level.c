#include "daemon/tokenize/byte_level.h"

#include <stdbool.h>

#include "daemon/tokenize/characters/characters.h"

static bool prints_itself(uint32_t byte) {
        return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

/* The others are numbered as they come: 0x00 to 0x20, 0x7f to 0xa0, 0xad. */
static uint32_t other_byte(uint32_t number) {
        return number <= 0x20        ? number
               : number <= 0x20 + 34 ? number - 0x21 + 0x7f
               : number == 0x43      ? 0xad
                                     : UINT32_MAX;
}

size_t byte_level_read(const uint8_t *text, size_t n, uint8_t *into) {
        size_t n_out = 0;

        for (size_t at = 0; at < n;) {
                uint32_t point, byte;

                at += character_read(text + at, &point);
                byte = point >= 0x100 ? other_byte(point - 0x100) : prints_itself(point) ? point : UINT32_MAX;
                if (byte == UINT32_MAX)
                        return SIZE_MAX;
                into[n_out++] = (uint8_t)byte;
        }
        return n_out;
}
