#include "daemon/data/formats/arrow/table/message.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/listed.h"
#include "proto/base/cleanup.h"

#define MAGIC          "ARROW1"
#define N_MAGIC        6u
#define N_MAGIC_PADDED 8u
#define N_END          (4u + N_MAGIC) /* the footer's length and the magic */
#define OLD_FEATHER    "FEA1"
#define CONTINUATION   UINT32_MAX
#define VERSION_V4     3 /* since Arrow 0.8, 2017 */
#define VERSION_V5     4

enum {
        MESSAGE_VERSION,
        MESSAGE_KIND,
        MESSAGE_HEADER,
        MESSAGE_BODY
};

struct arrow_walk {
        int fd;
        uint64_t at, end; /* of the stream within the file */
        struct growing metadata;
        bool is_file; /* with a footer */
        bool has_begun;
};

/* ---- the containers -------------------------------------------------------------------------------------------- */

static int message_open_file(struct arrow_walk *walk, uint64_t n_bytes, struct why *why) {
        uint8_t end[N_END];
        uint64_t n_footer;
        int r;

        if (n_bytes < N_MAGIC_PADDED + N_END)
                return why_set(why, -EBADMSG, "is cut: an Arrow file ends with \"" MAGIC "\"; copy it again");
        r = listed_read(walk->fd, end, sizeof(end), walk->at + n_bytes - N_END, why);
        if (r < 0)
                return r;
        n_footer = le32(end);
        if (memcmp(end + 4, MAGIC, N_MAGIC) != 0)
                return why_set(why, -EBADMSG, "is cut: an Arrow file ends with \"" MAGIC "\"; copy it again");
        if (n_footer > n_bytes - N_END - N_MAGIC_PADDED)
                return why_set(why, -EBADMSG, "is damaged: its footer is said to have %" PRIu64 " bytes", n_footer);
        walk->is_file = true;
        walk->end = walk->at + n_bytes - N_END - n_footer;
        walk->at += N_MAGIC_PADDED;
        return 0;
}

static int message_begin(struct arrow_walk *walk, uint64_t n_bytes, struct why *why) {
        uint8_t first[N_MAGIC_PADDED];
        int r;

        if (n_bytes < sizeof(first))
                return why_set(why, -EBADMSG, "is not an Arrow file: it has only %" PRIu64 " bytes", n_bytes);
        r = listed_read(walk->fd, first, sizeof(first), walk->at, why);
        if (r < 0)
                return r;
        if (memcmp(first, OLD_FEATHER, strlen(OLD_FEATHER)) == 0)
                return why_set(why, -ENOTSUP,
                               "is a Feather file of version 1; write it again with pyarrow.feather.write_feather()");
        if (memcmp(first, MAGIC, N_MAGIC) == 0)
                return message_open_file(walk, n_bytes, why);
        walk->end = walk->at + n_bytes;
        return 0;
}

static void arrow_walk_closep(struct arrow_walk **walk) {
        arrow_walk_close(*walk);
}

int arrow_walk_open(int fd, uint64_t begin_byte, uint64_t n_bytes, struct arrow_walk **ret_walk, struct why *why) {
        _cleanup_(arrow_walk_closep) struct arrow_walk *walk = calloc(1, sizeof(*walk));
        int r;

        if (!walk)
                return why_set(why, -ENOMEM, "no memory to read it");
        walk->fd = fd;
        walk->at = begin_byte;
        r = message_begin(walk, n_bytes, why);
        if (r == 0)
                *ret_walk = TAKE_PTR(walk);
        return r;
}

void arrow_walk_close(struct arrow_walk *walk) {
        if (!walk)
                return;
        growing_fini(&walk->metadata);
        free(walk);
}

/* ---- one message ----------------------------------------------------------------------------------------------- */

static int message_cut(const struct arrow_walk *walk, struct why *why) {
        return why_set(why, -EBADMSG, "at byte %" PRIu64 ": is cut within a message; copy it again", walk->at);
}

/* The length of the metadata; 0: the end. */
static int read_length(struct arrow_walk *walk, uint32_t *ret_n, uint32_t *ret_n_prefix, struct why *why) {
        uint8_t bytes[8];
        uint64_t n_left = walk->end - walk->at;
        uint32_t n_here = n_left < sizeof(bytes) ? (uint32_t)n_left : (uint32_t)sizeof(bytes);
        int r;

        *ret_n = 0;
        *ret_n_prefix = 0;
        if (n_left == 0)
                return 0;
        if (n_left < 4)
                return message_cut(walk, why);
        r = listed_read(walk->fd, bytes, n_here, walk->at, why);
        if (r < 0)
                return r;
        *ret_n_prefix = 4;
        *ret_n = le32(bytes);
        if (*ret_n == CONTINUATION) {
                if (n_here < sizeof(bytes))
                        return message_cut(walk, why);
                *ret_n_prefix = 8;
                *ret_n = le32(bytes + 4);
        }
        return 0;
}

