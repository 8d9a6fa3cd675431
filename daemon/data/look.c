#include "daemon/data/look.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/index/index.h"
#include "proto/base/cleanup.h"

#define PIECE_BYTES 4096u  /* read of each other file */
#define BLOCK_BYTES 65536u /* of the sample itself, all of which is read */
#define SKIPS_MAX   16u    /* samples that are skipped at most to find one of LOOK_OTHERS */

/* Where the next stored field of the sample is, from field *idx on, which becomes the one after it. A sample of values
 * alone has none. */
static bool next_stored(const struct dataset *dataset, uint64_t sample, uint32_t *idx, struct extent *ret_place) {
        const struct source *source = dataset_source(dataset);

        while (*idx < source->schema.n_fields) {
                uint32_t field = (*idx)++;

                if (!source->schema.fields[field].is_stored)
                        continue;
                source_locate(source, sample, field, ret_place);
                if (!(ret_place->flags & EXTENT_ABSENT))
                        return true;
        }
        return false;
}

static bool was_unreachable(const struct dataset *dataset, uint64_t sample) {
        struct extent place;
        uint32_t idx = 0;

        while (next_stored(dataset, sample, &idx, &place))
                if (place.flags & EXTENT_UNREACHABLE)
                        return true;
        return false;
}

enum read_error dataset_read_error_kind(const struct dataset *dataset, uint64_t sample, int error) {
        enum read_error kind = read_error_kind(error);

        if (error == -EREMCHG && dataset_has_changed(dataset))
                return READ_ERROR_OWN;
        return kind == READ_ERROR_CLEAR && was_unreachable(dataset, sample) ? READ_ERROR_OWN : kind;
}

static int say(struct why *why, const struct dataset *dataset, const char *name, int error) {
        const char *short_name = strerrorname_np(-error);

        return why_set(why, error, "%s: %s%s%s (%s)", dataset_root(dataset), name, name[0] ? ": " : "", why_text(error),
                       short_name ? short_name : "?");
}

/* ---- one file ------------------------------------------------------------------------------------------------ */

struct piece {
        const char *path; /* relative to the root */
        uint64_t offset, n_bytes;
        bool is_part;
};

static void describe_piece(const struct extent *place, char path[PATH_MAX], struct piece *ret_piece) {
        if (!place->shard)
                extent_path(place, path);
        *ret_piece = (struct piece){ .path = place->shard ? place->shard : path,
                                     .offset = place->offset,
                                     .n_bytes = place->length,
                                     .is_part = place->shard };
}

static int open_piece(const struct dataset *dataset, const struct piece *piece, int *ret_fd) {
        _cleanup_(closep) int fd = -1;
        struct stat status;

        do {
                fd = beneath_open(dataset_root_fd(dataset), piece->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        } while (fd < 0 && errno == EINTR);
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return -EINVAL;
        *ret_fd = take_fd(&fd);
        return 0;
}

/* Reads from the disk: data in the page cache does not prove anything. */
static int read_piece(const struct dataset *dataset, int fd, uint64_t offset, uint64_t n_bytes) {
        const struct indexing_origin *origin = dataset_origin(dataset);
        static _Thread_local uint8_t block[BLOCK_BYTES];
        uint64_t n_done = 0;

        if (!origin)
                posix_fadvise(fd, (off_t)offset, (off_t)n_bytes, POSIX_FADV_DONTNEED);
        while (n_done < n_bytes) {
                uint64_t left = n_bytes - n_done;
                size_t n_now = left < sizeof(block) ? left : sizeof(block);
                ssize_t n;

                if (origin) {
                        int r = origin->read(origin->userdata, fd, block, n_now, offset + n_done, NULL);

                        if (r < 0)
                                return r;
                        n_done += n_now;
                        continue;
                }
                n = pread(fd, block, n_now, (off_t)(offset + n_done));

                if (n == 0)
                        return 0; /* shorter than the index says: the reader of the sample reports that */
                if (n < 0 && errno != EINTR)
                        return -errno;
                n_done += n > 0 ? (uint64_t)n : 0;
        }
        return 0;
}

static bool folder_is_there(const struct dataset *dataset, const char *path) {
        struct stat status;

        return beneath_stat(dataset_root_fd(dataset), path[0] ? path : ".", &status) == 0 && S_ISDIR(status.st_mode);
}

static int look_at_field(const struct dataset *dataset, const struct extent *place, struct why *why) {
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX];
        struct piece piece;
        int r;

        describe_piece(place, path, &piece);
        r = open_piece(dataset, &piece, &fd);
        if (r < 0) {
                if (piece.is_part || read_error_kind(r) == READ_ERROR_OUTAGE || !folder_is_there(dataset, place->dir)) {
                        say(why, dataset, piece.path, r);
                        return LOOK_OUTAGE;
                }
                return r;
        }
        r = read_piece(dataset, fd, piece.offset, piece.n_bytes);
        if (r < 0 && read_error_kind(r) == READ_ERROR_OUTAGE) {
                say(why, dataset, piece.path, r);
                return LOOK_OUTAGE;
        }
        return r;
}

