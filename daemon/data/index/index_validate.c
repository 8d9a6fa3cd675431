#include "daemon/data/index/index_layout.h"

/* One pass over every section. No value of the file is used before it was compared with the file's own size. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "proto/limits.h"

/* Four lanes, because one alone would wait for each multiplication. Every step is a bijection of the lane, so one
 * changed word always changes the sum. */
void index_sum_begin(struct index_sum *sum) {
        *sum = (struct index_sum){ .lanes = { 1, 2, 3, 4 } };
}

void index_sum_add(struct index_sum *sum, const void *bytes, uint64_t n_bytes) {
        const uint64_t *words = bytes;
        uint64_t lanes[4], n_words = n_bytes / 8;

        /* Begins with the lane whose turn it is. */
        for (uint64_t i = 0; i < 4; i++)
                lanes[i] = sum->lanes[(sum->n_words + i) % 4];
        for (uint64_t i = 0; i < n_words; i++) {
                uint64_t lane = (lanes[i % 4] ^ words[i]) * 0x9e3779b97f4a7c15ull;

                lanes[i % 4] = lane ^ lane >> 29;
        }
        for (uint64_t i = 0; i < 4; i++)
                sum->lanes[(sum->n_words + i) % 4] = lanes[i];
        sum->n_words += n_words;
}

uint64_t index_sum_end(const struct index_sum *sum) {
        uint64_t result = sum->n_words * 8;

        for (int i = 0; i < 4; i++) {
                result = (result ^ sum->lanes[i]) * 0xd6e8feb86659fd93ull;
                result ^= result >> 32;
        }
        return result;
}

uint64_t index_checksum(const void *bytes, uint64_t n_bytes) {
        struct index_sum sum;

        index_sum_begin(&sum);
        index_sum_add(&sum, bytes, n_bytes);
        return index_sum_end(&sum);
}

static uint64_t index_validate_align8(uint64_t n) {
        return (n + 7) & ~7ull;
}

int index_places(const struct index_header *header, struct index_places *ret_places, struct why *why) {
        struct index_places places;

        if (header->n_samples > DLP_SAMPLES_MAX || header->n_fields > INDEX_FIELDS_MAX ||
            header->n_columns > INDEX_FIELDS_MAX - header->n_fields || header->values_bytes > INDEX_VALUES_MAX ||
            header->n_files > INDEX_FILES_MAX || header->n_dirs > INDEX_DIRS_MAX ||
            header->n_classes > INDEX_CLASSES_MAX || header->n_shards > INDEX_SHARDS_MAX ||
            header->n_refused > REFUSALS_MAX || header->names_bytes > INDEX_NAMES_MAX)
                return why_set(why, -EBADMSG, "a count is above its limit");

        places.fields = sizeof(struct index_header);
        places.rows = places.fields + (header->n_fields + header->n_columns) * sizeof(struct index_field);
        places.files = places.rows + header->n_samples * header->n_fields * sizeof(struct index_row);
        places.dirs = places.files + header->n_files * sizeof(struct index_file);
        places.classes = places.dirs + header->n_dirs * sizeof(struct index_dir);
        places.shards = places.classes + header->n_classes * sizeof(uint64_t);
        places.labels = places.shards + header->n_shards * sizeof(struct index_shard);
        places.refused = places.labels + (index_header_has_labels(header)
                                                  ? index_validate_align8(header->n_samples * sizeof(int32_t))
                                                  : 0);
        places.values = places.refused + header->n_refused * sizeof(struct index_refused);
        places.names = places.values + index_validate_align8(header->values_bytes);
        places.end = places.names + index_validate_align8(header->names_bytes);
        *ret_places = places;
        return 0;
}

int index_check_shape(const struct index_header *header, uint64_t n_bytes, struct why *why) {
        struct index_places places;
        int r;

        if (n_bytes < sizeof(*header) || memcmp(header->magic, INDEX_MAGIC, sizeof(header->magic)) != 0)
                return why_set(why, -EBADMSG, "it is not an index file");
        if (header->version != INDEX_VERSION || header->header_bytes != sizeof(*header))
                return why_set(why, -EBADMSG, "it is of version %" PRIu32 ", this program writes version %u",
                               header->version, INDEX_VERSION);
        if (header->file_bytes != n_bytes || n_bytes % 8 != 0)
                return why_set(why, -EBADMSG, "it has %" PRIu64 " bytes and says it has %" PRIu64, n_bytes,
                               header->file_bytes);
        r = index_places(header, &places, why);
        if (r < 0)
                return r;
        if (places.end != n_bytes)
                return why_set(why, -EBADMSG, "its counts do not fit its size");
        return 0;
}

