#include "daemon/tokenize/normalizer.h"

#include <errno.h>
#include <string.h>

#include "daemon/tokenize/characters/characters.h"
#include "daemon/tokenize/patterns/pattern_node.h"

/* ---- reading --------------------------------------------------------------------------------------------------- */

void normalizer_fini(struct normalizer *normalizer) {
        for (unsigned i = 0; i < normalizer->n_steps; i++) {
                pattern_free(normalizer->steps[i].pattern);
                free(normalizer->steps[i].text);
        }
        normalizer->n_steps = 0;
}

static int read_bert(const struct json_node *node, struct normal_step *step, struct why *why) {
        static const char *const NAMES[] = { "type", "clean_text", "handle_chinese_chars", "strip_accents",
                                             "lowercase" };
        struct json_node members[5];
        int r = json_node_members(node, NAMES, 5, members, why);

        step->kind = NORMAL_BERT;
        if (r == 0)
                r = json_node_bool(&members[1], true, &step->cleans, why);
        if (r == 0)
                r = json_node_bool(&members[2], true, &step->spaces_chinese, why);
        if (r == 0)
                r = json_node_bool(&members[4], true, &step->lowers, why);
        return r < 0 ? r : json_node_bool(&members[3], step->lowers, &step->strips_accents, why);
}

static int read_strip(const struct json_node *node, struct normal_step *step, struct why *why) {
        static const char *const NAMES[] = { "type", "strip_left", "strip_right" };
        struct json_node members[3];
        int r = json_node_members(node, NAMES, 3, members, why);

        step->kind = NORMAL_STRIP;
        if (r == 0)
                r = json_node_bool(&members[1], true, &step->left, why);
        return r < 0 ? r : json_node_bool(&members[2], true, &step->right, why);
}

static int read_replace(const struct json_node *node, struct normal_step *step, struct why *why) {
        static const char *const NAMES[] = { "type", "pattern", "content" };
        struct json_node members[3];
        int r = json_node_members(node, NAMES, 3, members, why);

        step->kind = NORMAL_REPLACE;
        if (r == 0)
                r = pattern_node_read(&members[1], &step->pattern, why);
        return r < 0 ? r : json_node_text(&members[2], &step->text, &step->n_text, why);
}

static int read_prepend(const struct json_node *node, struct normal_step *step, struct why *why) {
        static const char *const NAMES[] = { "type", "prepend" };
        struct json_node members[2];
        int r = json_node_members(node, NAMES, 2, members, why);

        step->kind = NORMAL_PREPEND;
        return r < 0 ? r : json_node_text(&members[1], &step->text, &step->n_text, why);
}

static int normalizer_read_form(const struct json_node *node, const char *type, struct normal_step *step,
                                struct why *why) {
        static const char *const NAMES[] = { "type" };
        struct json_node member;

        step->kind = NORMAL_FORM;
        step->composes = strchr(type, 'C') != NULL;
        step->more = strchr(type, 'K') != NULL;
        return json_node_members(node, NAMES, 1, &member, why);
}

static int normalizer_read_bare(const struct json_node *node, enum normal_kind kind, struct normal_step *step,
                                struct why *why) {
        static const char *const NAMES[] = { "type" };
        struct json_node member;

        step->kind = kind;
        return json_node_members(node, NAMES, 1, &member, why);
}

static int normalizer_read_step(const struct json_node *node, const char *type, struct normal_step *step,
                                struct why *why) {
        if (strcmp(type, "BertNormalizer") == 0)
                return read_bert(node, step, why);
        if (strcmp(type, "NFC") == 0 || strcmp(type, "NFD") == 0 || strcmp(type, "NFKC") == 0 ||
            strcmp(type, "NFKD") == 0)
                return normalizer_read_form(node, type, step, why);
        if (strcmp(type, "Lowercase") == 0)
                return normalizer_read_bare(node, NORMAL_LOWERCASE, step, why);
        if (strcmp(type, "StripAccents") == 0)
                return normalizer_read_bare(node, NORMAL_STRIP_ACCENTS, step, why);
        if (strcmp(type, "Strip") == 0)
                return read_strip(node, step, why);
        if (strcmp(type, "Replace") == 0)
                return read_replace(node, step, why);
        if (strcmp(type, "Prepend") == 0)
                return read_prepend(node, step, why);
        return json_node_refuse(node, -EINVAL, why,
                                "the type \"%s\" is not supported; supported: BertNormalizer, NFC, NFD, NFKC, NFKD, "
                                "Lowercase, Strip, StripAccents, Replace, Prepend, Sequence",
                                type);
}