/* All of a gathered field: what cannot be read may be its last piece. */
static int look_at_pieces(const struct dataset *dataset, uint64_t sample, uint32_t field, struct extent *place,
                          struct why *why) {
        struct source_piece piece = { 0 };
        int r = 0;

        while (r == 0 && source_next_piece(dataset_source(dataset), sample, field, &piece)) {
                place->offset = piece.offset;
                place->length = piece.n_bytes;
                r = look_at_field(dataset, place, why);
        }
        return r;
}

/* Fields that lie side by side in a shard are read one by one: this is rare, and the first error counts. */
int dataset_look_at(const struct dataset *dataset, uint64_t sample, struct why *why) {
        struct extent place;
        uint32_t idx = 0;
        int r = 0;

        while (r == 0 && next_stored(dataset, sample, &idx, &place))
                r = dataset_source(dataset)->schema.fields[idx - 1].is_gathered
                            ? look_at_pieces(dataset, sample, idx - 1, &place, why)
                            : look_at_field(dataset, &place, why);
        return r;
}

/* ---- the whole dataset --------------------------------------------------------------------------------------- */

/* Does the folder itself answer, and does it still have a path? */
static int look_at_root(struct dataset *dataset, bool *ret_reopened, struct why *why) {
        struct stat status;
        int error;

        error = fstat(dataset_root_fd(dataset), &status) < 0 ? -errno : status.st_nlink == 0 ? -ENOENT : 0;
        if (error == 0)
                return 0;
        if (dataset_reopen(dataset) == 0) {
                *ret_reopened = true;
                return 0;
        }
        return say(why, dataset, "", error);
}

static int look_at_other(const struct dataset *dataset, uint64_t sample, struct why *why) {
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX];
        struct extent place;
        struct piece piece;
        uint32_t idx = 0;
        int r;

        if (!next_stored(dataset, sample, &idx, &place))
                return 0;
        describe_piece(&place, path, &piece);
        r = open_piece(dataset, &piece, &fd);
        if (r == 0)
                r = read_piece(dataset, fd, piece.offset, piece.n_bytes < PIECE_BYTES ? piece.n_bytes : PIECE_BYTES);
        if (r == 0 || read_error_kind(r) == READ_ERROR_OWN)
                return 0; /* even if this file is damaged, the file system has answered */
        return say(why, dataset, piece.path, r);
}

int dataset_look(struct dataset *dataset, bool (*skip)(void *userdata, uint64_t sample), void *userdata,
                 bool *ret_reopened, struct why *why) {
        uint64_t n = source_n_known(dataset_source(dataset)), n_others = n < LOOK_OTHERS ? n : LOOK_OTHERS;
        uint32_t n_good = 0, n_bad = 0;
        struct why one;
        int r, error = 0;

        r = look_at_root(dataset, ret_reopened, why);
        if (r == 0 && dataset_origin(dataset)) /* what is here can be read, whether the origin answers or not */
                return dataset_origin(dataset)->look(dataset_origin(dataset)->userdata, NULL, why);
        if (r < 0)
                return r;
        for (uint64_t i = 0; i < n_others; i++) {
                uint64_t sample = (uint64_t)((unsigned __int128)i * n / n_others);
                uint32_t n_skips = 0;

                while (n_skips < SKIPS_MAX && (was_unreachable(dataset, sample) || (skip && skip(userdata, sample)))) {
                        sample = (sample + 1) % n;
                        n_skips++;
                }
                if (n_skips == SKIPS_MAX)
                        continue;
                r = look_at_other(dataset, sample, &one);
                n_good += r == 0;
                n_bad += r < 0;
                if (r < 0 && error == 0) {
                        error = r;
                        why_set(why, 0, "%s", one.text);
                }
        }
        return n_bad > 0 && n_bad >= n_good ? error : 0;
}
