#include "daemon/fetch/origin/origin_unpack.h"

/* libarchive's own filters and formats are named one by one, since it starts programs for some others. Zip is read by
 * the streaming reader, so that an archive need not be complete or on a disk. What only a zip's directory says, such as
 * which entries are links, is not known then, and a link comes out as a small file. libarchive does not check the CRC
 * of gzip; it checks the other checksums.
 *
 * Folders are made for the files in them; empty folders are left out. Nothing is synced here: the tree does that once
 * for everything. */

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "daemon/fetch/late/archive_late.h"
#include "daemon/fetch/origin/unpack_place.h"
#include "daemon/store/plan/plan.h"
#include "daemon/store/plan/plan_names.h"
#include "proto/base/cleanup.h"

#define READ_BYTES   (256u << 10)
#define BLOCK_BYTES  512u   /* of tar */
#define MORE_FOLDERS 65536u /* entries of folders beside limit_files: they cost nothing but time */

/* What may be decompressed without becoming a file: a tar's headers and padding, pax headers, zeros at its end. */
#define IDLE_BYTES       (64ull << 20)
#define IDLE_ENTRY_BYTES 8192u

#define MAGIC_BYTES   10u
#define INODES_EVERY  1024u /* names between two looks at how many are free */
#define INODES_SPARE  4096u /* that must be left for others */
#define INODES_SPARED 50u   /* or that part of all */

struct unpacking {
        const struct unpack_options *options;
        struct archive *archive;
        struct plan_names *names;
        struct unpack_place place;
        struct why *why;

        uint8_t *buffer;
        int read_error;                       /* of options->read(): says more than what libarchive makes of it */
        bool has_ended;                       /* read() has returned 0 */
        uint64_t n_zeros;                     /* at the end of what was read: a tar ends with 512 of them and more */
        uint64_t n_bytes, n_files, n_folders; /* so far */
        uint64_t n_names_seen;                /* when free inodes were last looked at */
        size_t n_peeked;                      /* at the buffer's begin: read already, for libarchive to come */
        bool is_idle;                         /* too much was decompressed for nothing */
};

/* ---- the archive's bytes ------------------------------------------------------------------------------------- */

static bool origin_unpack_is_cancelled(const struct unpacking *unpacking) {
        return unpacking->options->cancel && *unpacking->options->cancel;
}

static void count_zeros(struct unpacking *unpacking, size_t n) {
        size_t i = n;

        while (i > 0 && unpacking->buffer[i - 1] == 0)
                i--;
        unpacking->n_zeros = i == 0 ? unpacking->n_zeros + n : n - i;
}

static ssize_t read_into(struct unpacking *unpacking, size_t offset) {
        ssize_t n;

        if (unpacking->has_ended)
                return 0;
        n = origin_unpack_is_cancelled(unpacking)
                    ? -ECANCELED
                    : unpacking->options->read(unpacking->options->userdata, unpacking->buffer + offset,
                                               READ_BYTES - offset);
        if (n < 0)
                unpacking->read_error = (int)n;
        if (n == 0)
                unpacking->has_ended = true;
        return n;
}

static ssize_t read_more(struct unpacking *unpacking) {
        ssize_t n = (ssize_t)unpacking->n_peeked;

        if (n == 0)
                n = read_into(unpacking, 0);
        unpacking->n_peeked = 0;
        if (n > 0)
                count_zeros(unpacking, (size_t)n);
        return n;
}

/* The first bytes, before libarchive asks for them: they say how the archive is compressed. */
static int origin_unpack_peek(struct unpacking *unpacking) {
        while (unpacking->n_peeked < MAGIC_BYTES) {
                ssize_t n = read_into(unpacking, unpacking->n_peeked);

                if (n <= 0)
                        return (int)n;
                unpacking->n_peeked += (size_t)n;
        }
        return 0;
}

