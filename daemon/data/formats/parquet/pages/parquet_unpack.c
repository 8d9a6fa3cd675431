#include "daemon/data/formats/parquet/pages/parquet_unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <lz4.h>
#include <snappy-c.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "daemon/data/formats/parquet/footer.h"
#include "proto/base/cleanup.h"

_Static_assert(PARQUET_PAGE_MAX <= INT_MAX, "LZ4 and zlib take an int");

int parquet_buffer_reserve(struct parquet_buffer *buffer, uint64_t n_bytes, struct parquet_memory *memory,
                           struct why *why) {
        uint64_t max = memory->max_bytes > 0 && memory->max_bytes < PARQUET_MEMORY_MAX ? memory->max_bytes
                                                                                       : PARQUET_MEMORY_MAX;

        if (n_bytes > PARQUET_PAGE_MAX)
                return why_set(why, -EFBIG,
                               "a page has %" PRIu64 " bytes when it is unpacked; %u are allowed: write smaller pages",
                               n_bytes, PARQUET_PAGE_MAX);
        if (buffer->bytes && n_bytes <= buffer->capacity)
                return 0;
        if (memory->n_bytes - buffer->capacity + n_bytes > max)
                return why_set(why, -EFBIG,
                               "the pages of its columns take more than %" PRIu64
                               " MiB; write smaller pages, choose columns with fields = \"...\", or raise memory_limit",
                               max >> 20);
        parquet_buffer_fini(buffer, memory);
        if (growing_reserve(&buffer->room, n_bytes + 1) < 0)
                return why_set(why, -ENOMEM, "no memory for a page");
        buffer->bytes = buffer->room.bytes;
        buffer->capacity = n_bytes;
        memory->n_bytes += n_bytes;
        return 0;
}

void parquet_buffer_fini(struct parquet_buffer *buffer, struct parquet_memory *memory) {
        growing_fini(&buffer->room);
        memory->n_bytes -= buffer->capacity;
        *buffer = (struct parquet_buffer){ 0 };
}

int parquet_codec_check(int64_t codec, struct why *why) {
        static const char *const OTHERS[] = { [3] = "LZO", [4] = "Brotli", [5] = "LZ4 as Hadoop frames it" };

        switch (codec) {
        case PARQUET_UNCOMPRESSED:
        case PARQUET_SNAPPY:
        case PARQUET_GZIP:
        case PARQUET_ZSTD:
        case PARQUET_LZ4_RAW:
                return 0;
        default:
                return why_set(why, -ENOTSUP,
                               "is compressed with %s, which is not supported (snappy, gzip, zstd and LZ4_RAW are); "
                               "stage the dataset with prepare = \"convert\", or write it again",
                               codec >= 3 && codec <= 5 ? OTHERS[codec] : "something unknown");
        }
}

/* ---- codecs ---------------------------------------------------------------------------------------------------- */

static void end_inflating(z_stream *stream) {
        inflateEnd(stream);
}

/* One member after the other; zlib's own header is accepted as well. */
static int parquet_unpack_unpack_gzip(const uint8_t *packed, size_t n_packed, uint8_t *into, size_t n_bytes,
                                      bool *ret_is_fine) {
        _cleanup_(end_inflating) z_stream stream = {
                .next_in = (uint8_t *)packed, .avail_in = (uInt)n_packed, .next_out = into, .avail_out = (uInt)n_bytes
        };
        int r = inflateInit2(&stream, MAX_WBITS + 32);

        if (r != Z_OK)
                return r == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
        do {
                r = inflate(&stream, Z_FINISH);
        } while (r == Z_STREAM_END && stream.avail_in > 0 && stream.avail_out > 0 && inflateReset(&stream) == Z_OK);
        *ret_is_fine = r == Z_STREAM_END && stream.avail_out == 0;
        return r == Z_MEM_ERROR ? -ENOMEM : 0;
}

static bool unpack_snappy(const uint8_t *packed, size_t n_packed, uint8_t *into, size_t n_bytes) {
        size_t n_said = 0;

        return snappy_uncompressed_length((const char *)packed, n_packed, &n_said) == SNAPPY_OK && n_said == n_bytes &&
               snappy_uncompress((const char *)packed, n_packed, (char *)into, &n_said) == SNAPPY_OK &&
               n_said == n_bytes;
}

int parquet_unpack(int64_t codec, const uint8_t *packed, size_t n_packed, uint8_t *into, size_t n_bytes,
                   struct why *why) {
        bool is_fine = false;
        int r = 0;

        if (n_bytes == 0)
                return 0;
        switch (codec) {
        case PARQUET_SNAPPY:
                is_fine = unpack_snappy(packed, n_packed, into, n_bytes);
                break;
        case PARQUET_GZIP:
                r = parquet_unpack_unpack_gzip(packed, n_packed, into, n_bytes, &is_fine);
                break;
        case PARQUET_ZSTD:
                is_fine = ZSTD_decompress(into, n_bytes, packed, n_packed) == n_bytes;
                break;
        case PARQUET_LZ4_RAW:
                is_fine = LZ4_decompress_safe((const char *)packed, (char *)into, (int)n_packed, (int)n_bytes) ==
                          (int)n_bytes;
                break;
        default:
                return parquet_codec_check(codec, why);
        }
        if (r < 0)
                return why_errno(why, r, "a page cannot be unpacked");
        return is_fine ? 0
                       : why_set(why, -EBADMSG,
                                 "a page cannot be unpacked: it is damaged, or has another length than it "
                                 "says; copy the file again");
}
