/* data/formats/listing/pattern.h: a pattern for paths, "{class}/{name}.jpg", and what a path has in its braces.
 *
 * {NAME} stands for one or more bytes without a slash, {NAME:**} for any with slashes; * and ** are the same without a
 * name. Each is as short as the rest allows. Everything else stands for itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/data/schema.h"
#include "proto/base/why.h"

#define PATTERN_PARTS_MAX 33u /* texts and what stands between them */

struct pattern_part {
        const char *literal; /* NULL: any bytes */
        size_t n_literal;
        bool has_slashes;           /* any bytes: also slashes */
        char name[SCHEMA_NAME_MAX]; /* any bytes: "" without a name */
};

struct pattern {
        struct pattern_part parts[PATTERN_PARTS_MAX];
        size_t n;
        size_t n_slashes; /* of every path that fits; has_slashes: at least as many */
        bool has_slashes;
};

/* Where a part lies in a path. */
struct pattern_found {
        const char *at;
        size_t n;
};

/* Reads a pattern, which must outlive the result. Returns 0 or -EINVAL with `why`. */
int pattern_parse(const char *text, struct pattern *ret_pattern, struct why *why);

/* Does the path fit? Returns 1 and where its parts are; 0: no; -ELOOP: there are too many ways to try. */
int pattern_match(const struct pattern *pattern, const char *path, struct pattern_found found[PATTERN_PARTS_MAX]);