/* Each MiB of what is compressed may be a GiB that is decompressed. Checked before each piece is read, since
 * libarchive continues to read where nothing comes out: after the end of a tar, and over what it skips. */
static bool is_idle(const struct unpacking *unpacking) {
        const struct unpack_options *options = unpacking->options;
        uint64_t n_entries = unpacking->n_files + unpacking->n_folders;
        int64_t n_bytes = archive_filter_bytes(unpacking->archive, 0);

        return n_bytes > 0 && (uint64_t)n_bytes / 2 > options->limit_bytes &&
               (uint64_t)n_bytes - 2 * options->limit_bytes > IDLE_BYTES + n_entries * IDLE_ENTRY_BYTES;
}

static la_ssize_t origin_unpack_on_read(struct archive *archive, void *userdata, const void **ret_bytes) {
        struct unpacking *unpacking = userdata;
        ssize_t n;

        unpacking->is_idle = is_idle(unpacking);
        if (unpacking->is_idle) {
                archive_set_error(archive, EFBIG, "too much is decompressed");
                return ARCHIVE_FATAL;
        }
        n = read_more(unpacking);
        *ret_bytes = unpacking->buffer;
        if (n < 0)
                archive_set_error(archive, (int)-n, "reading failed");
        return n < 0 ? ARCHIVE_FATAL : n;
}

/* ---- errors -------------------------------------------------------------------------------------------------- */

/* libarchive's error, or the one that read() gave before. `path`: of the entry; NULL: between entries. */
static int fail_archive(struct unpacking *unpacking, const char *path) {
        const char *text = archive_error_string(unpacking->archive);

        if (unpacking->read_error < 0)
                return why_errno(unpacking->why, unpacking->read_error, "%s: reading the archive",
                                 unpacking->options->archive);
        if (unpacking->is_idle)
                return why_set(unpacking->why, -EFBIG,
                               "%s%s%s%s: twice the limit of %llu bytes and more is decompressed without coming out",
                               unpacking->options->archive, path ? ": \"" : "", path ? path : "", path ? "\"" : "",
                               (unsigned long long)unpacking->options->limit_bytes);
        return why_set(unpacking->why, -EBADMSG, "%s%s%s%s: no archive, or damaged or cut: %s%s",
                       unpacking->options->archive, path ? ": \"" : "", path ? path : "", path ? "\"" : "",
                       text ? text : "unknown",
                       unpacking->n_files + unpacking->n_folders == 0 && archive_filter_count(unpacking->archive) > 1
                               ? " (only one compression around a tar is read)"
                               : "");
}

/* An errno whose text is in `inner`, with the archive's name in front. */
static int fail_entry(struct unpacking *unpacking, int error, const struct why *inner) {
        return why_set(unpacking->why, error, "%s: %s", unpacking->options->archive, inner->text);
}

static int origin_unpack_refuse(struct unpacking *unpacking, const char *path, const char *what) {
        return why_set(unpacking->why, -EINVAL, "%s: \"%s\" %s", unpacking->options->archive, path, what);
}

static int check_limits(struct unpacking *unpacking, const char *path, uint64_t n_bytes) {
        const struct unpack_options *options = unpacking->options;

        if (unpacking->n_files > options->limit_files || unpacking->n_folders > options->limit_files + MORE_FOLDERS)
                return why_set(unpacking->why, -EFBIG, "%s: \"%s\" is above the limit of %llu files", options->archive,
                               path, (unsigned long long)options->limit_files);
        if (n_bytes > options->limit_bytes || unpacking->n_bytes > options->limit_bytes - n_bytes)
                return why_set(unpacking->why, -EFBIG, "%s: with \"%s\" more than the limit of %llu bytes come out",
                               options->archive, path, (unsigned long long)options->limit_bytes);
        return 0;
}

/* Empty files cost the archive nothing, and each takes an inode that others need. File systems without a fixed number
 * of inodes report that none are free. */
