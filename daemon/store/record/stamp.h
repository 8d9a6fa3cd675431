/* store/record/stamp.h: the word that a version of a dataset is whole on this node, and verified on all.
 *
 * A line of JSON, written under another name, synced, renamed. Whoever serves the dataset asks for nothing else. */
#pragma once

#include <stdint.h>

#include "daemon/store/record/record_place.h"
#include "proto/base/why.h"

#define STAMP_ABSENT 1 /* positive outcome of stamp_read(): nothing has been staged yet */

struct stamp {
        char dataset[DLP_NAME_MAX];
        char manifest[PLACE_DIGEST_SIZE]; /* digest of the plan that the version's files are */
        char version[PLACE_VERSION_SIZE];
        char source[PLACE_DIGEST_SIZE]; /* digest of the origin's plan; another one than `manifest` if archives were
                                         * unpacked or samples prepared */
        char source_version[PLACE_VERSION_SIZE]; /* where the origin's own files lie, for the next difference; "":
                                                    nowhere */
        char prepare[DLP_TEXT_MAX];              /* what was done to the samples, as configured; "": nothing */
        char index[PLACE_DIGEST_SIZE];           /* digest of the index beside the version; "": none was made */
        char format[32];                         /* what the index was made as, "imagefolder"; "" if none */
        uint64_t n_files;
        uint64_t n_bytes;
        uint32_t n_nodes; /* that took part */
        uint64_t when;    /* seconds since 1970; for people: nothing is decided by it */
};

/* Returns 0; STAMP_ABSENT; -EBADMSG or another errno with `why` naming the file. Checks that the version's folder and
 * index are there. */
int stamp_read(const struct place *place, struct stamp *ret_stamp, struct why *why);

/* Puts it in place: fsync of the new file, rename, fsync of the folder. Blocks for the disk. */
int stamp_write(const struct place *place, const struct stamp *stamp, struct why *why);

/* What tells one stamp from the next without reading it (inode and time of change): 0 if there is none. One stat. */
uint64_t stamp_mark(const struct place *place);
