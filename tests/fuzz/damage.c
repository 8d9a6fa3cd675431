#include "tests/fuzz/damage.h"

#include <stdbool.h>
#include <string.h>

#define SEGMENTS_MAX 64

struct segment {
        size_t at, n; /* with its marker */
};

struct random random_of(uint64_t seed, uint64_t round) {
        return (struct random){ seed * 0x9e3779b97f4a7c15u ^ (round + 1) * 0xd1342543de82ef95u };
}

uint32_t draw(struct random *random, uint32_t n) {
        uint64_t z = random->state += 0x9e3779b97f4a7c15u; /* splitmix64 */

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

/* The segments up to the first scan's header. Returns where the scan begins. */
static size_t find_segments(const struct bytes *file, struct segment segments[SEGMENTS_MAX], size_t *ret_n) {
        size_t at = 2, n = 0;

        while (at + 4 <= file->n && n < SEGMENTS_MAX && file->at[at] == 0xff) {
                size_t length = 2 + ((size_t)file->at[at + 2] << 8 | file->at[at + 3]);
                bool is_scan = file->at[at + 1] == 0xda;

                if (length > file->n - at)
                        break;
                segments[n++] = (struct segment){ at, length };
                at += length;
                if (is_scan)
                        break;
        }
        *ret_n = n;
        return at < file->n ? at : file->n - 1;
}

static void cut_out(struct bytes *file, size_t at, size_t n) {
        if (n > file->n - at)
                n = file->n - at;
        memmove(file->at + at, file->at + at + n, file->n - at - n);
        file->n -= n;
}

static void put_in(struct bytes *file, size_t at, const uint8_t *bytes, size_t n) {
        if (n > file->room - file->n)
                n = file->room - file->n;
        memmove(file->at + at + n, file->at + at, file->n - at);
        memcpy(file->at + at, bytes, n);
        file->n += n;
}

static void change_byte(uint8_t *byte, struct random *random) {
        static const uint8_t values[] = { 0x00, 0x01, 0x11, 0x3f, 0x7f, 0x80, 0xd0, 0xd9, 0xda, 0xff };

        switch (draw(random, 3)) {
        case 0:
                *byte ^= (uint8_t)(1u << draw(random, 8));
                break;
        case 1:
                *byte = values[draw(random, sizeof(values))];
                break;
        default:
                *byte = (uint8_t)draw(random, 256);
        }
}

static void change_bytes(struct bytes *file, size_t from, size_t to, struct random *random) {
        uint32_t n = 1 + draw(random, draw(random, 4) ? 3 : 20);
        bool together = draw(random, 2);
        size_t at;

        if (from >= to)
                return;
        at = from + draw(random, (uint32_t)(to - from));
        while (n-- > 0 && at < to) {
                change_byte(&file->at[at], random);
                at = together ? at + 1 : from + draw(random, (uint32_t)(to - from));
        }
}

/* A marker in the middle of the scan: restart markers in and out of their turn, an end, a second header. */
static void put_marker(struct bytes *file, size_t scan, struct random *random) {
        static const uint8_t kinds[] = { 0x00, 0x01, 0xc0, 0xc4, 0xd8, 0xd9, 0xda, 0xdc, 0xe1, 0xfe, 0xff };
        uint8_t marker[2] = { 0xff };
        size_t at = scan + draw(random, (uint32_t)(file->n - scan));

        marker[1] = draw(random, 2) ? (uint8_t)(0xd0 + draw(random, 8)) : kinds[draw(random, sizeof(kinds))];
        if (draw(random, 2))
                put_in(file, at, marker, 2);
        else if (at + 2 <= file->n)
                memcpy(file->at + at, marker, 2);
}

static void move_segment(struct bytes *file, const struct segment *segments, size_t n, struct random *random) {
        const struct segment *segment = &segments[draw(random, (uint32_t)n)];
        size_t to = segments[draw(random, (uint32_t)n)].at;
        uint8_t copy[1024];
        size_t n_copy = segment->n < sizeof(copy) ? segment->n : sizeof(copy);

        memcpy(copy, file->at + segment->at, n_copy);
        if (draw(random, 3)) { /* else it stands twice */
                cut_out(file, segment->at, segment->n);
                if (to > segment->at)
                        to -= segment->n;
                if (draw(random, 3) == 0)
                        return;
        }
        put_in(file, draw(random, 8) ? to : file->n, copy, n_copy);
}

static void splice(struct bytes *file, const struct bytes *other, struct random *random) {
        size_t from = draw(random, (uint32_t)other->n), at = draw(random, (uint32_t)file->n);
        size_t n = 1 + draw(random, 300);

        if (n > other->n - from)
                n = other->n - from;
        if (draw(random, 2))
                cut_out(file, at, n);
        put_in(file, at, other->at + from, n);
}

static void damage_once(struct bytes *file, const struct bytes *other, struct random *random) {
        struct segment segments[SEGMENTS_MAX];
        size_t n_segments, scan;

        if (file->n < 16)
                return;
        scan = find_segments(file, segments, &n_segments);
        switch (draw(random, 16)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
                change_bytes(file, scan, file->n, random);
                break;
        case 5:
        case 6:
        case 7:
                change_bytes(file, 2, scan, random);
                break;
        case 8:
                change_bytes(file, 0, file->n, random);
                break;
        case 9:
        case 10:
                put_marker(file, scan, random);
                break;
        case 11:
                file->n -= draw(random, (uint32_t)(draw(random, 2) ? file->n - scan : 8));
                break;
        case 12:
                cut_out(file, scan + draw(random, (uint32_t)(file->n - scan)), 1 + draw(random, 9));
                break;
        case 13:
                splice(file, other, random);
                break;
        default:
                if (n_segments > 0)
                        move_segment(file, segments, n_segments, random);
        }
}

void damage(struct bytes *file, const struct bytes *other, struct random *random) {
        for (uint32_t n = draw(random, 4) ? 1 : draw(random, 6); n > 0; n--)
                damage_once(file, other, random);
}
