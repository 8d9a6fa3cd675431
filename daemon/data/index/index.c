#include "daemon/data/index/index.h"

/* A mapping and pointers to its sections. Everything is checked when the index is opened. */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/machine/own_file.h"
#include "daemon/data/index/index_columns.h"
#include "daemon/data/source_type.h"
#include "proto/base/cleanup.h"

struct index {
        struct source source;
        struct budget *budget; /* a copy in memory is counted in it; NULL: no copy, or not counted */
        void *map;
        uint64_t map_bytes;
        const struct index_header *header;
        const struct index_field *fields;
        const struct index_row *rows;
        const struct index_file *files;
        const struct index_dir *dirs;
        const uint64_t *classes;
        const struct index_shard *shards;
        const int32_t *labels;
        const uint8_t *values;
        const char *names;
        struct refusal *refused; /* of the source */
};

static const struct source_type INDEX_TYPE;

static const struct index *index_of(const struct source *source) {
        assert(source->type == &INDEX_TYPE);
        return (const struct index *)source;
}

static void index_close(struct source *source) {
        struct index *index = (struct index *)source;

        if (index->map)
                munmap(index->map, index->map_bytes);
        if (index->budget)
                budget_release(index->budget, index->map_bytes);
        free(index->refused);
        free(index);
}

static void index_closep(struct index **index) {
        if (*index)
                index_close(&(*index)->source);
}

int index_read_header(int fd, struct index_header *ret_header, struct why *why) {
        struct index_header header;
        struct stat status;
        int r;

        if (fstat(fd, &status) < 0)
                return why_errno(why, -errno, "cannot be looked at");
        if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size < sizeof(header))
                return why_set(why, -EBADMSG, "it is too short for an index");
        r = disk_read_at(fd, &header, sizeof(header), 0);
        if (r < 0)
                return why_errno(why, r, "its header cannot be read");
        r = index_check_shape(&header, (uint64_t)status.st_size, why);
        if (r < 0)
                return r;
        *ret_header = header;
        return 0;
}

/* The mapping is private, though it is only read: some kernels refuse a shared mapping of a sealed file. The pages are
 * the same. */
static int map_bytes(struct index *index, int fd, uint64_t n_bytes, struct why *why) {
        void *map = mmap(NULL, (size_t)n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);

        if (map == MAP_FAILED)
                return why_errno(why, -errno, "cannot be mapped");
        index->map = map;
        index->map_bytes = n_bytes;
        madvise(map, (size_t)n_bytes, MADV_WILLNEED); /* all of it is read now; the advice may fail */
        return 0;
}

static int copy_to_memory(int fd, uint64_t n_bytes, int *ret_copy, struct why *why) {
        _cleanup_(closep) int copy = -1;
        int r = own_file_make("dataloaderd-index", &copy);

        if (r == 0)
                r = own_file_copy(fd, n_bytes, copy);
        if (r == 0)
                r = own_file_seal(copy);
        if (r < 0)
                return why_errno(why, r, "cannot be copied into memory");
        *ret_copy = take_fd(&copy);
        return 0;
}

/* Maps the file itself if only we can write it, or else a copy. Memory is counted before it is taken, and for as long
 * as the index is open. */
static int index_map_file(struct index *index, int fd, enum own_file kind, struct budget *budget, struct why *why) {
        _cleanup_(closep) int copy = -1;
        struct index_header header;
        int r = index_read_header(fd, &header, why);

        if (r < 0)
                return r;
        if (kind != OWN_FILE_DISK && budget) {
                r = budget_reserve(budget, header.file_bytes, "an index in memory", why);
                if (r < 0)
                        return r;
                index->budget = budget;
                index->map_bytes = header.file_bytes;
        }
        if (kind == OWN_FILE_NOT)
                r = copy_to_memory(fd, header.file_bytes, &copy, why);
        return r < 0 ? r : map_bytes(index, copy >= 0 ? copy : fd, header.file_bytes, why);
}

static void find_sections(struct index *index, const struct index_places *places) {
        const uint8_t *bytes = index->map;

        index->header = (const void *)bytes;
        index->fields = (const void *)(bytes + places->fields);
        index->rows = (const void *)(bytes + places->rows);
        index->files = (const void *)(bytes + places->files);
        index->dirs = (const void *)(bytes + places->dirs);
        index->classes = (const void *)(bytes + places->classes);
        index->shards = (const void *)(bytes + places->shards);
        index->labels = (const void *)(bytes + places->labels);
        index->values = bytes + places->values;
        index->names = (const char *)bytes + places->names;
}

