#include "daemon/data/formats/shard.h"

/* Samples are written to the disk as they come. The table grows in memory and is written after them; the header is
 * written last, so a shard whose writer was killed has no valid header. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/machine/disk.h"
#include "daemon/data/formats/shard_layout.h"
#include "daemon/data/growing.h"
#include "proto/base/cleanup.h"

struct shard_writer {
        int fd;
        struct shard_header header; /* counts and sums so far */
        uint64_t end;               /* of the last sample */
        struct growing entries, classes, names;
};

void shard_name(uint64_t idx, char ret_name[32]) {
        snprintf(ret_name, 32, "shard-%06" PRIu64 SHARD_SUFFIX, idx);
}

void shard_writer_free(struct shard_writer *writer) {
        if (!writer)
                return;
        growing_fini(&writer->entries);
        growing_fini(&writer->classes);
        growing_fini(&writer->names);
        free(writer);
}

static void writer_freep(struct shard_writer **writer) {
        shard_writer_free(*writer);
}

static int shard_add_name(struct shard_writer *writer, const char *name, uint64_t *ret_offset) {
        *ret_offset = writer->names.n_bytes;
        return growing_append(&writer->names, name, strlen(name) + 1);
}

static int add_class(struct shard_writer *writer, const char *name) {
        uint64_t offset;
        int r;

        r = shard_add_name(writer, name, &offset);
        return r < 0 ? r : growing_append(&writer->classes, &offset, sizeof(offset));
}

int shard_writer_new(int fd, const char *const *class_names, uint32_t n_classes, struct shard_writer **ret_writer,
                     struct why *why) {
        _cleanup_(writer_freep) struct shard_writer *writer = calloc(1, sizeof(*writer));

        if (!writer)
                return why_set(why, -ENOMEM, "no memory for a shard");
        if (n_classes > INDEX_CLASSES_MAX)
                return why_set(why, -E2BIG, "%" PRIu32 " classes are more than a dataset can have", n_classes);
        writer->fd = fd;
        writer->end = SHARD_ALIGN;
        writer->header = (struct shard_header){
                .magic = SHARD_MAGIC,
                .version = SHARD_VERSION,
                .header_bytes = sizeof(struct shard_header),
                .n_classes = n_classes,
                .source = SHARD_SOURCE,
        };
        for (uint32_t i = 0; i < n_classes; i++) {
                if (!shard_is_class_name(class_names[i]))
                        return why_set(why, -EINVAL, "\"%s\" cannot be the name of a class", class_names[i]);
                if (add_class(writer, class_names[i]) < 0)
                        return why_set(why, -ENOMEM, "no memory for the class names of a shard");
        }
        *ret_writer = TAKE_PTR(writer);
        return 0;
}

static uint64_t shard_align_up(uint64_t n) {
        return (n + SHARD_ALIGN - 1) / SHARD_ALIGN * SHARD_ALIGN;
}

static uint64_t shard_table_bytes(const struct shard_writer *writer) {
        return writer->entries.n_bytes + writer->classes.n_bytes + (writer->names.n_bytes + 7) / 8 * 8;
}

static int shard_check_sample(const struct shard_writer *writer, const char *path, int32_t label, uint64_t n_bytes,
                              struct why *why) {
        if (path[0] == '\0' || strnlen(path, PATH_MAX) >= PATH_MAX || !index_is_inner_path(path))
                return why_set(why, -EINVAL, "\"%s\" cannot be a path within a dataset", path);
        if (label < 0 || (uint64_t)label >= writer->header.n_classes)
                return why_set(why, -EINVAL, "%s: label %" PRId32 " has no class", path, label);
        if (n_bytes > INT64_MAX / 2 || writer->end > INT64_MAX / 2)
                return why_set(why, -EFBIG, "%s: %" PRIu64 " bytes do not fit a shard", path, n_bytes);
        if (writer->header.n_samples == SHARD_SAMPLES_MAX ||
            shard_table_bytes(writer) + sizeof(struct shard_entry) + strlen(path) + 8 > SHARD_TABLE_MAX)
                return why_set(why, -E2BIG, "%s: the shard's table is full after %" PRIu64 " samples; make it smaller",
                               path, writer->header.n_samples);
        return 0;
}

int shard_writer_add(struct shard_writer *writer, const char *path, int32_t label, const void *bytes, uint64_t n_bytes,
                     struct why *why) {
        struct shard_entry entry = { .offset = shard_align_up(writer->end), .length = n_bytes, .label = label };
        int r;

        r = shard_check_sample(writer, path, label, n_bytes, why);
        if (r < 0)
                return r;
        r = shard_add_name(writer, path, &entry.path);
        if (r >= 0)
                r = growing_append(&writer->entries, &entry, sizeof(entry));
        if (r < 0)
                return why_set(why, r, "%s: no memory for the shard's table", path);

        /* The rest of the sample's last block stays a hole, which reads as zeroes. */
        r = disk_write_at(writer->fd, bytes, n_bytes, entry.offset);
        if (r < 0)
                return why_errno(why, r, "%s: %" PRIu64 " bytes cannot be written to the shard", path, n_bytes);
        writer->end = entry.offset + n_bytes;
        writer->header.n_samples++;
        writer->header.total_bytes += n_bytes;
        return 0;
}

/* Joins the pieces of the table; the last one is filled up to a multiple of 8 bytes. */
static int gather_table(struct shard_writer *writer) {
        static const uint8_t ZEROES[8];
        size_t n_names = writer->names.n_bytes;
        int r;

        writer->header.names_bytes = n_names;
        r = growing_append(&writer->names, ZEROES, (8 - n_names % 8) % 8);
        if (r >= 0)
                r = growing_append(&writer->entries, writer->classes.bytes, writer->classes.n_bytes);
        if (r >= 0)
                r = growing_append(&writer->entries, writer->names.bytes, writer->names.n_bytes);
        return r;
}

int shard_writer_finish(struct shard_writer *writer, struct why *why) {
        struct shard_header *header = &writer->header;
        int r;

        r = gather_table(writer);
        if (r < 0)
                return why_set(why, r, "no memory for the shard's table");
        header->table = shard_align_up(writer->end);
        header->table_bytes = writer->entries.n_bytes;
        header->file_bytes = shard_align_up(header->table + header->table_bytes);
        header->checksum = shard_checksum(header, writer->entries.bytes);

        r = disk_write_at(writer->fd, writer->entries.bytes, writer->entries.n_bytes, header->table);
        if (r >= 0 && ftruncate(writer->fd, (off_t)header->file_bytes) < 0)
                r = -errno;
        if (r >= 0)
                r = disk_write_at(writer->fd, header, sizeof(*header), 0);
        if (r >= 0 && fsync(writer->fd) < 0)
                r = -errno;
        if (r < 0)
                return why_errno(why, r, "the table of a shard of %" PRIu64 " samples cannot be written",
                                 header->n_samples);
        return 0;
}