static int check_inodes(struct unpacking *unpacking, const char *path) {
        uint64_t n_names = plan_names_n(unpacking->names), n_spare;
        struct statvfs status;

        if (n_names > unpacking->options->limit_files)
                return why_set(unpacking->why, -EFBIG,
                               "%s: with \"%s\" more than the limit of %llu files and folders come out",
                               unpacking->options->archive, path, (unsigned long long)unpacking->options->limit_files);
        if (n_names - unpacking->n_names_seen < INODES_EVERY && unpacking->n_names_seen > 0)
                return 0;
        unpacking->n_names_seen = n_names;
        if (fstatvfs(unpacking->options->root_fd, &status) < 0 || status.f_files == 0)
                return 0;
        n_spare = status.f_files / INODES_SPARED;
        n_spare = n_spare < INODES_SPARE ? n_spare : INODES_SPARE;
        if (status.f_favail > n_spare + INODES_EVERY)
                return 0;
        return why_set(unpacking->why, -ENOSPC, "%s: \"%s\": %llu inodes of the disk are free, too few to go on",
                       unpacking->options->archive, path, (unsigned long long)status.f_favail);
}

/* ---- names --------------------------------------------------------------------------------------------------- */

/* Without a leading "./" (any number) and, for a folder, without the slash at its end. "" is the folder itself. */
static void origin_unpack_trim(const char *name, bool is_folder, char ret_path[PATH_MAX]) {
        size_t n;

        while (name[0] == '.' && name[1] == '/')
                name += 2 + strspn(name + 2, "/");
        n = strlen(name);
        while (is_folder && n > 0 && name[n - 1] == '/')
                n--;
        if (is_folder && n == 1 && name[0] == '.')
                n = 0;
        memcpy(ret_path, name, n);
        ret_path[n] = '\0';
}

static int origin_unpack_take_name(struct unpacking *unpacking, const char *name, bool is_folder,
                                   char ret_path[PATH_MAX]) {
        struct why inner;
        int r = 0;

        if (!name)
                return why_set(unpacking->why, -EINVAL,
                               "%s: an entry has no name, or one that is not UTF-8; make the archive anew",
                               unpacking->options->archive);
        if (strlen(name) >= PATH_MAX)
                return origin_unpack_refuse(unpacking, name, "... is longer than paths may be here");
        origin_unpack_trim(name, is_folder, ret_path);
        if (*ret_path || !is_folder)
                r = plan_path_check(ret_path, strlen(ret_path), &inner);
        return r < 0 ? fail_entry(unpacking, r, &inner) : 0;
}

static uint32_t n_parents(const char *path) {
        uint32_t n = 0;

        for (; (path = strchr(path, '/')); path++)
                n++;
        return n;
}

/* A link stays inside the folder if it goes up first, at most by its own depth, and then down: the folders above it are
 * real ones, and links on the way down stay inside for the same reason. A ".." after a name is refused, since that name
 * may be a link itself. */
static bool stays_inside(const char *path, const char *target) {
        uint32_t depth = n_parents(path), n_up = 0;

        if (target[0] == '/' || target[0] == '\0' || strlen(target) >= PATH_MAX)
                return false;
        while (strncmp(target, "../", 3) == 0 || strcmp(target, "..") == 0) {
                n_up++;
                target += target[2] ? 3 : 2;
        }
        if (n_up > depth)
                return false;
        while (strncmp(target, "./", 2) == 0)
                target += 2;
        /* What is left is a name like any other, or nothing: the folder itself, which no link may be. */
        return plan_path_check(target, strlen(target), NULL) == 0;
}

/* ---- entries ------------------------------------------------------------------------------------------------- */

static int origin_unpack_tell(struct unpacking *unpacking, const struct unpack_entry *entry) {
        int r = unpacking->options->entry(unpacking->options->userdata, entry);

        return r < 0 ? why_errno(unpacking->why, r, "%s: \"%s\"", unpacking->options->archive, entry->path) : 0;
}

