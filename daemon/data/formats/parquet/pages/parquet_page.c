#include "daemon/data/formats/parquet/pages/parquet_page.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "daemon/data/files/listed.h"
#include "proto/base/cleanup.h"

#define HEADER_FIRST 512u        /* bytes of a header that are read first; only long statistics need more */
#define HEADER_MAX   (16u << 20) /* with the smallest and the largest value, which may be texts */

/* Numbers of parquet.thrift. */
enum {
        PAGE_KIND = 1,
        PAGE_PLAIN = 2,
        PAGE_PACKED = 3,
        PAGE_SUM = 4,
        PAGE_DATA = 5,
        PAGE_DICTIONARY = 7,
        PAGE_DATA_2 = 8,
};

/* The numbers of the struct that belongs to the page's kind. */
struct inner {
        int64_t numbers[7]; /* by field */
        bool is_compressed;
};

static void read_inner(struct thrift *thrift, enum thrift_type type, struct inner *inner) {
        struct thrift_field field = { 0 };

        if (!thrift_struct(thrift, type))
                return;
        while (thrift_next(thrift, &field)) {
                bool is_number = field.type == THRIFT_I32 || field.type == THRIFT_I64;

                if (field.id < 7 && is_number)
                        inner->numbers[field.id] = thrift_integer(thrift, field.type);
                else if (field.id == 7 && field.type <= THRIFT_FALSE)
                        inner->is_compressed = thrift_bool(thrift, field.type);
                else
                        thrift_skip(thrift, field.type);
        }
}

static void take_inner(struct parquet_page_header *header, int32_t id, const struct inner *inner, bool *is_negative) {
        const int64_t *numbers = inner->numbers;

        header->n_values = (uint64_t)numbers[1];
        *is_negative = *is_negative || numbers[1] < 0;
        if (id == PAGE_DATA_2) {
                header->encoding = numbers[4];
                header->n_defined = (uint64_t)numbers[5];
                header->n_repeated = (uint64_t)numbers[6];
                header->is_compressed = inner->is_compressed;
                *is_negative = *is_negative || numbers[5] < 0 || numbers[6] < 0;
                return;
        }
        header->encoding = numbers[2];
        header->level_encodings[0] = numbers[4];
        header->level_encodings[1] = numbers[3];
}

/* Returns false if the bytes are something else, or only a part of a header. */
static bool parquet_page_parse(const uint8_t *bytes, size_t n_bytes, struct parquet_page_header *ret_header) {
        struct parquet_page_header header = { .kind = -1, .encoding = -1, .is_compressed = true };
        struct thrift thrift = { .bytes = bytes, .n_bytes = n_bytes };
        struct thrift_field field = { 0 };
        int64_t n_plain = -1, n_packed = -1;
        bool is_negative = false;

        while (thrift_next(&thrift, &field)) {
                struct inner inner = { .numbers = { 0, -1, -1, -1, -1, -1, -1 }, .is_compressed = true };

                switch (field.id) {
                case PAGE_KIND:
                        header.kind = thrift_integer(&thrift, field.type);
                        break;
                case PAGE_PLAIN:
                        n_plain = thrift_integer(&thrift, field.type);
                        break;
                case PAGE_PACKED:
                        n_packed = thrift_integer(&thrift, field.type);
                        break;
                case PAGE_SUM:
                        header.sum = (uint32_t)thrift_integer(&thrift, field.type);
                        header.has_sum = true;
                        break;
                case PAGE_DATA:
                case PAGE_DICTIONARY:
                case PAGE_DATA_2:
                        read_inner(&thrift, field.type, &inner);
                        take_inner(&header, field.id, &inner, &is_negative);
                        break;
                default:
                        thrift_skip(&thrift, field.type);
                }
        }
        if (thrift.is_damaged || is_negative || header.kind < 0 || n_plain < 0 || n_packed < 0)
                return false;
        header.n_plain = (uint64_t)n_plain;
        header.n_packed = (uint64_t)n_packed;
        header.n_header = thrift.at;
        *ret_header = header;
        return true;
}

static int parquet_page_refuse(uint64_t at, struct why *why) {
        return why_set(why, -EBADMSG, "the page at byte %" PRIu64 " is damaged; copy the file again", at);
}