static bool has_field(const struct schema *schema, const char *name) {
        for (uint32_t i = 0; i < schema->n_fields; i++)
                if (strcmp(schema->fields[i].name, name) == 0)
                        return true;
        return false;
}

static void index_describe_field(const struct index_field *field, bool is_stored, struct schema_field *ret_described) {
        *ret_described = (struct schema_field){
                .kind = (enum field_kind)field->kind,
                .is_stored = is_stored,
                .may_be_absent = field->flags & INDEX_FIELD_MAY_BE_ABSENT,
                .is_big_endian = field->flags & INDEX_FIELD_BIG_ENDIAN,
                .is_json = field->flags & INDEX_FIELD_JSON,
                .coding = (enum field_coding)field->coding,
                .dtype = field->kind == FIELD_NUMBER ? DLP_DTYPE_INT64 : field->dtype,
                .n_dims = field->n_dims,
        };
        memcpy(ret_described->name, field->name, sizeof(ret_described->name));
        memcpy(ret_described->shape, field->shape, sizeof(ret_described->shape));
}

/* The stored fields; the columns; the class number, if there are classes; and the sample's name, which is known for
 * every sample and delivered if a pipeline asks for it. */
static void describe_fields(const struct index *index, struct schema *schema) {
        for (uint64_t i = 0; i < index->header->n_fields + index->header->n_columns; i++)
                index_describe_field(&index->fields[i], i < index->header->n_fields,
                                     &schema->fields[schema->n_fields++]);
        if (index_header_has_labels(index->header) && !has_field(schema, "label"))
                schema->fields[schema->n_fields++] =
                        (struct schema_field){ .name = "label", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 };
        for (uint32_t i = 0; i < schema->n_fields; i++)
                schema->fields[i].is_class = index_header_has_labels(index->header) &&
                                             strcmp(schema->fields[i].name, "label") == 0;
        if (!has_field(schema, INDEX_KEY_NAME))
                schema->fields[schema->n_fields++] = (struct schema_field){ .name = INDEX_KEY_NAME,
                                                                            .kind = FIELD_NAME };
}

#define SPAN_TOGETHER (256u << 10) /* bytes: up to this, one read of all fields is cheaper than one of each */
#define GAP_MAX       (32u << 10)  /* bytes that are read in vain rather than making another read */

/* Do the samples have fields that do not lie in their shards? */
static bool has_other_files(const struct index *index) {
        for (uint64_t i = 0; i < index->header->n_fields; i++)
                if (index->fields[i].flags & INDEX_FIELD_OWN_FILE || index->fields[i].shards_after > 0)
                        return true;
        return false;
}

static void index_describe(struct index *index) {
        const struct index_header *header = index->header;

        index->source = (struct source){
                .type = &INDEX_TYPE,
                .format = header->format,
                .digest = header->digest,
                .n_samples = header->n_samples,
                .n_shards = header->n_shards,
                .total_bytes = header->total_bytes,
                .max_length = header->max_length,
                .max_span = header->n_shards > 0 ? header->max_span : header->max_length,
                .n_classes = (uint32_t)header->n_classes,
        };
        if (has_other_files(index)) {
                index->source.has_several_files = true;
                if (header->max_length > header->max_span)
                        index->source.max_span = header->max_length;
        }
        if (header->flags & INDEX_SCATTERED && header->max_span > SPAN_TOGETHER) {
                index->source.has_several_files = true;
                index->source.max_gap = GAP_MAX;
        }
        describe_fields(index, &index->source.schema);
}

static int list_refused(struct index *index, const struct index_places *places) {
        const struct index_refused *refused = (const void *)((const uint8_t *)index->map + places->refused);
        uint32_t n = (uint32_t)index->header->n_refused;

        index->refused = calloc(n + 1, sizeof(*index->refused));
        if (!index->refused)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                index->refused[i] = (struct refusal){ .name = index->names + refused[i].name,
                                                      .reason = index->names + refused[i].reason };
        index->source.refused = index->refused;
        index->source.n_refused = n;
        return 0;
}

