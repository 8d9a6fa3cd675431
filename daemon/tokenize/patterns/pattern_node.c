#include "daemon/tokenize/patterns/pattern_node.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/cleanup.h"

int pattern_node_read(const struct json_node *node, struct token_pattern **ret_pattern, struct why *why) {
        static const char *const NAMES[] = { "String", "Regex" };
        _cleanup_(freep) uint8_t *text = NULL;
        struct json_node members[2];
        struct why what;
        bool is_regex;
        size_t n;
        int r;

        if (!json_node_is_set(node))
                return json_node_refuse(node, -EINVAL, why, "is missing");
        r = json_node_members(node, NAMES, 2, members, why);
        if (r < 0)
                return r;
        is_regex = json_node_is_set(&members[1]);
        r = json_node_text(&members[is_regex], &text, &n, why);
        if (r < 0)
                return r;
        if (n == 0)
                return json_node_refuse(&members[is_regex], -EINVAL, why, "is an empty pattern");
        if (!is_regex)
                return pattern_new_literal(text, n, ret_pattern);
        r = pattern_new(text, n, ret_pattern, &what);
        return r < 0 ? json_node_refuse(&members[1], r, why, "%s", what.text) : 0;
}
