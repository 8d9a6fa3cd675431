/* data/formats/tfrecord/records.h: the records of one TFRecord file, one after the other.
 *
 *      length (8 bytes), checksum of the length (4), data, checksum of the data (4)
 *
 * Both checksums are compared. The length is used only after its checksum was right, so no memory is taken for a length
 * that is damage. */
#pragma once

#include <stdint.h>

#include "daemon/data/files/ahead.h"
#include "proto/base/why.h"

#define RECORDS_LENGTH_MAX ((1ull << 31) - 1) /* bytes of one record: what protobuf allows for a message */

struct records {
        struct ahead *ahead;
        uint64_t n_bytes;
        uint64_t at, number; /* of the next record */
};

struct record {
        uint64_t number; /* within its file, from 0 */
        uint64_t offset; /* of the data, in the file */
        uint64_t n_bytes;
        const uint8_t *bytes; /* valid until the next one */
};

/* Positive outcome of records_next(): the file has ended where a record ends. */
#define RECORDS_END 1

/* Where the last record ends of a file that still grows (format.h, cut). Looks at lengths alone. */
uint64_t records_cut(int fd, uint64_t n_bytes, uint64_t whole);

/* Begins with the file of n_bytes that `ahead`, which stays the caller's, stands at the begin of. */
void records_begin(struct records *records, struct ahead *ahead, uint64_t n_bytes);

/* The next record. Returns 0; RECORDS_END; -EBADMSG if the file is damaged or cut; -ENOTSUP if it is compressed;
 * -EFBIG; -ENOMEM, or what reading returned. `why` names the record and the byte, but not the file. After an error,
 * this fails the same way again. Blocks for the disk. */
int records_next(struct records *records, struct record *ret_record, struct why *why);