static int index_open_as(int fd, enum own_file kind, const char *path, struct budget *budget,
                         struct source **ret_source, struct why *why) {
        _cleanup_(index_closep) struct index *index = NULL;
        struct index_places places;
        struct why detail = { 0 };
        uint64_t longest_path = 0;
        int r;

        index = calloc(1, sizeof(*index));
        if (!index)
                return why_set(why, -ENOMEM, "%s: no memory to open it", path);

        r = index_map_file(index, fd, kind, budget, &detail);
        if (r >= 0)
                r = index_validate(index->map, index->map_bytes, &longest_path, &detail);
        if (r >= 0)
                r = index_places(index->map, &places, &detail);
        if (r < 0)
                return why_set(why, r, "%s: %s", path, detail.text);

        find_sections(index, &places);
        index_describe(index);
        if (list_refused(index, &places) < 0)
                return why_set(why, -ENOMEM, "%s: no memory to open it", path);
        index->source.max_name_bytes = longest_path;
        *ret_source = &TAKE_PTR(index)->source;
        return 0;
}

int index_open_fd(int fd, const char *path, struct budget *budget, struct source **ret_source, struct why *why) {
        return index_open_as(fd, own_file_kind(fd), path, budget, ret_source, why);
}

int index_open_copy(int fd, const char *path, struct budget *budget, struct source **ret_source, struct why *why) {
        return index_open_as(fd, OWN_FILE_NOT, path, budget, ret_source, why);
}

int index_open(const char *path, struct budget *budget, struct source **ret_source, struct why *why) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a FIFO must not block */

        if (fd < 0)
                return why_errno(why, -errno, "%s", path);
        return index_open_fd(fd, path, budget, ret_source, why);
}

/* ---- is it current? ------------------------------------------------------------------------------------------ */

static int dir_is_current(const struct index *index, const struct index_dir *dir, int root_fd,
                          enum source_compare compare, struct why *why) {
        const char *path = index->names + dir->path;
        const char *shown = path[0] ? path : "the folder itself";
        const struct file_stamp *was = &dir->stamp;
        struct file_stamp is;
        struct stat status;

        if (beneath_stat(root_fd, path[0] ? path : ".", &status) < 0) {
                if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV || errno == ESTALE)
                        return why_set(why, SOURCE_STALE, "%s is gone", shown);
                return why_errno(why, -errno, "%s cannot be looked at", shown);
        }
        if (!S_ISDIR(status.st_mode))
                return why_set(why, SOURCE_STALE, "%s is no longer a directory", shown);
        is = file_stamp_of(&status);
        if (compare == SOURCE_COMPARE_ALL && (is.device != was->device || is.inode != was->inode))
                return why_set(why, SOURCE_STALE, "%s is another directory now", shown);
        if (was->mtime_ns == INDEX_TIME_ANY)
                return 0;
        if ((compare != SOURCE_COMPARE_NAMES && is.mtime_ns != was->mtime_ns) ||
            (compare == SOURCE_COMPARE_ALL && is.ctime_ns != was->ctime_ns))
                return why_set(why, SOURCE_STALE, "%s has changed", shown);
        return 0;
}

static int shard_is_current(const struct index *index, const struct index_shard *shard, int root_fd,
                            enum source_compare compare, struct why *why) {
        const char *name = index->names + shard->name;
        struct file_stamp is;
        struct stat status;

        if (beneath_stat(root_fd, name, &status) < 0) {
                if (errno == ENOENT || errno == ELOOP || errno == EXDEV || errno == ESTALE)
                        return why_set(why, SOURCE_STALE, "%s is gone", name);
                return why_errno(why, -errno, "%s cannot be looked at", name);
        }
        is = file_stamp_of(&status);
        switch (file_stamp_compare(&shard->stamp, &is)) {
        case FILE_IS_SAME:
                return 0;
        case FILE_IS_IN_DOUBT: /* indexing it again shows whether it is the same */
                if (compare != SOURCE_COMPARE_ALL)
                        return 0;
                return why_set(why, SOURCE_STALE,
                               "%s has its size and time, but is another file or was changed, if only its mode", name);
        case FILE_HAS_CHANGED:
                break;
        }
        if (compare == SOURCE_COMPARE_NAMES && is.n_bytes == shard->stamp.n_bytes)
                return 0;
        return why_set(why, SOURCE_STALE, "%s has changed", name);
}

