/* BERT's normalizer: control characters leave, Chinese characters stand alone, accents leave, letters become lower
 * case. */

#include <string.h>

#include "daemon/tokenize/characters/characters.h"
#include "daemon/tokenize/normalizer.h"

#define RUN_BYTES 1024u /* of points that need no order */

/* A character above ASCII, before accents are looked at; `points` has room for three. */
static size_t normal_bert_clean(const struct normal_step *step, uint32_t point, uint32_t *points) {
        uint32_t class = character_class(point);
        size_t n = 0;

        if (step->cleans && class & CHARACTER_BERT_CONTROL)
                return 0;
        if (step->cleans && class & CHARACTER_BERT_SPACE)
                point = ' ';
        if (!step->spaces_chinese || !(class & CHARACTER_CHINESE)) {
                points[0] = point;
                return 1;
        }
        points[n++] = ' ';
        points[n++] = point;
        points[n++] = ' ';
        return n;
}

static int put_lower(const struct normal_step *step, uint32_t point, struct grow *into) {
        uint32_t parts[CHARACTER_PARTS_MAX];
        size_t n;
        int r = 0;

        if (!step->lowers)
                return normal_put(into, point);
        n = character_lower(point, parts);
        for (size_t i = 0; i < n && r == 0; i++)
                r = normal_put(into, parts[i]);
        return r;
}

/* Characters that may reorder each other; blanks among them end nothing, they have no rank. */
static int normal_bert_put_run(const struct normal_step *step, const uint32_t *points, size_t n, bool is_plain,
                               struct normal_memory *memory, struct grow *into) {
        int r = 0;

        if (step->strips_accents && !is_plain) {
                r = normal_form_decompose(memory, points, n, false);
                points = memory->points.items;
                n = memory->points.n / sizeof(*points);
        }
        for (size_t i = 0; i < n && r == 0; i++)
                if (!step->strips_accents || !(character_class(points[i]) & CHARACTER_BERT_MARK))
                        r = put_lower(step, points[i], into);
        return r;
}

/* From here on to the next ASCII character. No mark is moved across one. */
static int normal_bert_take_run(const struct normal_step *step, const uint8_t *text, size_t n, size_t *at,
                                struct normal_memory *memory, struct grow *into) {
        struct grow *run = &memory->run;
        bool is_plain = true;

        run->n = 0;
        while (*at < n && text[*at] >= 0x80) {
                uint32_t point, class;

                *at += character_read(text + *at, &point);
                class = character_class(point);
                if (character_rank(class) || class & (CHARACTER_DECOMPOSES | CHARACTER_BERT_MARK))
                        is_plain = false;
                else if (is_plain && run->n >= RUN_BYTES) { /* none was there that a mark could be moved behind */
                        int r = normal_bert_put_run(step, run->items, run->n / sizeof(point), true, memory, into);

                        if (r == 0)
                                r = normal_goes_on(memory, run->n / sizeof(point));
                        if (r < 0)
                                return r;
                        run->n = 0;
                }
                if (grow_more(run, 3 * sizeof(point)) < 0)
                        return -ENOMEM;
                run->n += normal_bert_clean(step, point, (uint32_t *)run->items + run->n / sizeof(point)) *
                          sizeof(point);
        }
        return normal_bert_put_run(step, run->items, run->n / sizeof(uint32_t), is_plain, memory, into);
}

/* There is room. */
static void put_ascii(const struct normal_step *step, uint8_t byte, struct grow *into) {
        uint32_t class = character_class(byte);

        if (step->cleans && class & CHARACTER_BERT_CONTROL)
                return;
        if (step->cleans && class & CHARACTER_BERT_SPACE)
                byte = ' ';
        if (step->lowers && byte >= 'A' && byte <= 'Z')
                byte += 32;
        ((uint8_t *)into->items)[into->n++] = byte;
}

int normal_bert_append(const struct normal_step *step, const uint8_t *text, size_t n, struct normal_memory *memory,
                       struct grow *into) {
        int r = 0;

        for (size_t at = 0; at < n && r == 0;) {
                size_t begin = at;

                if (grow_more(into, n - at) < 0)
                        return -ENOMEM;
                while (at < n && text[at] < 0x80 && at - begin < NORMAL_A_LOOK)
                        put_ascii(step, text[at++], into);
                r = normal_goes_on(memory, at - begin);
                if (at < n && r == 0 && text[at] >= 0x80)
                        r = normal_bert_take_run(step, text, n, &at, memory, into);
        }
        return r;
}
