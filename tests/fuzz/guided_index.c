/* Any bytes as an index file. What is accepted is used in every way that the daemon uses it, and must hold what
 * data/index/index.h promises: names that stay in the folder, places within their shards.
 *
 * The first byte: bit 0 makes magic, size and checksum right again, as a stranger can, bit 1 the sums before that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/index/index_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void mend_sums(uint8_t *bytes, size_t n_bytes) {
        struct index_header *header = (void *)bytes;
        uint64_t n_fields = header->n_fields <= INDEX_FIELDS_MAX ? header->n_fields : 0;
        uint64_t n_columns = header->n_columns <= INDEX_FIELDS_MAX ? header->n_columns : 0;
        uint64_t places = sizeof(*header) + (n_fields + n_columns) * sizeof(struct index_field);
        const struct index_field *fields = (const void *)(bytes + sizeof(*header));
        const struct index_row *rows = (const void *)(bytes + places);
        uint64_t n_rows = places < n_bytes ? (n_bytes - places) / sizeof(*rows) : 0;

        header->total_bytes = header->max_length = header->max_span = 0;
        for (uint64_t i = 0; i + n_fields <= n_rows && n_fields > 0 && i < header->n_samples * n_fields;
             i += n_fields) {
                uint64_t begin = UINT64_MAX, end = 0;

                for (uint64_t k = i; k < i + n_fields; k++) {
                        if (rows[k].offset == INDEX_ROW_ABSENT)
                                continue;
                        header->total_bytes += rows[k].length;
                        if (rows[k].length > header->max_length)
                                header->max_length = rows[k].length;
                        if (fields[k - i].flags & INDEX_FIELD_OWN_FILE)
                                continue;
                        begin = rows[k].offset < begin ? rows[k].offset : begin;
                        end = rows[k].offset + rows[k].length > end ? rows[k].offset + rows[k].length : end;
                }
                if (end > begin && end - begin > header->max_span)
                        header->max_span = end - begin;
        }
}

static void mend(uint8_t *bytes, size_t n_bytes, bool sums_too) {
        struct index_header *header = (void *)bytes;

        if (n_bytes < sizeof(*header))
                return;
        if (sums_too)
                mend_sums(bytes, n_bytes);
        memcpy(header->magic, INDEX_MAGIC, sizeof(header->magic));
        header->version = INDEX_VERSION;
        header->header_bytes = sizeof(*header);
        header->file_bytes = n_bytes;
        header->checksum = index_checksum(bytes + INDEX_CHECKSUM_FROM, n_bytes - INDEX_CHECKSUM_FROM);
}

static void find(const char *what) {
        fprintf(stderr, "fuzz: an index was accepted with %s\n", what);
        abort();
}

static void use_place(const struct source *index, uint64_t sample, uint32_t field) {
        char path[INDEX_PATH_SIZE];
        struct extent place;
        size_t n = source_name(index, sample, path);

        source_locate(index, sample, field, &place);
        if (n != strlen(path) || n >= sizeof(path) || path[0] == '\0' || path[0] == '/' || !index_is_inner_path(path))
                find("a path that leaves the folder");
        if ((place.file >= index_n_files(index) && place.file != INDEX_NO_FILE) || place.length > index->max_length ||
            place.offset > INT64_MAX - place.length)
                find("an impossible place");
        if (place.shard && (strchr(place.shard, '/') || place.idx_shard >= index->n_shards))
                find("an impossible shard");
}

static void use_value(const struct source *index, uint64_t sample, uint32_t field, size_t n_bytes) {
        uint64_t n = source_length(index, sample, field);
        uint8_t *value;

        if (n > n_bytes + sizeof(int64_t))
                find("a value that is longer than the file");
        value = malloc(n + 1); /* so that the sanitizer sees a longer one */
        source_value(index, sample, field, value);
        free(value);
}

static void use(const struct source *index, size_t n_bytes, int root_fd) {
        struct why why;

        if (strlen(index->digest) != INDEX_DIGEST_SIZE - 1 || strlen(index->format) > 31)
                find("no digest");
        for (uint32_t i = 0; i < index->n_classes; i++)
                if (strlen(source_class_name(index, i)) > n_bytes)
                        find("an endless name");
        for (uint64_t i = 0; i < index->n_samples; i++) {
                if (index->n_classes > 0 &&
                    (index_label(index, i) < 0 || (uint32_t)index_label(index, i) >= index->n_classes))
                        find("a label without a class");
                for (uint32_t k = 0; k < index->schema.n_fields; k++)
                        if (index->schema.fields[k].is_stored)
                                use_place(index, i, k);
                        else if (index->schema.fields[k].kind != FIELD_NAME)
                                use_value(index, i, k, n_bytes);
        }
        source_is_current(index, root_fd, &why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static int fd = -1;
        struct source *index = NULL;
        struct why why = { 0 };
        uint8_t *bytes;
        int r;

        if (fd < 0)
                fd = memfd_create("index", MFD_CLOEXEC);
        if (n_bytes < 1)
                return 0;
        bytes = malloc(n_bytes);
        memcpy(bytes, data + 1, n_bytes - 1);
        if (data[0] & 1)
                mend(bytes, n_bytes - 1, data[0] & 2);
        if (ftruncate(fd, 0) < 0 || pwrite(fd, bytes, n_bytes - 1, 0) != (ssize_t)(n_bytes - 1))
                _exit(2);
        free(bytes);
        r = index_open_fd(fd, "fuzzed", NULL, &index, &why);
        if (r == 0)
                use(index, n_bytes, fd);
        else if (!why.text[0])
                abort();
        source_close(index);
        return 0;
}
