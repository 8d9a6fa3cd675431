#include "daemon/data/formats/tfrecord/records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/base/machine/disk.h"
#include "daemon/data/formats/tfrecord/crc32c.h"
#include "proto/base/cleanup.h"

#define WINDOW_BYTES (1u << 20)
#define HEADER_BYTES 12u
#define FOOTER_BYTES 4u

struct records {
        int fd;
        uint64_t n_bytes;
        uint64_t at; /* of the next record */
        uint64_t number;
        uint8_t *window;
        size_t capacity, n_window;
        uint64_t window_at;
};

int records_new(struct records **ret_records) {
        struct records *records = calloc(1, sizeof(*records));
        uint8_t *window = malloc(WINDOW_BYTES);

        if (!records || !window) {
                free(records);
                free(window);
                return -ENOMEM;
        }
        records->window = window;
        records->capacity = WINDOW_BYTES;
        *ret_records = records;
        return 0;
}

void records_free(struct records *records) {
        if (records)
                free(records->window);
        free(records);
}

void records_freep(struct records **records) {
        records_free(*records);
}

void records_begin(struct records *records, int fd, uint64_t n_bytes) {
        records->fd = fd;
        records->n_bytes = n_bytes;
        records->at = records->number = records->window_at = 0;
        records->n_window = 0;
}

/* Brings n bytes from records->at on, which lie within the file, into the window. What is there already is kept. */
static int fill(struct records *records, size_t n) {
        uint64_t left = records->n_bytes - records->at;
        size_t kept, wanted;
        int r;

        if (records->at + n <= records->window_at + records->n_window)
                return 0;
        kept = (size_t)(records->window_at + records->n_window - records->at);
        if (n > records->capacity) {
                uint8_t *window = malloc(n);

                if (!window)
                        return -ENOMEM;
                memcpy(window, records->window + records->n_window - kept, kept);
                free(records->window);
                records->window = window;
                records->capacity = n;
        } else {
                memmove(records->window, records->window + records->n_window - kept, kept);
        }
        records->window_at = records->at;
        records->n_window = kept;
        wanted = left < records->capacity ? (size_t)left : records->capacity;
        r = disk_read_at(records->fd, records->window + kept, wanted - kept, records->at + kept);
        if (r == 0)
                records->n_window = wanted;
        return r;
}

static int refuse(const struct records *records, int error, const char *what, struct why *why) {
        return why_set(why, error, "record %" PRIu64 " at byte %" PRIu64 ": %s", records->number, records->at, what);
}

/* A compressed file has no frame that a reader could recognise; it is told by its first bytes. */
static const char *compression_of(const uint8_t *header) {
        if (memcmp(header, "\x1f\x8b\x08", 3) == 0)
                return "gzip";
        if (header[0] == 0x78 && ((unsigned)header[0] << 8 | header[1]) % 31 == 0)
                return "zlib";
        return NULL;
}

static int refuse_length(const struct records *records, const uint8_t *header, struct why *why) {
        const char *compression = records->at == 0 ? compression_of(header) : NULL;

        if (!compression)
                return refuse(records, -EBADMSG,
                              "the checksum of its length is wrong: the file is damaged, or it is not a TFRecord file",
                              why);
        return why_set(why, -ENOTSUP,
                       "the file is compressed (%s), so that no record can be read by itself; stage it with prepare = "
                       "\"%s\", or decompress it, for instance with %s",
                       compression, compression[0] == 'g' ? "convert" : "command: pigz -dcz",
                       compression[0] == 'g' ? "gunzip" : "\"pigz -dz\"");
}

int records_next(struct records *records, struct record *ret_record, struct why *why) {
        uint64_t left = records->n_bytes - records->at, n;
        const uint8_t *bytes;
        int r;

        if (left == 0)
                return RECORDS_END;
        if (left < HEADER_BYTES + FOOTER_BYTES)
                return refuse(records, -EBADMSG, "the file ends within it: it was cut", why);
        r = fill(records, HEADER_BYTES);
        if (r < 0)
                return why_errno(why, r, "at byte %" PRIu64, records->at);
        bytes = records->window + (records->at - records->window_at);
        if (crc32c_masked(crc32c(bytes, 8)) != le32(bytes + 8))
                return refuse_length(records, bytes, why);
        n = le64(bytes);
        if (n > left - HEADER_BYTES - FOOTER_BYTES)
                return refuse(records, -EBADMSG, "the file ends within it: it was cut", why);
        if (n > RECORDS_LENGTH_MAX)
                return refuse(records, -EFBIG, "it has more than 2 GiB; write smaller records", why);
        r = fill(records, HEADER_BYTES + (size_t)n + FOOTER_BYTES);
        if (r < 0)
                return why_errno(why, r, "record %" PRIu64 " of %" PRIu64 " bytes", records->number, n);
        bytes = records->window + (records->at - records->window_at) + HEADER_BYTES;
        if (crc32c_masked(crc32c(bytes, (size_t)n)) != le32(bytes + n))
                return refuse(records, -EBADMSG, "the checksum of its data is wrong: the file is damaged", why);
        *ret_record = (struct record){
                .number = records->number++, .offset = records->at + HEADER_BYTES, .n_bytes = n, .bytes = bytes
        };
        records->at += HEADER_BYTES + n + FOOTER_BYTES;
        return 0;
}
