/* staging/prepare/converter.h: one file of a dataset through a program of the user, into a file of samples.
 *
 *   prepare = "command: ffmpeg -i \"$DATALOADERD_FILE\" ... | tee ..."
 *
 * The program is a command of /bin/sh. It runs in the dataset's folder, finds the file as its standard input and as
 * $DATALOADERD_FILE, and writes samples to its standard output, in a form that other programs can read and write too,
 * as formats say (struct format_written): a tar file (members with the same name before the first dot are one sample),
 * an Arrow IPC stream or file (a row is a sample), TFRecord (a record is a sample), or JSON Lines (a line is a sample).
 * A dataset of one file may also be an .npz archive of arrays that are not compressed. A program that writes nothing
 * leaves the file out.
 *
 * It has done its work if it ends with status 0. What it wrote of others is thrown away. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/format.h"
#include "proto/base/why.h"

enum {
        CONVERTED_NOTHING, /* nothing was written */
        CONVERTED_NAMED,   /* anything, of a dataset that knows its files by their names; the name is kept */
        CONVERTED_FORMATS, /* from here on: a file of the format with this number (format_at()) */
};

/* The format of such a file. NULL: none, or it cannot be written. */
const struct format *converted_format(uint64_t kind);

/* What names of such files end in: ".tar"; ".none" for nothing; NULL for a format that cannot be written. */
const char *converted_suffix(uint64_t kind);

struct converter_job {
        const char *const *words;  /* the program and its arguments, NULL at the end */
        const char *folder;        /* the dataset's, in which it runs */
        const char *path;          /* the file's, relative to the folder */
        int out_fd;                /* an empty file to be written */
        uint64_t limit_bytes;      /* the most that it may write */
        uint32_t stall_s;          /* the longest time without a byte */
        const atomic_bool *cancel; /* may be NULL */
        bool is_named;             /* any bytes are CONVERTED_NAMED */
};

/* Runs the program and waits for its end. Whatever it started ends with it: they are one process group, which is
 * killed. Takes a megabyte of memory. Returns 0; -ECANCELED; -EFBIG if it writes more than the limit; -ETIMEDOUT if it
 * writes nothing for too long; -EINVAL if it ends with another status or writes another form, with its last words on
 * stderr; -ENOSPC or another errno. `why` names the file. */
int converter_run(const struct converter_job *job, uint64_t *ret_kind, struct why *why);
