#include "daemon/data/index/index_builder.h"

/* Each section grows in memory, in one piece. They are written one after the other, and the header last. */

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/machine/disk.h"
#include "daemon/data/growing.h"
#include "daemon/data/index/index_stamp.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

struct index_builder {
        struct index_header header; /* counts and sums so far */
        struct index_field fields[INDEX_FIELDS_MAX];
        bool has_fields; /* index_builder_set_field() was called */
        struct growing rows, files, dirs, classes, shards, labels, names;
};

int index_builder_new(const char *format, uint32_t n_fields, struct index_builder **ret_builder) {
        struct index_builder *builder = calloc(1, sizeof(*builder));

        assert(strlen(format) < INDEX_FORMAT_NAME_MAX && n_fields >= 1 && n_fields <= INDEX_FIELDS_MAX);
        if (!builder)
                return -ENOMEM;
        memcpy(builder->header.magic, INDEX_MAGIC, sizeof(builder->header.magic));
        builder->header.version = INDEX_VERSION;
        builder->header.header_bytes = sizeof(builder->header);
        builder->header.n_fields = n_fields;
        for (uint32_t i = 0; i < n_fields; i++) {
                snprintf(builder->fields[i].name, sizeof(builder->fields[i].name), i ? "image%u" : "image", i);
                builder->fields[i].kind = FIELD_PICTURE;
        }
        strcpy(builder->header.format, format);
        strcpy(builder->header.source, format);
        *ret_builder = builder;
        return 0;
}

void index_builder_set_field(struct index_builder *builder, uint32_t idx, const char *name, enum field_kind kind,
                             bool may_be_absent) {
        struct index_field *field = &builder->fields[idx];

        assert(idx < builder->header.n_fields && builder->header.n_samples == 0 && strlen(name) < sizeof(field->name));
        memset(field, 0, sizeof(*field));
        strcpy(field->name, name);
        field->kind = kind;
        field->flags = may_be_absent ? INDEX_FIELD_MAY_BE_ABSENT : 0;
        builder->has_fields = true;
}

void index_builder_free(struct index_builder *builder) {
        if (!builder)
                return;
        growing_fini(&builder->rows);
        growing_fini(&builder->files);
        growing_fini(&builder->dirs);
        growing_fini(&builder->classes);
        growing_fini(&builder->shards);
        growing_fini(&builder->labels);
        growing_fini(&builder->names);
        free(builder);
}

void index_builder_freep(struct index_builder **builder) {
        index_builder_free(*builder);
}

/* ---- collecting ---------------------------------------------------------------------------------------------- */

static int add_name(struct index_builder *builder, const char *name, uint64_t *ret_offset) {
        uint64_t offset = builder->names.n_bytes;
        int r;

        r = growing_append(&builder->names, name, strlen(name) + 1);
        if (r < 0)
                return r;
        *ret_offset = offset;
        return 0;
}

int index_builder_add_class(struct index_builder *builder, const char *name) {
        uint64_t offset;
        int r;

        if (builder->header.n_classes == INDEX_CLASSES_MAX)
                return -E2BIG;
        r = add_name(builder, name, &offset);
        if (r >= 0)
                r = growing_append(&builder->classes, &offset, sizeof(offset));
        if (r < 0)
                return r;
        builder->header.n_classes++;
        return 0;
}

int index_builder_add_dir(struct index_builder *builder, const char *path, const struct stat *status,
                          uint32_t *ret_dir) {
        struct index_dir dir = { 0 };
        int r;

        assert((path[0] == '\0') == (builder->header.n_dirs == 0));
        if (builder->header.n_dirs == INDEX_DIRS_MAX)
                return -E2BIG;
        if (status) {
                dir.mtime_ns = index_mtime_ns(status);
                dir.device = status->st_dev;
                dir.inode = status->st_ino;
        }
        r = add_name(builder, path, &dir.path);
        if (r >= 0)
                r = growing_append(&builder->dirs, &dir, sizeof(dir));
        if (r < 0)
                return r;
        *ret_dir = (uint32_t)builder->header.n_dirs++;
        return 0;
}

void index_builder_set_named(struct index_builder *builder) {
        assert(builder->header.n_dirs > 0);
        ((struct index_dir *)(void *)builder->dirs.bytes)->mtime_ns = INDEX_TIME_ANY;
}

int index_builder_add_file(struct index_builder *builder, uint32_t dir, const char *name, uint32_t flags,
                           uint64_t *ret_file) {
        struct index_file file = { .dir = dir, .flags = flags };
        int r;

        assert(dir < builder->header.n_dirs);
        if (builder->header.n_files == INDEX_FILES_MAX)
                return -E2BIG;
        r = add_name(builder, name, &file.name);
        if (r >= 0)
                r = growing_append(&builder->files, &file, sizeof(file));
        if (r < 0)
                return r;
        *ret_file = builder->header.n_files++;
        return 0;
}