static int index_compare(const struct source *source, int root_fd, enum source_compare compare, struct why *why) {
        const struct index *index = index_of(source);
        int r = 0;

        for (uint64_t i = 0; i < index->header->n_dirs && r == 0; i++)
                if (index->dirs[i].stamp.inode != 0)
                        r = dir_is_current(index, &index->dirs[i], root_fd, compare, why);
        for (uint64_t i = 0; i < index->header->n_shards && r == 0; i++)
                r = shard_is_current(index, &index->shards[i], root_fd, compare, why);
        return r;
}

bool index_is_of(const struct source *source, const char *const *names, size_t n_names) {
        const struct index *index = index_of(source);
        uint64_t flags = index->header->flags;

        if (flags & INDEX_BY_LIST)
                return n_names == (flags & INDEX_LIST_NAMED ? 1 : 0) &&
                       (n_names == 0 || strcmp(index->names + index->shards[0].name, names[0]) == 0);
        if (index->header->n_dirs == 0 || (index->dirs[0].stamp.mtime_ns == INDEX_TIME_ANY) != (n_names > 0))
                return false;
        if (n_names > 0 && index->header->n_shards != n_names)
                return false;
        for (size_t i = 0; i < n_names; i++)
                if (strcmp(index->names + index->shards[i].name, names[i]) != 0)
                        return false;
        return true;
}

/* ---- accessors ----------------------------------------------------------------------------------------------- */

const char *index_shard_name(const struct source *source, uint64_t idx) {
        const struct index *index = index_of(source);

        assert(idx < index->header->n_shards);
        return index->names + index->shards[idx].name;
}

bool index_has_same_places(const struct source *source, const struct source *other) {
        const struct index *one = index_of(source), *two = index_of(other);
        uint64_t n_rows = one->header->n_samples * one->header->n_fields;

        if (one->header->n_samples != two->header->n_samples || one->header->n_fields != two->header->n_fields ||
            one->header->n_shards != two->header->n_shards)
                return false;
        for (uint64_t i = 0; i < one->header->n_shards; i++)
                if (one->shards[i].first_sample != two->shards[i].first_sample ||
                    strcmp(index_shard_name(source, i), index_shard_name(other, i)) != 0)
                        return false;
        return n_rows == 0 || memcmp(one->rows, two->rows, n_rows * sizeof(*one->rows)) == 0;
}

int64_t index_last_change_ns(const struct source *source) {
        const struct index *index = index_of(source);
        int64_t last_ns = INT64_MIN;

        for (uint64_t i = 0; i < index->header->n_shards; i++)
                if (index->shards[i].stamp.ctime_ns > last_ns)
                        last_ns = index->shards[i].stamp.ctime_ns;
        return last_ns;
}

const char *index_options(const struct source *source) {
        return index_of(source)->header->options;
}

uint32_t index_n_hidden(const struct source *source) {
        return index_of(source)->header->n_hidden;
}

uint64_t index_n_files(const struct source *source) {
        return index_of(source)->header->n_files;
}

uint32_t index_n_fields(const struct source *source) {
        return (uint32_t)index_of(source)->header->n_fields;
}

uint32_t index_n_columns(const struct source *source) {
        return (uint32_t)index_of(source)->header->n_columns;
}

bool index_has_labels(const struct source *source) {
        return index_header_has_labels(index_of(source)->header);
}

int32_t index_label(const struct source *source, uint64_t sample) {
        assert(sample < source->n_samples);
        return index_has_labels(source) ? index_of(source)->labels[sample] : 0;
}

static const char *index_class_name(const struct source *source, uint32_t label) {
        const struct index *index = index_of(source);

        return index->names + index->classes[label];
}

/* Where the value of a column is, and its size. Returns false if the sample does not have it. */
static bool find_value(const struct index *index, uint64_t sample, uint32_t field, const uint8_t **ret_elements,
                       uint64_t *ret_n_bytes) {
        const struct index_field *column = &index->fields[field];
        const uint8_t *values = index->values + column->values;
        const uint64_t *ends = (const void *)values;
        uint64_t begin, end;

        if (!(column->flags & INDEX_FIELD_VARIES)) {
                *ret_n_bytes = index_field_unit(column);
                *ret_elements = values + sample * *ret_n_bytes;
                return true;
        }
        begin = sample > 0 ? ends[sample - 1] & ~INDEX_VALUE_ABSENT : 0;
        end = ends[sample] & ~INDEX_VALUE_ABSENT;
        *ret_n_bytes = end - begin;
        *ret_elements = values + index->header->n_samples * sizeof(*ends) + begin;
        return !(ends[sample] & INDEX_VALUE_ABSENT);
}

