/* tokenize/patterns/pattern_set.h: a set of characters in a pattern, such as [^\s\p{L}]. Private to token_pattern.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/tokenize/characters/characters.h"

#define PATTERN_RANGES_MAX 16u

struct pattern_set {
        uint64_t ascii[2]; /* whether it has them; of the whole, also of one that is negated */
        uint32_t classes;  /* has characters of any of these classes */
        uint32_t not_of;   /* has characters that are of none of these; 0: no such part */
        bool is_negated;   /* of what lies above ASCII */
        uint32_t n_ranges;
        uint32_t ranges[PATTERN_RANGES_MAX][2]; /* first, last */
};

static inline bool pattern_set_has(const struct pattern_set *set, uint32_t point) {
        uint32_t class;
        bool has;

        if (point < 128)
                return set->ascii[point >> 6] >> (point & 63) & 1;
        class = character_class(point);
        has = (class & set->classes) != 0 || (set->not_of && !(class & set->not_of));
        for (uint32_t i = 0; i < set->n_ranges && !has; i++)
                has = point >= set->ranges[i][0] && point <= set->ranges[i][1];
        return has != set->is_negated;
}

/* Where it stands and what has been read, for messages. */
struct pattern_text {
        const uint8_t *text;
        size_t n, at;
};

/* Reads what follows a backslash, or [...] from its bracket on. Returns 0; -EINVAL with what is not supported. */
int pattern_set_escape(struct pattern_text *text, struct pattern_set *set, const char **ret_what);
int pattern_set_brackets(struct pattern_text *text, struct pattern_set *set, const char **ret_what);

/* Adds a character; with `any_case` the other case of an ASCII letter, too. */
void pattern_set_point(struct pattern_set *set, uint32_t point, bool any_case);

/* All parts are there: fills `ascii`. */
void pattern_set_finish(struct pattern_set *set);
