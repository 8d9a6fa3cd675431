/* base/machine/read_error.h: does a read that failed say something about its file, or about where that lies? */
#pragma once

/* What an error of open() or read() says about the file that it occurred with. */
enum read_error {
        READ_ERROR_OWN,    /* only this file can be the cause: not a regular file, another length */
        READ_ERROR_CLEAR,  /* this file or all of them: ENOENT, EACCES. One look decides */
        READ_ERROR_VAGUE,  /* the same, but it may be temporary: EIO, ESTALE, any unknown error */
        READ_ERROR_OUTAGE, /* not about one file: ENOTCONN, ETIMEDOUT, EHOSTDOWN */
};

/* So many tries in a row that fail with a vague error, while other files can be read, are the file's own. */
#define READ_ERROR_TRIES 4u

enum read_error read_error_kind(int error); /* a negative errno */
