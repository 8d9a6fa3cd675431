#include "daemon/data/formats/arrow/table/ipc_unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <lz4frame.h>
#include <string.h>
#include <zstd.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/formats/arrow/table/message.h"
#include "proto/base/cleanup.h"

#define PREFIX_BYTES 8u
#define STORED       UINT64_MAX
#define ALIGNMENT    8u /* of buffers in memory, for those who look at them with a debugger */

static int ipc_unpack_damaged(const char *what, struct why *why) {
        return why_set(why, -EBADMSG, "a compressed buffer %s; write the file again", what);
}

/* The plain length of each buffer, and where it will lie. `plain` gets the new buffers. */
static int ipc_unpack_measure(const struct arrow_batch *batch, int fd, uint64_t max_bytes, struct growing *plain,
                              uint64_t *ret_total, struct why *why) {
        const struct arrow_buffer *buffers = (const void *)batch->buffers.bytes;
        uint64_t total = 0;
        uint8_t prefix[PREFIX_BYTES];

        for (size_t i = 0; i < batch->buffers.n_bytes / sizeof(*buffers); i++) {
                struct arrow_buffer place = { .offset = total };
                int r;

                if (buffers[i].n_bytes > 0) {
                        if (buffers[i].n_bytes < PREFIX_BYTES)
                                return ipc_unpack_damaged("is shorter than its length", why);
                        r = listed_read(fd, prefix, sizeof(prefix), buffers[i].offset, why);
                        if (r < 0)
                                return r;
                        place.n_bytes = le64(prefix);
                        if (place.n_bytes == STORED)
                                place.n_bytes = buffers[i].n_bytes - PREFIX_BYTES;
                }
                if (total > max_bytes || place.n_bytes > max_bytes - total)
                        return why_set(why, -EFBIG,
                                       "has more than %" PRIu64 " MiB when it is unpacked; write smaller batches, or "
                                       "without compression, or raise memory_limit",
                                       max_bytes >> 20);
                total = (total + place.n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
                if (growing_append(plain, &place, sizeof(place)) < 0)
                        return why_set(why, -ENOMEM, "no memory for its buffers");
        }
        *ret_total = total;
        return 0;
}

static int unpack_lz4(const uint8_t *packed, size_t n_packed, uint8_t *into, size_t n_bytes, struct why *why) {
        LZ4F_dctx *context = NULL;
        size_t at = 0, n_in, n_out, left = 1, done = 0;

        if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
                return why_set(why, -ENOMEM, "no memory to unpack it");
        while (left > 0 && at < n_packed) {
                n_in = n_packed - at;
                n_out = n_bytes - done;
                left = LZ4F_decompress(context, into + done, &n_out, packed + at, &n_in, NULL);
                if (LZ4F_isError(left) || (n_in == 0 && n_out == 0))
                        break;
                at += n_in;
                done += n_out;
        }
        LZ4F_freeDecompressionContext(context);
        return left == 0 && done == n_bytes ? 0
                                            : ipc_unpack_damaged("is damaged, or has another length than it says", why);
}

static int unpack_buffer(enum arrow_compression compression, const uint8_t *packed, size_t n_packed, uint8_t *into,
                         size_t n_bytes, struct why *why) {
        if (le64(packed) == STORED) {
                memcpy(into, packed + PREFIX_BYTES, n_bytes);
                return 0;
        }
        if (n_bytes == 0)
                return 0;
        packed += PREFIX_BYTES;
        n_packed -= PREFIX_BYTES;
        if (compression == ARROW_LZ4)
                return unpack_lz4(packed, n_packed, into, n_bytes, why);
        return ZSTD_decompress(into, n_bytes, packed, n_packed) == n_bytes
                       ? 0
                       : ipc_unpack_damaged("is damaged, or has another length than it says", why);
}

static int ipc_unpack_unpack_all(const struct arrow_batch *batch, int fd, const struct arrow_buffer *plain,
                                 uint8_t *into, struct why *why) {
        const struct arrow_buffer *buffers = (const void *)batch->buffers.bytes;
        _cleanup_(growing_fini) struct growing packed = { 0 };
        int r = 0;

        for (size_t i = 0; i < batch->buffers.n_bytes / sizeof(*buffers) && r == 0; i++) {
                if (buffers[i].n_bytes == 0)
                        continue;
                growing_clear(&packed);
                if (growing_append(&packed, NULL, buffers[i].n_bytes) < 0)
                        return why_set(why, -ENOMEM, "no memory to unpack it");
                r = listed_read(fd, packed.bytes, packed.n_bytes, buffers[i].offset, why);
                if (r < 0)
                        return r;
                /* The length may have changed since it was measured; then it is another file. */
                if (le64(packed.bytes) != STORED && le64(packed.bytes) != plain[i].n_bytes)
                        return ipc_unpack_damaged("has changed while it was read", why);
                if (le64(packed.bytes) == STORED && plain[i].n_bytes != packed.n_bytes - PREFIX_BYTES)
                        return ipc_unpack_damaged("has changed while it was read", why);
                r = unpack_buffer(batch->compression, packed.bytes, packed.n_bytes, into + plain[i].offset,
                                  plain[i].n_bytes, why);
        }
        return r;
}

int arrow_unpack(struct arrow_batch *batch, int fd, uint64_t max_bytes, struct why *why) {
        _cleanup_(growing_fini) struct growing plain = { 0 };
        _cleanup_(growing_fini) struct growing unpacked = { 0 };
        uint64_t total = 0;
        int r;

        if (batch->compression == ARROW_PLAIN)
                return 0;
        r = ipc_unpack_measure(batch, fd, max_bytes, &plain, &total, why);
        if (r < 0)
                return r;
        if (batch->n_rows > ARROW_ROWS_FOR_NOTHING + 8 * total)
                return why_set(why, -EBADMSG,
                               "claims to have %" PRIu64 " rows in %" PRIu64 " bytes; write the file again",
                               batch->n_rows, total);
        if (growing_reserve(&unpacked, total + 1) < 0)
                return why_set(why, -ENOMEM, "no memory to unpack it");
        r = ipc_unpack_unpack_all(batch, fd, (const void *)plain.bytes, unpacked.bytes, why);
        if (r < 0)
                return r;
        growing_fini(&batch->buffers);
        batch->buffers = plain;
        plain = (struct growing){ 0 };
        batch->unpacked = unpacked;
        unpacked = (struct growing){ 0 };
        batch->plain = batch->unpacked.bytes;
        batch->n_plain = total;
        return 0;
}