static int normalizer_read_steps(const struct json_node *node, struct normalizer *normalizer, unsigned depth,
                                 struct why *why) {
        static const char *const NAMES[] = { "type", "normalizers" };
        struct json_node members[2], element;
        struct json_elements elements;
        char type[64];
        int r = json_node_type(node, type, why);

        if (r < 0)
                return r;
        if (strcmp(type, "Sequence") != 0) {
                if (normalizer->n_steps == NORMAL_STEPS_MAX)
                        return json_node_refuse(node, -EINVAL, why, "more than %u steps", NORMAL_STEPS_MAX);
                return normalizer_read_step(node, type, &normalizer->steps[normalizer->n_steps++], why);
        }
        if (depth == 0)
                return json_node_refuse(node, -EINVAL, why, "sequences are nested too deep");
        r = json_node_members(node, NAMES, 2, members, why);
        if (r == 0)
                r = json_elements_begin(&elements, &members[1], why);
        while (r == 0) {
                r = json_elements_next(&elements, &element, why);
                if (r == 0)
                        r = normalizer_read_steps(&element, normalizer, depth - 1, why);
        }
        return r < 0 ? r : 0;
}

int normalizer_read(const struct json_node *node, struct normalizer *ret_normalizer, struct why *why) {
        int r;

        *ret_normalizer = (struct normalizer){ 0 };
        if (!json_node_is_set(node))
                return 0;
        r = normalizer_read_steps(node, ret_normalizer, 4, why);
        if (r < 0)
                normalizer_fini(ret_normalizer);
        return r;
}

/* ---- applying -------------------------------------------------------------------------------------------------- */

static int normalizer_append(struct grow *into, const uint8_t *text, size_t n) {
        if (grow_more(into, n) < 0)
                return -ENOMEM;
        if (n > 0)
                memcpy((uint8_t *)into->items + into->n, text, n);
        into->n += n;
        return 0;
}

static int append_lower(const uint8_t *text, size_t n, struct normal_memory *memory, struct grow *into) {
        int r = grow_more(into, n);

        for (size_t at = 0; at < n && r == 0;) {
                uint32_t point, parts[CHARACTER_PARTS_MAX];
                size_t n_parts;

                at += character_read(text + at, &point);
                n_parts = character_lower(point, parts);
                r = normal_goes_on(memory, 1);
                for (size_t i = 0; i < n_parts && r == 0; i++)
                        r = normal_put(into, parts[i]);
        }
        return r;
}

static int append_without(const uint8_t *text, size_t n, uint32_t classes, struct normal_memory *memory,
                          struct grow *into) {
        int r = 0;

        for (size_t at = 0; at < n && r == 0;) {
                uint32_t point;

                at += character_read(text + at, &point);
                r = normal_goes_on(memory, 1);
                if (r == 0 && !(character_class(point) & classes))
                        r = normal_put(into, point);
        }
        return r;
}

static int append_stripped(const struct normal_step *step, const uint8_t *text, size_t n, struct grow *into) {
        uint32_t point;

        while (step->left && n > 0) {
                size_t length = character_read(text, &point);

                if (!(character_class(point) & CHARACTER_BLANK))
                        break;
                text += length;
                n -= length;
        }
        while (step->right && n > 0) {
                size_t at = n - 1;

                while ((text[at] & 0xc0) == 0x80)
                        at--;
                character_read(text + at, &point);
                if (!(character_class(point) & CHARACTER_BLANK))
                        break;
                n = at;
        }
        return normalizer_append(into, text, n);
}

