/* Reads "pre_tokenizer". */

#include <errno.h>
#include <string.h>

#include "daemon/tokenize/characters/characters.h"
#include "daemon/tokenize/patterns/pattern_node.h"
#include "daemon/tokenize/patterns/token_pattern.h"
#include "daemon/tokenize/splitter.h"
#include "proto/base/cleanup.h"
#include "proto/base/utf8.h"

/* ByteLevel cuts with the pattern of GPT-2. */
#define BYTE_LEVEL_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static const char *const BEHAVIORS[] = { "Removed",        "Isolated", "Contiguous", "MergedWithPrevious",
                                         "MergedWithNext", NULL };

void splitter_fini(struct splitter *splitter) {
        for (unsigned i = 0; i < splitter->n_steps; i++)
                pattern_free(splitter->steps[i].pattern);
        splitter->n_steps = 0;
}

static int splitter_node_add(struct splitter *splitter, const struct json_node *node, struct split_step **ret_step,
                             struct why *why) {
        if (splitter->n_steps == SPLIT_STEPS_MAX)
                return json_node_refuse(node, -EINVAL, why, "more than %u steps", SPLIT_STEPS_MAX);
        *ret_step = &splitter->steps[splitter->n_steps++];
        return 0;
}

static int splitter_node_read_bare(struct splitter *splitter, const struct json_node *node, struct split_step wanted,
                                   struct why *why) {
        static const char *const NAMES[] = { "type" };
        struct split_step *step = NULL;
        struct json_node member;
        int r = json_node_members(node, NAMES, 1, &member, why);

        if (r == 0)
                r = splitter_node_add(splitter, node, &step, why);
        if (r == 0)
                *step = wanted;
        return r;
}

static int read_split(struct splitter *splitter, const struct json_node *node, struct why *why) {
        static const char *const NAMES[] = { "type", "pattern", "behavior", "invert" };
        struct json_node members[4];
        struct split_step *step = NULL;
        unsigned behavior;
        int r = json_node_members(node, NAMES, 4, members, why);

        if (r == 0)
                r = splitter_node_add(splitter, node, &step, why);
        if (r < 0)
                return r;
        step->kind = SPLIT_PATTERN;
        r = json_node_choice(&members[2], BEHAVIORS, &behavior, why);
        if (r == 0)
                r = json_node_bool(&members[3], false, &step->inverts, why);
        if (r < 0)
                return r;
        step->behavior = (enum split_behavior)behavior;
        return pattern_node_read(&members[1], &step->pattern, why);
}

static int read_punctuation(struct splitter *splitter, const struct json_node *node, struct why *why) {
        static const char *const NAMES[] = { "type", "behavior" };
        struct json_node members[2];
        struct split_step *step = NULL;
        unsigned behavior = SPLIT_ISOLATED;
        int r = json_node_members(node, NAMES, 2, members, why);

        if (r == 0 && json_node_is_set(&members[1]))
                r = json_node_choice(&members[1], BEHAVIORS, &behavior, why);
        if (r == 0)
                r = splitter_node_add(splitter, node, &step, why);
        if (r == 0)
                *step = (struct split_step){ .kind = SPLIT_CLASS,
                                             .classes = CHARACTER_BERT_PUNCTUATION,
                                             .behavior = (enum split_behavior)behavior };
        return r;
}

static int splitter_node_read_digits(struct splitter *splitter, const struct json_node *node, struct why *why) {
        static const char *const NAMES[] = { "type", "individual_digits" };
        struct json_node members[2];
        struct split_step *step = NULL;
        bool is_individual;
        int r = json_node_members(node, NAMES, 2, members, why);

        if (r == 0)
                r = json_node_bool(&members[1], false, &is_individual, why);
        if (r == 0)
                r = splitter_node_add(splitter, node, &step, why);
        if (r == 0)
                *step = (struct split_step){ .kind = SPLIT_CLASS,
                                             .classes = CHARACTER_NUMERIC,
                                             .behavior = is_individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS };
        return r;
}

