/* data/formats/zip.h: where the files in a zip archive lie.
 *
 *      [local header, name, data] for each file    directory    [zip64: its end, its locator]    end
 *
 * Only files that are stored as they are have bytes that can be read one by one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

#define ZIP_NAME_MAX 255u

struct zip_file {
        char name[ZIP_NAME_MAX + 1];
        bool is_stored;   /* neither compressed nor encrypted */
        uint64_t offset;  /* of its data, if it is stored */
        uint64_t n_bytes; /* unpacked */
};

/* Calls found() for each file of the archive, in the directory's order, until it returns an error, which is returned.
 * Returns 0; -EBADMSG if the archive is damaged or cut; -ENOTSUP for one in several parts; -E2BIG, -ENAMETOOLONG,
 * -ENOMEM, or what reading returned. `why` names the file and the byte. Any input is safe. Checksums are not compared:
 * that would read everything. Blocks for a few reads and one for each file. */
int zip_walk(int fd, uint64_t n_bytes, int (*found)(void *userdata, const struct zip_file *file, struct why *why),
             void *userdata, struct why *why);
