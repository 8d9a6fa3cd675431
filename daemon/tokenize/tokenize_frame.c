#include "daemon/tokenize/tokenize_frame.h"

#include <errno.h>
#include <string.h>

/* Each further step stands around what the steps before it made. */
static int put_before(struct frame *frame, const struct json_node *node, const uint32_t *tokens, uint32_t n,
                      struct why *why) {
        if (frame->n_before + n > FRAME_TOKENS_MAX)
                return json_node_refuse(node, -EINVAL, why, "more than %u tokens before a text", FRAME_TOKENS_MAX);
        memmove(frame->before + n, frame->before, frame->n_before * sizeof(*tokens));
        memcpy(frame->before, tokens, n * sizeof(*tokens));
        frame->n_before += n;
        return 0;
}

static int put_after(struct frame *frame, const struct json_node *node, const uint32_t *tokens, uint32_t n,
                     struct why *why) {
        if (frame->n_after + n > FRAME_TOKENS_MAX)
                return json_node_refuse(node, -EINVAL, why, "more than %u tokens after a text", FRAME_TOKENS_MAX);
        memcpy(frame->after + frame->n_after, tokens, n * sizeof(*tokens));
        frame->n_after += n;
        return 0;
}

static int tokenize_frame_read_number(const struct json_node *node, uint32_t *ret_token, struct why *why) {
        uint64_t token = 0;
        int r;

        if (!json_node_is_set(node))
                return json_node_refuse(node, -EINVAL, why, "is missing");
        r = json_node_unsigned(node, 0, TOKEN_MAX, &token, why);
        *ret_token = (uint32_t)token;
        return r;
}

/* ["[CLS]", 101] */
static int tokenize_frame_read_pair(const struct json_node *node, uint32_t *ret_token, struct why *why) {
        struct json_elements elements;
        struct json_node parts[2];
        int r = json_elements_begin(&elements, node, why);

        if (r == 0)
                r = json_elements_next(&elements, &parts[0], why);
        if (r == 0)
                r = json_elements_next(&elements, &parts[1], why);
        if (r > 0)
                return json_node_refuse(node, -EINVAL, why, "is not a token and its number");
        return r < 0 ? r : tokenize_frame_read_number(&parts[1], ret_token, why);
}

/* [CLS] text [SEP], and <s> text </s>. */
static int tokenize_frame_read_around(const struct json_node *node, struct frame *frame, struct why *why) {
        static const char *const NAMES[] = { "type", "sep", "cls", "trim_offsets", "add_prefix_space" };
        struct json_node members[5];
        uint32_t before, after;
        int r = json_node_members(node, NAMES, 5, members, why);

        if (r == 0)
                r = tokenize_frame_read_pair(&members[2], &before, why);
        if (r == 0)
                r = tokenize_frame_read_pair(&members[1], &after, why);
        if (r == 0)
                r = put_before(frame, node, &before, 1, why);
        return r < 0 ? r : put_after(frame, node, &after, 1, why);
}

static int tokenize_frame_read_bare(const struct json_node *node, struct why *why) {
        static const char *const NAMES[] = { "type", "add_prefix_space", "trim_offsets", "use_regex" };
        struct json_node members[4];

        return json_node_members(node, NAMES, 4, members, why);
}

