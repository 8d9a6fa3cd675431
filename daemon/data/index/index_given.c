#include "daemon/data/index/index_given.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/base/machine/own_file.h"
#include "daemon/data/index/index_draft.h"
#include "daemon/data/index/index_layout.h"
#include "proto/base/cleanup.h"

struct given {
        const struct dataset_spec *spec;
        const char *format, *options, *index_dir, *index_path;
        int fd;
        struct index_header header; /* as read first; the copy is checked separately */
};

/* An index that cannot be changed any more: is it the expected one? */
static int index_given_check(const struct given *given, const struct source *index, struct why *ret_why) {
        const struct dataset_spec *spec = given->spec;

        if (spec->given_digest[0] && strcmp(index->digest, spec->given_digest) != 0)
                return why_set(ret_why, -EBADMSG, "%s: its digest is %.12s, not %.12s", spec->given_index,
                               index->digest, spec->given_digest);
        if (strcmp(index->format, given->format) != 0)
                return why_set(ret_why, -EBADMSG, "%s: it was made as %s, not as %s", spec->given_index, index->format,
                               given->format);
        if (strcmp(index_options(index), given->options) != 0)
                return why_set(ret_why, -EBADMSG, "%s: it was made with other options of the format",
                               spec->given_index);
        return 0;
}

/* Returns the index if it is the expected one; else closes it. */
static int index_given_hand_out(const struct given *given, struct source *opened, struct source **ret_index,
                                struct why *ret_why) {
        _cleanup_(source_closep) struct source *index = opened;
        int r = index_given_check(given, index, ret_why);

        if (r == 0)
                *ret_index = TAKE_PTR(index);
        return r;
}

static int open_checked(const struct given *given, int fd, const char *path, struct source **ret_index,
                        struct why *ret_why) {
        struct source *index;
        int r = index_open_fd(fd, path, given->spec->budget, &index, ret_why);

        return r < 0 ? r : index_given_hand_out(given, index, ret_index, ret_why);
}

/* The copy of an earlier time. The header holds the checksum of all that follows it. */
static int open_copy(const struct given *given, struct source **ret_index) {
        _cleanup_(closep) int fd = open(given->index_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct index_header header;
        int r = fd < 0 ? -errno : index_read_header(fd, &header, NULL);

        if (r == 0 && memcmp(&header, &given->header, sizeof(header)) != 0)
                r = -EBADMSG;
        return r < 0 ? r : open_checked(given, fd, given->index_path, ret_index, NULL);
}

/* A huge sparse file costs its writer nothing, so a copy may take at most half of the free space. */
static int index_given_check_room(int fd, uint64_t n_bytes, struct why *why) {
        struct statvfs status;

        if (fstatvfs(fd, &status) < 0)
                return why_errno(why, -errno, "free space");
        if (n_bytes / status.f_frsize >= status.f_bavail / 2)
                return why_errno(why, -ENOSPC, "a copy of %llu bytes", (unsigned long long)n_bytes);
        return 0;
}

/* Returns 0, or an errno: then nothing was placed, and the copy in memory can be tried. */
static int make_copy(const struct given *given, struct source **ret_index) {
        struct source *index = NULL;
        struct index_draft draft;
        int r = index_draft_make(given->index_dir, given->index_path, &draft, NULL);

        if (r == 0)
                r = index_given_check_room(draft.fd, given->header.file_bytes, NULL);
        if (r == 0)
                r = own_file_copy(given->fd, given->header.file_bytes, draft.fd);
        if (r == 0 && fsync(draft.fd) < 0)
                r = -errno;
        if (r == 0)
                r = open_checked(given, draft.fd, given->spec->given_index, &index, NULL);
        if (r == 0)
                r = index_draft_place(&draft, NULL);
        index_draft_drop(&draft);
        if (r < 0)
                source_close(index);
        else
                *ret_index = index;
        return r;
}

/* Used if the copy cannot be written to disk. index_open_fd() might map the file where it is, but it is not our file
 * and may be removed. */
static int make_copy_in_memory(const struct given *given, struct source **ret_index, struct why *ret_why) {
        struct source *index;
        int r = index_open_copy(given->fd, given->spec->given_index, given->spec->budget, &index, ret_why);

        return r < 0 ? r : index_given_hand_out(given, index, ret_index, ret_why);
}

int index_given_open(const struct dataset_spec *spec, const char *format, const char *options, const char *index_dir,
                     const char *index_path, struct source **ret_index, struct why *ret_why) {
        struct given given = {
                .spec = spec, .format = format, .options = options, .index_dir = index_dir, .index_path = index_path
        };
        _cleanup_(closep) int fd = open(spec->given_index, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        struct why detail = { 0 };
        int r = fd < 0 ? -errno : index_read_header(fd, &given.header, &detail);

        if (r < 0)
                return detail.text[0] ? why_set(ret_why, r, "%s: %s", spec->given_index, detail.text)
                                      : why_errno(ret_why, r, "%s", spec->given_index);
        given.fd = fd;
        if (open_copy(&given, ret_index) == 0 || make_copy(&given, ret_index) == 0)
                return 0;
        return make_copy_in_memory(&given, ret_index, ret_why);
}
