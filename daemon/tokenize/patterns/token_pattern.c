#include "daemon/tokenize/patterns/token_pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tokenize/grow.h"
#include "daemon/tokenize/patterns/pattern_set.h"
#include "proto/base/cleanup.h"

#define NODES_MAX 512u
#define DEPTH_MAX 16u /* groups within each other */
#define NO_END    SIZE_MAX
#define UNBOUNDED UINT32_MAX

enum node_kind {
        NODE_SET,   /* characters of a set, as many as possible */
        NODE_GROUP, /* one of some alternatives */
        NODE_LOOK,  /* one of some alternatives comes here, or none, and is not part of the match */
        NODE_JOIN,  /* the end of an alternative: goes on behind its group */
        NODE_END,   /* the end of the pattern, or of what is looked at */
};

/* Nodes follow one another in the array, except at the end of an alternative. */
struct node {
        enum node_kind kind;
        uint32_t min, max;
        bool is_possessive, is_not;
        uint32_t set;         /* NODE_SET */
        uint32_t alternative; /* of a group: its first; 0: none */
        uint32_t after;       /* of a group, a look: the node behind it; of a join: its group */
};

/* Where it begins, and which bytes it can begin with. */
struct alternative {
        uint32_t node, next; /* next 0: the last */
        uint64_t ascii[2];
};

struct token_pattern {
        struct grow nodes, sets, alternatives;
        uint32_t root; /* its first alternative */
        uint8_t *literal;
        size_t n_literal;
};

static struct node *node_at(const struct token_pattern *pattern, uint32_t i) {
        return (struct node *)pattern->nodes.items + i;
}

static const struct pattern_set *set_at(const struct token_pattern *pattern, uint32_t i) {
        return (const struct pattern_set *)pattern->sets.items + i;
}

static struct alternative *alternative_at(const struct token_pattern *pattern, uint32_t i) {
        return (struct alternative *)pattern->alternatives.items + i;
}

static void pattern_freep(struct token_pattern **pattern) {
        pattern_free(*pattern);
}