/* The numbers of a special token, which has a name here. */
static int read_special(const struct json_node *node, const struct json_node *specials, uint32_t *tokens, uint32_t *n,
                        struct why *why) {
        static const char *const NAMES[] = { "id", "type_id" }, *const OF_ONE[] = { "id", "ids", "tokens" };
        struct json_node members[2], one = { .parent = specials, .name = "this token", .value.kind = JSON_END };
        struct json_elements elements;
        struct json_node found[3], element;
        struct json_token key, value;
        struct json_scan scan;
        uint8_t name[256];
        size_t n_name = 0;
        int r = json_node_members(node, NAMES, 2, members, why);

        if (r < 0)
                return r;
        if (members[0].value.kind != JSON_STRING || members[0].value.n_bytes > sizeof(name) ||
            json_string_read(members[0].value.bytes, members[0].value.n_bytes, name, &n_name, NULL) < 0)
                return json_node_refuse(&members[0], -EINVAL, why, "is not the name of a token");
        if (specials->value.kind != JSON_OBJECT)
                return json_node_refuse(specials, -EINVAL, why, "is not an object");
        json_scan_init(&scan, specials->value.bytes, specials->value.n_bytes);
        r = json_next(&scan, &key, why);
        while (r == 0 && (r = json_next(&scan, &key, why)) == 0 && key.kind == JSON_KEY) {
                r = json_node_next(&scan, &value, why);
                if (r == 0 && json_string_is(&key, (const char *)name, n_name))
                        one.value = value;
        }
        if (r < 0)
                return r;
        if (!json_node_is_set(&one))
                return json_node_refuse(&members[0], -EINVAL, why, "is not among the special_tokens");
        r = json_node_members(&one, OF_ONE, 3, found, why);
        if (r == 0)
                r = json_elements_begin(&elements, &found[1], why);
        while (r == 0) {
                r = json_elements_next(&elements, &element, why);
                if (r == 0 && *n == FRAME_TOKENS_MAX)
                        r = json_node_refuse(&found[1], -EINVAL, why, "more than %u tokens", FRAME_TOKENS_MAX);
                if (r == 0)
                        r = tokenize_frame_read_number(&element, &tokens[(*n)++], why);
        }
        return r < 0 ? r : 0;
}

/* {"Sequence": {"id": "A"}}, once; everything else is {"SpecialToken": {...}}. */
static int read_template(const struct json_node *node, struct frame *frame, struct why *why) {
        static const char *const NAMES[] = { "type", "single", "pair", "special_tokens" };
        static const char *const OF_PIECE[] = { "SpecialToken", "Sequence" };
        uint32_t tokens[2][FRAME_TOKENS_MAX], n[2] = { 0, 0 };
        struct json_node members[4], piece, parts[2];
        struct json_elements elements;
        unsigned n_texts = 0;
        int r = json_node_members(node, NAMES, 4, members, why);

        if (r == 0)
                r = json_elements_begin(&elements, &members[1], why);
        while (r == 0) {
                r = json_elements_next(&elements, &piece, why);
                if (r == 0)
                        r = json_node_members(&piece, OF_PIECE, 2, parts, why);
                if (r == 0 && json_node_is_set(&parts[1]))
                        n_texts++;
                else if (r == 0 && n_texts < 2)
                        r = read_special(&parts[0], &members[3], tokens[n_texts], &n[n_texts], why);
        }
        if (r < 0)
                return r;
        if (n_texts != 1)
                return json_node_refuse(&members[1], -EINVAL, why, "does not name its text once");
        r = put_before(frame, node, tokens[0], n[0], why);
        return r < 0 ? r : put_after(frame, node, tokens[1], n[1], why);
}

static int tokenize_frame_read_steps(const struct json_node *node, unsigned depth, struct frame *frame,
                                     struct why *why) {
        static const char *const NAMES[] = { "type", "processors" };
        struct json_node members[2], element;
        struct json_elements elements;
        char type[64];
        int r = json_node_type(node, type, why);

        if (r < 0)
                return r;
        if (strcmp(type, "TemplateProcessing") == 0)
                return read_template(node, frame, why);
        if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
                return tokenize_frame_read_around(node, frame, why);
        if (strcmp(type, "ByteLevel") == 0)
                return tokenize_frame_read_bare(node, why);
        if (strcmp(type, "Sequence") != 0 || depth == 0)
                return json_node_refuse(node, -EINVAL, why,
                                        "the type \"%s\" is not supported; supported: TemplateProcessing, "
                                        "BertProcessing, RobertaProcessing, ByteLevel, Sequence",
                                        type);
        r = json_node_members(node, NAMES, 2, members, why);
        if (r == 0)
                r = json_elements_begin(&elements, &members[1], why);
        while (r == 0) {
                r = json_elements_next(&elements, &element, why);
                if (r == 0)
                        r = tokenize_frame_read_steps(&element, depth - 1, frame, why);
        }
        return r < 0 ? r : 0;
}

int frame_read(const struct json_node *node, struct frame *ret_frame, struct why *why) {
        *ret_frame = (struct frame){ 0 };
        return json_node_is_set(node) ? tokenize_frame_read_steps(node, 4, ret_frame, why) : 0;
}