void index_builder_set_source(struct index_builder *builder, const char *format) {
        assert(strlen(format) < INDEX_FORMAT_NAME_MAX);
        strcpy(builder->header.source, format);
}

int index_builder_add_shard(struct index_builder *builder, const char *name, const struct stat *status) {
        struct index_shard shard = {
                .first_sample = builder->header.n_samples,
                .n_bytes = (uint64_t)status->st_size,
                .mtime_ns = index_mtime_ns(status),
        };
        int r;

        assert(builder->header.n_shards > 0 || builder->header.n_samples == 0);
        if (builder->header.n_shards == INDEX_SHARDS_MAX)
                return -E2BIG;
        r = add_name(builder, name, &shard.name);
        if (r >= 0)
                r = growing_append(&builder->shards, &shard, sizeof(shard));
        if (r < 0)
                return r;
        builder->header.n_shards++;
        return 0;
}

int index_builder_add_sample(struct index_builder *builder, const struct index_row *rows, int32_t label) {
        struct index_header *header = &builder->header;
        uint64_t total = header->total_bytes, longest = header->max_length, begin = UINT64_MAX, end = 0;
        int r;

        assert(header->n_classes == 0 || (label >= 0 && (uint64_t)label < header->n_classes));
        if (header->n_samples == DLP_SAMPLES_MAX)
                return -E2BIG;
        for (uint64_t i = 0; i < header->n_fields; i++) {
                assert(rows[i].file < header->n_files);
                if (rows[i].offset == INDEX_ROW_ABSENT) {
                        assert(builder->fields[i].flags & INDEX_FIELD_MAY_BE_ABSENT && rows[i].length == 0);
                        continue;
                }
                if (rows[i].offset > INT64_MAX || rows[i].length > INT64_MAX - rows[i].offset ||
                    __builtin_add_overflow(total, rows[i].length, &total))
                        return -E2BIG;
                longest = rows[i].length > longest ? rows[i].length : longest;
                begin = rows[i].offset < begin ? rows[i].offset : begin;
                end = rows[i].offset + rows[i].length > end ? rows[i].offset + rows[i].length : end;
        }
        r = growing_append(&builder->rows, rows, header->n_fields * sizeof(*rows));
        if (r >= 0 && header->n_classes > 0)
                r = growing_append(&builder->labels, &label, sizeof(label));
        if (r < 0)
                return r;
        header->total_bytes = total;
        header->max_length = longest;
        if (end > begin && end - begin > header->max_span)
                header->max_span = end - begin;
        header->n_samples++;
        return 0;
}

/* ---- the digest ---------------------------------------------------------------------------------------------- */

/* Collects small pieces first: one call into OpenSSL for each would cost more than the hashing. */
struct hashing {
        EVP_MD_CTX *context;
        size_t n_gathered;
        bool failed;
        uint8_t gathered[65536];
};

static void hashing_flush(struct hashing *hashing) {
        if (EVP_DigestUpdate(hashing->context, hashing->gathered, hashing->n_gathered) != 1)
                hashing->failed = true;
        hashing->n_gathered = 0;
}

static void hash_bytes(struct hashing *hashing, const void *bytes, size_t n_bytes) {
        if (n_bytes > sizeof(hashing->gathered) - hashing->n_gathered)
                hashing_flush(hashing);
        assert(n_bytes <= sizeof(hashing->gathered)); /* a name is shorter than PATH_MAX */
        memcpy(hashing->gathered + hashing->n_gathered, bytes, n_bytes);
        hashing->n_gathered += n_bytes;
}

static void hash_u64(struct hashing *hashing, uint64_t value) {
        hash_bytes(hashing, &value, sizeof(value));
}

/* Includes the NUL: it cannot be in a name, so no two lists of names give the same bytes. */
static void hash_name(struct hashing *hashing, const char *name) {
        hash_bytes(hashing, name, strlen(name) + 1);
}

/* The canonical content: format, number of fields, classes, then each sample's fields and label. It leaves out
 * directories without a sample, times, and the place of the folder or of a packed sample. */
