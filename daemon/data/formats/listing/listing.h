/* data/formats/listing/listing.h: datasets whose samples are the records of text files: which files these are, and where a
 * message says a record lies. What a record is, is up to the format. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/files/seen.h"
#include "daemon/data/files/shards.h"
#include "daemon/data/format.h"
#include "daemon/data/formats/listing/text_window.h"
#include "daemon/data/growing.h"

/* One file that was read. */
struct listed_file {
        uint64_t name;         /* offset into listing.names: its path relative to the root */
        uint64_t first_sample; /* samples of the files before it */
        struct stat status;    /* from before it was read */
};

struct text_listing {
        int root_fd;
        const struct files *files;
        const struct index_watch *watch;
        struct why *why;
        const char *format;        /* its name, for messages */
        const char *split;         /* the one that is meant of a folder with several (files/splits.h), or NULL */
        struct text_window window; /* on that file */
        bool is_inside;            /* the window begins with a record, the file with others that were read before */
        uint64_t n_samples;        /* found so far */
        uint64_t n_looked;         /* n_samples when listing_look_up() was called last */
        struct listed found;       /* the files that the path means */
        struct seen seen;
        uint64_t n_file;       /* bytes of the one that was begun last */
        struct growing listed; /* struct listed_file */
        struct growing names;
        int64_t settled_ns; /* time waited so far */
};

void listing_fini(struct text_listing *listing);

/* Reads the records that are in listing->window: from its place to its `stop`, or to the end of the file; what is only
 * at the begin of a file, before them, unless is_inside is set. Returns 0, and the window stands after the last record;
 * or an errno with `why`. */
typedef int (*listing_read)(struct text_listing *listing, void *userdata);

/* How several threads read pieces of a file at once, each into a part, a small listing of its own (parts.h). */
struct listing_parts;

/* Does a name that is not hidden end so? */
bool listing_has_ending(const char *name, const char *ending);

/* Reads the files of this kind that the path means, in their order. `parts`: how several threads do it; NULL: one
 * thread. Returns 0 or an errno with `why`; -ENOENT if there is no sample. Blocks until all are read. */
int listing_walk(struct text_listing *listing, const struct shards_kind *kind, listing_read read,
                 const struct listing_parts *parts, void *userdata);

/* The next file is read: its name and status are noted. -ENOMEM with `why`. */
int listing_begin_file(struct text_listing *listing, const char *name, const struct stat *status);

/* The file that is being read, or was read last. Valid until the next one is. */
const char *listing_name(const struct text_listing *listing);

/* For struct format's is_it(), with its outcomes: do the first bytes of the first file of this kind look right? Where
 * the path names files: are all of them taken by is_named_so()? Of a folder: does it also hold nothing else, except
 * what lies beside many a dataset (`may_have_others`: it may hold anything)? */
int listing_is_it(int root_fd, const struct files *files, const struct shards_kind *kind,
                  bool (*is_named_so)(const char *name), bool may_have_others,
                  bool (*begins_well)(const uint8_t *bytes, size_t n_bytes));

/* One such judgement: there is no NUL. */
bool listing_begins_as_text(const uint8_t *bytes, size_t n_bytes);

/* Puts "ROOT/FILE: line N: " before what `detail` says. `line` 0: without a line. Returns `error`. */
int listing_refuse(const struct text_listing *listing, uint64_t line, int error, const struct why *detail);

/* Says how many samples were found, every few thousand, and whether to go on. n_rows: all of them, once they are found
 * and put into the index, which now has listing->n_samples of them; before, 0. Returns 0 or -ECANCELED with `why`. */
int listing_look_up(struct text_listing *listing, uint64_t n_rows);

/* Adds the root and what the path named to an index; then, for each file before its samples, the file. Returns 0 or an
 * errno without `why`, as those of the builder (index_builder_text()). */
int listing_give_root(const struct text_listing *listing, struct index_builder *builder);
int listing_give_file(const struct text_listing *listing, struct index_builder *builder, size_t idx);

size_t listing_n_files(const struct text_listing *listing);
const struct listed_file *listing_file(const struct text_listing *listing, size_t idx);