static int index_validate_check_header(const struct index_header *header, uint64_t n_bytes, struct why *why) {
        int r = index_check_shape(header, n_bytes, why);

        if (r < 0)
                return r;
        if (header->checksum !=
            index_checksum((const uint8_t *)header + INDEX_CHECKSUM_FROM, n_bytes - INDEX_CHECKSUM_FROM))
                return why_set(why, -EBADMSG, "its checksum is wrong");
        if (!memchr(header->format, '\0', sizeof(header->format)) ||
            !memchr(header->source, '\0', sizeof(header->source)) ||
            strnlen(header->digest, sizeof(header->digest)) != INDEX_DIGEST_SIZE - 1 ||
            strspn(header->digest, "0123456789abcdef") != INDEX_DIGEST_SIZE - 1 ||
            !memchr(header->options, '\0', sizeof(header->options)))
                return why_set(why, -EBADMSG, "its format name or digest is damaged");
        if (header->flags &
                    ~(INDEX_NAMES_ROWS | INDEX_SCATTERED | INDEX_BY_LIST | INDEX_LIST_NAMED | INDEX_ONLY_NAMES) ||
            (header->flags & INDEX_LIST_NAMED && !(header->flags & INDEX_BY_LIST)) ||
            (header->flags & INDEX_BY_LIST && (header->n_shards == 0 || header->n_dirs == 0)) ||
            (header->flags & INDEX_NAMES_ROWS ? header->n_shards == 0 : header->n_fields == 0))
                return why_set(why, -EBADMSG, "its samples have no names");
        return 0;
}

