#include "daemon/data/formats/zip.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define DIRECTORY_MAX  (1u << 20) /* bytes; names of thousands of files */
#define COMMENT_MAX    UINT16_MAX
#define N_END          22u
#define N_LOCATOR      20u /* of zip64, directly before the end */
#define N_END_64       56u
#define N_ENTRY        46u
#define N_LOCAL        30u
#define FLAG_ENCRYPTED 1u
#define EXTRA_ZIP64    1u

struct directory {
        uint64_t offset, n_bytes, n_files;
        uint64_t end; /* where it must end: at the records that describe it */
};

struct reading {
        int fd;
        uint64_t n_bytes;
        struct why *why;
};

static int bad(const struct reading *reading, uint64_t at, const char *what) {
        return why_set(reading->why, -EBADMSG, "at byte %" PRIu64 ": %s", at, what);
}

static int zip_read_at(const struct reading *reading, void *into, size_t n, uint64_t offset) {
        int r;

        if (offset > reading->n_bytes || n > reading->n_bytes - offset)
                return bad(reading, offset, "the archive is cut here, or was changed after it was written");
        r = indexing_read_at(reading->fd, into, n, offset);
        return r < 0 ? why_errno(reading->why, r, "cannot be read") : 0;
}

/* ---- where the directory is ------------------------------------------------------------------------------------ */

/* The end record is the last in the file, except for a comment of up to 64 KiB. */
static int zip_find_end(const struct reading *reading, uint8_t ret_end[N_END], uint64_t *ret_at) {
        uint64_t most = N_END + COMMENT_MAX, n = reading->n_bytes < most ? reading->n_bytes : most;
        _cleanup_(freep) uint8_t *tail = malloc(most);
        int r = tail ? zip_read_at(reading, tail, n, reading->n_bytes - n) : -ENOMEM;

        if (r < 0)
                return r == -ENOMEM ? why_errno(reading->why, r, "its end") : r;
        for (uint64_t left = N_END; left <= n; left++) {
                const uint8_t *end = tail + n - left;

                if (memcmp(end, "PK\5\6", 4) != 0 || le16(end + 20) != left - N_END)
                        continue;
                memcpy(ret_end, end, N_END);
                *ret_at = reading->n_bytes - left;
                return 0;
        }
        return bad(reading, reading->n_bytes, "no end of a zip archive: it is cut, or is not one");
}

/* A file or a directory beyond 4 GiB has a second end record with larger numbers. */
static int read_end_64(const struct reading *reading, uint64_t end_at, struct directory *directory) {
        uint8_t locator[N_LOCATOR] = { 0 }, end[N_END_64] = { 0 };
        uint64_t at;
        int r;

        if (end_at < N_LOCATOR)
                return 0;
        r = zip_read_at(reading, locator, sizeof(locator), end_at - N_LOCATOR);
        if (r < 0 || memcmp(locator, "PK\6\7", 4) != 0)
                return r;
        at = le64(locator + 8);
        r = zip_read_at(reading, end, sizeof(end), at);
        if (r < 0)
                return r;
        if (memcmp(end, "PK\6\6", 4) != 0)
                return bad(reading, at, "no zip64 end record, though one is said to be here");
        directory->n_files = le64(end + 32);
        directory->n_bytes = le64(end + 40);
        directory->offset = le64(end + 48);
        directory->end = at;
        return 0;
}

static int find_directory(const struct reading *reading, struct directory *ret_directory) {
        uint8_t end[N_END] = { 0 };
        uint64_t at = 0;
        int r = zip_find_end(reading, end, &at);

        if (r < 0)
                return r;
        if (le16(end + 4) != le16(end + 6) || le16(end + 8) != le16(end + 10))
                return why_set(reading->why, -ENOTSUP, "is one part of an archive in several parts");
        *ret_directory = (struct directory){
                .n_files = le16(end + 10), .n_bytes = le32(end + 12), .offset = le32(end + 16), .end = at
        };
        r = read_end_64(reading, at, ret_directory);
        if (r < 0)
                return r;
        if (ret_directory->offset > ret_directory->end ||
            ret_directory->n_bytes != ret_directory->end - ret_directory->offset)
                return bad(reading, ret_directory->end,
                           "the directory of the archive does not end here: bytes are missing or were added");
        if (ret_directory->n_bytes > DIRECTORY_MAX)
                return why_set(reading->why, -E2BIG, "its directory has %" PRIu64 " bytes; the limit is %u",
                               ret_directory->n_bytes, DIRECTORY_MAX);
        return 0;
}

/* ---- the files in it ------------------------------------------------------------------------------------------- */

