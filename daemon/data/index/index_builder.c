#include "daemon/data/index/index_builder.h"

/* Each section grows in memory, in one piece. They are written one after the other, and the header last. */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/disk.h"
#include "daemon/data/growing.h"
#include "daemon/data/index/index_columns.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define LOOK_SAMPLES 4096u       /* added between two looks at whether the index is still wanted */
#define PIECE_BYTES  (16u << 20) /* written between two */

struct index_builder {
        struct index_header header; /* counts and sums so far */
        struct index_field fields[INDEX_FIELDS_MAX];
        bool has_fields;                   /* a field was described */
        bool has_absent[INDEX_FIELDS_MAX]; /* a sample without this stored field was added */
        struct index_columns columns;
        struct growing rows, files, dirs, classes, shards, labels, refused, names;
        char dir[PATH_MAX]; /* of the path that was added last */
        uint32_t idx_dir;
        uint64_t *marks; /* of samples; part of the digest */
        uint64_t n_marks;
};

#define MARKED_MAX  4096u /* fields, about */
#define MARKED_MIN  64u   /* samples */
#define MARK_PIECES 4u    /* of a field */

const char *index_builder_text(int error) {
        return error == -E2BIG    ? "more samples, files, classes or bytes of values than an index can hold"
               : error == -ENOMEM ? "no memory for its index"
                                  : why_text(error);
}

int index_builder_refused(int error, const char *root, struct why *why) {
        return why_set(why, error, "%s: %s", root, index_builder_text(error));
}

int index_builder_new(const char *format, uint32_t n_fields, struct index_builder **ret_builder) {
        struct index_builder *builder = calloc(1, sizeof(*builder));

        assert(strlen(format) < INDEX_FORMAT_NAME_MAX && n_fields <= INDEX_FIELDS_MAX);
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
        struct schema_field field = { .kind = kind, .may_be_absent = may_be_absent };

        assert(strlen(name) < sizeof(field.name));
        strcpy(field.name, name);
        index_builder_describe(builder, idx, &field);
}

void index_builder_describe(struct index_builder *builder, uint32_t idx, const struct schema_field *field) {
        assert(idx < builder->header.n_fields && builder->header.n_samples == 0);
        index_field_describe(&builder->fields[idx], field);
        builder->has_fields = true;
}

void index_builder_set_own_file(struct index_builder *builder, uint32_t idx) {
        assert(idx < builder->header.n_fields && builder->header.n_samples == 0);
        builder->fields[idx].flags |= INDEX_FIELD_OWN_FILE;
}

void index_builder_set_shards_after(struct index_builder *builder, uint32_t idx, uint32_t n_shards) {
        assert(idx < builder->header.n_fields && builder->header.n_samples == 0);
        builder->fields[idx].shards_after = n_shards;
}

void index_builder_name_rows(struct index_builder *builder) {
        assert(builder->header.n_samples == 0);
        builder->header.flags |= INDEX_NAMES_ROWS;
}

void index_builder_set_scattered(struct index_builder *builder) {
        assert(builder->header.n_samples == 0);
        builder->header.flags |= INDEX_SCATTERED;
}

void index_builder_set_only_names(struct index_builder *builder) {
        assert(builder->header.n_samples == 0);
        builder->header.flags |= INDEX_ONLY_NAMES;
}

void index_builder_set_options(struct index_builder *builder, const char *digest) {
        assert(strlen(digest) < sizeof(builder->header.options));
        strcpy(builder->header.options, digest);
}

int index_builder_add_column(struct index_builder *builder, const struct schema_field *field, uint32_t *ret_idx) {
        int r;

        assert(builder->header.n_samples == 0);
        if (builder->header.n_fields + builder->header.n_columns == INDEX_FIELDS_MAX)
                return -E2BIG;
        r = index_columns_add(&builder->columns, field, ret_idx);
        if (r >= 0)
                builder->header.n_columns++;
        return r;
}

int index_builder_set_value(struct index_builder *builder, uint32_t idx, const void *elements, uint64_t n_bytes) {
        return index_columns_set(&builder->columns, idx, elements, n_bytes);
}

