#include "daemon/tokenize/patterns/pattern_set.h"

#include <errno.h>
#include <string.h>

#define LONG_S      0x17fu /* what an s and a k are, too, if their case does not matter */
#define KELVIN_SIGN 0x212au

static const struct {
        const char *name;
        uint32_t classes;
} PROPERTIES[] = {
        { "L", CHARACTER_LETTER },   { "Letter", CHARACTER_LETTER }, { "N", CHARACTER_NUMBER },
        { "Nd", CHARACTER_DECIMAL }, { "M", CHARACTER_MARK },        { "P", CHARACTER_PUNCTUATION },
        { "S", CHARACTER_SYMBOL },   { "Lu", CHARACTER_UPPER },      { "Ll", CHARACTER_LOWER },
        { "Lt", CHARACTER_TITLE },   { "Lm", CHARACTER_MODIFIER },   { "Lo", CHARACTER_OTHER_LETTER },
};

static int add_range(struct pattern_set *set, uint32_t first, uint32_t last) {
        if (set->n_ranges == PATTERN_RANGES_MAX)
                return -EINVAL;
        set->ranges[set->n_ranges][0] = first;
        set->ranges[set->n_ranges++][1] = last;
        return 0;
}

void pattern_set_point(struct pattern_set *set, uint32_t point, bool any_case) {
        uint32_t letter = point | 32;

        add_range(set, point, point); /* a set of one character has room */
        if (!any_case || letter < 'a' || letter > 'z' || point > 127)
                return;
        add_range(set, point ^ 32, point ^ 32);
        if (letter == 's')
                add_range(set, LONG_S, LONG_S);
        if (letter == 'k')
                add_range(set, KELVIN_SIGN, KELVIN_SIGN);
}

void pattern_set_finish(struct pattern_set *set) {
        for (uint32_t point = 0; point < 128; point++) {
                uint32_t class = character_class(point);
                bool has = (class & set->classes) != 0 || (set->not_of && !(class & set->not_of));

                for (uint32_t i = 0; i < set->n_ranges && !has; i++)
                        has = point >= set->ranges[i][0] && point <= set->ranges[i][1];
                if (has != set->is_negated)
                        set->ascii[point >> 6] |= UINT64_C(1) << (point & 63);
        }
}

static int pattern_set_add_classes(struct pattern_set *set, uint32_t classes, bool is_not) {
        if (!is_not) {
                set->classes |= classes;
                return 0;
        }
        if (set->not_of)
                return -EINVAL;
        set->not_of = classes;
        return 0;
}

/* {L}, {^L}, after \p or \P. */
static int read_property(struct pattern_text *text, struct pattern_set *set, bool is_not, const char **ret_what) {
        const char *at = (const char *)text->text + text->at;
        const char *end = text->at < text->n ? memchr(at, '}', text->n - text->at) : NULL;

        *ret_what = "this property";
        if (!end || *at != '{')
                return -EINVAL;
        at++;
        if (*at == '^') {
                is_not = !is_not;
                at++;
        }
        for (size_t i = 0; i < sizeof(PROPERTIES) / sizeof(PROPERTIES[0]); i++)
                if (strlen(PROPERTIES[i].name) == (size_t)(end - at) &&
                    memcmp(PROPERTIES[i].name, at, (size_t)(end - at)) == 0) {
                        text->at = (size_t)(end + 1 - (const char *)text->text);
                        return pattern_set_add_classes(set, PROPERTIES[i].classes, is_not);
                }
        return -EINVAL;
}

/* Characters that an escape stands for; 0: it is none of them. */
static uint32_t escaped_point(uint32_t letter) {
        switch (letter) {
        case 'n':
                return '\n';
        case 'r':
                return '\r';
        case 't':
                return '\t';
        case 'f':
                return '\f';
        case 'v':
                return '\v';
        default:
                return letter < 128 && !(letter >= '0' && letter <= '9') &&
                                       !((letter | 32) >= 'a' && (letter | 32) <= 'z')
                               ? letter
                               : 0;
        }
}

