/* data/format.h: the kinds of datasets. A format is a folder or a file in formats/, with one struct format in it that is
 * called format_NAME. The build lists them by the line that begins it (Makefile, KINDS).
 *
 * A format either finds its samples once and fills an index, which answers from then on (build), or it is a source
 * itself and computes its answers (open). */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/data/files/files.h"
#include "daemon/data/format_options.h"
#include "daemon/data/index/index_builder.h"
#include "daemon/data/refusals.h"
#include "proto/base/why.h"

/* An observer that is called while an index is built. */
struct index_watch {
        void (*progress)(void *userdata, uint64_t n_files); /* every few thousand files, and at the end; may be NULL */
        /* How much of all there is was looked at, in `unit`: "B" for bytes; for formats that know it. As often, and on
         * the same thread. The total may change; it begins again if there is another pass. May be NULL. */
        void (*part)(void *userdata, uint64_t n_done, uint64_t n_total, const char *unit);
        void *userdata;
        const atomic_bool *cancel; /* once it is true, building ends soon with -ECANCELED; may be NULL */
        uint64_t max_copied; /* bytes of values that may be unpacked or copied into memory, where an index is made; 0:
                              * INDEX_COPIED_MAX */
};

#define INDEX_COPIED_MAX (2ull << 30)

static inline uint64_t index_watch_max_copied(const struct index_watch *watch) {
        return watch && watch->max_copied > 0 ? watch->max_copied : INDEX_COPIED_MAX;
}

/* A part of the names of a format's files. */
struct format_naming {
        const char *part;
        bool is_end;  /* at the end of a name */
        bool is_file; /* only if the path names files: beside others such a file is a readme */
};

/* A kind of files that prepare = "convert" (staging/run/conversions.h) puts through a program, told by their names. */
#define FORMAT_WORDS 5u
struct format_conversion {
        const char *ending;              /* of the name; the first row whose ending fits counts */
        const char *words[FORMAT_WORDS]; /* the program and its arguments, NULL at the end; the first NULL: Python */
        const char *becomes; /* of files that are known by their names, in place of the ending; NULL: what the program
                              * writes is a file of samples with a new name (struct format_written) */
        bool is_kept_alone;  /* a name is kept only if nothing is to be done to files of other rows */
        const char *begin;   /* of the name, too; NULL: any */
        const char *beside;  /* there is a file of this name in the folder; NULL: need not be */
        const char *without; /* there is none that has this ending in place of the row's; NULL: may be */
};

#define FORMAT_DECOMPRESSED(ending)                                                                                    \
        { ending ".gz", { "gzip", "-dc" }, ending }, { ending ".zst", { "zstd", "-dcq" }, ending },                    \
                { ending ".xz", { "xz", "-dc" }, ending }, {                                                           \
                ending ".bz2", { "bzip2", "-dc" }, ending                                                              \
        }

#define FORMAT_HEAD_BYTES 512u

/* Files of samples as a program writes them for the preparation of a staging (staging/prepare/converter.h). */
struct format_written {
        const char *suffix; /* of their names: ".tar" */
        size_t n_head;      /* the bytes by which they are told, FORMAT_HEAD_BYTES at most: if several formats may be
                             * meant the one that needs the most is */
        bool (*begins_so)(const uint8_t *head, size_t n); /* n_head at least */
        bool ends_in_line;                                /* its last byte ends a line; else something is missing */
        bool is_alone;                                    /* a dataset is one such file */
        const struct format_naming *names; /* of such files, except those that only the path names, with or without
                                            * another ending. NULL: none are taken because of their names */
};

struct format {
        const char *name;
        const char *doc;      /* a paragraph, as kinds have it (proto/text/kinds.h): what it is of, what is a sample */
        const char *example;  /* the keys of a dataset of it */
        bool takes_files;     /* the path may also name files; otherwise only a folder */
        bool is_prepared;     /* its files are shards that the preparation of a staging made */
        bool is_read_through; /* how many samples a file has is known once all of it has been read, not from its head */
        bool is_object;       /* it stands for an object of the client's: there are no files that others could find */