/* A header that is longer than the first read. */
static int parquet_page_read_long(int fd, uint64_t at, uint64_t n_left, struct parquet_page_header *ret_header,
                                  struct why *why) {
        for (uint64_t n = HEADER_FIRST * 64; n / 64 < n_left && n <= HEADER_MAX; n *= 32) {
                uint64_t n_here = n < n_left ? n : n_left;
                _cleanup_(growing_fini) struct growing header = { 0 };
                int r;

                if (growing_reserve(&header, n_here) < 0)
                        return why_set(why, -ENOMEM, "no memory for a page");
                r = listed_read(fd, header.bytes, n_here, at, why);
                if (r < 0)
                        return r;
                if (parquet_page_parse(header.bytes, n_here, ret_header))
                        return 0;
        }
        return parquet_page_refuse(at, why);
}

int parquet_page_header_read(int fd, uint64_t at, uint64_t end, struct parquet_page_header *ret_header,
                             struct why *why) {
        struct parquet_page_header header;
        uint8_t bytes[HEADER_FIRST];
        uint64_t n = at < end ? end - at : 0, n_here = n < sizeof(bytes) ? n : sizeof(bytes);
        int r = n > 0 ? listed_read(fd, bytes, n_here, at, why) : parquet_page_refuse(at, why);

        if (r < 0)
                return r;
        if (!parquet_page_parse(bytes, n_here, &header)) {
                r = parquet_page_read_long(fd, at, n, &header, why);
                if (r < 0)
                        return r;
        }
        if (header.n_packed > n - header.n_header)
                return why_set(why, -EBADMSG,
                               "the page at byte %" PRIu64 " is said to have %" PRIu64
                               " bytes, more than its column; copy the file again",
                               at, header.n_packed);
        if (header.n_defined > header.n_plain || header.n_repeated > header.n_plain - header.n_defined ||
            header.n_defined + header.n_repeated > header.n_packed)
                return parquet_page_refuse(at, why);
        *ret_header = header;
        return 0;
}

static int check_sum(const struct parquet_page_header *header, const uint8_t *bytes, uint64_t at, struct why *why) {
        if (!header->has_sum || crc32(0, bytes, (uInt)header->n_packed) == header->sum)
                return 0;
        return why_set(why, -EBADMSG, "the page at byte %" PRIu64 " does not have its checksum; copy the file again",
                       at);
}

int parquet_page_load(int fd, uint64_t at, const struct parquet_page_header *header, int64_t codec,
                      struct parquet_buffer *packed, struct parquet_buffer *plain, struct parquet_memory *memory,
                      struct parquet_page_bytes *ret_bytes, struct why *why) {
        bool is_compressed = codec != PARQUET_UNCOMPRESSED && header->is_compressed;
        uint64_t n_levels = header->n_repeated + header->n_defined, offset = at + header->n_header;
        struct parquet_buffer *into = is_compressed ? packed : plain;
        int r;

        if (!is_compressed && header->n_packed != header->n_plain)
                return parquet_page_refuse(at, why);
        r = parquet_buffer_reserve(plain, header->n_plain, memory, why);
        if (r == 0)
                r = parquet_buffer_reserve(into, header->n_packed, memory, why);
        if (r == 0)
                r = listed_read(fd, into->bytes, header->n_packed, offset, why);
        if (r == 0)
                r = check_sum(header, into->bytes, at, why);
        if (r == 0 && is_compressed) { /* the levels of PARQUET_PAGE_DATA_2 are never compressed */
                memcpy(plain->bytes, packed->bytes, n_levels);
                r = parquet_unpack(codec, packed->bytes + n_levels, header->n_packed - n_levels,
                                   plain->bytes + n_levels, header->n_plain - n_levels, why);
        }
        if (r == 0)
                *ret_bytes = (struct parquet_page_bytes){ plain->bytes, offset, header->n_plain };
        return r;
}

const char *parquet_encoding_name(int64_t encoding) {
        static const char *const NAMES[] = {
                "PLAIN",          "an unknown encoding", "PLAIN_DICTIONARY",        "RLE",
                "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
                "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"
        };

        return encoding >= 0 && encoding < (int64_t)ARRAY_SIZE(NAMES) ? NAMES[encoding] : NAMES[1];
}
