/* base/protobuf/message_texts.h: the texts in a protobuf message, in place.
 *
 *      a list          { 1: text ... }                     as tf.train.BytesList
 *      a list of steps { 1: { 1: { 1: text } } ... }       as tf.train.FeatureList, of whose steps each holds one text
 *
 * Whether they are UTF-8 is not looked at. Any input is safe. */
#pragma once

#include "daemon/base/protobuf/protobuf_wire.h"
#include "proto/base/why.h"

struct message_texts {
        struct wire left;
        bool has_steps;
};

/* Begins before the first one. */
void message_texts_begin(struct message_texts *texts, const void *bytes, size_t n_bytes, bool has_steps);

/* The next one. Returns 1; 0 at the end; -EBADMSG: the message is damaged, or a step holds no text or several. */
int message_texts_next(struct message_texts *texts, struct wire *ret_text, struct why *why);
