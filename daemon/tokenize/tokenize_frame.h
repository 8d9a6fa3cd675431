/* tokenize/tokenize_frame.h: the special tokens around a text: the member "post_processor" of tokenizer.json.
 *
 * TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel (which adds none), and a Sequence of them. */
#pragma once

#include <stdint.h>

#include "daemon/tokenize/json_node.h"
#include "daemon/tokenize/vocabulary.h"

#define FRAME_TOKENS_MAX 32u /* before a text, and after it */

struct frame {
        uint32_t before[FRAME_TOKENS_MAX], after[FRAME_TOKENS_MAX];
        uint32_t n_before, n_after;
};

/* The node may be absent: nothing is added. Errors as in json_node.h. */
int frame_read(const struct json_node *node, struct frame *ret_frame, struct why *why);