static int append_replaced(const struct normal_step *step, const uint8_t *text, size_t n, struct normal_memory *memory,
                           struct grow *into) {
        size_t at = 0, begin, end;

        for (;;) {
                int r = pattern_find(step->pattern, &memory->work, text, n, at, &begin, &end);

                if (r == 1 && normal_goes_on(memory, 1) < 0)
                        return -ECANCELED;
                if (r < 0)
                        return r;
                if (normalizer_append(into, text + at, (r == 0 ? n : begin) - at) < 0)
                        return -ENOMEM;
                if (r == 0)
                        return 0;
                if (normalizer_append(into, step->text, step->n_text) < 0)
                        return -ENOMEM;
                if (into->n > NORMAL_BYTES_MAX)
                        return -E2BIG;
                at = end;
        }
}

static int apply_step(const struct normal_step *step, const uint8_t *text, size_t n, struct normal_memory *memory,
                      struct grow *into) {
        switch (step->kind) {
        case NORMAL_BERT:
                return normal_bert_append(step, text, n, memory, into);
        case NORMAL_FORM:
                return normal_form_append(text, n, step->composes, step->more, memory, into);
        case NORMAL_LOWERCASE:
                return append_lower(text, n, memory, into);
        case NORMAL_STRIP:
                return append_stripped(step, text, n, into);
        case NORMAL_STRIP_ACCENTS:
                return append_without(text, n, CHARACTER_ACCENT, memory, into);
        case NORMAL_REPLACE:
                return append_replaced(step, text, n, memory, into);
        default:
                if (n > 0 && normalizer_append(into, step->text, step->n_text) < 0)
                        return -ENOMEM;
                return normalizer_append(into, text, n);
        }
}

int normalizer_apply(const struct normalizer *normalizer, struct normal_memory *memory, const uint8_t *text, size_t n,
                     const uint8_t **ret_text, size_t *ret_n) {
        for (unsigned i = 0; i < normalizer->n_steps; i++) {
                struct grow *into = &memory->texts[i % 2];
                int r;

                into->n = 0;
                r = apply_step(&normalizer->steps[i], text, n, memory, into);
                if (r < 0)
                        return r;
                if (into->n > NORMAL_BYTES_MAX)
                        return -E2BIG;
                text = into->items;
                n = into->n;
        }
        *ret_text = text;
        *ret_n = n;
        return 0;
}

/* The longest of each, in the tables: U+FDFA becomes 18 characters of 3 bytes, which have 33 bytes; U+0390 3 characters
 * of 2 bytes; U+1D160 12 bytes of 4; U+0130 3 bytes of 2. */
static uint64_t growth_of(const struct normal_step *step, bool of_characters) {
        switch (step->kind) {
        case NORMAL_FORM:
                return of_characters ? step->more ? 6 : 2 : step->more ? 11 : 3;
        case NORMAL_BERT: /* marks that are parted from their letters leave, and blanks are no part of a word */
                return of_characters ? 1 : 5;
        case NORMAL_LOWERCASE:
                return of_characters ? 1 : 2;
        case NORMAL_REPLACE: /* of a match of one byte */
                return step->n_text > 1 ? step->n_text : 1;
        case NORMAL_PREPEND: /* to what lies between two added tokens, perhaps a byte */
                return 1 + step->n_text;
        default:
                return 1;
        }
}

uint64_t normalizer_growth(const struct normalizer *normalizer, bool of_characters) {
        uint64_t growth = 1;

        for (unsigned i = 0; i < normalizer->n_steps; i++)
                if (__builtin_mul_overflow(growth, growth_of(&normalizer->steps[i], of_characters), &growth) ||
                    growth > NORMAL_BYTES_MAX)
                        return NORMAL_BYTES_MAX;
        return growth;
}

void normal_memory_free(struct normal_memory *memory) {
        grow_free(&memory->texts[0]);
        grow_free(&memory->texts[1]);
        grow_free(&memory->points);
        grow_free(&memory->spare);
        grow_free(&memory->run);
}