        /* The keys of the configuration that it takes (data/format_options.h), a row each, and a row without a name at
         * the end; NULL: none. Another order would make its indices anew. */
        const struct setting *options;

        /* Is part of an index's digest of options: indices that were made before it was set, or under another text, are
         * made anew. For a format that began to find more. NULL: nothing. */
        const char *revision;

        /* The one of these keys that names files of which the index is made too, separated by commas, perhaps with
         * something in brackets after each: when one changes, the index is made anew. NULL: none. */
        const char *file_option;

        /* Are these files of this format? Told by their content, with a few reads. For `format = "auto"`: at most one
         * format should say so. Returns 1 or 0; or an errno with which nothing can be told (format_cannot_tell()).
         * NULL: auto never finds it. */
        int (*is_it)(int root_fd, const struct files *files);

        /* Files that no format recognises by what they begin with are empty, damaged or compressed. The format that
         * their names speak of says what is wrong, or reads those that are not empty. Up to one without a part; NULL:
         * they speak of none. */
        const struct format_naming *names;

        /* What the preparation of a staging converts: rows up to one without an ending, and what that is, for messages:
         * "arrays (.npy, .npz)". NULL: nothing. */
        const struct format_conversion *conversions;
        const char *converts;

        /* A program that converts may write files of this format. NULL: it may not. */
        const struct format_written *written;

        /* How many leading bytes of a file that still grows, and has n_bytes now, are whole samples, so that they are a
         * file of this format by themselves: at least `whole`, which were before. Blocks for reads of what has come
         * since. NULL: files must be whole. */
        uint64_t (*cut)(int fd, uint64_t n_bytes, uint64_t whole);
        uint32_t n_cut_zeros; /* bytes that have to follow there */

        /* Either this or the next one is set; the other one is NULL.
         *
         * Makes an index of `files`, of which `root_fd` is the root (O_PATH is enough). `options` are those that the
         * row takes; NULL: none is set. `watch` may be NULL. Returns 0 or an errno with `why`, which names the file or
         * folder. Blocks as long as it takes to read all directories. */
        int (*build)(int root_fd, const struct files *files, const struct format_options *options,
                     const struct index_watch *watch, struct index_builder **ret_builder, struct why *why);

        /* Opens `files` as they are. Memory that grows with the number of samples is counted in `budget` until the
         * source is closed; NULL: it is not counted. Returns as build(). Blocks for a few reads of each file, or as
         * long as it takes to make the tables that the source needs. */
        int (*open)(int root_fd, const struct files *files, const struct format_options *options,
                    const struct index_watch *watch, struct budget *budget, struct source **ret_source,
                    struct why *why);

        /* Adds fields to the schema of an index that are made of others (schema.h, same_as). They are not in the index
         * itself and not in its digest. Quick: may look at the length of a field of each sample. NULL: there are none.
         */
        void (*extend)(struct source *index);
};

#define KIND(name) extern const struct format format_##name;
#include "kinds/formats.h"
#undef KIND
extern const struct format plugged_format; /* not among them: it needs a scanner, and is named "plugin(...)" */

/* The formats one by one, by name; NULL after the last one. */
const struct format *format_at(size_t idx);

/* While an index is built: says how many samples were found, and whether to go on. Returns 0, or -ECANCELED with `why`,
 * which names `root`. `watch` may be NULL. */
int format_look_up(const struct index_watch *watch, uint64_t n_samples, const char *root, struct why *why);

/* Returns 0, or -EINVAL with `why`, which lists the known formats. */
int format_find(const char *name, const struct format **ret_format, struct why *why);

/* As `build` of the format, and once more without each column that it could not serve (data/refusals.h). The columns
 * that were left out are in the index, each with its reason. */
int format_build(const struct format *format, int root_fd, const struct files *files,
                 const struct format_options *options, const struct index_watch *watch,
                 struct index_builder **ret_builder, struct why *why);

/* May a dataset of this format be made of these files? Returns 0, or -ENOTDIR with `why`, which says what is
 * allowed. */
int format_check_files(const struct format *format, const struct files *files, struct why *why);