/* \x0A, \u0f3a, \x{1F600}: after the letter. */
static int read_code(struct pattern_text *text, size_t n_digits, uint32_t *ret_point) {
        uint32_t point = 0;
        bool is_braced = text->at < text->n && text->text[text->at] == '{';
        size_t n = 0;

        text->at += is_braced;
        for (; text->at < text->n && n < (is_braced ? 6 : n_digits); n++, text->at++) {
                uint8_t c = text->text[text->at];

                if (c >= '0' && c <= '9')
                        point = point * 16 + c - '0';
                else if ((c | 32) >= 'a' && (c | 32) <= 'f')
                        point = point * 16 + (c | 32u) - 'a' + 10;
                else
                        break;
        }
        if (n == 0 || (!is_braced && n < n_digits) || point > 0x10ffff)
                return -EINVAL;
        if (is_braced && (text->at >= text->n || text->text[text->at++] != '}'))
                return -EINVAL;
        *ret_point = point;
        return 0;
}

/* Either a character, or a class that was added (0). */
static int read_escape(struct pattern_text *text, struct pattern_set *set, uint32_t *ret_point, const char **ret_what) {
        uint32_t letter;

        *ret_what = "this escape";
        *ret_point = 0;
        if (text->at >= text->n)
                return -EINVAL;
        text->at += character_read(text->text + text->at, &letter);
        switch (letter) {
        case 'p':
        case 'P':
                return read_property(text, set, letter == 'P', ret_what);
        case 's':
        case 'S':
                return pattern_set_add_classes(set, CHARACTER_SPACE, letter == 'S');
        case 'd':
        case 'D':
                return pattern_set_add_classes(set, CHARACTER_DECIMAL, letter == 'D');
        case 'x':
                return read_code(text, 2, ret_point);
        case 'u':
                return read_code(text, 4, ret_point);
        default:
                *ret_point = escaped_point(letter);
                return *ret_point ? 0 : -EINVAL;
        }
}

int pattern_set_escape(struct pattern_text *text, struct pattern_set *set, const char **ret_what) {
        uint32_t point;
        int r = read_escape(text, set, &point, ret_what);

        return r == 0 && point ? add_range(set, point, point) : r;
}

/* A character of a set, or a class that is added to it. */
static int read_item(struct pattern_text *text, struct pattern_set *set, uint32_t *ret_point, const char **ret_what) {
        *ret_what = "a set within a set";
        if (text->text[text->at] == '[' ||
            (text->text[text->at] == '&' && text->at + 1 < text->n && text->text[text->at + 1] == '&'))
                return -EINVAL;
        if (text->text[text->at] == '\\') {
                text->at++;
                return read_escape(text, set, ret_point, ret_what);
        }
        text->at += character_read(text->text + text->at, ret_point);
        return 0;
}

int pattern_set_brackets(struct pattern_text *text, struct pattern_set *set, const char **ret_what) {
        bool is_first = true;

        text->at++;
        if (text->at < text->n && text->text[text->at] == '^') {
                set->is_negated = true;
                text->at++;
        }
        for (; text->at < text->n && text->text[text->at] != ']'; is_first = false) {
                uint32_t first, last;
                int r = read_item(text, set, &first, ret_what);

                if (r < 0)
                        return r;
                if (first == 0)
                        continue;
                last = first;
                if (text->at + 1 < text->n && text->text[text->at] == '-' && text->text[text->at + 1] != ']') {
                        text->at++;
                        r = read_item(text, set, &last, ret_what);
                        *ret_what = "this range";
                        if (r < 0 || last < first)
                                return -EINVAL;
                }
                *ret_what = "a set of so much";
                if (add_range(set, first, last) < 0)
                        return -EINVAL;
        }
        *ret_what = is_first ? "an empty set" : "a set without an end";
        if (is_first || text->at >= text->n)
                return -EINVAL;
        text->at++;
        return 0;
}