/* Is it a name of one component: not empty, no slash, not "." or ".."? */
static bool is_component(const char *name, size_t length) {
        return length > 0 && !memchr(name, '/', length) && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

bool index_is_inner_path(const char *path) {
        if (path[0] == '\0')
                return true;
        for (;;) {
                size_t length = strcspn(path, "/");

                if (length == 0 || (length == 1 && path[0] == '.') || (length == 2 && memcmp(path, "..", 2) == 0))
                        return false;
                if (path[length] == '\0')
                        return true;
                path += length + 1;
        }
}

/* Of what is only a name, as archives have it: "./a". */
static bool is_dir_path(const char *path, bool is_name) {
        while (is_name && path[0] == '.' && path[1] == '/')
                path += 2;
        return (is_name && strcmp(path, ".") == 0) || index_is_inner_path(path);
}

struct checked {
        const struct index_header *header;
        const uint8_t *bytes;
        struct index_places places;
        const char *names;
        uint64_t longest_path; /* of a file */
};

static int check_dirs(const struct checked *checked, struct why *why) {
        const struct index_dir *dirs = (const void *)(checked->bytes + checked->places.dirs);

        for (uint64_t i = 0; i < checked->header->n_dirs; i++) {
                const char *path;

                if (dirs[i].path >= checked->header->names_bytes)
                        return why_set(why, -EBADMSG, "directory %" PRIu64 " has no path", i);
                path = checked->names + dirs[i].path;
                if (strlen(path) >= PATH_MAX || !is_dir_path(path, dirs[i].stamp.inode == 0) ||
                    (path[0] == '\0') != (i == 0))
                        return why_set(why, -EBADMSG, "directory %" PRIu64 " has an impossible path", i);
        }
        return 0;
}

static int check_files(struct checked *checked, struct why *why) {
        const struct index_file *files = (const void *)(checked->bytes + checked->places.files);
        const struct index_dir *dirs = (const void *)(checked->bytes + checked->places.dirs);
        uint64_t last_dir = UINT64_MAX;
        size_t dir_length = 0;

        for (uint64_t i = 0; i < checked->header->n_files; i++) {
                const char *name;
                size_t length;

                if (files[i].name >= checked->header->names_bytes || files[i].dir >= checked->header->n_dirs)
                        return why_set(why, -EBADMSG, "file %" PRIu64 " has no name or directory", i);
                if (files[i].dir != last_dir) { /* usually the same as the one before */
                        last_dir = files[i].dir;
                        dir_length = strlen(checked->names + dirs[last_dir].path);
                }
                name = checked->names + files[i].name;
                length = strlen(name);
                if (!is_component(name, length) || length + dir_length + 2 > INDEX_PATH_SIZE)
                        return why_set(why, -EBADMSG, "file %" PRIu64 " has an impossible name", i);
                length += dir_length + (dir_length > 0);
                checked->longest_path = length > checked->longest_path ? length : checked->longest_path;
        }
        return 0;
}

static bool lies_in_shard(const struct index_row *row, const struct index_field *field) {
        return row->offset != INDEX_ROW_ABSENT && !(field->flags & INDEX_FIELD_OWN_FILE);
}

/* Over the fields from `first` on that lie in the same shard as this one. */
static uint64_t span_from(const struct index_row *rows, const struct index_field *fields, uint64_t n_fields,
                          uint64_t first) {
        uint64_t begin = UINT64_MAX, end = 0;

        for (uint64_t i = first; i < n_fields; i++) {
                if (fields[i].shards_after != fields[first].shards_after || !lies_in_shard(&rows[i], &fields[i]))
                        continue;
                begin = rows[i].offset < begin ? rows[i].offset : begin;
                end = rows[i].offset + rows[i].length > end ? rows[i].offset + rows[i].length : end;
        }
        return end > begin ? end - begin : 0;
}

uint64_t index_span(const struct index_row *rows, const struct index_field *fields, uint64_t n_fields) {
        uint64_t longest = 0;

        for (uint64_t i = 0; i < n_fields; i++) {
                uint64_t before = 0, span;

                while (before < i && fields[before].shards_after != fields[i].shards_after)
                        before++;
                if (before < i)
                        continue; /* counted already */
                span = span_from(rows, fields, n_fields, i);
                longest = span > longest ? span : longest;
        }
        return longest;
}

static bool names_rows(const struct index_header *header) {
        return header->flags & INDEX_NAMES_ROWS;
}

static int index_validate_check_rows(const struct checked *checked, struct why *why) {
        const struct index_row *rows = (const void *)(checked->bytes + checked->places.rows);
        const struct index_field *fields = (const void *)(checked->bytes + checked->places.fields);
        uint64_t n_fields = checked->header->n_fields, total = 0, longest = 0, longest_span = 0;

        for (uint64_t i = 0; i < checked->header->n_samples * n_fields; i++) {
                if (rows[i].file >= checked->header->n_files &&
                    (rows[i].file != INDEX_NO_FILE || !names_rows(checked->header) ||
                     (fields[i % n_fields].flags & INDEX_FIELD_OWN_FILE && rows[i].offset != INDEX_ROW_ABSENT)))
                        return why_set(why, -EBADMSG, "row %" PRIu64 " has no file", i);
                if (rows[i].offset == INDEX_ROW_ABSENT && rows[i].length == 0 &&
                    fields[i % n_fields].flags & INDEX_FIELD_MAY_BE_ABSENT)
                        continue;
                if (rows[i].offset > INT64_MAX || rows[i].length > INT64_MAX - rows[i].offset ||
                    __builtin_add_overflow(total, rows[i].length, &total))
                        return why_set(why, -EBADMSG, "row %" PRIu64 " lies beyond any file's end", i);
                longest = rows[i].length > longest ? rows[i].length : longest;
        }
        for (uint64_t i = 0; i < checked->header->n_samples; i++) {
                uint64_t span = index_span(rows + i * n_fields, fields, n_fields);

                longest_span = span > longest_span ? span : longest_span;
        }
        if (total != checked->header->total_bytes || longest != checked->header->max_length ||
            longest_span != checked->header->max_span)
                return why_set(why, -EBADMSG, "its sums are wrong");
        return 0;
}

static int index_validate_check_shard(struct checked *checked, uint64_t idx, struct why *why) {
        const struct index_shard *shards = (const void *)(checked->bytes + checked->places.shards);
        const struct index_row *rows = (const void *)(checked->bytes + checked->places.rows);
        const struct index_field *fields = (const void *)(checked->bytes + checked->places.fields);
        bool is_last = idx + 1 == checked->header->n_shards;
        uint64_t end = is_last ? checked->header->n_samples : shards[idx + 1].first_sample;
        const char *name;

        if (shards[idx].name >= checked->header->names_bytes)
                return why_set(why, -EBADMSG, "shard %" PRIu64 " has no name", idx);
        name = checked->names + shards[idx].name;
        if (strnlen(name, PATH_MAX) >= PATH_MAX - (names_rows(checked->header) ? INDEX_ROW_NAME_MAX : 0) ||
            name[0] == '\0' || !index_is_inner_path(name))
                return why_set(why, -EBADMSG, "shard %" PRIu64 " has an impossible name", idx);
        if (names_rows(checked->header) && strlen(name) + INDEX_ROW_NAME_MAX > checked->longest_path)
                checked->longest_path = strlen(name) + INDEX_ROW_NAME_MAX;
        if ((idx == 0 && shards[idx].first_sample != 0) || shards[idx].first_sample > end ||
            end > checked->header->n_samples)
                return why_set(why, -EBADMSG, "shard %" PRIu64 " has impossible samples", idx);
        for (uint64_t i = shards[idx].first_sample * checked->header->n_fields; i < end * checked->header->n_fields;
             i++) {
                const struct index_field *field = &fields[i % checked->header->n_fields];

                if (field->shards_after >= checked->header->n_shards - idx)
                        return why_set(why, -EBADMSG, "row %" PRIu64 " has no shard", i);
                if (lies_in_shard(&rows[i], field) && /* no overflow: index_validate_check_rows() came before */
                    rows[i].offset + rows[i].length > shards[idx + field->shards_after].stamp.n_bytes)
                        return why_set(why, -EBADMSG, "row %" PRIu64 " lies beyond its shard's end", i);
        }
        return 0;
}

static int check_shards(struct checked *checked, struct why *why) {
        for (uint64_t i = 0; i < checked->header->n_shards; i++) {
                int r = index_validate_check_shard(checked, i, why);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int index_validate_check_labels(const struct checked *checked, struct why *why) {
        const int32_t *labels = (const void *)(checked->bytes + checked->places.labels);
        const uint64_t *classes = (const void *)(checked->bytes + checked->places.classes);

        for (uint64_t i = 0; i < checked->header->n_classes; i++)
                if (classes[i] >= checked->header->names_bytes)
                        return why_set(why, -EBADMSG, "class %" PRIu64 " has no name", i);
        for (uint64_t i = 0; i < checked->header->n_samples && index_header_has_labels(checked->header); i++)
                if ((uint64_t)labels[i] >= checked->header->n_classes) /* a negative label becomes a huge number */
                        return why_set(why, -EBADMSG, "sample %" PRIu64 " has a label without a class", i);
        return 0;
}

static int check_refused(const struct checked *checked, struct why *why) {
        const struct index_refused *refused = (const void *)(checked->bytes + checked->places.refused);

        for (uint64_t i = 0; i < checked->header->n_refused; i++)
                if (refused[i].name >= checked->header->names_bytes ||
                    refused[i].reason >= checked->header->names_bytes ||
                    strlen(checked->names + refused[i].name) >= SCHEMA_NAME_MAX)
                        return why_set(why, -EBADMSG, "column %" PRIu64 " that is left out has no name or reason", i);
        return 0;
}

int index_validate(const void *bytes, uint64_t n_bytes, uint64_t *ret_longest_path, struct why *why) {
        struct checked checked = { .header = bytes, .bytes = bytes };
        const struct index_field *fields;
        int r;

        r = index_validate_check_header(checked.header, n_bytes, why);
        if (r < 0)
                return r;
        r = index_places(checked.header, &checked.places, why);
        if (r < 0)
                return r;

        fields = (const void *)(checked.bytes + checked.places.fields);
        checked.names = (const char *)checked.bytes + checked.places.names;
        if (checked.header->names_bytes == 0 || checked.names[checked.header->names_bytes - 1] != '\0')
                return why_set(why, -EBADMSG, "its names have no end");

        r = check_dirs(&checked, why);
        if (r < 0)
                return r;
        r = check_files(&checked, why);
        if (r < 0)
                return r;
        r = index_check_fields(checked.header, fields, why);
        if (r < 0)
                return r;
        r = index_validate_check_rows(&checked, why);
        if (r < 0)
                return r;
        r = check_shards(&checked, why);
        if (r < 0)
                return r;
        r = index_validate_check_labels(&checked, why);
        if (r == 0)
                r = check_refused(&checked, why);
        if (r == 0)
                r = index_check_columns(checked.header, fields + checked.header->n_fields,
                                        checked.bytes + checked.places.values, why);
        if (r == 0)
                *ret_longest_path = checked.longest_path;
        return r;
}
