#include "proto/base/text.h"

#include <stddef.h>
#include <stdint.h>

#include "proto/base/utf8.h"

/* Characters that a terminal or a viewer of logs acts on, or that nobody sees: with them a name could move the cursor,
 * turn the rest of a line around, or look like another name. Controls, line ends, and all that Unicode calls
 * Default_Ignorable_Code_Point, also where nothing is assigned yet. Joiners (U+200C, U+200D) and selectors of variants
 * are not among them: Persian, Hindi, Mongolian and many pictures are written with them, and they change only how their
 * neighbours are drawn. */
static const struct {
        uint32_t first, last;
} UNPRINTABLE[] = {
        { 0x0000, 0x001f },   /* C0 controls */
        { 0x007f, 0x009f },   /* DEL; C1 controls, of which U+009B begins a command as ESC [ does */
        { 0x00ad, 0x00ad },   /* soft hyphen */
        { 0x034f, 0x034f },   /* grapheme joiner, which joins nothing */
        { 0x061c, 0x061c },   /* Arabic letter mark: direction */
        { 0x115f, 0x1160 },   /* fillers in place of Korean letters */
        { 0x17b4, 0x17b5 },   /* vowels of Khmer that are not drawn */
        { 0x180e, 0x180e },   /* Mongolian vowel separator: without width */
        { 0x200b, 0x200b },   /* zero width space */
        { 0x200e, 0x200f },   /* marks of direction */
        { 0x2028, 0x202e },   /* line and paragraph separators; embeddings and overrides of direction */
        { 0x2060, 0x206f },   /* word joiner, invisible operators, isolates of direction */
        { 0x3164, 0x3164 },   /* filler in place of a Korean letter */
        { 0xfeff, 0xfeff },   /* byte order mark: without width */
        { 0xffa0, 0xffa0 },   /* filler of half the width */
        { 0xfff0, 0xfffb },   /* unassigned; annotations between lines */
        { 0x1bca0, 0x1bca3 }, /* controls of shorthand */
        { 0x1d173, 0x1d17a }, /* controls of music */
        { 0xe0000, 0xe00ff }, /* tags: an invisible copy of ASCII; unassigned */
        { 0xe01f0, 0xe0fff }, /* unassigned */
};

size_t text_printable_length(const char *bytes) {
        uint32_t point;
        size_t n = utf8_decode(bytes, SIZE_MAX, &point);

        if (n == 0)
                return 0;
        for (size_t i = 0; i < sizeof(UNPRINTABLE) / sizeof(UNPRINTABLE[0]) && point >= UNPRINTABLE[i].first; i++)
                if (point <= UNPRINTABLE[i].last)
                        return 0;
        return n;
}

bool text_is_name(const char *text) {
        while (*text) {
                uint32_t point;
                size_t n = utf8_decode(text, SIZE_MAX, &point);

                if (n == 0 || point < ' ' || (point >= 0x7f && point < 0xa0))
                        return false;
                text += n;
        }
        return true;
}

bool text_is_printable(const char *text) {
        const char *at = text;

        while (*at) {
                size_t n = text_printable_length(at);

                if (n == 0)
                        return false;
                at += n;
        }
        return true;
}

void text_make_printable(char *text) {
        char *at = text;

        while (*at) {
                size_t n = text_printable_length(at);

                if (n == 0) {
                        *at = '?';
                        n = 1;
                }
                at += n;
        }
}
