/* tokenize/patterns/pattern.h: the regular expressions that tokenizers cut text with.
 *
 * What is in use is alternatives of a few classes with counts: \p{L}+, [^\s\p{L}\p{N}]+, \s+(?!\S), (?i:'s|'t|'re).
 * These are matched as Oniguruma does, the first alternative that matches, counts as long as possible: literals,
 * classes, groups (also (?i: of ASCII letters), ?, *, +, {n,m}, possessive ?+ *+ ++ of a class, (?= (?!. Anything else
 * is refused when it is read: back references, lazy counts, looking back, anchors, counts of groups other than ?.
 *
 * A pattern does not change once it is read. A match recurses as deep as the pattern has nodes, and gives up after
 * PATTERN_STEPS_MAX steps, which no pattern of use comes near. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

#define PATTERN_STEPS_MAX (UINT64_C(1) << 26) /* within one match, and 64 more for each byte of the text */

struct pattern;

/* `text` is UTF-8. -EINVAL with the column and what is not supported; -ENOMEM. */
int pattern_new(const uint8_t *text, size_t n, struct pattern **ret_pattern, struct why *why);

/* One that matches exactly these bytes, n > 0. -ENOMEM. */
int pattern_new_literal(const uint8_t *bytes, size_t n, struct pattern **ret_pattern);

/* Takes NULL. */
void pattern_free(struct pattern *pattern);

/* The next match that is not empty, at or after `begin` in valid UTF-8. Returns 1; 0: there is none; -E2BIG: it would
 * take too long. */
int pattern_find(const struct pattern *pattern, const uint8_t *text, size_t n, size_t begin, size_t *ret_begin,
                 size_t *ret_end);
