#include "daemon/store/cache/unpack_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/base/machine/disk.h"
#include "daemon/fetch/late/archive_late.h"
#include "daemon/store/cache/unpack_gzip.h"

#define WINDOW_BYTES (1u << 20)

struct unpack_reading {
        const struct unpack_file *file;
        uint8_t *window;
        uint64_t n_read;
        int error; /* of read() or progress() */
};

static la_ssize_t unpack_file_on_read(struct archive *archive, void *userdata, const void **ret_bytes) {
        struct unpack_reading *reading = userdata;
        ssize_t n = reading->file->progress(reading->file->userdata, reading->n_read)
                            ? -ECANCELED
                            : reading->file->read(reading->file->userdata, reading->window, WINDOW_BYTES,
                                                  reading->n_read);

        if (n < 0) {
                reading->error = (int)n;
                archive_set_error(archive, (int)-n, "cannot be read");
                return -1;
        }
        reading->n_read += (uint64_t)n;
        *ret_bytes = reading->window;
        return n;
}

/* libarchive knows which error it is; ours are before its own. */
static int unpack_file_failed(const struct unpack_reading *reading, struct archive *archive, struct why *why) {
        const char *text = archive_error_string(archive);

        if (reading->error == -ECANCELED)
                return why_set(why, -ECANCELED, "%s: unpacking was cancelled", reading->file->name);
        if (reading->error < 0)
                return why_errno(why, reading->error, "%s", reading->file->name);
        return why_set(why, -EBADMSG, "%s: cannot be decompressed at byte %" PRIu64 ": %s", reading->file->name,
                       reading->n_read, text ? text : "it is damaged");
}

static int unpack_file_write(const struct unpack_file *file, struct archive *archive,
                             const struct unpack_reading *reading, uint64_t *ret_n_bytes, struct why *why) {
        for (;;) {
                const void *bytes;
                size_t n;
                la_int64_t offset;
                int r = archive_read_data_block(archive, &bytes, &n, &offset);

                if (r == ARCHIVE_EOF)
                        return 0;
                if (r != ARCHIVE_OK)
                        return unpack_file_failed(reading, archive, why);
                if ((uint64_t)offset + n > file->limit_bytes)
                        return why_set(why, -EFBIG, "%s: what comes out of it does not fit into cache_limit",
                                       file->name);
                r = disk_write_at(file->into_fd, bytes, n, (uint64_t)offset);
                if (r < 0)
                        return why_errno(why, r, "%s: cannot be unpacked into cache_dir", file->name);
                *ret_n_bytes = (uint64_t)offset + n;
        }
}

static struct archive *unpack_file_reader(void) {
        struct archive *archive = archive_read_new();

        if (!archive)
                return NULL;
        archive_read_support_filter_zstd(archive);
        archive_read_support_filter_xz(archive);
        archive_read_support_filter_bzip2(archive);
        archive_read_support_filter_lz4(archive);
        archive_read_support_format_raw(archive);
        archive_read_support_format_empty(archive);
        return archive;
}

static int unpack_archive_run(const struct unpack_file *file, uint64_t *ret_n_bytes, struct why *why) {
        struct unpack_reading reading = { .file = file, .window = malloc(WINDOW_BYTES) };
        struct archive *archive = unpack_file_reader();
        struct archive_entry *entry;
        int r;

        *ret_n_bytes = 0;
        if (!archive || !reading.window) {
                r = why_errno(why, -ENOMEM, "%s", file->name);
        } else if (archive_read_open(archive, &reading, NULL, unpack_file_on_read, NULL) != ARCHIVE_OK) {
                r = unpack_file_failed(&reading, archive, why);
        } else {
                r = archive_read_next_header(archive, &entry);
                if (r == ARCHIVE_EOF)
                        r = 0; /* an empty file */
                else if (r != ARCHIVE_OK)
                        r = unpack_file_failed(&reading, archive, why);
                else if (archive_filter_count(archive) < 2)
                        r = why_set(why, -EBADMSG, "%s: its name says that it is compressed, and its bytes do not",
                                    file->name);
                else if (archive_filter_count(archive) > 2)
                        r = why_set(why, -EBADMSG, "%s: it is compressed twice, and unpacked once; unpack it by hand",
                                    file->name);
                else
                        r = unpack_file_write(file, archive, &reading, ret_n_bytes, why);
        }
        if (archive)
                archive_read_free(archive);
        free(reading.window);
        return r;
}

int unpack_file_run(const struct unpack_file *file, uint64_t *ret_n_bytes, struct why *why) {
        uint8_t head[2];
        ssize_t n = file->read(file->userdata, head, sizeof(head), 0);
        struct why inner;
        int r;

        if (n > 0 && unpack_is_gzip(head, (size_t)n))
                return unpack_gzip_run(file, ret_n_bytes, why);
        r = archive_load(&inner);
        if (r < 0)
                return why_set(why, r, "%s: %s", file->name, inner.text);
        return unpack_archive_run(file, ret_n_bytes, why); /* which says what read() cannot read */
}
