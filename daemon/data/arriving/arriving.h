/* data/arriving/arriving.h: a dataset of files that become whole while it is served, in the order of blocks.
 *
 * A file is a block (data/growth.h). Somebody else (the supply) makes the files: of each more and more whole records,
 * and cuts off what is not whole while it is looked at. Whenever there is much more of a file, its format makes an
 * index of what is there, as of any file, which takes the place of the one before. So no format knows of this.
 *
 * Files that lie elsewhere as they are need nobody to make them: they are read through in such parts, and have bytes
 * where they were read (data/index/indexing.h). Then the supply are threads of our own.
 *
 * The first file says which fields there are, and how long they may be. A file that has others, or is damaged, ends
 * the jobs that come to it, as such a file would keep a dataset of all files from being opened.
 *
 * The number of a sample is that of its file << `shift` | the row in the file: it does not depend on what has arrived,
 * so that draws and batches are the same in each run. */
#pragma once

#include <stdatomic.h>

#include "daemon/data/format.h"
#include "daemon/data/source.h"

struct arriving;

/* The format that can cut files of this name, and is `format` unless that is "auto". NULL: such files cannot be served
 * before they are whole. */
const struct format *arriving_format(const char *format, const char *name);

struct arriving_spec {
        const char *root;                     /* the folder of the files; */
        char **names;                         /* relative to it: taken over */
        uint32_t n;                           /* 1 at least */
        const char *digest;                   /* of what they are made of: 64 hexadecimal digits */
        const struct format *format;          /* arriving_format() */
        const struct indexing_origin *origin; /* where they, or what they are made of, come from; NULL: from here */
        uint32_t n_threads;                   /* that read files of the origin through; 0: others make the files */
        void (*wanted)(void *userdata);
        void *userdata;
};

int arriving_new(const struct arriving_spec *spec, struct arriving **ret_arriving); /* -ENOMEM; then names stay */

/* ---- who opens it ------------------------------------------------------------------------------------------------ */

/* Files that lie elsewhere as they are: threads begin to read them through, as they are needed, until arriving_leave().
 */
int arriving_read_through(struct arriving *arriving, int root_fd, struct why *why);

/* Waits until some of the first file is there. 0; -ECANCELED; -EBADMSG with `why`: it is damaged. */
int arriving_wait(struct arriving *arriving, const atomic_bool *cancel, struct why *why);

/* The first index is made; then the supply goes on. The options outlive the source, which is `arriving` from now on:
 * closing it frees both. On an error the supply is not waited for any more, and arriving_free() must follow once it
 * has stopped. */
int arriving_open(struct arriving *arriving, int root_fd, const struct format_options *options, struct budget *budget,
                  struct source **ret_source, struct why *why);
void arriving_free(struct arriving *arriving); /* NULL is fine */

/* Its files, the first one alone: for who looks what format they have. The names are the spec's. */
void arriving_first(const struct arriving *arriving, struct files *ret_files);

/* ---- the supply: threads that are at different files ------------------------------------------------------------- */

/* Is some file needed that is not in `taken` (a bit each)? Files may have other numbers there: `numbers` of each. */
bool arriving_next(struct arriving *arriving, const _Atomic uint64_t *taken, const size_t *numbers, size_t *ret_number);
uint32_t arriving_cut(struct arriving *arriving, int fd, uint64_t n_bytes, uint64_t *whole); /* zeros to follow */
void arriving_grown(struct arriving *arriving, uint32_t file, bool is_whole);

/* Reading the file from its origin has failed for the n_failed-th time in a row. Should it be tried again? Returns
 * after a pause; as samples are waited for (pipeline/failure/outage.h), except for the first file before the dataset is
 * open: opening fails, as that of any other does. Error 0: it has not failed any more. */
bool arriving_waits(struct arriving *arriving, uint32_t file, int error, uint32_t n_failed);
void arriving_failed(struct arriving *arriving, uint32_t file, const struct why *why);

/* Nothing of it is asked of the supply any more, and what it is at ends soon. Its own threads have ended. */
void arriving_leave(struct arriving *arriving);
