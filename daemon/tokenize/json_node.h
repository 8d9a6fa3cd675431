/* tokenize/json_node.h: values of tokenizer.json, each with the path that leads to it.
 *
 * What a tokenizer does follows from every member, so a member that nobody knows is refused, not passed over: a message
 * names its path, as in pre_tokenizer.pretokenizers[1].behavior. Nodes lie on the stack of who reads them and point
 * into the text. Errors: -EBADMSG for JSON that is malformed, -ECANCELED, -ENOMEM, -EINVAL for anything else;
 * `why` says all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/json/json_value.h"

struct json_node {
        const struct json_node *parent; /* NULL: the whole text */
        const char *name;               /* of the member; NULL: an element of an array */
        uint64_t idx;                   /* of an element */
        struct json_token value;        /* kind JSON_END: there is no such member */
};

/* Begins with a whole text, which must be an object. */
int json_node_root(const void *bytes, size_t n_bytes, struct json_node *ret_root, struct why *why);

/* `error`, and the text with the path before it. */
int json_node_refuse(const struct json_node *node, int error, struct why *why, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* The next value of a scan, whole, as json_value(). Within an errand -ECANCELED: nobody wants the tokenizer any more.
 */
int json_node_next(struct json_scan *scan, struct json_token *ret_token, struct why *why);

/* The value of the last member of an object that has this name; JSON_ABSENT: there is none. */
int json_node_find(const struct json_node *object, const char *name, struct json_token *ret_value, struct why *why);

/* Finds these members of an object, and refuses any other that is not null. Those that are missing or null have the
 * kind JSON_END. */
int json_node_members(const struct json_node *object, const char *const *names, size_t n, struct json_node *ret_members,
                      struct why *why);

static inline bool json_node_is_set(const struct json_node *node) {
        return node->value.kind != JSON_END;
}

/* The member "type" alone, whatever else there is, as text; "" if there is none. */
int json_node_type(const struct json_node *object, char type[64], struct why *why);

/* Each element of an array in turn. Zero the struct but for `array`. Positive: the end. */
struct json_elements {
        const struct json_node *array;
        struct json_scan scan;
        uint64_t n;
};
int json_elements_begin(struct json_elements *elements, const struct json_node *array, struct why *why);
int json_elements_next(struct json_elements *elements, struct json_node *ret_element, struct why *why);

/* Values. A member that is not set is `otherwise`. */
int json_node_bool(const struct json_node *node, bool otherwise, bool *ret_value, struct why *why);
int json_node_unsigned(const struct json_node *node, uint64_t otherwise, uint64_t most, uint64_t *ret_value,
                       struct why *why);

/* UTF-8 in memory of the caller, without NUL; it may hold NUL. A node that is not set is refused. */
int json_node_text(const struct json_node *node, uint8_t **ret_text, size_t *ret_n, struct why *why);

/* Which of these words (up to NULL) the text is. */
int json_node_choice(const struct json_node *node, const char *const *words, unsigned *ret_idx, struct why *why);