static int message_read_metadata(struct arrow_walk *walk, uint32_t n, struct why *why) {
        if (growing_reserve(&walk->metadata, n) < 0)
                return why_set(why, -ENOMEM, "no memory for a message of %u bytes", n);
        return listed_read(walk->fd, walk->metadata.bytes, n, walk->at, why);
}

static int message_damaged(uint64_t at, struct why *why) {
        return why_set(why, -EBADMSG, "at byte %" PRIu64 ": a message is damaged; copy the file again", at);
}

static int message_read_header(struct arrow_walk *walk, struct arrow_message *message, struct why *why) {
        struct flat_table root = flat_root(&message->flat);
        int64_t version = flat_signed(&root, MESSAGE_VERSION, 2, 0), n_body = flat_signed(&root, MESSAGE_BODY, 8, 0);

        message->kind = (uint32_t)flat_unsigned(&root, MESSAGE_KIND, 1, 0);
        message->header = flat_inner(&root, MESSAGE_HEADER);
        if (message->flat.is_damaged || !message->header.flat || n_body < 0)
                return message_damaged(message->begin, why);
        if (version < VERSION_V4 || version > VERSION_V5)
                return why_set(why, -ENOTSUP,
                               "at byte %" PRIu64 ": version %" PRId64
                               " of Arrow's metadata is not known; write the file again with a current pyarrow",
                               message->begin, version + 1);
        if (message->kind < ARROW_MESSAGE_SCHEMA || message->kind > ARROW_MESSAGE_BATCH)
                return why_set(why, -ENOTSUP, "at byte %" PRIu64 ": holds tensors; only tables can be served",
                               message->begin);
        message->n_body = (uint64_t)n_body;
        if (message->n_body > walk->end - walk->at)
                return why_set(why, -EBADMSG,
                               "at byte %" PRIu64 ": is cut: a body of %" PRIu64 " bytes begins there, and %" PRIu64
                               " are left; copy it again",
                               walk->at, message->n_body, walk->end - walk->at);
        return 0;
}

int arrow_walk_next(struct arrow_walk *walk, struct arrow_message *ret_message, struct why *why) {
        struct arrow_message *message = ret_message;
        uint32_t n, n_prefix;
        int r = read_length(walk, &n, &n_prefix, why);

        if (r < 0)
                return r;
        if (n == 0 && !walk->has_begun)
                return why_set(why, -EBADMSG, "is not an Arrow file: it has no schema");
        if (n == 0 && n_prefix > 0 && !walk->is_file && walk->at + n_prefix != walk->end)
                return why_set(why, -EBADMSG,
                               "at byte %" PRIu64 ": continues after its end; split what was joined into files",
                               walk->at + n_prefix);
        if (n == 0)
                return ARROW_END;
        if (!walk->has_begun && n_prefix == 4 && n > walk->end - walk->at)
                return why_set(why, -EBADMSG, "is not an Arrow file");
        *message = (struct arrow_message){ .begin = walk->at };
        if (n > walk->end - walk->at - n_prefix)
                return message_cut(walk, why);
        if (n > ARROW_METADATA_MAX)
                return why_set(why, -EBADMSG,
                               "at byte %" PRIu64 ": a message of %u bytes without its body; allowed are %u", walk->at,
                               n, ARROW_METADATA_MAX);
        walk->at += n_prefix;
        r = message_read_metadata(walk, n, why);
        if (r < 0)
                return r;
        walk->at += n;
        message->flat = (struct flat){ .bytes = walk->metadata.bytes, .n_bytes = n };
        message->body = walk->at;
        r = message_read_header(walk, message, why);
        if (r < 0)
                return r;
        walk->at += message->n_body;
        walk->has_begun = true;
        return 0;
}

struct flat_table arrow_message_alone(const uint8_t *bytes, size_t n_bytes, enum arrow_message_kind kind,
                                      struct flat *flat) {
        static const size_t N_PREFIX = 8;
        const struct flat_table absent = { .flat = NULL };
        struct flat_table root;
        uint32_t n;

        if (n_bytes < N_PREFIX || le32(bytes) != CONTINUATION)
                return absent;
        n = le32(bytes + 4);
        if (n > ARROW_METADATA_MAX || n > n_bytes - N_PREFIX)
                return absent;
        *flat = (struct flat){ .bytes = bytes + N_PREFIX, .n_bytes = n };
        root = flat_root(flat);
        return flat_unsigned(&root, MESSAGE_KIND, 1, 0) == kind ? flat_inner(&root, MESSAGE_HEADER) : absent;
}