static void hash_content(const struct index_builder *builder, struct hashing *hashing) {
        const struct index_header *header = &builder->header;
        const struct index_row *rows = (const void *)builder->rows.bytes;
        const struct index_file *files = (const void *)builder->files.bytes;
        const struct index_dir *dirs = (const void *)builder->dirs.bytes;
        const uint64_t *classes = (const void *)builder->classes.bytes;
        const int32_t *labels = (const void *)builder->labels.bytes;
        const char *names = (const void *)builder->names.bytes;

        hash_name(hashing, "dataloaderd index 1");
        hash_name(hashing, header->source);
        hash_u64(hashing, header->n_fields);
        for (uint64_t i = 0; i < header->n_fields && builder->has_fields; i++) {
                hash_name(hashing, builder->fields[i].name);
                hash_u64(hashing, builder->fields[i].kind);
        }
        hash_u64(hashing, header->n_classes);
        for (uint64_t i = 0; i < header->n_classes; i++)
                hash_name(hashing, names + classes[i]);
        hash_u64(hashing, header->n_samples);
        for (uint64_t i = 0; i < header->n_samples; i++) {
                for (uint64_t k = 0; k < header->n_fields; k++) {
                        const struct index_row *row = &rows[i * header->n_fields + k];
                        const char *dir = names + dirs[files[row->file].dir].path;

                        hash_bytes(hashing, dir, strlen(dir));
                        if (dir[0])
                                hash_bytes(hashing, "/", 1);
                        hash_name(hashing, names + files[row->file].name);
                        /* The offset in a shard does not count, but an absent field differs from an empty one. */
                        hash_u64(hashing, header->n_shards > 0 && row->offset != INDEX_ROW_ABSENT ? 0 : row->offset);
                        hash_u64(hashing, row->length);
                }
                if (header->n_classes > 0)
                        hash_u64(hashing, (uint64_t)labels[i]);
        }
}

static int make_digest(struct index_builder *builder) {
        _cleanup_(freep) struct hashing *hashing = malloc(sizeof(*hashing));
        uint8_t digest[EVP_MAX_MD_SIZE];

        if (!hashing)
                return -ENOMEM;
        hashing->n_gathered = 0;
        hashing->failed = false;
        hashing->context = EVP_MD_CTX_new();
        if (!hashing->context)
                return -ENOMEM;

        if (EVP_DigestInit_ex(hashing->context, EVP_sha256(), NULL) != 1)
                hashing->failed = true;
        else {
                hash_content(builder, hashing);
                hashing_flush(hashing);
        }
        if (!hashing->failed && EVP_DigestFinal_ex(hashing->context, digest, NULL) != 1)
                hashing->failed = true;
        EVP_MD_CTX_free(hashing->context);
        if (hashing->failed)
                return -EIO;

        for (int i = 0; i < 32; i++)
                snprintf(builder->header.digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* As it is in the file: with zeroes up to the next multiple of 8. */
static void sum_section(struct index_sum *sum, const struct growing *section) {
        size_t n_whole = section->n_bytes / 8 * 8;
        uint64_t last = 0;

        index_sum_add(sum, section->bytes, n_whole);
        if (n_whole == section->n_bytes)
                return;
        memcpy(&last, section->bytes + n_whole, section->n_bytes - n_whole);
        index_sum_add(sum, &last, sizeof(last));
}

/* The checksum is computed from memory, not from a mapping of the file: a disk that fails to give back what was
 * written, or a file that is cut, would end the process with SIGBUS. */
static int write_sections(struct index_builder *builder, int fd, const struct index_places *places) {
        const struct growing fields = { .bytes = (uint8_t *)builder->fields,
                                        .n_bytes = builder->header.n_fields * sizeof(builder->fields[0]) };
        const struct {
                const struct growing *section;
                uint64_t offset;
        } sections[] = {
                { &fields, places->fields },
                { &builder->rows, places->rows },
                { &builder->files, places->files },
                { &builder->dirs, places->dirs },
                { &builder->classes, places->classes },
                { &builder->shards, places->shards },
                { &builder->labels, places->labels },
                { &builder->names, places->names },
        };
        struct index_sum sum;

        index_sum_begin(&sum);
        index_sum_add(&sum, (const uint8_t *)&builder->header + INDEX_CHECKSUM_FROM,
                      sizeof(builder->header) - INDEX_CHECKSUM_FROM);
        for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
                int r = disk_write_at(fd, sections[i].section->bytes, sections[i].section->n_bytes, sections[i].offset);

                if (r < 0)
                        return r;
                sum_section(&sum, sections[i].section);
        }
        builder->header.checksum = index_sum_end(&sum);
        return disk_write_at(fd, &builder->header, sizeof(builder->header), 0);
}

int index_builder_write(struct index_builder *builder, int fd, const char *path, struct why *why) {
        struct index_places places;
        struct why detail = { 0 };
        int r;

        if (builder->header.n_dirs == 0)
                return why_set(why, -EINVAL, "%s: no directory was read", path);
        builder->header.names_bytes = builder->names.n_bytes;
        r = index_places(&builder->header, &places, &detail);
        if (r < 0)
                return why_set(why, -E2BIG, "%s: %s", path, detail.text);
        builder->header.file_bytes = places.end;

        r = make_digest(builder);
        if (r < 0)
                return why_errno(why, r, "%s: its digest could not be made", path);

        if (ftruncate(fd, (off_t)places.end) < 0) /* the gaps between sections read as zeroes */
                r = -errno;
        if (r >= 0)
                r = write_sections(builder, fd, &places);
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        if (r < 0)
                return why_errno(why, r, "%s: an index of %ju bytes cannot be written", path, (uintmax_t)places.end);
        return 0;
}
