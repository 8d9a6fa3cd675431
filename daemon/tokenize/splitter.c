#include "daemon/tokenize/splitter.h"

#include <errno.h>
#include <string.h>

#include "daemon/tokenize/characters/characters.h"

struct splitting {
        const struct splitter *splitter;
        struct split_memory *memory;
        split_take take;
        void *userdata;
};

static int run_step(struct splitting *splitting, unsigned idx, const uint8_t *text, size_t n, bool is_first);

/* A piece goes to the next step; behind the last one it is a word. */
static int hand_on(struct splitting *splitting, unsigned idx, const uint8_t *text, size_t n, bool is_first) {
        if (n == 0)
                return 0;
        if (idx + 1 >= splitting->splitter->n_steps)
                return splitting->take(splitting->userdata, text, n);
        return run_step(splitting, idx + 1, text, n, is_first);
}

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

/* Pieces come in turn, matches and what lies between them; what becomes of them is the behavior. A piece that may still
 * grow is held back. */
struct joining {
        struct splitting *splitting;
        unsigned idx;
        const uint8_t *text;
        enum split_behavior behavior;
        bool is_first;
        size_t begin, end; /* of what is held back; empty: nothing */
        bool was_match;
};

static int splitter_release(struct joining *joining) {
        size_t begin = joining->begin, end = joining->end;

        joining->begin = joining->end;
        return hand_on(joining->splitting, joining->idx, joining->text + begin, end - begin,
                       joining->is_first && begin == 0);
}

