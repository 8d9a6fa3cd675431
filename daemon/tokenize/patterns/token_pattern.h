/* tokenize/patterns/token_pattern.h: the regular expressions that tokenizers cut text with.
 *
 * What is in use is alternatives of a few classes with counts: \p{L}+, [^\s\p{L}\p{N}]+, \s+(?!\S), (?i:'s|'t|'re).
 * These are matched as Oniguruma does, the first alternative that matches, counts as long as possible: literals,
 * classes, groups (also (?i: of ASCII letters), ?, *, +, {n,m}, possessive ?+ *+ ++ of a class, (?= (?!. Anything else
 * is refused when it is read: back references, lazy counts, looking back, anchors, counts of groups other than ?.
 *
 * A pattern does not change once it is read. A match recurses as deep as the pattern has nodes. All matches of a text
 * together give up after a number of steps that grows with its length, which no pattern of use comes near: one that
 * looks at the whole rest of the text for each match would take the square of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/wanting.h"
#include "proto/base/why.h"

#define PATTERN_STEPS_MAX    (UINT64_C(1) << 24) /* for a text, */
#define PATTERN_STEPS_A_BYTE 64u                 /* and for each byte of it */

struct token_pattern;

/* Of a text: what looking for patterns in it has taken so far. */
struct pattern_work {
        uint64_t n_steps, n_steps_max;
        uint64_t look_at;        /* after so many steps: is it wanted? */
        struct wanting *wanting; /* NULL: it is */
};

/* Before anything is looked for in a text of n bytes. */
static inline void pattern_work_begin(struct pattern_work *work, uint64_t n) {
        work->n_steps = work->look_at = 0;
        work->n_steps_max = PATTERN_STEPS_MAX + PATTERN_STEPS_A_BYTE * n;
}

/* `text` is UTF-8. -EINVAL with the column and what is not supported; -ENOMEM. */
int pattern_new(const uint8_t *text, size_t n, struct token_pattern **ret_pattern, struct why *why);

/* One that matches exactly these bytes, n > 0. -ENOMEM. */
int pattern_new_literal(const uint8_t *bytes, size_t n, struct token_pattern **ret_pattern);

/* Takes NULL. */
void pattern_free(struct token_pattern *pattern);

/* The next match that is not empty, at or after `begin` in valid UTF-8. Returns 1; 0: there is none; -E2BIG: it would
 * take too long; -ECANCELED. */
int pattern_find(const struct token_pattern *pattern, struct pattern_work *work, const uint8_t *text, size_t n,
                 size_t begin, size_t *ret_begin, size_t *ret_end);
