/* data/formats/arrow/table/message.h: the messages of an Arrow file, one after the other.
 *
 *      stream   message ..., end         end: FFFFFFFF 00000000, or simply the end of the file
 *      file     "ARROW1", two zeroes, a stream, a footer, its length, "ARROW1"
 *      message  FFFFFFFF, length of the metadata, metadata, body      (before Arrow 0.15 without FFFFFFFF)
 *
 * The metadata is a FlatBuffer. The body holds the bytes of the columns; it is skipped here. A file that is cut, within
 * a message or before its footer, is damaged. (A stream that is cut between two messages cannot be told from a whole
 * one if its writer wrote no end; the writers of today do.) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/formats/arrow/table/flat.h"
#include "proto/base/why.h"

#define ARROW_METADATA_MAX (64u << 20) /* bytes of one message; a batch of 10,000 columns has half a MB */

enum arrow_message_kind {
        ARROW_MESSAGE_SCHEMA = 1,
        ARROW_MESSAGE_DICTIONARY,
        ARROW_MESSAGE_BATCH,
};

struct arrow_message {
        uint32_t kind;            /* enum arrow_message_kind */
        uint64_t begin;           /* where the message begins in the file, for texts */
        struct flat flat;         /* the metadata; its bytes belong to the walk, until the next message */
        struct flat_table header; /* what the message is about; refers to `flat` */
        uint64_t body, n_body;    /* bytes of the file; they lie within it */
};

struct arrow_walk;

/* Positive outcome of arrow_walk_next(): the file has ended as it should. */
#define ARROW_END 1

/* Reads from `fd`, a regular file, which stays the caller's: n_bytes from begin_byte on, which lie within it. Returns
 * 0; -EBADMSG with `why` if they are not an Arrow file or are cut; another errno. Blocks as the file system does. */
int arrow_walk_open(int fd, uint64_t begin_byte, uint64_t n_bytes, struct arrow_walk **ret_walk, struct why *why);

/* Takes NULL. */
void arrow_walk_close(struct arrow_walk *walk);

/* The next message. *ret_message must stay where it is while its header is used. Returns 0; ARROW_END; -EBADMSG or
 * -ENOTSUP with `why`, which names the byte; -ENOMEM or an errno of reading. Blocks as the file system does. */
int arrow_walk_next(struct arrow_walk *walk, struct arrow_message *ret_message, struct why *why);

/* The header of a message that stands alone in memory: FFFFFFFF, the length of the metadata, the metadata. `flat` gets
 * the metadata and has to stay where it is. The table is absent if these bytes are something else. */
struct flat_table arrow_message_alone(const uint8_t *bytes, size_t n_bytes, enum arrow_message_kind kind,
                                      struct flat *flat);
