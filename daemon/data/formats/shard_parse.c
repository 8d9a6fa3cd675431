/* No value of a shard's header or table is used before it was compared with the file's own length. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/data/formats/shard_layout.h"

uint64_t shard_checksum(const struct shard_header *header, const void *table) {
        struct shard_header folded = *header;

        /* The checksum of the table stands in the field of the header's own: one number covers both. */
        folded.checksum = index_checksum(table, header->table_bytes);
        return index_checksum(&folded, sizeof(folded));
}

static uint64_t shard_parse_align_up(uint64_t n) {
        return (n + SHARD_ALIGN - 1) / SHARD_ALIGN * SHARD_ALIGN;
}

int shard_check_header(const struct shard_header *header, uint64_t file_bytes, struct why *why) {
        if (file_bytes < SHARD_ALIGN || memcmp(header->magic, SHARD_MAGIC, sizeof(header->magic)) != 0)
                return why_set(why, -EBADMSG, "it is not a shard");
        if (header->version != SHARD_VERSION || header->header_bytes != sizeof(*header))
                return why_set(why, -EBADMSG, "it is of version %" PRIu32 ", this program reads version %u",
                               header->version, SHARD_VERSION);
        if (header->file_bytes != file_bytes)
                return why_set(why, -EBADMSG,
                               "it has %" PRIu64 " bytes and says it has %" PRIu64 "; stage or pack it again",
                               file_bytes, header->file_bytes);
        if (header->n_samples > SHARD_SAMPLES_MAX || header->n_classes > INDEX_CLASSES_MAX ||
            header->table_bytes > SHARD_TABLE_MAX || header->names_bytes > header->table_bytes ||
            header->table_bytes % 8 != 0)
                return why_set(why, -EBADMSG, "a count is above its limit");
        if (header->table % SHARD_ALIGN != 0 || header->table < SHARD_ALIGN || header->table > file_bytes ||
            header->table_bytes > file_bytes - header->table ||
            shard_parse_align_up(header->table + header->table_bytes) != file_bytes)
                return why_set(why, -EBADMSG, "its table does not end where the file does");
        if (!memchr(header->source, '\0', sizeof(header->source)) || header->source[0] == '\0')
                return why_set(why, -EBADMSG, "it does not name the format that its samples had");
        return 0;
}

bool shard_is_class_name(const char *name) {
        size_t n = strnlen(name, NAME_MAX + 1);

        return n > 0 && n <= NAME_MAX && !memchr(name, '/', n);
}

static int check_entry(const struct shard *shard, uint64_t idx, uint64_t *position, struct why *why) {
        const struct shard_entry *entry = &shard->entries[idx];
        const char *path;

        if (entry->offset % SHARD_ALIGN != 0 || entry->offset < SHARD_ALIGN || entry->offset > shard->header->table ||
            entry->length > shard->header->table - entry->offset)
                return why_set(why, -EBADMSG, "sample %" PRIu64 " of it lies outside of the part for samples", idx);
        if ((uint64_t)entry->label >= shard->header->n_classes) /* a negative label becomes a huge number */
                return why_set(why, -EBADMSG, "sample %" PRIu64 " of it has a label without a class", idx);
        if (entry->path != *position || entry->path >= shard->header->names_bytes)
                return why_set(why, -EBADMSG, "sample %" PRIu64 " of it has no path", idx);
        path = shard->names + entry->path;
        *position += strlen(path) + 1;
        if (path[0] == '\0' || strnlen(path, PATH_MAX) >= PATH_MAX || !index_is_inner_path(path))
                return why_set(why, -EBADMSG, "sample %" PRIu64 " of it has an impossible path", idx);
        return 0;
}

int shard_check_table(const struct shard_header *header, const void *table, struct shard *ret_shard, struct why *why) {
        struct shard shard = { .header = header, .entries = table };
        uint64_t n_before = header->n_samples * sizeof(struct shard_entry) + header->n_classes * sizeof(uint64_t);
        uint64_t total = 0, position = 0; /* of the next name: a shared one would let a small file make a large index */

        if (n_before > header->table_bytes || header->table_bytes - n_before != (header->names_bytes + 7) / 8 * 8)
                return why_set(why, -EBADMSG, "its counts do not fit its table");
        if (header->checksum != shard_checksum(header, table))
                return why_set(why, -EBADMSG, "its checksum is wrong; stage or pack it again");
        shard.classes = (const void *)(shard.entries + header->n_samples);
        shard.names = (const char *)(shard.classes + header->n_classes);
        if (header->names_bytes == 0 ? header->n_samples + header->n_classes > 0
                                     : shard.names[header->names_bytes - 1] != '\0')
                return why_set(why, -EBADMSG, "its names have no end");

        for (uint64_t i = 0; i < header->n_classes; i++) {
                if (shard.classes[i] != position || position >= header->names_bytes)
                        return why_set(why, -EBADMSG, "class %" PRIu64 " has no name", i);
                if (!shard_is_class_name(shard.names + position))
                        return why_set(why, -EBADMSG, "class %" PRIu64 " has an impossible name", i);
                position += strlen(shard.names + position) + 1;
        }
        for (uint64_t i = 0; i < header->n_samples; i++) {
                int r = check_entry(&shard, i, &position, why);

                if (r < 0)
                        return r;
                total += shard.entries[i].length; /* may overflow: the caller that adds them up again checks */
        }
        if (total != header->total_bytes || position != header->names_bytes)
                return why_set(why, -EBADMSG, "its sums are wrong");
        *ret_shard = shard;
        return 0;
}
