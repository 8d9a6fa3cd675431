/* lib/orders/client_columns.h: the columns of a sampler in shared memory that nobody can change any more, for the daemon.
 *
 * The trainer's arrays are copied once, when a loader is opened; the copy is sent with each request to attach, also
 * after a restart of the daemon. A column that a sampler asks for and that the trainer does not give may be a file with
 * numbers, as in subset(indices.txt); it is read here, with the rights of the trainer. */
#pragma once

#include <stdint.h>

#include "client/include/dlclient.h"
#include "proto/base/why.h"
#include "proto/dataloader.pb-c.h"

#define DLI_COLUMNS_MAX 16u

struct dli_columns {
        int fd; /* -1: there are none */
        uint32_t n;
        Dlp__Column columns[DLI_COLUMNS_MAX];
        Dlp__Column *pointers[DLI_COLUMNS_MAX];
        char *names[DLI_COLUMNS_MAX]; /* owned */
        char digest[33];              /* "": there are none */
};

/* Takes the columns of these options. On failure nothing is kept. -EINVAL with the name, -ENOMEM, errnos of files. */
int dli_columns_make(const struct dlc_options *options, struct dli_columns *ret_columns, struct why *why);

/* Takes what dli_columns_make() has never filled in, too, if fd is -1. */
void dli_columns_free(struct dli_columns *columns);