static int splitter_join(struct joining *joining, size_t begin, size_t end, bool is_match) {
        bool was_match = joining->was_match, is_held = joining->end > joining->begin, joins = false;
        int r = 0;

        if (begin == end)
                return 0;
        joining->was_match = is_match;
        switch (joining->behavior) {
        case SPLIT_REMOVED:
                if (is_match)
                        return 0;
                break;
        case SPLIT_CONTIGUOUS:
                joins = is_held && is_match == was_match;
                break;
        case SPLIT_WITH_PREVIOUS: /* one match only */
                joins = is_held && is_match && !was_match;
                break;
        case SPLIT_WITH_NEXT:
                joins = is_held && was_match && !is_match;
                break;
        default:
                break;
        }
        if (!joins) {
                r = splitter_release(joining);
                joining->begin = begin;
        }
        joining->end = end;
        return r;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static int run_pattern(struct splitting *splitting, unsigned idx, const uint8_t *text, size_t n, bool is_first) {
        const struct split_step *step = &splitting->splitter->steps[idx];
        struct joining joining = { splitting, idx, text, step->behavior, is_first, 0, 0, false };
        size_t at = 0, begin, end;

        for (;;) {
                int found = pattern_find(step->pattern, &splitting->memory->work, text, n, at, &begin, &end), r;

                if (found < 0)
                        return found;
                r = splitter_join(&joining, at, found ? begin : n, step->inverts);
                if (r == 0 && found)
                        r = splitter_join(&joining, begin, end, !step->inverts);
                if (r != 0 || !found)
                        return r != 0 ? r : splitter_release(&joining);
                at = end;
        }
}

/* Each character of the class is a match. */
static int run_class(struct splitting *splitting, unsigned idx, const uint8_t *text, size_t n, bool is_first) {
        const struct split_step *step = &splitting->splitter->steps[idx];
        struct joining joining = { splitting, idx, text, step->behavior, is_first, 0, 0, false };
        size_t at = 0, begin = 0;
        int r = 0;

        while (at < n && r == 0) {
                uint32_t point;
                size_t length = character_read(text + at, &point);

                if (character_class(point) & step->classes) {
                        r = splitter_join(&joining, begin, at, false);
                        if (r == 0)
                                r = splitter_join(&joining, at, at + length, true);
                        begin = at + length;
                }
                at += length;
        }
        if (r == 0)
                r = splitter_join(&joining, begin, n, false);
        return r != 0 ? r : splitter_release(&joining);
}

/* Blanks are left out; with `marks`, punctuation stands alone. */
static int run_words(struct splitting *splitting, unsigned idx, const uint8_t *text, size_t n, bool is_first,
                     uint32_t marks) {
        size_t at = 0, begin = 0;
        int r = 0;

        while (at < n && r == 0) {
                uint32_t point, class;
                size_t length = character_read(text + at, &point);

                class = character_class(point);
                if (class & (CHARACTER_BLANK | marks)) {
                        r = hand_on(splitting, idx, text + begin, at - begin, is_first && begin == 0);
                        if (r == 0 && !(class & CHARACTER_BLANK))
                                r = hand_on(splitting, idx, text + at, length, is_first && at == 0);
                        begin = at + length;
                }
                at += length;
        }
        return r != 0 ? r : hand_on(splitting, idx, text + begin, n - begin, is_first && begin == 0);
}

static int splitter_add_bytes(struct grow *into, const void *bytes, size_t n) {
        if (n == 0) /* perhaps there is no memory yet */
                return 0;
        if (grow_more(into, n) < 0)
                return -ENOMEM;
        memcpy((uint8_t *)into->items + into->n, bytes, n);
        into->n += n;
        return 0;
}

/* Blanks become marks, and one may come before the first word. */
static int run_meta(struct splitting *splitting, unsigned idx, const uint8_t *text, size_t n, bool is_first) {
        const struct split_step *step = &splitting->splitter->steps[idx];
        struct grow *into = &splitting->memory->texts[idx];
        bool has_mark = n > 0 && (text[0] == ' ' || (n >= step->n_mark && memcmp(text, step->mark, step->n_mark) == 0));
        size_t begin = 0;
        int r = 0;

        into->n = 0;
        if (!has_mark &&
            (step->prepends == SPLIT_PREPEND_ALWAYS || (step->prepends == SPLIT_PREPEND_FIRST && is_first)))
                r = splitter_add_bytes(into, step->mark, step->n_mark);
        for (size_t at = 0; at < n && r == 0;) {
                const uint8_t *blank = memchr(text + at, ' ', n - at);
                size_t end = blank ? (size_t)(blank - text) : n;

                r = splitter_add_bytes(into, text + at, end - at);
                if (r == 0 && blank)
                        r = splitter_add_bytes(into, step->mark, step->n_mark);
                at = end + 1;
        }
        text = into->items;
        n = into->n;
        while (r == 0 && step->splits && begin < n) { /* a word begins at each mark */
                const uint8_t *next = memmem(text + begin + 1, n - begin - 1, step->mark, step->n_mark);
                size_t end = next ? (size_t)(next - text) : n;

                r = hand_on(splitting, idx, text + begin, end - begin, is_first && begin == 0);
                begin = end;
        }
        return r != 0 || step->splits ? r : hand_on(splitting, idx, text, n, is_first);
}

static int run_prefix(struct splitting *splitting, unsigned idx, const uint8_t *text, size_t n, bool is_first) {
        struct grow *into = &splitting->memory->texts[idx];

        if (n > 0 && text[0] == ' ')
                return hand_on(splitting, idx, text, n, is_first);
        into->n = 0;
        if (splitter_add_bytes(into, " ", 1) < 0 || splitter_add_bytes(into, text, n) < 0)
                return -ENOMEM;
        return hand_on(splitting, idx, into->items, into->n, is_first);
}

static int run_step(struct splitting *splitting, unsigned idx, const uint8_t *text, size_t n, bool is_first) {
        switch (splitting->splitter->steps[idx].kind) {
        case SPLIT_BERT:
                return run_words(splitting, idx, text, n, is_first, CHARACTER_BERT_PUNCTUATION);
        case SPLIT_BLANKS:
                return run_words(splitting, idx, text, n, is_first, 0);
        case SPLIT_CLASS:
                return run_class(splitting, idx, text, n, is_first);
        case SPLIT_PATTERN:
                return run_pattern(splitting, idx, text, n, is_first);
        case SPLIT_META:
                return run_meta(splitting, idx, text, n, is_first);
        default:
                return run_prefix(splitting, idx, text, n, is_first);
        }
}

int splitter_run(const struct splitter *splitter, struct split_memory *memory, const uint8_t *text, size_t n,
                 bool is_first, split_take take, void *userdata) {
        struct splitting splitting = { .splitter = splitter, .memory = memory, .take = take, .userdata = userdata };

        if (n == 0)
                return 0;
        return splitter->n_steps == 0 ? take(userdata, text, n) : run_step(&splitting, 0, text, n, is_first);
}

/* A mark has up to four bytes, and one comes before each piece, which may be a single byte. */
uint64_t splitter_growth(const struct splitter *splitter) {
        uint64_t growth = 1;

        for (unsigned i = 0; i < splitter->n_steps; i++)
                growth *= splitter->steps[i].kind == SPLIT_META ? 8 : splitter->steps[i].kind == SPLIT_PREFIX ? 2 : 1;
        return growth;
}

void split_memory_free(struct split_memory *memory) {
        for (unsigned i = 0; i < SPLIT_STEPS_MAX; i++)
                grow_free(&memory->texts[i]);
}
