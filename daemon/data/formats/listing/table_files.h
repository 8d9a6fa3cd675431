/* data/formats/listing/table_files.h: fields of a listing that are files, and how the records name them.
 *
 *   files = "image=path, mask=masks/{id}.png"
 *
 * The field "image" is the file that the column "path" names. In a text with braces, each {COLUMN} stands for what the
 * record has in that column, as it is written there. A field with a question mark, "label?=labels/{name}.txt", is
 * absent where its file does not exist: a picture of nothing has no file of labels. Without the option, a column
 * "file_name" (Hugging Face) or "audio_filepath" (NeMo) is taken so if the file that the first record names exists. One
 * thread. */
#pragma once

#include "daemon/data/formats/listing/file_paths.h"
#include "daemon/data/formats/listing/listing_columns.h"

#define TABLE_FILES_MAX       8u
#define TABLE_FILES_PARTS_MAX 8u         /* {COLUMN} in one text */
#define TABLE_FILES_NONE      UINT64_MAX /* this record names no file */

/* Literal text, and the column after it. */
struct table_files_part {
        char name[SCHEMA_NAME_MAX]; /* of the column; "": none, the text ends here */
        const char *literal;        /* within the option */
        size_t n_literal;
        const struct table_column *column; /* once a record has it */
};

/* A field that is files. */
struct table_files {
        char field[SCHEMA_NAME_MAX];  /* "": not known yet */
        char column[SCHEMA_NAME_MAX]; /* "": the parts say how a file is named */
        struct table_files_part parts[TABLE_FILES_PARTS_MAX + 1];
        size_t n_parts;
        bool is_optional;
        bool is_guess; /* nobody asked for it */
        bool is_none;  /* a guess that was wrong: paths of which one cannot be a file of the dataset */
        struct file_paths paths;
        struct growing rows; /* uint64_t for each record: where its path is in `paths`, plus 1; 0: none */
        uint64_t n_present;  /* records that name a file */
};

struct table_files_set {
        struct table_files items[TABLE_FILES_MAX];
        size_t n;
};

/* Reads the option, which must outlive the set; NULL: the guesses. Returns 0 or -EINVAL with `why`. */
int table_files_init(struct table_files_set *set, const char *option, struct why *why);

void table_files_fini(struct table_files_set *set);

/* A column was added: notes in it whether it names files, or is a part of their names. */
void table_files_bind(struct table_files_set *set, struct table_column *column);

/* A record has this path, as UTF-8, in a column that names files. `listing` is the listing's path from the root.
 * Returns 0 or an errno with `why`, which says nothing of lines. */
int table_files_note_path(struct table_files_set *set, const struct table_column *column, uint64_t row,
                          const char *listing, const char *path, size_t n, struct why *why);

/* The record has null there: a path that it had before does not count. */
void table_files_forget_path(struct table_files_set *set, const struct table_column *column, uint64_t row);

/* The record is complete: makes the names that have several parts. A record without one of these columns names no
 * file. Returns as above. */
int table_files_end_record(struct table_files_set *set, uint64_t row, const char *listing, struct why *why);

/* All records were read: which guesses were right, and are all columns there? `root` is for messages. Returns 0 or
 * -EINVAL with `why`. Blocks for a stat(). */
int table_files_judge(struct table_files_set *set, struct table_columns *columns, int root_fd, const char *root,
                      struct why *why);

/* Is there a field of files of this name? It takes the place of a column that is called so. */
bool table_files_replace(const struct table_files_set *set, const char *name);

/* The path that a record names, in files->paths; or TABLE_FILES_NONE. */
uint64_t table_files_path(const struct table_files *files, uint64_t row);

/* The first record that names a file; n_present is not 0. */
uint64_t table_files_first(const struct table_files *files);
