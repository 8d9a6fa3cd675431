/* Any bytes as a shard. What is accepted is used, and a folder of it is indexed: the index must be one that opens, with
 * the same samples.
 *
 * The first byte: bit 0 puts header and table apart, as they lie in a file, with blocks for samples between them (how
 * many: the second byte), since an input of mostly zeroes teaches nothing; bit 1 makes checksum and sizes right again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "daemon/data/formats/shard_layout.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/folder.h"
#include "tests/support/shards.h"

#define SAMPLE_BLOCKS 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

struct file {
        uint8_t *bytes;
        size_t n;
};

static void find(const char *what) {
        fprintf(stderr, "fuzz: a shard was accepted with %s\n", what);
        abort();
}

/* ---- making a file ------------------------------------------------------------------------------------------- */

static size_t align_up(size_t n) {
        return (n + SHARD_ALIGN - 1) / SHARD_ALIGN * SHARD_ALIGN;
}

static struct file put_apart(const uint8_t *data, size_t n_bytes, size_t n_blocks) {
        size_t n_header = n_bytes < sizeof(struct shard_header) ? n_bytes : sizeof(struct shard_header);
        size_t n_table = n_bytes - n_header, table = SHARD_ALIGN * (1 + n_blocks);
        struct file file = { .n = align_up(table + n_table) };

        file.bytes = calloc(1, file.n);
        if (!file.bytes)
                _exit(2);
        memcpy(file.bytes, data, n_header);
        memcpy(file.bytes + table, data + n_header, n_table);
        return file;
}

static struct file take_as_it_is(const uint8_t *data, size_t n_bytes) {
        struct file file = { malloc(n_bytes ? n_bytes : 1), n_bytes };

        memcpy(file.bytes, data, n_bytes);
        return file;
}

static uint64_t sum_of_lengths(const struct shard_header *header, const uint8_t *table) {
        uint64_t sum = 0;

        for (uint64_t i = 0; i < header->n_samples && (i + 1) * sizeof(struct shard_entry) <= header->table_bytes; i++)
                sum += ((const struct shard_entry *)(const void *)table)[i].length;
        return sum;
}

static void mend(struct file *file) {
        struct shard_header *header = (void *)file->bytes;

        if (file->n < SHARD_ALIGN)
                return;
        memcpy(header->magic, SHARD_MAGIC, sizeof(header->magic));
        header->version = SHARD_VERSION;
        header->header_bytes = sizeof(*header);
        header->file_bytes = file->n;
        if (shard_check_header(header, file->n, NULL) < 0)
                return;
        header->total_bytes = sum_of_lengths(header, file->bytes + header->table);
        header->checksum = shard_checksum(header, file->bytes + header->table);
}

/* ---- using it ------------------------------------------------------------------------------------------------ */

static void use(const struct shard *shard, size_t n_bytes) {
        for (uint64_t i = 0; i < shard->header->n_classes; i++)
                if (!shard_is_class_name(shard->names + shard->classes[i]))
                        find("an impossible class");
        for (uint64_t i = 0; i < shard->header->n_samples; i++) {
                const struct shard_entry *entry = &shard->entries[i];
                const char *path = shard->names + entry->path;

                if (entry->offset > n_bytes || entry->length > n_bytes - entry->offset || path[0] == '\0' ||
                    !index_is_inner_path(path) || (uint64_t)entry->label >= shard->header->n_classes)
                        find("a sample that leads outside");
        }
}

static struct index_builder *build(const char *root, struct why *why) {
        _cleanup_(closep) int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct index_builder *builder = NULL;

        if (root_fd < 0)
                _exit(2);
        return format_packed.build(root_fd, &(struct files){ .root = root }, NULL, NULL, &builder, why) == 0 ? builder
                                                                                                             : NULL;
}

static void index_folder(const struct file *file, uint64_t n_samples) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(source_closep) struct source *index = NULL;
        _cleanup_(closep) int fd = memfd_create("index", MFD_CLOEXEC);
        struct why why = { 0 };
        char path[PATH_MAX];

        folder_write("packed/shard-000000.shard", file->bytes, file->n);
        folder_age("packed/shard-000000.shard");
        folder_age("packed");
        builder = build(folder_path("packed", path), &why);
        if (!builder) {
                if (n_samples > 0)
                        find("what no index can be made of");
                return;
        }
        if (index_builder_write(builder, fd, "fuzzed", &why) < 0)
                find("what no index can be written of");
        if (index_open_fd(fd, "fuzzed", NULL, &index, &why) < 0 || index->n_samples != n_samples)
                find("what its index does not hold");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static bool has_folder;
        struct why why = { 0 };
        struct shard shard;
        struct file file;

        if (!has_folder)
                folder_make("packed");
        has_folder = true;
        if (n_bytes < 2)
                return 0;
        file = data[0] & 1 ? put_apart(data + 2, n_bytes - 2, data[1] % (SAMPLE_BLOCKS + 1))
                           : take_as_it_is(data + 2, n_bytes - 2);
        if (data[0] & 2)
                mend(&file);
        if (shard_parse(file.bytes, file.n, &shard, &why) == 0) {
                use(&shard, file.n);
                index_folder(&file, shard.header->n_samples);
        } else if (!why.text[0]) {
                abort();
        }
        free(file.bytes);
        return 0;
}
