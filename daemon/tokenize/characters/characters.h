/* tokenize/characters/characters.h: what characters are: classes, lower case, normal forms.
 *
 * Hugging Face's tokenizers follow several versions of Unicode at once, each for something else, so these are tables of
 * our own (character_tables.h), and no library's. All functions are pure. Points are those of valid UTF-8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/tokenize/generated/character_tables.h"

/* Classes of the regular expressions. */
#define CHARACTER_LETTER       (1u << 0)
#define CHARACTER_NUMBER       (1u << 1)
#define CHARACTER_SPACE        (1u << 2)
#define CHARACTER_MARK         (1u << 3)
#define CHARACTER_PUNCTUATION  (1u << 4)
#define CHARACTER_SYMBOL       (1u << 5)
#define CHARACTER_UPPER        (1u << 6)
#define CHARACTER_LOWER        (1u << 7)
#define CHARACTER_TITLE        (1u << 8)
#define CHARACTER_MODIFIER     (1u << 9)
#define CHARACTER_OTHER_LETTER (1u << 10)

/* To BERT. */
#define CHARACTER_BERT_PUNCTUATION (1u << 11)
#define CHARACTER_BERT_CONTROL     (1u << 12) /* left out when text is cleaned */
#define CHARACTER_BERT_SPACE       (1u << 13) /* becomes a blank then */
#define CHARACTER_BERT_MARK        (1u << 14) /* left out with the accents */
#define CHARACTER_CHINESE          (1u << 15)

#define CHARACTER_ACCENT          (1u << 16) /* to the normalizer StripAccents */
#define CHARACTER_BLANK           (1u << 17) /* white space where no regular expression is asked */
#define CHARACTER_NUMERIC         (1u << 18) /* the same for numbers */
#define CHARACTER_WORD            (1u << 19) /* \w */
#define CHARACTER_LOWERS          (1u << 20) /* has a lower case */
#define CHARACTER_DECOMPOSES      (1u << 21) /* NFD changes it */
#define CHARACTER_DECOMPOSES_MORE (1u << 22) /* NFKD does */
#define CHARACTER_NFC_UNSAFE      (1u << 23) /* NFC may change it, or it and what is before it */
#define CHARACTER_NFKC_UNSAFE     (1u << 24)
#define CHARACTER_DECIMAL         (1u << 25) /* \p{Nd} */

#define CHARACTER_PARTS_MAX 18u /* points that one becomes */

static inline uint32_t character_class(uint32_t point) {
        return CHARACTER_CLASSES[CHARACTER_PLACES[CHARACTER_BLOCKS[point >> 7]][point & 127]];
}

/* Where a combining mark comes among others after the same letter: 0 is no mark. */
static inline uint32_t character_rank(uint32_t class) {
        return class >> 26;
}

/* Length of the character that begins with this byte of valid UTF-8. */
static inline size_t character_length(uint8_t byte) {
        return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* The character at `bytes`, which is valid UTF-8, and its length. */
static inline size_t character_read(const uint8_t *bytes, uint32_t *ret_point) {
        uint8_t byte = bytes[0];

        if (byte < 0x80) {
                *ret_point = byte;
                return 1;
        }
        if (byte < 0xe0) {
                *ret_point = (uint32_t)(byte & 0x1f) << 6 | (bytes[1] & 0x3fu);
                return 2;
        }
        if (byte < 0xf0) {
                *ret_point = (uint32_t)(byte & 0x0f) << 12 | (uint32_t)(bytes[1] & 0x3f) << 6 | (bytes[2] & 0x3fu);
                return 3;
        }
        *ret_point = (uint32_t)(byte & 0x07) << 18 | (uint32_t)(bytes[1] & 0x3f) << 12 |
                     (uint32_t)(bytes[2] & 0x3f) << 6 | (bytes[3] & 0x3fu);
        return 4;
}

/* Writes at most 4 bytes, and returns how many. */
size_t character_write(uint32_t point, uint8_t *into);

/* What a character becomes; itself, if nothing else. Each returns how many points it writes. */
size_t character_lower(uint32_t point, uint32_t into[CHARACTER_PARTS_MAX]);
size_t character_decompose(uint32_t point, bool more, uint32_t into[CHARACTER_PARTS_MAX]);

/* The character that two are together, or 0. */
uint32_t character_compose(uint32_t first, uint32_t second);
