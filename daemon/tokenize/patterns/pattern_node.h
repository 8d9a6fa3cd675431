/* tokenize/patterns/pattern_node.h: a pattern as tokenizer.json writes it: {"String": "..."} or {"Regex": "..."}. */
#pragma once

#include "daemon/tokenize/json_node.h"
#include "daemon/tokenize/patterns/token_pattern.h"

int pattern_node_read(const struct json_node *node, struct token_pattern **ret_pattern, struct why *why);