/* Replaces the numbers that do not fit into 32 bits. Only those are in the extra field, one after the other. */
static int read_extra(const struct reading *reading, uint64_t at, const uint8_t *extra, size_t n, uint64_t *numbers[],
                      size_t n_numbers) {
        for (size_t i = 0; i + 4 <= n; i += 4u + le16(extra + i + 2)) {
                size_t n_field = le16(extra + i + 2), used = 0;

                if (n_field > n - i - 4)
                        return bad(reading, at, "an extra field of the directory is cut");
                if (le16(extra + i) != EXTRA_ZIP64)
                        continue;
                for (size_t k = 0; k < n_numbers; k++) {
                        if (*numbers[k] != UINT32_MAX)
                                continue;
                        if (used + 8 > n_field)
                                return bad(reading, at, "the zip64 field of the directory is cut");
                        *numbers[k] = le64(extra + i + 4 + used);
                        used += 8;
                }
        }
        return 0;
}

/* The data begins after the local header, whose extra field may differ from that of the directory. */
static int find_data(const struct reading *reading, const struct directory *directory, uint64_t local,
                     struct zip_file *file) {
        uint8_t header[N_LOCAL] = { 0 };
        int r = zip_read_at(reading, header, sizeof(header), local);

        if (r < 0)
                return r;
        if (memcmp(header, "PK\3\4", 4) != 0)
                return bad(reading, local, "no file begins here, though the directory says so");
        file->offset = local + N_LOCAL + le16(header + 26) + le16(header + 28);
        if (file->offset > directory->offset || file->n_bytes > directory->offset - file->offset)
                return why_set(reading->why, -EBADMSG,
                               "at byte %" PRIu64 ": %s has %" PRIu64
                               " bytes, which would reach into the archive's directory",
                               local, file->name, file->n_bytes);
        return 0;
}

/* One entry of the directory, of which `n` bytes are left; returns how long it is. */
static int64_t zip_read_entry(const struct reading *reading, const struct directory *directory, const uint8_t *entry,
                              uint64_t n, struct zip_file *ret_file) {
        uint64_t at = directory->end - n, packed, local, *numbers[] = { &ret_file->n_bytes, &packed, &local };
        size_t n_name, n_extra, n_comment;
        int r;

        if (n < N_ENTRY || memcmp(entry, "PK\1\2", 4) != 0)
                return bad(reading, at, "no entry of the directory, though there should be one");
        n_name = le16(entry + 28);
        n_extra = le16(entry + 30);
        n_comment = le16(entry + 32);
        if (N_ENTRY + n_name + n_extra + n_comment > n)
                return bad(reading, at, "an entry of the directory is cut");
        if (n_name > ZIP_NAME_MAX || memchr(entry + N_ENTRY, '\0', n_name))
                return why_set(reading->why, -ENAMETOOLONG,
                               "at byte %" PRIu64 ": the name of a file in it has more than %u bytes, or a NUL", at,
                               ZIP_NAME_MAX);
        memcpy(ret_file->name, entry + N_ENTRY, n_name);
        ret_file->name[n_name] = '\0';
        packed = le32(entry + 20);
        ret_file->n_bytes = le32(entry + 24);
        local = le32(entry + 42);
        r = read_extra(reading, at, entry + N_ENTRY + n_name, n_extra, numbers, ARRAY_SIZE(numbers));
        if (r < 0)
                return r;
        ret_file->is_stored = le16(entry + 10) == 0 && !(le16(entry + 8) & FLAG_ENCRYPTED) &&
                              packed == ret_file->n_bytes;
        if (ret_file->is_stored)
                r = find_data(reading, directory, local, ret_file);
        return r < 0 ? r : (int64_t)(N_ENTRY + n_name + n_extra + n_comment);
}

int zip_walk(int fd, uint64_t n_bytes, int (*found)(void *userdata, const struct zip_file *file, struct why *why),
             void *userdata, struct why *why) {
        struct reading reading = { .fd = fd, .n_bytes = n_bytes, .why = why };
        _cleanup_(freep) uint8_t *bytes = NULL;
        struct directory directory = { 0 };
        struct zip_file file;
        uint64_t at = 0;
        int r = find_directory(&reading, &directory);

        if (r < 0)
                return r;
        bytes = malloc(directory.n_bytes + 1);
        if (!bytes)
                return why_errno(why, -ENOMEM, "its directory");
        r = zip_read_at(&reading, bytes, directory.n_bytes, directory.offset);
        for (uint64_t i = 0; i < directory.n_files && r >= 0; i++) {
                int64_t n = zip_read_entry(&reading, &directory, bytes + at, directory.n_bytes - at, &file);

                r = n < 0 ? (int)n : found(userdata, &file, why);
                at += n < 0 ? 0 : (uint64_t)n;
        }
        if (r < 0)
                return r;
        if (at < directory.n_bytes)
                return bad(&reading, directory.offset + at, "the directory goes on after its last entry");
        return 0;
}