/* All blocks of a file. */
static int take_data(struct unpacking *unpacking, const char *path, struct why *inner) {
        const void *bytes;
        size_t n_bytes;
        la_int64_t offset;
        int r;

        while ((r = archive_read_data_block(unpacking->archive, &bytes, &n_bytes, &offset)) == ARCHIVE_OK) {
                if (origin_unpack_is_cancelled(unpacking))
                        return why_set(unpacking->why, -ECANCELED, "%s: cancelled", unpacking->options->archive);
                if (n_bytes == 0)
                        continue;
                if (offset < 0 || (uint64_t)offset < unpacking->place.n_bytes || (uint64_t)offset > INT64_MAX - n_bytes)
                        return origin_unpack_refuse(unpacking, path, "has pieces that do not follow each other");
                r = check_limits(unpacking, path, (uint64_t)offset + n_bytes);
                if (r < 0)
                        return r;
                r = unpack_place_bytes(&unpacking->place, (uint64_t)offset, bytes, n_bytes, inner);
                if (r < 0)
                        return why_set(unpacking->why, r, "%s: \"%s\" %s", unpacking->options->archive, path,
                                       inner->text);
        }
        /* A warning is a wrong checksum or length. */
        return r == ARCHIVE_EOF ? 0 : fail_archive(unpacking, path);
}

static int origin_unpack_take_file(struct unpacking *unpacking, struct archive_entry *entry, const char *path) {
        bool has_size = archive_entry_size_is_set(entry), is_there = false;
        uint8_t sha256[SHA256_BYTES];
        struct unpack_entry told = { .path = path, .sha256 = sha256 };
        struct why inner;
        int r;

        if (has_size && archive_entry_size(entry) < 0)
                return origin_unpack_refuse(unpacking, path, "has a negative size");
        if (has_size) {
                told.n_bytes = (uint64_t)archive_entry_size(entry);
                r = check_limits(unpacking, path, told.n_bytes);
                if (r < 0)
                        return r;
                is_there = unpacking->options->is_there &&
                           unpacking->options->is_there(unpacking->options->userdata, path, told.n_bytes);
        }
        r = unpack_place_begin(&unpacking->place, !is_there, &inner);
        if (r < 0)
                return why_set(unpacking->why, r, "%s: \"%s\": %s", unpacking->options->archive, path, inner.text);
        r = take_data(unpacking, path, &inner);
        if (r < 0)
                return r;
        if (has_size && unpacking->place.n_bytes > told.n_bytes)
                return origin_unpack_refuse(unpacking, path, "is longer than the archive says");
        if (!has_size)
                told.n_bytes = unpacking->place.n_bytes;
        r = unpack_place_end(&unpacking->place, path, told.n_bytes, archive_entry_mode(entry), sha256, &inner);
        if (r < 0)
                return fail_entry(unpacking, r, &inner);
        unpacking->n_bytes += told.n_bytes;
        return origin_unpack_tell(unpacking, &told);
}

static int take_link(struct unpacking *unpacking, struct archive_entry *entry, const char *path) {
        const char *target = archive_entry_symlink(entry);
        struct unpack_entry told = { .path = path, .link = target };
        struct why inner;
        int r;

        if (!target || !stays_inside(path, target))
                return why_set(unpacking->why, -EINVAL, "%s: \"%s\" is a link to \"%s\", which %s",
                               unpacking->options->archive, path, target ? target : "",
                               target ? "is not a plain path within the folder" : "is not UTF-8");
        r = unpack_place_link(&unpacking->place, path, target, &inner);
        return r < 0 ? fail_entry(unpacking, r, &inner) : origin_unpack_tell(unpacking, &told);
}

