#include "daemon/store/cache/unpack_gzip.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/cleanup.h"

#define WINDOW_BYTES (1u << 20)
#define GZIP_ONLY    (16 + MAX_WBITS)

struct gunzipping {
        const struct unpack_file *file;
        z_stream stream;
        uint8_t *in, *out;
        uint64_t n_read, n_written;
        bool is_in_member; /* its end is still to come */
        bool is_at_end;    /* of the file */
        bool is_begun;     /* zlib has memory of its own */
};

bool unpack_is_gzip(const uint8_t *bytes, size_t n_bytes) {
        return n_bytes >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

static int gzip_damaged(const struct gunzipping *now, const char *what, struct why *why) {
        return why_set(why, -EBADMSG, "%s: cannot be decompressed at byte %" PRIu64 ": %s", now->file->name,
                       now->n_read - now->stream.avail_in, what ? what : "it is damaged");
}

/* More of the file, once all before is used up. */
static int gzip_fill(struct gunzipping *now, struct why *why) {
        const struct unpack_file *file = now->file;
        ssize_t n;

        if (now->stream.avail_in > 0 || now->is_at_end)
                return 0;
        if (file->progress(file->userdata, now->n_read))
                return why_set(why, -ECANCELED, "%s: unpacking was cancelled", file->name);
        n = file->read(file->userdata, now->in, WINDOW_BYTES, now->n_read);
        if (n < 0)
                return why_errno(why, (int)n, "%s", file->name);
        now->is_at_end = n == 0;
        now->n_read += (uint64_t)n;
        now->stream.next_in = now->in;
        now->stream.avail_in = (uInt)n;
        return 0;
}

static int gzip_write(struct gunzipping *now, struct why *why) {
        uint64_t n = WINDOW_BYTES - now->stream.avail_out;
        int r;

        if (now->n_written + n > now->file->limit_bytes)
                return why_set(why, -EFBIG, "%s: what comes out of it does not fit into cache_limit", now->file->name);
        r = disk_write_at(now->file->into_fd, now->out, n, now->n_written);
        now->n_written += n;
        return r < 0 ? why_errno(why, r, "%s: cannot be unpacked into cache_dir", now->file->name) : 0;
}

/* Between members: zeros are passed over; anything else is the next one. */
static void gzip_pass_zeros(struct gunzipping *now) {
        while (now->n_written > 0 && now->stream.avail_in > 0 && *now->stream.next_in == 0) {
                now->stream.next_in++;
                now->stream.avail_in--;
        }
}

static int gzip_inflate(struct gunzipping *now, struct why *why) {
        int r;

        now->stream.next_out = now->out;
        now->stream.avail_out = WINDOW_BYTES;
        now->is_in_member = true;
        r = inflate(&now->stream, Z_NO_FLUSH);
        if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
                return gzip_damaged(now, now->stream.msg, why);
        if (r == Z_STREAM_END) {
                now->is_in_member = false;
                inflateReset(&now->stream);
        }
        return gzip_write(now, why);
}

int gunzip_go_on(struct gunzipping *now, uint64_t n_bytes, struct why *why) {
        int r = now->n_read == 0 ? gzip_fill(now, why) : 0;

        while (r == 0 && !now->is_at_end && now->n_written < n_bytes) {
                if (!now->is_in_member)
                        gzip_pass_zeros(now);
                if (now->stream.avail_in > 0)
                        r = gzip_inflate(now, why);
                if (r == 0 && now->stream.avail_out > 0) /* else there is more to come out of what was read */
                        r = gzip_fill(now, why);
        }
        if (r < 0 || !now->is_at_end)
                return r;
        return now->is_in_member ? gzip_damaged(now, "it ends in the middle", why) : UNPACK_END;
}

int gunzip_begin(const struct unpack_file *file, struct gunzipping **ret_now, struct why *why) {
        struct gunzipping *now = calloc(1, sizeof(*now));

        if (now) {
                now->file = file;
                now->in = malloc(WINDOW_BYTES);
                now->out = malloc(WINDOW_BYTES);
                now->is_begun = now->in && now->out && inflateInit2(&now->stream, GZIP_ONLY) == Z_OK;
        }
        if (!now || !now->is_begun) {
                gunzip_end(now);
                return why_errno(why, -ENOMEM, "%s", file->name);
        }
        *ret_now = now;
        return 0;
}

uint64_t gunzip_n_bytes(const struct gunzipping *now) {
        return now->n_written;
}

void gunzip_end(struct gunzipping *now) {
        if (!now)
                return;
        if (now->is_begun)
                inflateEnd(&now->stream);
        free(now->in);
        free(now->out);
        free(now);
}