/* Older files say add_prefix_space where newer ones say prepend_scheme; if both are there, they agree. */
static int read_meta(struct splitter *splitter, const struct json_node *node, struct why *why) {
        static const char *const NAMES[] = { "type",  "replacement",      "prepend_scheme",
                                             "split", "add_prefix_space", "str_rep" };
        static const char *const SCHEMES[] = { "first", "always", "never", NULL };
        _cleanup_(freep) uint8_t *mark = NULL;
        struct json_node members[6];
        struct split_step *step = NULL;
        unsigned scheme = SPLIT_PREPEND_ALWAYS;
        bool adds = true;
        uint32_t point;
        size_t n;
        int r = json_node_members(node, NAMES, 6, members, why);

        if (r == 0)
                r = splitter_node_add(splitter, node, &step, why);
        if (r < 0)
                return r;
        step->kind = SPLIT_META;
        r = json_node_text(&members[1], &mark, &n, why);
        if (r == 0)
                r = json_node_bool(&members[4], true, &adds, why);
        if (r == 0 && json_node_is_set(&members[2]))
                r = json_node_choice(&members[2], SCHEMES, &scheme, why);
        else if (!adds)
                scheme = SPLIT_PREPEND_NEVER;
        if (r == 0)
                r = json_node_bool(&members[3], true, &step->splits, why);
        if (r < 0)
                return r;
        if (n == 0 || n > sizeof(step->mark) || utf8_decode((const char *)mark, n, &point) != n)
                return json_node_refuse(&members[1], -EINVAL, why, "is not one character");
        if (json_node_is_set(&members[2]) && !adds && scheme != SPLIT_PREPEND_NEVER)
                return json_node_refuse(&members[4], -EINVAL, why, "contradicts prepend_scheme");
        step->prepends = (enum split_prepend)scheme;
        memcpy(step->mark, mark, n);
        step->n_mark = n;
        return 0;
}

static int read_byte_level(struct splitter *splitter, const struct json_node *node, struct why *why) {
        static const char *const NAMES[] = { "type", "add_prefix_space", "trim_offsets", "use_regex" };
        struct json_node members[4];
        struct split_step *step = NULL;
        bool adds, cuts;
        int r = json_node_members(node, NAMES, 4, members, why);

        if (r == 0)
                r = json_node_bool(&members[1], true, &adds, why);
        if (r == 0)
                r = json_node_bool(&members[3], true, &cuts, why);
        if (r < 0)
                return r;
        splitter->is_byte_level = true;
        if (adds) {
                r = splitter_node_add(splitter, node, &step, why);
                if (r < 0)
                        return r;
                step->kind = SPLIT_PREFIX;
        }
        if (!cuts)
                return 0;
        r = splitter_node_add(splitter, node, &step, why);
        if (r < 0)
                return r;
        step->kind = SPLIT_PATTERN;
        step->behavior = SPLIT_ISOLATED;
        return pattern_new((const uint8_t *)BYTE_LEVEL_PATTERN, strlen(BYTE_LEVEL_PATTERN), &step->pattern, why);
}

static int splitter_node_read_step(struct splitter *splitter, const struct json_node *node, const char *type,
                                   struct why *why) {
        if (splitter->is_byte_level)
                return json_node_refuse(node, -EINVAL, why, "nothing is supported after ByteLevel");
        if (strcmp(type, "BertPreTokenizer") == 0)
                return splitter_node_read_bare(splitter, node, (struct split_step){ .kind = SPLIT_BERT }, why);
        if (strcmp(type, "WhitespaceSplit") == 0)
                return splitter_node_read_bare(splitter, node, (struct split_step){ .kind = SPLIT_BLANKS }, why);
        if (strcmp(type, "Punctuation") == 0)
                return read_punctuation(splitter, node, why);
        if (strcmp(type, "Digits") == 0)
                return splitter_node_read_digits(splitter, node, why);
        if (strcmp(type, "Split") == 0)
                return read_split(splitter, node, why);
        if (strcmp(type, "Metaspace") == 0)
                return read_meta(splitter, node, why);
        if (strcmp(type, "ByteLevel") == 0)
                return read_byte_level(splitter, node, why);
        return json_node_refuse(node, -EINVAL, why,
                                "the type \"%s\" is not supported; supported: BertPreTokenizer, ByteLevel, Digits, "
                                "Metaspace, Punctuation, Split, WhitespaceSplit, Sequence",
                                type);
}

static int splitter_node_read_steps(struct splitter *splitter, const struct json_node *node, unsigned depth,
                                    struct why *why) {
        static const char *const NAMES[] = { "type", "pretokenizers" };
        struct json_node members[2], element;
        struct json_elements elements;
        char type[64];
        int r = json_node_type(node, type, why);

        if (r < 0)
                return r;
        if (strcmp(type, "Sequence") != 0)
                return splitter_node_read_step(splitter, node, type, why);
        if (depth == 0)
                return json_node_refuse(node, -EINVAL, why, "sequences are nested too deep");
        r = json_node_members(node, NAMES, 2, members, why);
        if (r == 0)
                r = json_elements_begin(&elements, &members[1], why);
        while (r == 0) {
                r = json_elements_next(&elements, &element, why);
                if (r == 0)
                        r = splitter_node_read_steps(splitter, &element, depth - 1, why);
        }
        return r < 0 ? r : 0;
}

int splitter_read(const struct json_node *node, struct splitter *ret_splitter, struct why *why) {
        int r;

        *ret_splitter = (struct splitter){ 0 };
        if (!json_node_is_set(node))
                return 0;
        r = splitter_node_read_steps(ret_splitter, node, 4, why);
        if (r < 0)
                splitter_fini(ret_splitter);
        return r;
}