static int take_hard_link(struct unpacking *unpacking, const char *target_name, const char *path) {
        uint8_t sha256[SHA256_BYTES];
        struct unpack_entry told = { .path = path, .sha256 = sha256 };
        char target[PATH_MAX];
        struct why inner;
        int r = origin_unpack_take_name(unpacking, target_name, false, target);

        if (r < 0)
                return r;
        if (strcmp(target, path) == 0)
                return origin_unpack_refuse(unpacking, path, "is a hard link to itself");
        r = unpack_place_hard_link(&unpacking->place, path, target, &told.n_bytes, sha256, &inner);
        if (r < 0)
                return fail_entry(unpacking, r, &inner);
        r = check_limits(unpacking, path,
                         told.n_bytes); /* it counts, though it takes no room: who copies it needs it */
        if (r < 0)
                return r;
        unpacking->n_bytes += told.n_bytes;
        return origin_unpack_tell(unpacking, &told);
}

static int origin_unpack_take_entry(struct unpacking *unpacking, struct archive_entry *entry) {
        const char *hard_link = archive_entry_hardlink(entry);
        mode_t type = hard_link ? S_IFREG : archive_entry_filetype(entry);
        char path[PATH_MAX];
        struct why inner;
        int r;

        r = origin_unpack_take_name(unpacking, archive_entry_pathname(entry), type == S_IFDIR, path);
        if (r < 0)
                return r;
        if (type != S_IFREG && type != S_IFLNK && type != S_IFDIR)
                return origin_unpack_refuse(unpacking, path, "is a device, a FIFO or a socket");
        if (type == S_IFDIR)
                unpacking->n_folders++;
        else
                unpacking->n_files++;
        r = check_limits(unpacking, path, 0);
        if (r < 0 || type == S_IFDIR)
                return r;
        r = plan_names_take(unpacking->names, path, &inner);
        if (r < 0)
                return fail_entry(unpacking, r, &inner);
        r = check_inodes(unpacking, path);
        if (r < 0)
                return r;
        if (type == S_IFLNK)
                return take_link(unpacking, entry, path);
        /* Some writers add the content to a hard link: then it is a file of its own. */
        return hard_link && archive_entry_size(entry) == 0 ? take_hard_link(unpacking, hard_link, path)
                                                           : origin_unpack_take_file(unpacking, entry, path);
}

/* ---- the whole ----------------------------------------------------------------------------------------------- */

