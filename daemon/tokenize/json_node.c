#include "daemon/tokenize/json_node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/work/errand.h"
#include "proto/base/cleanup.h"

#define PATH_MAX_SHOWN 200u
#define TEXT_SHOWN     40u
#define LOOK_TOKENS    4096u /* between two looks of an errand */

/* ---- paths ----------------------------------------------------------------------------------------------------- */

static size_t write_path(const struct json_node *node, char *into, size_t size) {
        size_t n;

        if (!node->parent)
                return 0;
        n = write_path(node->parent, into, size);
        if (n >= size)
                return n;
        if (node->name)
                return n + (size_t)snprintf(into + n, size - n, "%s%s", n > 0 ? "." : "", node->name);
        return n + (size_t)snprintf(into + n, size - n, "[%" PRIu64 "]", node->idx);
}

int json_node_refuse(const struct json_node *node, int error, struct why *why, const char *format, ...) {
        char path[PATH_MAX_SHOWN] = "";
        struct why what;
        va_list arguments;

        write_path(node, path, sizeof(path));
        va_start(arguments, format);
        why_set_list(&what, error, format, arguments);
        va_end(arguments);
        return why_set(why, error, "%s%s%s", path, path[0] ? ": " : "", what.text);
}

static int malformed(const struct json_node *node, int r, const struct why *what, struct why *why) {
        return json_node_refuse(node, r == -ENOMEM || r == -ECANCELED ? r : -EBADMSG, why, "%s", what->text);
}

/* ---- scanning -------------------------------------------------------------------------------------------------- */

int json_node_next(struct json_scan *scan, struct json_token *ret_token, struct why *why) {
        struct json_token inner;
        uint32_t depth, n = 0;
        int r = json_next(scan, ret_token, why);

        if (r != 0)
                return r;
        if (ret_token->kind != JSON_ARRAY && ret_token->kind != JSON_OBJECT)
                return errand_look() < 0 ? why_errno(why, -ECANCELED, "tokenizer") : 0;
        depth = scan->depth;
        while (r == 0 && scan->depth >= depth) {
                if (n++ % LOOK_TOKENS == 0 && errand_look() < 0)
                        return why_errno(why, -ECANCELED, "tokenizer");
                r = json_next(scan, &inner, why);
        }
        if (r == 0)
                ret_token->n_bytes = (size_t)(scan->bytes + scan->at - ret_token->bytes);
        return r;
}

/* ---- members --------------------------------------------------------------------------------------------------- */

int json_node_root(const void *bytes, size_t n_bytes, struct json_node *ret_root, struct why *why) {
        struct json_node root = { 0 };
        struct json_scan scan;
        struct json_token token;
        struct why what;
        int r;

        json_scan_init(&scan, bytes, n_bytes);
        r = json_node_next(&scan, &root.value, &what);
        if (r == 0)
                r = json_next(&scan, &token, &what); /* nothing comes after it */
        if (r != 0)
                return malformed(&root, r, &what, why);
        if (root.value.kind != JSON_OBJECT)
                return json_node_refuse(&root, -EINVAL, why, "is not an object");
        *ret_root = root;
        return 0;
}

/* The scan of an object or array, behind its bracket. */
static int json_node_enter(const struct json_node *node, enum json_kind kind, struct json_scan *scan, struct why *why) {
        struct json_token token;

        if (node->value.kind != kind)
                return json_node_refuse(node, -EINVAL, why, "is not %s",
                                        kind == JSON_OBJECT ? "an object" : "an array");
        json_scan_init(scan, node->value.bytes, node->value.n_bytes);
        return json_next(scan, &token, why);
}

static size_t json_node_find_name(const struct json_token *key, const char *const *names, size_t n) {
        size_t i = 0;

        while (i < n && !json_string_is(key, names[i], strlen(names[i])))
                i++;
        return i;
}

static int refuse_member(const struct json_node *object, const struct json_token *key, struct why *why) {
        int n = (int)(key->n_bytes < TEXT_SHOWN ? key->n_bytes : TEXT_SHOWN);

        return json_node_refuse(object, -EINVAL, why, "has a member %.*s, which is not supported", n, key->bytes);
}

int json_node_members(const struct json_node *object, const char *const *names, size_t n, struct json_node *ret_members,
                      struct why *why) {
        struct json_token key, value;
        struct json_scan scan;
        struct why what;
        int r = json_node_enter(object, JSON_OBJECT, &scan, why);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                ret_members[i] = (struct json_node){ .parent = object, .name = names[i], .value.kind = JSON_END };
        for (;;) {
                size_t i;

                r = json_next(&scan, &key, &what);
                if (r < 0)
                        return malformed(object, r, &what, why);
                if (key.kind == JSON_OBJECT_END)
                        return 0;
                r = json_node_next(&scan, &value, &what);
                if (r < 0)
                        return malformed(object, r, &what, why);
                i = json_node_find_name(&key, names, n);
                if (i < n)
                        ret_members[i].value = value;
                else if (value.kind != JSON_NULL)
                        return refuse_member(object, &key, why);
                if (i < n && value.kind == JSON_NULL)
                        ret_members[i].value.kind = JSON_END;
        }
}

