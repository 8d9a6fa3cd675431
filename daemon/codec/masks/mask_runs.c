#include "daemon/codec/masks/mask_runs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define GROUP_BITS 5u
#define GROUP_LAST 0x10 /* of the last group: the number is negative */
#define GROUP_MORE 0x20 /* another one follows */
#define GROUPS_MAX 8u   /* of a number: 40 bits, more than a plane has pixels */

void runs_begin(struct runs *runs, uint8_t *plane, uint32_t width, uint32_t height) {
        *runs = (struct runs){ .plane = plane, .width = width, .height = height };
}

static void mask_runs_draw(const struct runs *runs, uint64_t n) {
        uint64_t x = runs->at / runs->height, y = runs->at % runs->height;

        for (; n > 0; x++, y = 0) {
                uint64_t n_column = runs->height - y < n ? runs->height - y : n;

                for (uint64_t i = 0; i < n_column; i++)
                        runs->plane[(y + i) * runs->width + x] = 1;
                n -= n_column;
        }
}

int runs_add(struct runs *runs, int64_t n, struct why *why) {
        uint64_t left = (uint64_t)runs->width * runs->height - runs->at;

        if (n < 0 || (uint64_t)n > left)
                return why_set(why, -EBADMSG,
                               "its run lengths do not fit: one of %" PRId64 ", where %" PRIu64 " pixels of %u x %u "
                               "are left",
                               n, left, runs->width, runs->height);
        if (runs->value)
                mask_runs_draw(runs, (uint64_t)n);
        runs->at += (uint64_t)n;
        runs->value ^= 1;
        return 0;
}

int runs_end(const struct runs *runs, struct why *why) {
        uint64_t n = (uint64_t)runs->width * runs->height;

        return runs->at == n ? 0
                             : why_set(why, -EBADMSG,
                                       "its run lengths are those of %" PRIu64 " pixels, and the picture has %u x %u",
                                       runs->at, runs->width, runs->height);
}

/* ---- as text --------------------------------------------------------------------------------------------------- */

static unsigned mask_runs_digit_of(uint8_t character) {
        return character <= '9' ? character - (unsigned)'0' : (character | 0x20u) - 'a' + 10u;
}

/* The next character, also of those that JSON writes with a backslash. */
static unsigned next_character(const uint8_t **at) {
        const uint8_t *from = *at;
        unsigned point = 0;

        if (from[0] != '\\') {
                *at += 1;
                return from[0];
        }
        if (from[1] != 'u') {
                *at += 2;
                return from[1] == '\\' ? '\\' : 0; /* none of the others occurs */
        }
        for (unsigned i = 2; i < 6; i++)
                point = point * 16 + mask_runs_digit_of(from[i]);
        *at += 6;
        return point;
}

static int mask_runs_read_number(const uint8_t **at, const uint8_t *end, int64_t *ret_number, struct why *why) {
        uint64_t number = 0;
        unsigned group = GROUP_MORE, shift = 0;

        for (; group & GROUP_MORE; shift += GROUP_BITS) {
                unsigned character = *at < end ? next_character(at) : 0;

                group = character - '0';
                if (character < '0' || group >= 2 * GROUP_MORE || shift >= GROUPS_MAX * GROUP_BITS)
                        return why_set(why, -EBADMSG, "its counts are not the text of run lengths");
                number |= (uint64_t)(group & (GROUP_MORE - 1)) << shift;
        }
        if (group & GROUP_LAST)
                number |= UINT64_MAX << shift;
        *ret_number = (int64_t)number;
        return 0;
}

int runs_add_text(struct runs *runs, const uint8_t *string, size_t n_string, struct why *why) {
        const uint8_t *at = string + 1, *end = string + n_string - 1;
        int64_t before[2] = { 0 }; /* the last run, and the one before it */

        for (uint64_t i = 0; at < end; i++) {
                int64_t n = 0;
                int r = mask_runs_read_number(&at, end, &n, why);

                if (i > 2)
                        n += before[1];
                if (r == 0)
                        r = runs_add(runs, n, why);
                if (r < 0)
                        return r;
                before[1] = before[0];
                before[0] = n;
        }
        return 0;
}
