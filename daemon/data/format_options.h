/* data/format_options.h: what the configuration says about a dataset's format, beside its path: `annotations`,
 * `sequence_length`, ...
 *
 * A format has a row for each key that it takes (struct format): its kind, bounds and a sentence, as settings have.
 * Keys that every dataset takes have rows here. Whoever reads a value for a key checks it by the key's row.
 * From there to the format all keys that are set travel as one text, a line "KEY=VALUE" for each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/settings.h"
#include "proto/base/why.h"
#include "proto/limits.h"

#define FORMAT_OPTIONS_MAX 16u

struct format;
struct refusals;
struct scanner;

struct format_options {
        char *text; /* of which all strings below are parts */
        const struct format *format;
        uint32_t n; /* keys of the format's that are set */
        struct {
                const char *text; /* NULL: it is not set */
                uint64_t number;  /* of a number or size */
        } values[FORMAT_OPTIONS_MAX];
        const char *fields, *split; /* of every dataset: data/view/view.h. NULL: not set */
        bool allows_missing;        /* numbered files may be missing (data/files/complete.h) */
        bool is_stream;             /* it is served while its shards are still being written (data/intake/intake.h) */
        struct scanner *scanner;    /* of the format of a plug-in, while it is opened; else NULL (data/scanner.h) */
        struct refusals
                *refusals; /* columns that are left out, while the files are read (data/refusals.h); else NULL */
        char digest[65];   /* of all keys and values: 64 hexadecimal digits; "" without any */
};

/* Rows that several formats have. */
#define OPTION_FIELDS                                                                                                  \
        {                                                                                                              \
                .name = "fields", .kind = SETTING_OPTIONAL, .max = DLP_TEXT_MAX - 1,                                   \
                .prose = "The fields of a sample, chosen and renamed, such as \"image=jpg|png, caption=txt\"; empty: " \
                         "all, as the format names them.",                                                             \
        }
#define OPTION_SPLIT                                                                                                   \
        {                                                                                                              \
                .name = "split", .kind = SETTING_OPTIONAL, .max = DLP_TEXT_MAX - 1,                                    \
                .prose = "The samples that belong to the dataset, such as \"train\", \"0:90%\", "                      \
                         "\"train[hash(90%:)]\" or \"random_split(0.9,0.1; seed=0)[0]\"; empty: all.",                 \
        }

/* The rows of all keys, each once: those of formats, in their order, and then those of every dataset; NULL after the
 * last one. */
const struct setting *format_option_at(size_t idx);

/* A row of these by its key, or NULL. */
const struct setting *format_option_find(const char *key);

/* Is it a key that every dataset takes, whatever its format? */
bool format_option_is_general(const char *key);

/* Adds a key with its value, unless that is empty, to a text of lines "KEY=VALUE" (*text may be NULL), in the order of
 * format_option_at(). -EINVAL naming the key: its row does not allow the value, or the text has it already; -ENOMEM. */
int format_options_add(char **text, const struct setting *row, const char *value, struct why *why);

/* What such a text says of a key, for what must be known before the format is: a copy, which is the caller's to free;
 * NULL without the key. -ENOMEM. */
int format_options_value(const char *text, const char *key, char **ret_value);

/* Takes from such a text (NULL: none) what this format wants. A key that neither the format nor every dataset takes,
 * a value that its row does not allow and keys that exclude each other are refused: -EINVAL, naming them. -ENOMEM. */
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

/* The same for a number or a size, which is within the bounds of its row; `otherwise` if it is not set. */
uint64_t format_option_number(const struct format_options *options, const char *key, uint64_t otherwise);

/* Writes a digest of the options that also changes when a file that `key` names does: its size or its time. The value
 * is a path, or else paths separated by commas, perhaps with something in brackets after each: "a.txt(id, x), b.csv".
 * They begin at `root_fd` unless they are absolute. What cannot be looked at does not count, nor what an origin's
 * listing tells of. -ENOMEM. Blocks for a stat() of each. */
int format_options_stamp(const struct format_options *options, const char *key, int root_fd, const char *root,
                         char ret_digest[65]);

/* The key that names files which belong to those of the path (data/files/files.h). */
#define FORMAT_MERGE "merge"

/* The key that says that a dataset is served while its shards are still being written. */
#define FORMAT_STREAM "stream"

/* Does a value of this key, or of another one that may be yes or no, say so? It may be NULL. */
bool format_option_is_yes(const char *value);
int format_option_check_yes_no(const char *value, struct why *why);