int json_node_find(const struct json_node *object, const char *name, struct json_token *ret_value, struct why *why) {
        struct json_token key, value;
        struct json_scan scan;
        bool is_found = false;
        int r = json_node_enter(object, JSON_OBJECT, &scan, why);

        while (r == 0) {
                bool is_it;

                r = json_next(&scan, &key, why);
                if (r < 0 || key.kind == JSON_OBJECT_END)
                        break;
                is_it = json_string_is(&key, name, strlen(name));
                r = json_node_next(&scan, &value, why);
                if (r == 0 && is_it)
                        *ret_value = value;
                is_found |= is_it;
        }
        return r < 0 ? r : is_found ? 0 : JSON_ABSENT;
}

int json_node_type(const struct json_node *object, char type[64], struct why *why) {
        struct json_node member = { .parent = object, .name = "type" };
        size_t n = 0;
        int r;

        type[0] = '\0';
        if (object->value.kind != JSON_OBJECT)
                return json_node_refuse(object, -EINVAL, why, "is not an object");
        r = json_node_find(object, "type", &member.value, why);
        if (r == JSON_ABSENT)
                return 0;
        if (r == -ECANCELED)
                return r;
        if (r < 0 || member.value.kind != JSON_STRING || member.value.n_bytes >= 64)
                return json_node_refuse(&member, -EINVAL, why, "is not the name of a type");
        r = json_string_read(member.value.bytes, member.value.n_bytes, (uint8_t *)type, &n, NULL);
        type[r == 0 ? n : 0] = '\0';
        return 0;
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

int json_elements_begin(struct json_elements *elements, const struct json_node *array, struct why *why) {
        elements->array = array;
        elements->n = 0;
        return json_node_enter(array, JSON_ARRAY, &elements->scan, why);
}

int json_elements_next(struct json_elements *elements, struct json_node *ret_element, struct why *why) {
        struct json_node element = { .parent = elements->array, .idx = elements->n };
        struct why what;
        int r = json_node_next(&elements->scan, &element.value, &what);

        if (r < 0)
                return malformed(&element, r, &what, why);
        if (element.value.kind == JSON_ARRAY_END)
                return 1;
        elements->n++;
        *ret_element = element;
        return 0;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

int json_node_bool(const struct json_node *node, bool otherwise, bool *ret_value, struct why *why) {
        enum json_kind kind = node->value.kind;

        if (kind != JSON_END && kind != JSON_TRUE && kind != JSON_FALSE)
                return json_node_refuse(node, -EINVAL, why, "is neither true nor false");
        *ret_value = kind == JSON_END ? otherwise : kind == JSON_TRUE;
        return 0;
}

int json_node_unsigned(const struct json_node *node, uint64_t otherwise, uint64_t most, uint64_t *ret_value,
                       struct why *why) {
        uint64_t value = otherwise;

        if (json_node_is_set(node) &&
            (node->value.kind != JSON_INTEGER ||
             json_unsigned_read(node->value.bytes, node->value.n_bytes, &value, NULL) < 0 || value > most))
                return json_node_refuse(node, -EINVAL, why, "is not a whole number from 0 to %" PRIu64, most);
        *ret_value = value;
        return 0;
}

int json_node_text(const struct json_node *node, uint8_t **ret_text, size_t *ret_n, struct why *why) {
        _cleanup_(freep) uint8_t *text = NULL;

        if (node->value.kind != JSON_STRING)
                return json_node_refuse(node, -EINVAL, why, json_node_is_set(node) ? "is not a text" : "is missing");
        text = malloc(node->value.n_bytes);
        if (!text)
                return why_errno(why, -ENOMEM, "tokenizer");
        if (json_string_read(node->value.bytes, node->value.n_bytes, text, ret_n, NULL) < 0)
                return json_node_refuse(node, -EINVAL, why, "has half of a surrogate pair, which is no character");
        *ret_text = TAKE_PTR(text);
        return 0;
}

int json_node_choice(const struct json_node *node, const char *const *words, unsigned *ret_idx, struct why *why) {
        char list[PATH_MAX_SHOWN] = "";
        size_t n = 0;
        int n_shown = (int)(node->value.n_bytes < TEXT_SHOWN ? node->value.n_bytes : TEXT_SHOWN);

        for (unsigned i = 0; words[i]; i++) {
                if (node->value.kind == JSON_STRING && json_string_is(&node->value, words[i], strlen(words[i]))) {
                        *ret_idx = i;
                        return 0;
                }
                if (n < sizeof(list))
                        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", words[i]);
        }
        if (!json_node_is_set(node))
                return json_node_refuse(node, -EINVAL, why, "is missing; expected %s", list);
        return json_node_refuse(node, -EINVAL, why, "is %.*s; supported: %s", n_shown, node->value.bytes, list);
}
