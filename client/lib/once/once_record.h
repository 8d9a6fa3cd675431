/* lib/once/once_record.h: what the file of a piece of work says: which attempt was the last one, and how it ended.
 *
 * One file holds both the record and the lock: a process that has locked the file sees what the process before it
 * wrote. This is so on network file systems too, where a change in a second file could be seen late. So the file is
 * written in place, not renamed. A checksum detects a torn record. A torn record counts as none, because its writer
 * died before it was done. */
#pragma once

#include <stdint.h>

#include "client/include/dlclient.h"

#define DLI_ONCE_KEY_MAX  129u /* bytes with NUL */
#define DLI_ONCE_HOST_MAX 65u  /* HOST_NAME_MAX of Linux, with NUL */

/* Positive outcomes of reading. */
#define DLI_ONCE_ABSENT  1 /* the file is empty: no process has begun yet */
#define DLI_ONCE_DAMAGED 2 /* torn, damaged, or being written at this moment */

enum dli_once_state {
        DLI_ONCE_RUNNING = 1, /* if the lock is free, the runner has died */
        DLI_ONCE_ENDED_DONE,
        DLI_ONCE_ENDED_FAILED,
};

struct dli_once_record {
        uint64_t attempt;
        enum dli_once_state state;
        int status;
        int64_t pid;
        int64_t when; /* seconds since 1970 */
        char host[DLI_ONCE_HOST_MAX];
        char key[DLI_ONCE_KEY_MAX];
        char *text;   /* owned by the record; NULL: none */
        char *result; /* owned by the record; NULL: none */
};

/* Reads it, whoever holds the lock. Returns 0, DLI_ONCE_ABSENT, DLI_ONCE_DAMAGED, or an errno. */
int dli_once_record_read(int fd, struct dli_once_record *ret_record);

/* Writes the record and syncs it to the disk. The caller holds the lock. Returns 0, or an errno: the file then holds no
 * valid record. */
int dli_once_record_write(int fd, const struct dli_once_record *record);

/* Frees the record's texts. */
void dli_once_record_clear(struct dli_once_record *record);
