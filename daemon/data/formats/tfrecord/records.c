#include "daemon/data/formats/tfrecord/records.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/formats/tfrecord/crc32c.h"
#include "daemon/data/index/indexing.h"

#define HEADER_BYTES 12u
#define FOOTER_BYTES 4u

void records_begin(struct records *records, struct ahead *ahead, uint64_t n_bytes) {
        *records = (struct records){ .ahead = ahead, .n_bytes = n_bytes };
}

static int records_refuse(const struct records *records, int error, const char *what, struct why *why) {
        return why_set(why, error, "record %" PRIu64 " at byte %" PRIu64 ": %s", records->number, records->at, what);
}

static int refuse_read(const struct records *records, int error, uint64_t n, struct why *why) {
        if (error == -ENODATA)
                return records_refuse(records, error,
                                      "the file became shorter while it was read; try again when it is complete", why);
        return why_errno(why, error, "record %" PRIu64 " at byte %" PRIu64 ", of %" PRIu64 " bytes", records->number,
                         records->at, n);
}

/* A compressed file has no frame that a reader could recognise; it is told by its first bytes. */
static const char *compression_of(const uint8_t *header) {
        if (memcmp(header, "\x1f\x8b\x08", 3) == 0)
                return "gzip";
        if (header[0] == 0x78 && ((unsigned)header[0] << 8 | header[1]) % 31 == 0)
                return "zlib";
        return NULL;
}

static int records_refuse_length(const struct records *records, const uint8_t *header, struct why *why) {
        const char *compression = records->at == 0 ? compression_of(header) : NULL;

        if (!compression)
                return records_refuse(
                        records, -EBADMSG,
                        "the checksum of its length is wrong: the file is damaged, or it is not a TFRecord file", why);
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
                return records_refuse(records, -EBADMSG, "the file ends within it: it was cut", why);
        r = ahead_bytes(records->ahead, records->at, HEADER_BYTES, &bytes);
        if (r < 0)
                return refuse_read(records, r, HEADER_BYTES, why);
        if (crc32c_masked(crc32c(bytes, 8)) != le32(bytes + 8))
                return records_refuse_length(records, bytes, why);
        n = le64(bytes);
        if (n > left - HEADER_BYTES - FOOTER_BYTES)
                return records_refuse(records, -EBADMSG, "the file ends within it: it was cut", why);
        if (n > RECORDS_LENGTH_MAX)
                return records_refuse(records, -EFBIG, "it has more than 2 GiB; write smaller records", why);
        r = ahead_bytes(records->ahead, records->at, HEADER_BYTES + (size_t)n + FOOTER_BYTES, &bytes);
        if (r < 0)
                return refuse_read(records, r, n, why);
        bytes += HEADER_BYTES;
        if (crc32c_masked(crc32c(bytes, (size_t)n)) != le32(bytes + n))
                return records_refuse(records, -EBADMSG, "the checksum of its data is wrong: the file is damaged", why);
        *ret_record = (struct record){
                .number = records->number++, .offset = records->at + HEADER_BYTES, .n_bytes = n, .bytes = bytes
        };
        records->at += HEADER_BYTES + n + FOOTER_BYTES;
        return 0;
}

uint64_t records_cut(int fd, uint64_t n_bytes, uint64_t whole) {
        uint8_t window[65536];
        uint64_t begin = 0, end = 0; /* of what the window has */

        while (n_bytes - whole >= HEADER_BYTES + FOOTER_BYTES) {
                uint64_t length;

                if (whole < begin || whole + HEADER_BYTES > end) {
                        begin = whole;
                        end = n_bytes - begin < sizeof(window) ? n_bytes : begin + sizeof(window);
                        if (indexing_read_at(fd, window, end - begin, begin) < 0)
                                break;
                }
                length = le64(window + (whole - begin));
                if (length > RECORDS_LENGTH_MAX || HEADER_BYTES + length + FOOTER_BYTES > n_bytes - whole)
                        break;
                whole += HEADER_BYTES + length + FOOTER_BYTES;
        }
        return whole;
}
