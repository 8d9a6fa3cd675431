/* data/format_options.h: what the configuration says about a dataset's format, beside its path: `annotations`,
 * `sequence_length`, ...
 *
 * A format lists the keys that it takes in its row (struct format). From the configuration to here they travel as one
 * text, a line "KEY=VALUE" for each key that is set. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

#define FORMAT_OPTIONS_MAX 16u

struct format;
struct refusals;
struct scanner;

struct format_options {
        char *text; /* of which all strings below are parts */
        uint32_t n;
        struct {
                const char *key, *value;
        } options[FORMAT_OPTIONS_MAX];
        const char *fields, *split; /* of every dataset: data/view/view.h. NULL: not set */
        const char *allow_missing;  /* "yes" or "no": numbered files may be missing (data/files/complete.h) */
        struct scanner *scanner;    /* of the format of a plug-in, while it is opened; else NULL (data/scanner.h) */
        struct refusals
                *refusals; /* columns that are left out, while the files are read (data/refusals.h); else NULL */
        char digest[65];   /* of all keys and values: 64 hexadecimal digits; "" without any */
};

/* Takes from `text` (NULL: none) what this format wants. A key that neither the format nor every dataset takes is
 * refused: -EINVAL, naming it and those that the format takes. -ENOMEM. */
int format_options_parse(const char *text, const struct format *format, struct format_options *ret_options,
                         struct why *why);

/* The format is a plug-in's: the digest is from now on that of what this scanner does, too. -ENOMEM. */
int format_options_take_scanner(struct format_options *options, struct scanner *scanner);

/* Takes a struct of zeroes. */
void format_options_fini(struct format_options *options);

/* The value of a key; NULL if it is not set. `options` may be NULL. */
const char *format_option(const struct format_options *options, const char *key);

/* Where columns that cannot be served are noted; NULL: nowhere, such a column is an error. `options` may be NULL. */
struct refusals *format_refusals(const struct format_options *options);

/* The same for a whole number from `min` to `max`. Without the key: `otherwise`. -EINVAL with `why`, which names the
 * key. */
int format_option_u64(const struct format_options *options, const char *key, uint64_t otherwise, uint64_t min,
                      uint64_t max, uint64_t *ret_value, struct why *why);

/* The same for a number of bytes, at least 1: "65536", "64KiB", "4GiB". */
int format_option_bytes(const struct format_options *options, const char *key, uint64_t otherwise, uint64_t *ret_value,
                        struct why *why);

/* Writes a digest of the options that also changes when a file that `key` names does: its size or its time. The value
 * is a path, or else paths separated by commas, perhaps with something in brackets after each: "a.txt(id, x), b.csv".
 * They begin at `root_fd` unless they are absolute. What cannot be looked at does not count. -ENOMEM. Blocks for a
 * stat() of each. */
int format_options_stamp(const struct format_options *options, const char *key, int root_fd, const char *root,
                         char ret_digest[65]);

/* The key that names files which belong to those of the path (data/files/files.h). */
#define FORMAT_MERGE "merge"

/* What the text that format_options_parse() takes says of a key, for what must be known before the format is: a copy,
 * which is the caller's to free; NULL without the key. -ENOMEM. */
int format_options_value(const char *text, const char *key, char **ret_value);

#define FORMAT_ALLOW_MISSING "allow_missing"

/* The key that says that a dataset is served while its shards are still being written (data/intake/intake.h). */
#define FORMAT_STREAM "stream"

/* Does it say so? -EINVAL with `why` if its value is neither yes nor no. */
int format_options_stream(const struct format_options *options, bool *ret_is_stream, struct why *why);

/* Is it a key of some format, or of every dataset? */
bool format_option_is_known(const char *key);

/* Is it a key that every dataset takes, whatever its format? */
bool format_option_is_general(const char *key);
