/* Normal forms of Unicode: characters are taken apart, their marks put in order, and, for NFC and NFKC, put together.
 */

#include <string.h>

#include "daemon/tokenize/characters/characters.h"
#include "daemon/tokenize/normalizer.h"

#define RANKS     64u
#define RUN_SHORT 32u /* marks in a row that are sorted by moving them */

int normal_put(struct grow *into, uint32_t point) {
        if (grow_more(into, 4) < 0)
                return -ENOMEM;
        into->n += character_write(point, (uint8_t *)into->items + into->n);
        return 0;
}

static uint32_t normal_form_rank_of(uint32_t point) {
        return character_rank(character_class(point));
}

/* However many marks follow a letter, the time is linear. */
static int sort_long(uint32_t *points, size_t n, struct grow *spare) {
        size_t counts[RANKS + 1] = { 0 };
        uint32_t *sorted;

        if (grow_reserve(spare, n * sizeof(*points)) < 0)
                return -ENOMEM;
        sorted = spare->items;
        for (size_t i = 0; i < n; i++)
                counts[normal_form_rank_of(points[i]) + 1]++;
        for (unsigned rank = 0; rank < RANKS; rank++)
                counts[rank + 1] += counts[rank];
        for (size_t i = 0; i < n; i++)
                sorted[counts[normal_form_rank_of(points[i])]++] = points[i];
        memcpy(points, sorted, n * sizeof(*points));
        return 0;
}

static void sort_short(uint32_t *points, size_t n) {
        for (size_t i = 1; i < n; i++) {
                uint32_t point = points[i], rank = normal_form_rank_of(point);
                size_t k = i;

                for (; k > 0 && normal_form_rank_of(points[k - 1]) > rank; k--)
                        points[k] = points[k - 1];
                points[k] = point;
        }
}

static int order_marks(uint32_t *points, size_t n, struct grow *spare) {
        for (size_t i = 0; i < n;) {
                size_t end = i;

                while (end < n && normal_form_rank_of(points[end]) > 0)
                        end++;
                if (end - i > RUN_SHORT && sort_long(points + i, end - i, spare) < 0)
                        return -ENOMEM;
                if (end - i <= RUN_SHORT)
                        sort_short(points + i, end - i);
                i = end + 1;
        }
        return 0;
}

int normal_form_decompose(struct normal_memory *memory, const uint32_t *points, size_t n, bool more) {
        struct grow *into = &memory->points;

        into->n = 0;
        for (size_t i = 0; i < n; i++) {
                uint32_t parts[CHARACTER_PARTS_MAX];
                size_t n_parts = character_decompose(points[i], more, parts);

                if (normal_goes_on(memory, 1) < 0)
                        return -ECANCELED;
                if (grow_more(into, n_parts * sizeof(*parts)) < 0)
                        return -ENOMEM;
                memcpy((uint8_t *)into->items + into->n, parts, n_parts * sizeof(*parts));
                into->n += n_parts * sizeof(*parts);
        }
        return order_marks(into->items, into->n / sizeof(*points), &memory->spare);
}

/* Returns how many are left. */
static size_t normal_form_compose(uint32_t *points, size_t n) {
        size_t n_out = 0, starter = SIZE_MAX;
        uint32_t last = 0;

        for (size_t i = 0; i < n; i++) {
                uint32_t rank = normal_form_rank_of(points[i]), composed = 0;

                if (starter != SIZE_MAX && (n_out - 1 == starter || last < rank))
                        composed = character_compose(points[starter], points[i]);
                if (composed) {
                        points[starter] = composed;
                        continue;
                }
                if (rank == 0)
                        starter = n_out;
                last = rank;
                points[n_out++] = points[i];
        }
        return n_out;
}

static bool is_unchanged(const uint8_t *text, size_t n, uint32_t classes) {
        uint32_t point;

        for (size_t at = 0; at < n;) {
                if (text[at] < 0x80) {
                        at++;
                        continue;
                }
                at += character_read(text + at, &point);
                if (character_class(point) & classes || character_rank(character_class(point)))
                        return false;
        }
        return true;
}

int normal_form_append(const uint8_t *text, size_t n, bool composes, bool more, struct normal_memory *memory,
                       struct grow *into) {
        uint32_t unsafe = composes ? more ? CHARACTER_NFKC_UNSAFE : CHARACTER_NFC_UNSAFE
                          : more   ? CHARACTER_DECOMPOSES_MORE
                                   : CHARACTER_DECOMPOSES;
        uint32_t *points;
        size_t n_points = 0;
        int r;

        if (is_unchanged(text, n, unsafe)) {
                if (grow_more(into, n) < 0)
                        return -ENOMEM;
                memcpy((uint8_t *)into->items + into->n, text, n);
                into->n += n;
                return 0;
        }
        if (grow_reserve(&memory->run, n * sizeof(*points)) < 0)
                return -ENOMEM;
        points = memory->run.items;
        for (size_t at = 0; at < n;)
                at += character_read(text + at, &points[n_points++]);
        r = normal_form_decompose(memory, points, n_points, more);
        if (r < 0)
                return r;
        points = memory->points.items;
        n_points = memory->points.n / sizeof(*points);
        if (composes)
                n_points = normal_form_compose(points, n_points);
        for (size_t i = 0; i < n_points && r == 0; i++)
                r = normal_put(into, points[i]);
        return r;
}