void index_builder_free(struct index_builder *builder) {
        if (!builder)
                return;
        index_columns_fini(&builder->columns);
        growing_fini(&builder->rows);
        growing_fini(&builder->files);
        growing_fini(&builder->dirs);
        growing_fini(&builder->classes);
        growing_fini(&builder->shards);
        growing_fini(&builder->labels);
        growing_fini(&builder->refused);
        growing_fini(&builder->names);
        free(builder->marks);
        free(builder);
}

void index_builder_freep(struct index_builder **builder) {
        index_builder_free(*builder);
}

/* ---- collecting ---------------------------------------------------------------------------------------------- */

static int index_builder_add_name(struct index_builder *builder, const char *name, uint64_t *ret_offset) {
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
        r = index_builder_add_name(builder, name, &offset);
        if (r >= 0)
                r = growing_append(&builder->classes, &offset, sizeof(offset));
        if (r < 0)
                return r;
        builder->header.n_classes++;
        return 0;
}

int index_builder_refuse(struct index_builder *builder, const struct refusal *refusal) {
        struct index_refused refused;
        int r = index_builder_add_name(builder, refusal->name, &refused.name);

        if (r >= 0)
                r = index_builder_add_name(builder, refusal->reason, &refused.reason);
        if (r >= 0)
                r = growing_append(&builder->refused, &refused, sizeof(refused));
        if (r < 0)
                return r;
        builder->header.n_refused++;
        return 0;
}

void index_builder_set_hidden(struct index_builder *builder, uint32_t n) {
        builder->header.n_hidden = n;
}

int index_builder_add_dir(struct index_builder *builder, const char *path, const struct stat *status,
                          uint32_t *ret_dir) {
        struct index_dir dir = { 0 };
        int r;

        assert((path[0] == '\0') == (builder->header.n_dirs == 0));
        if (builder->header.n_dirs == INDEX_DIRS_MAX)
                return -E2BIG;
        if (status)
                dir.stamp = file_stamp_of(status);
        r = index_builder_add_name(builder, path, &dir.path);
        if (r >= 0)
                r = growing_append(&builder->dirs, &dir, sizeof(dir));
        if (r < 0)
                return r;
        *ret_dir = (uint32_t)builder->header.n_dirs++;
        return 0;
}

void index_builder_set_named(struct index_builder *builder) {
        assert(builder->header.n_dirs > 0);
        ((struct index_dir *)(void *)builder->dirs.bytes)->stamp.mtime_ns = INDEX_TIME_ANY;
}

void index_builder_set_listed(struct index_builder *builder, bool is_named) {
        index_builder_set_named(builder);
        builder->header.flags |= INDEX_BY_LIST | (is_named ? INDEX_LIST_NAMED : 0);
}