void pattern_free(struct token_pattern *pattern) {
        if (!pattern)
                return;
        grow_free(&pattern->nodes);
        grow_free(&pattern->sets);
        grow_free(&pattern->alternatives);
        free(pattern->literal);
        free(pattern);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct pattern_reader {
        struct token_pattern *pattern;
        struct pattern_text text;
        const char *what; /* is not supported */
        unsigned depth;
};

static int token_pattern_add(struct grow *grow, const void *item, size_t n_bytes, uint32_t *ret_idx) {
        if (grow->n / n_bytes >= NODES_MAX)
                return -EINVAL;
        if (grow_more(grow, n_bytes) < 0)
                return -ENOMEM;
        memcpy((uint8_t *)grow->items + grow->n, item, n_bytes);
        *ret_idx = (uint32_t)(grow->n / n_bytes);
        grow->n += n_bytes;
        return 0;
}

static int token_pattern_add_node(struct pattern_reader *reader, struct node node, uint32_t *ret_idx) {
        reader->what = "a pattern of this size";
        return token_pattern_add(&reader->pattern->nodes, &node, sizeof(node), ret_idx);
}

static bool next_is(const struct pattern_reader *reader, const char *text) {
        size_t n = strlen(text);

        return reader->text.n - reader->text.at >= n && memcmp(reader->text.text + reader->text.at, text, n) == 0;
}

static bool token_pattern_take(struct pattern_reader *reader, const char *text) {
        if (!next_is(reader, text))
                return false;
        reader->text.at += strlen(text);
        return true;
}

static int token_pattern_read_number(struct pattern_reader *reader, uint32_t *ret_number) {
        uint32_t number = 0;
        size_t n = 0;

        for (; reader->text.at < reader->text.n && n < 6; n++, reader->text.at++) {
                uint8_t c = reader->text.text[reader->text.at];

                if (c < '0' || c > '9')
                        break;
                number = number * 10 + c - '0';
        }
        *ret_number = number;
        return n > 0 && n < 6 ? 0 : -EINVAL;
}

static int token_pattern_read_count(struct pattern_reader *reader, struct node *node) {
        bool is_braced = false;

        node->min = node->max = 1;
        reader->what = "this count";
        if (token_pattern_take(reader, "?"))
                node->min = 0;
        else if (token_pattern_take(reader, "*"))
                node->min = 0, node->max = UNBOUNDED;
        else if (token_pattern_take(reader, "+"))
                node->max = UNBOUNDED;
        else if (token_pattern_take(reader, "{")) {
                is_braced = true;
                if (token_pattern_read_number(reader, &node->min) < 0)
                        return -EINVAL;
                node->max = node->min;
                if (token_pattern_take(reader, ",")) {
                        node->max = UNBOUNDED;
                        if (!next_is(reader, "}") && token_pattern_read_number(reader, &node->max) < 0)
                                return -EINVAL;
                }
                if (!token_pattern_take(reader, "}") || node->max < node->min || node->max == 0)
                        return -EINVAL;
        } else
                return 0;
        if (next_is(reader, "+") && !is_braced)
                node->is_possessive = token_pattern_take(reader, "+");
        reader->what = "a count of a count, or a lazy one";
        return next_is(reader, "?") || next_is(reader, "+") || next_is(reader, "*") || next_is(reader, "{") ? -EINVAL
                                                                                                            : 0;
}

static int read_alternatives(struct pattern_reader *reader, uint32_t idx_group, enum node_kind end, bool any_case,
                             uint32_t *ret_first);

/* After "(". */
static int token_pattern_read_group(struct pattern_reader *reader, bool any_case) {
        struct node node = { .kind = NODE_GROUP };
        uint32_t idx, first = 0;
        int r;

        if (token_pattern_take(reader, "?i:"))
                any_case = true;
        else if (token_pattern_take(reader, "?="))
                node.kind = NODE_LOOK;
        else if (token_pattern_take(reader, "?!")) {
                node.kind = NODE_LOOK;
                node.is_not = true;
        } else if (!token_pattern_take(reader, "?:") && next_is(reader, "?")) {
                reader->what = "this kind of group";
                return -EINVAL;
        }
        r = token_pattern_add_node(reader, node, &idx);
        if (r == 0)
                r = read_alternatives(reader, idx, node.kind == NODE_GROUP ? NODE_JOIN : NODE_END, any_case, &first);
        if (r < 0)
                return r;
        reader->what = "a group without an end";
        if (!token_pattern_take(reader, ")"))
                return -EINVAL;
        r = token_pattern_read_count(reader, &node);
        if (r < 0)
                return r;
        reader->what = "a count of a group that is not ?";
        if (node.max != 1 || node.is_possessive || (node.kind == NODE_LOOK && node.min != 1))
                return -EINVAL;
        node.alternative = first;
        node.after = (uint32_t)(reader->pattern->nodes.n / sizeof(node));
        *node_at(reader->pattern, idx) = node;
        return 0;
}

static int read_set(struct pattern_reader *reader, bool any_case) {
        struct pattern_set set = { 0 };
        struct node node = { .kind = NODE_SET };
        uint8_t byte = reader->text.text[reader->text.at];
        uint32_t point, idx;
        int r = 0;

        if (byte == '[')
                r = pattern_set_brackets(&reader->text, &set, &reader->what);
        else if (byte == '\\') {
                reader->text.at++;
                r = pattern_set_escape(&reader->text, &set, &reader->what);
        } else if (byte == '.') {
                reader->text.at++;
                set.is_negated = true;
                pattern_set_point(&set, '\n', false);
        } else {
                reader->what = "this character here";
                if (memchr("^$*+?{", byte, 6))
                        return -EINVAL;
                reader->text.at += character_read(reader->text.text + reader->text.at, &point);
                pattern_set_point(&set, point, any_case);
        }
        if (r == 0 && any_case && byte == '[') /* each of its letters in both cases */
                for (uint32_t i = 0, n = set.n_ranges; i < n && 2 * n < PATTERN_RANGES_MAX; i++)
                        if (set.ranges[i][0] == set.ranges[i][1])
                                pattern_set_point(&set, set.ranges[i][0], true);
        if (r == 0)
                r = token_pattern_read_count(reader, &node);
        if (r < 0)
                return r;
        pattern_set_finish(&set);
        reader->what = "a pattern of this size";
        r = token_pattern_add(&reader->pattern->sets, &set, sizeof(set), &node.set);
        return r < 0 ? r : token_pattern_add_node(reader, node, &idx);
}

static int read_sequence(struct pattern_reader *reader, bool any_case) {
        int r = 0;

        while (r == 0 && reader->text.at < reader->text.n && !next_is(reader, "|") && !next_is(reader, ")"))
                r = token_pattern_take(reader, "(") ? token_pattern_read_group(reader, any_case)
                                                    : read_set(reader, any_case);
        return r;
}

static int read_alternatives(struct pattern_reader *reader, uint32_t idx_group, enum node_kind end, bool any_case,
                             uint32_t *ret_first) {
        uint32_t previous = 0, idx, idx_node;
        int r = 0;

        reader->what = "groups so deep in each other";
        if (++reader->depth > DEPTH_MAX)
                return -EINVAL;
        do {
                struct alternative alternative = { .node = (uint32_t)(reader->pattern->nodes.n / sizeof(struct node)) };

                r = read_sequence(reader, any_case);
                if (r == 0)
                        r = token_pattern_add_node(reader, (struct node){ .kind = end, .after = idx_group }, &idx_node);
                if (r == 0)
                        r = token_pattern_add(&reader->pattern->alternatives, &alternative, sizeof(alternative), &idx);
                if (r < 0)
                        return r;
                if (previous)
                        alternative_at(reader->pattern, previous)->next = idx;
                else
                        *ret_first = idx;
                previous = idx;
        } while (token_pattern_take(reader, "|"));
        reader->depth--;
        return 0;
}

/* ---- what alternatives begin with ------------------------------------------------------------------------------ */

/* Adds the ASCII characters that a match from this node on can begin with. */
static void add_first(const struct token_pattern *pattern, uint32_t idx, uint64_t ascii[2]) {
        for (;;) {
                const struct node *node = node_at(pattern, idx);

                if (node->kind == NODE_SET) {
                        ascii[0] |= set_at(pattern, node->set)->ascii[0];
                        ascii[1] |= set_at(pattern, node->set)->ascii[1];
                        if (node->min > 0)
                                return;
                        idx++;
                } else if (node->kind == NODE_GROUP) {
                        for (uint32_t i = node->alternative; i; i = alternative_at(pattern, i)->next)
                                add_first(pattern, alternative_at(pattern, i)->node, ascii);
                        if (node->min > 0)
                                return;
                        idx = node->after;
                } else if (node->kind == NODE_LOOK) {
                        idx = node->after;
                } else if (node->kind == NODE_JOIN) {
                        idx = node_at(pattern, node->after)->after;
                } else {
                        ascii[0] = ascii[1] = UINT64_MAX; /* the end: anything may follow */
                        return;
                }
        }
}

/* Only of the outermost ones, which are tried at each place. Patterns whose groups would be looked at too often keep
 * all characters. */
static void find_first(struct token_pattern *pattern) {
        for (uint32_t i = pattern->root; i; i = alternative_at(pattern, i)->next) {
                struct alternative *alternative = alternative_at(pattern, i);

                if (pattern->alternatives.n / sizeof(struct alternative) > 24)
                        alternative->ascii[0] = alternative->ascii[1] = UINT64_MAX;
                else
                        add_first(pattern, alternative->node, alternative->ascii);
        }
}

int pattern_new(const uint8_t *text, size_t n, struct token_pattern **ret_pattern, struct why *why) {
        _cleanup_(pattern_freep) struct token_pattern *pattern = calloc(1, sizeof(*pattern));
        struct pattern_reader reader = { .pattern = pattern,
                                         .text = { .text = text, .n = n },
                                         .what = "an empty pattern" };
        uint32_t ignored;
        int r;

        if (!pattern)
                return why_errno(why, -ENOMEM, "tokenizer");
        r = token_pattern_add(&pattern->alternatives, &(struct alternative){ 0 }, sizeof(struct alternative), &ignored);
        if (r == 0)
                r = n == 0 ? -EINVAL : read_alternatives(&reader, 0, NODE_END, false, &pattern->root);
        if (r == 0 && reader.text.at < n) {
                reader.what = "a closing parenthesis here";
                r = -EINVAL;
        }
        if (r == -EINVAL)
                return why_set(why, r, "byte %zu of the regular expression \"%.*s\": %s is not supported",
                               reader.text.at + 1, (int)(n < 120 ? n : 120), (const char *)text, reader.what);
        if (r < 0)
                return why_errno(why, r, "tokenizer");
        find_first(pattern);
        *ret_pattern = TAKE_PTR(pattern);
        return 0;
}

int pattern_new_literal(const uint8_t *bytes, size_t n, struct token_pattern **ret_pattern) {
        _cleanup_(pattern_freep) struct token_pattern *pattern = calloc(1, sizeof(*pattern));

        if (!pattern)
                return -ENOMEM;
        pattern->literal = malloc(n);
        if (!pattern->literal)
                return -ENOMEM;
        memcpy(pattern->literal, bytes, n);
        pattern->n_literal = n;
        *ret_pattern = TAKE_PTR(pattern);
        return 0;
}

/* ---- matching -------------------------------------------------------------------------------------------------- */

struct match {
        const struct token_pattern *pattern;
        const uint8_t *text;
        size_t n;
        struct pattern_work *work;
        bool has_ended; /* nothing is found any more */
};

#define STEPS_A_LOOK (UINT64_C(1) << 20)

/* So many more steps. False: it takes too long, or nobody wants it. */
static bool takes(struct match *match, uint64_t n_steps) {
        struct pattern_work *work = match->work;

        work->n_steps += n_steps;
        if (work->n_steps < work->look_at)
                return !match->has_ended;
        work->look_at = work->n_steps + STEPS_A_LOOK;
        if (work->n_steps > work->n_steps_max || (work->wanting && !wanting_lasts(work->wanting)))
                match->has_ended = true;
        return !match->has_ended;
}

static size_t match_at(struct match *match, uint32_t idx, size_t at);

static size_t match_any(struct match *match, uint32_t idx_alternative, size_t at) {
        for (uint32_t i = idx_alternative; i; i = alternative_at(match->pattern, i)->next) {
                size_t end = match_at(match, alternative_at(match->pattern, i)->node, at);

                if (end != NO_END)
                        return end;
        }
        return NO_END;
}

/* As many characters as there are; then fewer, until the rest matches. */
static size_t match_set(struct match *match, uint32_t idx, size_t at) {
        const struct node *node = node_at(match->pattern, idx);
        const struct pattern_set *set = set_at(match->pattern, node->set);
        uint32_t n = 0;
        size_t end;

        while (n < node->max && at < match->n) {
                uint32_t point;
                size_t length = character_read(match->text + at, &point);

                if (!pattern_set_has(set, point))
                        break;
                at += length;
                n++;
        }
        takes(match, n);
        for (;; n--) {
                if (n < node->min || match->has_ended)
                        return NO_END;
                end = match_at(match, idx + 1, at);
                if (end != NO_END || node->is_possessive || n == node->min)
                        return end;
                do
                        at--;
                while ((match->text[at] & 0xc0) == 0x80);
        }
}

static size_t match_at(struct match *match, uint32_t idx, size_t at) {
        for (;;) {
                const struct node *node = node_at(match->pattern, idx);
                size_t end;

                if (!takes(match, 1))
                        return NO_END;
                switch (node->kind) {
                case NODE_SET:
                        return match_set(match, idx, at);
                case NODE_GROUP:
                        end = match_any(match, node->alternative, at);
                        if (end != NO_END || node->min > 0)
                                return end;
                        idx = node->after;
                        break;
                case NODE_LOOK:
                        if ((match_any(match, node->alternative, at) == NO_END) != node->is_not)
                                return NO_END;
                        idx = node->after;
                        break;
                case NODE_JOIN:
                        idx = node_at(match->pattern, node->after)->after;
                        break;
                default:
                        return at;
                }
        }
}

static size_t match_root(struct match *match, size_t at) {
        uint8_t byte = match->text[at];

        for (uint32_t i = match->pattern->root; i; i = alternative_at(match->pattern, i)->next) {
                const struct alternative *alternative = alternative_at(match->pattern, i);
                size_t end;

                if (byte < 128 && !(alternative->ascii[byte >> 6] >> (byte & 63) & 1))
                        continue;
                end = match_at(match, alternative->node, at);
                if (end != NO_END)
                        return end;
        }
        return NO_END;
}

static int find_literal(const struct token_pattern *pattern, const uint8_t *text, size_t n, size_t begin,
                        size_t *ret_begin, size_t *ret_end) {
        const uint8_t *found = memmem(text + begin, n - begin, pattern->literal, pattern->n_literal);

        if (!found)
                return 0;
        *ret_begin = (size_t)(found - text);
        *ret_end = *ret_begin + pattern->n_literal;
        return 1;
}

int pattern_find(const struct token_pattern *pattern, struct pattern_work *work, const uint8_t *text, size_t n,
                 size_t begin, size_t *ret_begin, size_t *ret_end) {
        struct match match = { .pattern = pattern, .text = text, .n = n, .work = work };

        if (pattern->literal)
                return find_literal(pattern, text, n, begin, ret_begin, ret_end);
        for (size_t at = begin; at < n; at += character_length(text[at])) {
                size_t end = match_root(&match, at);

                if (match.has_ended)
                        return work->n_steps > work->n_steps_max ? -E2BIG : -ECANCELED;
                if (end != NO_END && end > at) {
                        *ret_begin = at;
                        *ret_end = end;
                        return 1;
                }
        }
        return 0;
}