/* A tar whose first member is called BZh... is none. */
static bool is_bzip2(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 10 && bytes[3] >= '1' && bytes[3] <= '9' &&
               (memcmp(bytes + 4, "1AY&SY", 6) == 0 || memcmp(bytes + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

/* How the archive is compressed, by its first bytes; zstd's parallel writers begin with a frame to be skipped. */
static int origin_unpack_filter_of(const uint8_t *bytes, size_t n_bytes) {
        static const struct {
                const char *magic;
                size_t n_bytes;
                uint8_t loose; /* bits of the first byte that may be anything */
                int filter;
        } FILTERS[] = {
                { "\x1f\x8b", 2, 0, ARCHIVE_FILTER_GZIP },
                { "BZh", 3, 0, ARCHIVE_FILTER_BZIP2 },
                { "\xfd"
                  "7zXZ\0",
                  6, 0, ARCHIVE_FILTER_XZ },
                { "\x28\xb5\x2f\xfd", 4, 0, ARCHIVE_FILTER_ZSTD },
                { "\x50\x2a\x4d\x18", 4, 0xf, ARCHIVE_FILTER_ZSTD },
        };

        for (size_t i = 0; i < ARRAY_SIZE(FILTERS); i++)
                if (n_bytes >= FILTERS[i].n_bytes &&
                    (bytes[0] | FILTERS[i].loose) == ((uint8_t)FILTERS[i].magic[0] | FILTERS[i].loose) &&
                    memcmp(bytes + 1, FILTERS[i].magic + 1, FILTERS[i].n_bytes - 1) == 0 &&
                    (FILTERS[i].filter != ARCHIVE_FILTER_BZIP2 || is_bzip2(bytes, n_bytes)))
                        return FILTERS[i].filter;
        return ARCHIVE_FILTER_NONE;
}

/* The filter is chosen here: libarchive alone would open up to 25 inside each other. */
static int open_archive(struct unpacking *unpacking) {
        struct archive *archive = unpacking->archive;
        int filter;

        if (origin_unpack_peek(unpacking) < 0)
                return fail_archive(unpacking, NULL);
        filter = origin_unpack_filter_of(unpacking->buffer, unpacking->n_peeked);
        if (filter != ARCHIVE_FILTER_NONE && archive_read_append_filter(archive, filter) != ARCHIVE_OK)
                return fail_archive(unpacking, NULL);
        archive_read_support_format_tar(archive);
        archive_read_support_format_zip_streamable(archive);
        /* `cat a.tar b.tar`; also reads on to the end instead of ignoring what comes after the first end. */
        archive_read_set_format_option(archive, "tar", "read_concatenated_archives", "1");
        return archive_read_open2(archive, unpacking, NULL, origin_unpack_on_read, NULL, NULL) == ARCHIVE_OK
                       ? 0
                       : fail_archive(unpacking, NULL);
}

/* A tar that was cut between two files lacks only its end. Compressed archives have ends of their own. */
static int origin_unpack_check_end(struct unpacking *unpacking) {
        int format = archive_format(unpacking->archive) & ARCHIVE_FORMAT_BASE_MASK;

        if (format == ARCHIVE_FORMAT_TAR && archive_filter_count(unpacking->archive) == 1 &&
            unpacking->n_zeros < BLOCK_BYTES)
                return why_set(unpacking->why, -EBADMSG, "%s: cut: the end of the tar is missing",
                               unpacking->options->archive);
        return 0;
}

/* Reads what follows the entries (a zip's directory), since the source may check the bytes as a whole. */
static int read_rest(struct unpacking *unpacking) {
        ssize_t n;

        while ((n = read_more(unpacking)) > 0)
                ;
        return n < 0 ? fail_archive(unpacking, NULL) : 0;
}

static int origin_unpack_take_all(struct unpacking *unpacking) {
        struct archive_entry *entry;
        int r;

        while ((r = archive_read_next_header(unpacking->archive, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
                r = origin_unpack_take_entry(unpacking, entry);
                if (r < 0)
                        return r;
        }
        if (r != ARCHIVE_EOF)
                return fail_archive(unpacking, NULL);
        r = read_rest(unpacking);
        return r < 0 ? r : origin_unpack_check_end(unpacking);
}

static int origin_unpack_unpack(struct unpacking *unpacking) {
        struct why inner;
        int r = unpack_place_init(&unpacking->place, unpacking->options->root_fd, &inner);

        if (r < 0)
                return fail_entry(unpacking, r, &inner);
        r = open_archive(unpacking);
        if (r == 0)
                r = origin_unpack_take_all(unpacking);
        unpack_place_fini(&unpacking->place);
        return r;
}

static int origin_unpack_run(const struct unpack_options *options, struct why *why) {
        struct unpacking unpacking = { .options = options, .why = why };
        /* Names are converted to the locale's characters; in a locale other than UTF-8 they would be lost. */
        locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), before = uselocale(utf8);
        int r = -ENOMEM;

        unpacking.archive = archive_read_new();
        unpacking.buffer = malloc(READ_BYTES);
        if (unpacking.archive && unpacking.buffer && plan_names_new(&unpacking.names) == 0)
                r = origin_unpack_unpack(&unpacking);
        else
                why_set(why, r, "%s: no memory to unpack it", options->archive);
        archive_read_free(unpacking.archive);
        plan_names_free(unpacking.names);
        free(unpacking.buffer);
        uselocale(before);
        if (utf8)
                freelocale(utf8);
        return r;
}

int unpack_run(const struct unpack_options *options, struct why *why) {
        struct why inner;
        int r = archive_load(&inner);

        return r < 0 ? why_set(why, r, "%s: %s", options->archive, inner.text) : origin_unpack_run(options, why);
}