int index_builder_add_file(struct index_builder *builder, uint32_t dir, const char *name, uint32_t flags,
                           uint64_t *ret_file) {
        struct index_file file = { .dir = dir, .flags = flags };
        int r;

        assert(dir < builder->header.n_dirs);
        if (builder->header.n_files == INDEX_FILES_MAX)
                return -E2BIG;
        r = index_builder_add_name(builder, name, &file.name);
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

int index_builder_add_path(struct index_builder *builder, const char *path, uint32_t flags, uint64_t *ret_file) {
        const char *name = text_after_slash(path);
        size_t n_dir = name > path ? (size_t)(name - path) - 1 : 0;
        int r = 0;

        if (strncmp(builder->dir, path, n_dir) != 0 || builder->dir[n_dir] != '\0') {
                memcpy(builder->dir, path, n_dir);
                builder->dir[n_dir] = '\0';
                builder->idx_dir = 0;
                if (n_dir > 0)
                        r = index_builder_add_dir(builder, builder->dir, NULL, &builder->idx_dir);
        }
        return r < 0 ? r : index_builder_add_file(builder, builder->idx_dir, name, flags, ret_file);
}

int index_builder_add_shard(struct index_builder *builder, const char *name, const struct stat *status) {
        struct index_shard shard = {
                .first_sample = builder->header.n_samples,
                .stamp = file_stamp_of(status),
        };
        int r;

        assert(builder->header.n_shards > 0 || builder->header.n_samples == 0);
        if (builder->header.n_shards == INDEX_SHARDS_MAX)
                return -E2BIG;
        r = index_builder_add_name(builder, name, &shard.name);
        if (r >= 0)
                r = growing_append(&builder->shards, &shard, sizeof(shard));
        if (r < 0)
                return r;
        builder->header.n_shards++;
        return 0;
}

int index_builder_add_sample(struct index_builder *builder, const struct index_row *rows, int32_t label) {
        struct index_header *header = &builder->header;
        uint64_t total = header->total_bytes, longest = header->max_length, span;
        int r;

        assert(!index_header_has_labels(header) || (label >= 0 && (uint64_t)label < header->n_classes));
        if (header->n_samples == DLP_SAMPLES_MAX)
                return -E2BIG;
        if (header->n_samples % LOOK_SAMPLES == 0 && indexing_is_over())
                return -ECANCELED;
        for (uint64_t i = 0; i < header->n_fields; i++) {
                assert(rows[i].file < header->n_files ||
                       (rows[i].file == INDEX_NO_FILE && header->flags & INDEX_NAMES_ROWS && header->n_shards > 0));
                if (rows[i].offset == INDEX_ROW_ABSENT) {
                        assert(builder->fields[i].flags & INDEX_FIELD_MAY_BE_ABSENT && rows[i].length == 0);
                        builder->has_absent[i] = true;
                        continue;
                }
                if (rows[i].offset > INT64_MAX || rows[i].length > INT64_MAX - rows[i].offset ||
                    __builtin_add_overflow(total, rows[i].length, &total))
                        return -E2BIG;
                longest = rows[i].length > longest ? rows[i].length : longest;
        }
        span = index_span(rows, builder->fields, header->n_fields);
        r = growing_append(&builder->rows, rows, header->n_fields * sizeof(*rows));
        if (r >= 0 && index_header_has_labels(header))
                r = growing_append(&builder->labels, &label, sizeof(label));
        if (r >= 0)
                r = index_columns_next(&builder->columns, header->n_samples);
        if (r < 0)
                return r;
        header->total_bytes = total;
        header->max_length = longest;
        header->max_span = span > header->max_span ? span : header->max_span;
        header->n_samples++;
        return 0;
}

int index_builder_append(struct index_builder *builder, const struct index_builder *part) {
        struct index_header *header = &builder->header;
        const struct index_header *more = &part->header;
        int r;

        assert(header->n_fields == more->n_fields && header->n_classes == more->n_classes && header->n_shards > 0);
        assert(more->n_files == 0 && (header->flags & INDEX_NAMES_ROWS));
        if (more->n_samples > DLP_SAMPLES_MAX - header->n_samples ||
            __builtin_add_overflow(header->total_bytes, more->total_bytes, &header->total_bytes))
                return -E2BIG;
        r = growing_append(&builder->rows, part->rows.bytes, part->rows.n_bytes);
        if (r >= 0)
                r = growing_append(&builder->labels, part->labels.bytes, part->labels.n_bytes);
        if (r >= 0)
                r = index_columns_append(&builder->columns, header->n_samples, &part->columns, more->n_samples);
        for (uint64_t i = 0; i < header->n_fields; i++)
                builder->has_absent[i] |= part->has_absent[i];
        header->max_length = more->max_length > header->max_length ? more->max_length : header->max_length;
        header->max_span = more->max_span > header->max_span ? more->max_span : header->max_span;
        header->n_samples += more->n_samples;
        return r;
}

/* ---- the digest ---------------------------------------------------------------------------------------------- */

/* Collects small pieces first: one call into OpenSSL for each would cost more than the hashing. */
struct hashing {
        EVP_MD_CTX *context;
        size_t n_gathered;
        bool failed, is_over;
        uint8_t gathered[65536];
};

static void hashing_flush(struct hashing *hashing) {
        hashing->is_over = hashing->is_over || indexing_is_over(); /* it takes seconds for 10^8 samples */
        if (!hashing->is_over && EVP_DigestUpdate(hashing->context, hashing->gathered, hashing->n_gathered) != 1)
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
static void index_builder_hash_name(struct hashing *hashing, const char *name) {
        hash_bytes(hashing, name, strlen(name) + 1);
}

/* What only arrays and texts have. Other kinds add nothing: their digests are as old as version 1. */
static void hash_array(struct hashing *hashing, const struct index_field *field) {
        if (field->kind != FIELD_VALUE && field->kind != FIELD_TEXT)
                return;
        hash_u64(hashing, field->coding);
        hash_u64(hashing, field->flags & INDEX_FIELD_BIG_ENDIAN);
        hash_u64(hashing, field->dtype);
        hash_u64(hashing, field->n_dims);
        for (uint32_t i = 0; i < field->n_dims; i++)
                hash_u64(hashing, (uint64_t)field->shape[i]);
}

static void hash_section(struct hashing *hashing, const struct growing *section) {
        for (size_t at = 0; at < section->n_bytes;) {
                size_t n = section->n_bytes - at;

                n = n < sizeof(hashing->gathered) ? n : sizeof(hashing->gathered);
                hash_bytes(hashing, section->bytes + at, n);
                at += n;
        }
}

static void hash_columns(struct hashing *hashing, const struct index_columns *columns) {
        if (columns->n == 0)
                return;
        hash_u64(hashing, columns->n);
        for (uint32_t i = 0; i < columns->n; i++) {
                index_builder_hash_name(hashing, columns->columns[i].field.name);
                hash_u64(hashing, columns->columns[i].field.kind);
                hash_array(hashing, &columns->columns[i].field);
                hash_u64(hashing, columns->columns[i].ends.n_bytes);
                hash_section(hashing, &columns->columns[i].ends);
                hash_u64(hashing, columns->columns[i].elements.n_bytes);
                hash_section(hashing, &columns->columns[i].elements);
        }
}

/* The bytes of samples in shards, as far as their marks tell: those of equal names and lengths may be others. Not of
 * files that were packed, which are named by what they were before. */
static void hash_marks(const struct index_builder *builder, struct hashing *hashing) {
        for (uint64_t i = 0; i < builder->n_marks && strcmp(builder->header.format, builder->header.source) == 0; i++)
                hash_u64(hashing, builder->marks[i]);
}

/* Samples without names of their own are named after their shards. */
static void hash_shards(const struct index_builder *builder, struct hashing *hashing) {
        const struct index_shard *shards = (const void *)builder->shards.bytes;

        for (uint64_t i = 0; i < builder->header.n_shards && builder->header.flags & INDEX_NAMES_ROWS; i++) {
                index_builder_hash_name(hashing, (const char *)builder->names.bytes + shards[i].name);
                hash_u64(hashing, shards[i].first_sample);
        }
}

static void hash_row(const struct index_builder *builder, struct hashing *hashing, const struct index_row *row,
                     bool is_in_shard) {
        const struct index_file *files = (const void *)builder->files.bytes;
        const struct index_dir *dirs = (const void *)builder->dirs.bytes;
        const char *names = (const void *)builder->names.bytes;

        if (row->file != INDEX_NO_FILE) {
                const char *dir = names + dirs[files[row->file].dir].path;

                hash_bytes(hashing, dir, strlen(dir));
                if (dir[0])
                        hash_bytes(hashing, "/", 1);
                index_builder_hash_name(hashing, names + files[row->file].name);
        }
        /* The offset in a shard does not count, but an absent field differs from an empty one. */
        hash_u64(hashing, is_in_shard && row->offset != INDEX_ROW_ABSENT ? 0 : row->offset);
        hash_u64(hashing, row->length);
}

/* The canonical content: format, number of fields, classes, then each sample's fields and label. It leaves out
 * directories without a sample, times, and the place of the folder or of a packed sample. */
static void hash_content(const struct index_builder *builder, struct hashing *hashing) {
        const struct index_header *header = &builder->header;
        const struct index_row *rows = (const void *)builder->rows.bytes;
        const uint64_t *classes = (const void *)builder->classes.bytes;
        const int32_t *labels = (const void *)builder->labels.bytes;
        const char *names = (const void *)builder->names.bytes;

        index_builder_hash_name(hashing, "dataloaderd index 1");
        index_builder_hash_name(hashing, header->source);
        hash_u64(hashing, header->n_fields);
        for (uint64_t i = 0; i < header->n_fields && builder->has_fields; i++) {
                index_builder_hash_name(hashing, builder->fields[i].name);
                hash_u64(hashing, builder->fields[i].kind);
                hash_array(hashing, &builder->fields[i]);
        }
        hash_u64(hashing, index_header_has_labels(header) ? header->n_classes : 0);
        for (uint64_t i = 0; i < header->n_classes && index_header_has_labels(header); i++)
                index_builder_hash_name(hashing, names + classes[i]);
        hash_u64(hashing, header->n_samples);
        for (uint64_t i = 0; i < header->n_samples; i++) {
                for (uint64_t k = 0; k < header->n_fields; k++)
                        hash_row(builder, hashing, &rows[i * header->n_fields + k],
                                 header->n_shards > 0 && !(builder->fields[k].flags & INDEX_FIELD_OWN_FILE));
                if (index_header_has_labels(header))
                        hash_u64(hashing, (uint64_t)labels[i]);
        }
        hash_shards(builder, hashing);
        hash_marks(builder, hashing);
        hash_columns(hashing, &builder->columns);
}

static int index_builder_make_digest(struct index_builder *builder) {
        _cleanup_(freep) struct hashing *hashing = malloc(sizeof(*hashing));
        uint8_t digest[EVP_MAX_MD_SIZE];

        if (!hashing)
                return -ENOMEM;
        hashing->n_gathered = 0;
        hashing->failed = hashing->is_over = false;
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
        if (hashing->is_over)
                return -ECANCELED;
        if (hashing->failed)
                return -EIO;

        for (int i = 0; i < 32; i++)
                snprintf(builder->header.digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

/* ---- marks of samples ----------------------------------------------------------------------------------------- */

int index_builder_begin_marks(struct index_builder *builder, uint64_t *ret_n) {
        uint64_t n_fields = builder->header.n_fields, n = n_fields > 0 ? MARKED_MAX / n_fields : 0;

        n = n < MARKED_MIN ? MARKED_MIN : n;
        n = builder->header.n_samples < n ? builder->header.n_samples : n;
        if (builder->header.n_shards == 0 || n_fields == 0)
                n = 0;
        builder->marks = n > 0 ? calloc(n, sizeof(*builder->marks)) : NULL;
        if (n > 0 && !builder->marks)
                return -ENOMEM;
        *ret_n = builder->n_marks = n;
        return 0;
}

/* Which shard has the sample: the last one that does not begin after it. Those of merged lists are empty, and are last.
 */
static uint64_t index_builder_shard_of(const struct index_builder *builder, uint64_t sample) {
        const struct index_shard *shards = (const void *)builder->shards.bytes;
        uint64_t begin = 0, end = builder->header.n_shards;

        while (end - begin > 1) {
                uint64_t middle = begin + (end - begin) / 2;

                if (shards[middle].first_sample <= sample)
                        begin = middle;
                else
                        end = middle;
        }
        return begin;
}

static int index_builder_open_shard(const struct index_builder *builder, uint64_t idx, int root_fd, int *ret_fd,
                                    struct why *why) {
        const struct index_shard *shards = (const void *)builder->shards.bytes;
        const char *name = (const char *)builder->names.bytes + shards[idx].name;

        closep(ret_fd);
        *ret_fd = beneath_open(root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        return *ret_fd < 0 ? why_errno(why, -errno, "%s cannot be opened", name) : 0;
}

int index_builder_mark(struct index_builder *builder, uint64_t idx, int root_fd, struct why *why) {
        uint64_t sample = idx * builder->header.n_samples / builder->n_marks, n_fields = builder->header.n_fields;
        const struct index_row *rows = (const struct index_row *)(const void *)builder->rows.bytes + sample * n_fields;
        uint64_t own = index_builder_shard_of(builder, sample), opened = UINT64_MAX;
        _cleanup_(closep) int fd = -1;

        for (uint64_t i = 0; i < n_fields; i++) {
                uint64_t mark = 0, wanted = own + builder->fields[i].shards_after;
                int r;

                if (rows[i].offset == INDEX_ROW_ABSENT || rows[i].length == 0 ||
                    builder->fields[i].flags & INDEX_FIELD_OWN_FILE)
                        continue;
                r = opened == wanted ? 0 : index_builder_open_shard(builder, wanted, root_fd, &fd, why);
                if (r < 0)
                        return r;
                opened = wanted;
                /* What cannot be read is damage of this sample, which is told when it is served. */
                if (index_mark(fd, rows[i].offset, rows[i].length, MARK_PIECES, &mark) < 0)
                        mark = 0;
                builder->marks[idx] = (builder->marks[idx] ^ mark) * 0x9e3779b97f4a7c15ull;
        }
        return 0;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* Sections follow each other, each with zeroes up to the next multiple of 8. */
struct writing {
        int fd;
        uint64_t at;
        struct index_sum sum;
};

static int index_builder_write_section(struct writing *writing, const void *bytes, size_t n_bytes) {
        size_t n_whole = n_bytes / 8 * 8;
        uint64_t last = 0;

        for (size_t at = 0; at < n_bytes; at += PIECE_BYTES) {
                size_t n_here = n_bytes - at < PIECE_BYTES ? n_bytes - at : PIECE_BYTES;
                int r = indexing_is_over()
                                ? -ECANCELED
                                : disk_write_at(writing->fd, (const uint8_t *)bytes + at, n_here, writing->at + at);

                if (r < 0)
                        return r;
        }
        index_sum_add(&writing->sum, bytes, n_whole);
        if (n_whole < n_bytes) {
                memcpy(&last, (const uint8_t *)bytes + n_whole, n_bytes - n_whole);
                index_sum_add(&writing->sum, &last, sizeof(last));
                n_whole += sizeof(last);
        }
        writing->at += n_whole;
        return 0;
}

static int write_column_fields(struct writing *writing, const struct index_columns *columns) {
        int r = 0;

        for (uint32_t i = 0; i < columns->n && r >= 0; i++)
                r = index_builder_write_section(writing, &columns->columns[i].field, sizeof(columns->columns[i].field));
        return r;
}

static int index_builder_write_columns(struct writing *writing, const struct index_columns *columns) {
        int r = 0;

        for (uint32_t i = 0; i < columns->n && r >= 0; i++) {
                const struct index_column *column = &columns->columns[i];

                r = index_builder_write_section(writing, column->ends.bytes, column->ends.n_bytes);
                if (r >= 0)
                        r = index_builder_write_section(writing, column->elements.bytes, column->elements.n_bytes);
        }
        return r;
}

/* The checksum is computed from memory, not from a mapping of the file: a disk that fails to give back what was
 * written, or a file that is cut, would end the process with SIGBUS. */
static int write_sections(struct index_builder *builder, int fd, const struct index_places *places) {
        const struct growing fields = { .bytes = (uint8_t *)builder->fields,
                                        .n_bytes = builder->header.n_fields * sizeof(builder->fields[0]) };
        const struct growing *sections[] = { &fields,          &builder->rows,    &builder->files,
                                             &builder->dirs,   &builder->classes, &builder->shards,
                                             &builder->labels, &builder->refused, &builder->names };
        struct writing writing = { .fd = fd, .at = places->fields };
        int r = 0;

        index_sum_begin(&writing.sum);
        index_sum_add(&writing.sum, (const uint8_t *)&builder->header + INDEX_CHECKSUM_FROM,
                      sizeof(builder->header) - INDEX_CHECKSUM_FROM);
        for (size_t i = 0; i < ARRAY_SIZE(sections) && r >= 0; i++) {
                if (sections[i] == &builder->names)
                        r = index_builder_write_columns(&writing, &builder->columns);
                if (r >= 0)
                        r = index_builder_write_section(&writing, sections[i]->bytes, sections[i]->n_bytes);
                if (sections[i] == &fields && r >= 0)
                        r = write_column_fields(&writing, &builder->columns);
        }
        if (r < 0)
                return r;
        assert(writing.at == places->end);
        builder->header.checksum = index_sum_end(&writing.sum);
        return disk_write_at(fd, &builder->header, sizeof(builder->header), 0);
}

int index_builder_write(struct index_builder *builder, int fd, const char *path, struct why *why) {
        struct index_places places;
        struct why detail = { 0 };
        int r;

        if (builder->header.n_dirs == 0)
                return why_set(why, -EINVAL, "%s: no directory was read", path);
        builder->header.names_bytes = builder->names.n_bytes;
        builder->header.values_bytes = index_columns_end(&builder->columns);
        for (uint64_t i = 0; i < builder->header.n_fields; i++)
                if (!builder->has_absent[i])
                        builder->fields[i].flags &= ~INDEX_FIELD_MAY_BE_ABSENT;
        r = index_places(&builder->header, &places, &detail);
        if (r < 0)
                return why_set(why, -E2BIG, "%s: %s", path, detail.text);
        builder->header.file_bytes = places.end;

        r = index_builder_make_digest(builder);
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