static bool index_is_column(const struct index *index, uint32_t field) {
        return field < index->header->n_fields + index->header->n_columns; /* otherwise it is the label */
}

static bool index_value_bytes(const struct source *source, uint64_t sample, uint32_t field, uint64_t *ret_n_bytes) {
        const uint8_t *elements;

        *ret_n_bytes = sizeof(int64_t);
        return !index_is_column(index_of(source), field) ||
               find_value(index_of(source), sample, field, &elements, ret_n_bytes);
}

static void index_value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value) {
        const struct index *index = index_of(source);

        if (index_is_column(index, field)) {
                const uint8_t *elements;
                uint64_t n_bytes;

                if (find_value(index, sample, field, &elements, &n_bytes))
                        memcpy(ret_value, elements, n_bytes);
        } else {
                int64_t label = index->labels[sample];

                memcpy(ret_value, &label, sizeof(label));
        }
}

/* The last shard that begins at or before this sample: a dozen steps in a table that stays in the cache. */
static uint64_t index_shard_of(const struct index *index, uint64_t sample) {
        uint64_t first = 0, end = index->header->n_shards;

        while (end - first > 1) {
                uint64_t middle = first + (end - first) / 2;

                if (index->shards[middle].first_sample <= sample)
                        first = middle;
                else
                        end = middle;
        }
        return first;
}

static bool index_shard_end(const struct source *source, uint64_t sample, uint64_t *ret_end) {
        const struct index *index = index_of(source);
        uint64_t next, end = index->header->n_samples;

        if (index->header->n_shards == 0)
                return false;
        next = index_shard_of(index, sample) + 1;
        if (next < index->header->n_shards && index->shards[next].first_sample < end)
                end = index->shards[next].first_sample;
        *ret_end = end;
        return true;
}

static void locate_in_shard(const struct index *index, uint64_t sample, uint32_t shards_after, struct extent *extent) {
        extent->idx_shard = (uint32_t)index_shard_of(index, sample) + shards_after;
        extent->shard = index->names + index->shards[extent->idx_shard].name;
        extent->stamp = &index->shards[extent->idx_shard].stamp;
}

static void index_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent) {
        const struct index *index = index_of(source);
        const struct index_row *row = &index->rows[sample * index->header->n_fields + field];
        bool is_absent = row->offset == INDEX_ROW_ABSENT;

        *ret_extent = (struct extent){
                .dir = "",
                .name = "",
                .file = row->file,
                .offset = is_absent ? 0 : row->offset,
                .length = row->length,
                .flags = is_absent ? EXTENT_ABSENT : 0,
        };
        if (row->file != INDEX_NO_FILE) {
                const struct index_file *file = &index->files[row->file];

                ret_extent->dir = index->names + index->dirs[file->dir].path;
                ret_extent->name = index->names + file->name;
                ret_extent->flags |= file->flags;
        }
        if (index->header->n_shards > 0 && !(index->fields[field].flags & INDEX_FIELD_OWN_FILE))
                locate_in_shard(index, sample, index->fields[field].shards_after, ret_extent);
}

static size_t index_name(const struct source *source, uint64_t sample, char *ret_name) {
        const struct index *index = index_of(source);
        struct extent extent;

        if (index->header->flags & INDEX_NAMES_ROWS) {
                locate_in_shard(index, sample, 0, &extent);
                return (size_t)snprintf(ret_name, SOURCE_NAME_SIZE, "%s:%" PRIu64, extent.shard,
                                        sample - index->shards[extent.idx_shard].first_sample);
        }
        index_locate(source, sample, 0, &extent);
        return extent_path(&extent, ret_name); /* it fits: index_validate() has checked the path of each file */
}

static const struct source_type INDEX_TYPE = {
        .close = index_close,
        .compare = index_compare,
        .locate = index_locate,
        .shard_end = index_shard_end,
        .value_bytes = index_value_bytes,
        .value = index_value,
        .name = index_name,
        .class_name = index_class_name,
};
