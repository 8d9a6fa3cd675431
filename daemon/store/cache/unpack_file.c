#include "daemon/store/cache/unpack_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/base/machine/disk.h"
#include "daemon/fetch/late/archive_late.h"
#include "daemon/store/cache/unpack_gzip.h"

#define WINDOW_BYTES (1u << 20)

struct unpack_stream {
        struct unpack_file file;
        uint8_t *window;
        uint64_t n_read, n_written;
        int error; /* of read() or progress() */
        struct archive *archive;
        bool is_empty;
        struct gunzipping *gunzipping; /* NULL: libarchive does it */
};

static la_ssize_t unpack_file_on_read(struct archive *archive, void *userdata, const void **ret_bytes) {
        struct unpack_stream *stream = userdata;
        const struct unpack_file *file = &stream->file;
        ssize_t n = file->progress(file->userdata, stream->n_read)
                            ? -ECANCELED
                            : file->read(file->userdata, stream->window, WINDOW_BYTES, stream->n_read);

        if (n < 0) {
                stream->error = (int)n;
                archive_set_error(archive, (int)-n, "cannot be read");
                return -1;
        }
        stream->n_read += (uint64_t)n;
        *ret_bytes = stream->window;
        return n;
}

/* libarchive knows which error it is; ours are before its own. */
static int unpack_file_failed(const struct unpack_stream *stream, struct why *why) {
        const char *name = stream->file.name, *text = archive_error_string(stream->archive);

        if (stream->error == -ECANCELED)
                return why_set(why, -ECANCELED, "%s: unpacking was cancelled", name);
        if (stream->error < 0)
                return why_errno(why, stream->error, "%s", name);
        return why_set(why, -EBADMSG, "%s: cannot be decompressed at byte %" PRIu64 ": %s", name, stream->n_read,
                       text ? text : "it is damaged");
}

static int unpack_archive_go_on(struct unpack_stream *stream, uint64_t n_bytes, struct why *why) {
        while (stream->n_written < n_bytes) {
                const void *bytes;
                size_t n;
                la_int64_t offset;
                int r = archive_read_data_block(stream->archive, &bytes, &n, &offset);

                if (r == ARCHIVE_EOF)
                        return UNPACK_END;
                if (r != ARCHIVE_OK)
                        return unpack_file_failed(stream, why);
                if ((uint64_t)offset + n > stream->file.limit_bytes)
                        return why_set(why, -EFBIG, "%s: what comes out of it does not fit into cache_limit",
                                       stream->file.name);
                r = disk_write_at(stream->file.into_fd, bytes, n, (uint64_t)offset);
                if (r < 0)
                        return why_errno(why, r, "%s: cannot be unpacked into cache_dir", stream->file.name);
                stream->n_written = (uint64_t)offset + n;
        }
        return 0;
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

static int unpack_archive_begin(struct unpack_stream *stream, struct why *why) {
        const char *name = stream->file.name;
        struct archive_entry *entry;
        int r;

        stream->window = malloc(WINDOW_BYTES);
        stream->archive = unpack_file_reader();
        if (!stream->archive || !stream->window)
                return why_errno(why, -ENOMEM, "%s", name);
        if (archive_read_open(stream->archive, stream, NULL, unpack_file_on_read, NULL) != ARCHIVE_OK)
                return unpack_file_failed(stream, why);
        r = archive_read_next_header(stream->archive, &entry);
        stream->is_empty = r == ARCHIVE_EOF;
        if (stream->is_empty)
                return 0;
        if (r != ARCHIVE_OK)
                return unpack_file_failed(stream, why);
        if (archive_filter_count(stream->archive) < 2)
                return why_set(why, -EBADMSG, "%s: its name says that it is compressed, and its bytes do not", name);
        if (archive_filter_count(stream->archive) > 2)
                return why_set(why, -EBADMSG, "%s: it is compressed twice, and unpacked once; unpack it by hand", name);
        return 0;
}

static int unpack_any_begin(struct unpack_stream *stream, struct why *why) {
        const struct unpack_file *file = &stream->file;
        uint8_t head[2];
        ssize_t n = file->read(file->userdata, head, sizeof(head), 0);
        struct why inner;
        int r;

        if (n > 0 && unpack_is_gzip(head, (size_t)n))
                return gunzip_begin(file, &stream->gunzipping, why);
        r = archive_load(&inner);
        if (r < 0)
                return why_set(why, r, "%s: %s", file->name, inner.text);
        return unpack_archive_begin(stream, why); /* which says what read() cannot read */
}

int unpack_begin(const struct unpack_file *file, struct unpack_stream **ret_stream, struct why *why) {
        struct unpack_stream *stream = calloc(1, sizeof(*stream));
        int r;

        if (!stream)
                return why_errno(why, -ENOMEM, "%s", file->name);
        stream->file = *file;
        r = unpack_any_begin(stream, why);
        if (r < 0)
                unpack_end(stream);
        else
                *ret_stream = stream;
        return r;
}

int unpack_go_on(struct unpack_stream *stream, uint64_t n_bytes, struct why *why) {
        if (stream->gunzipping)
                return gunzip_go_on(stream->gunzipping, n_bytes, why);
        return stream->is_empty ? UNPACK_END : unpack_archive_go_on(stream, n_bytes, why);
}

uint64_t unpack_n_bytes(const struct unpack_stream *stream) {
        return stream->gunzipping ? gunzip_n_bytes(stream->gunzipping) : stream->n_written;
}

void unpack_end(struct unpack_stream *stream) {
        if (!stream)
                return;
        gunzip_end(stream->gunzipping);
        if (stream->archive)
                archive_read_free(stream->archive);
        free(stream->window);
        free(stream);
}
