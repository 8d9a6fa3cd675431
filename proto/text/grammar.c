#include "proto/text/grammar.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

#define BLANKS           " \t\r\n"
#define BRACKETS_MAX     64u /* within one another */
#define FIELD_CHARACTERS "_.-/"

struct grammar_block {
        struct grammar_block *next;
        _Alignas(16) uint8_t bytes[];
};

struct grammar {
        const char *what;
        struct grammar_block *blocks; /* whatever steps consist of */
        size_t n;                     /* of the text */
        char *text;                   /* in which lists are rewritten, */
        const char *typed;            /* and as it came */
};

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static void *grammar_allocate(struct grammar *grammar, size_t n_bytes) {
        struct grammar_block *block = malloc(sizeof(*block) + n_bytes);

        if (!block)
                return NULL;
        block->next = grammar->blocks;
        grammar->blocks = block;
        return block->bytes;
}

int grammar_new(const char *what, const char *text, struct grammar **ret_grammar, struct why *why) {
        size_t n = strlen(text);
        struct grammar *grammar = calloc(1, sizeof(*grammar) + 2 * (n + 1));

        if (!grammar)
                return why_errno(why, -ENOMEM, "%s", what);
        *grammar = (struct grammar){ .what = what, .n = n, .text = (char *)(grammar + 1) };
        memcpy(grammar->text, text, n + 1);
        grammar->typed = memcpy(grammar->text + n + 1, text, n + 1);
        *ret_grammar = grammar;
        return 0;
}

void grammar_free(struct grammar *grammar) {
        if (!grammar)
                return;
        for (struct grammar_block *block = grammar->blocks, *next; block; block = next) {
                next = block->next;
                free(block);
        }
        free(grammar);
}

void grammar_freep(struct grammar **grammar) {
        grammar_free(*grammar);
}

struct grammar_word grammar_all(const struct grammar *grammar) {
        return (struct grammar_word){ grammar->text, grammar->n };
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

bool grammar_is(struct grammar_word word, const char *name) {
        return strlen(name) == word.n && memcmp(word.at, name, word.n) == 0;
}

uint32_t grammar_find(struct grammar_steps steps, const char *name) {
        uint32_t i = 0;

        while (i < steps.n && !grammar_is(steps.at[i].name, name))
                i++;
        return i;
}

int grammar_shown(struct grammar_word word) {
        return word.n > 40 ? 40 : (int)word.n;
}

static bool is_one_of(char character, const char *characters) {
        return character && strchr(characters, character);
}

static char *skip_blanks(char *at, const char *end) {
        while (at < end && is_one_of(*at, BLANKS))
                at++;
        return at;
}

/* Of letters, digits and these characters. */
static size_t grammar_name_length(const char *at, const char *end, const char *others) {
        const char *begin = at;

        while (at < end && ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                            is_one_of(*at, others)))
                at++;
        return (size_t)(at - begin);
}

/* After "transforms." and the like, which people write before a class. */
static char *skip_modules(char *at) {
        static const char *const MODULES[] = { "torchvision.", "transforms.", "v2.", "T." };

        for (size_t i = 0; i < ARRAY_SIZE(MODULES); i++)
                if (strncmp(at, MODULES[i], strlen(MODULES[i])) == 0)
                        at += strlen(MODULES[i]);
        return at;
}

/* Where what opens here is closed; quotes may hold anything. NULL: it is not. */
static char *closing(char *at, const char *end) {
        char open[BRACKETS_MAX];
        unsigned n = 0;
        bool is_quoted = false;

        for (; at < end; at++) {
                if (is_quoted && *at == '\\' && at + 1 < end) {
                        at++;
                } else if (*at == '"') {
                        is_quoted = !is_quoted;
                        if (!is_quoted && n == 0)
                                return at;
                } else if (!is_quoted && (*at == '(' || *at == '[')) {
                        if (n == BRACKETS_MAX)
                                return NULL;
                        open[n++] = *at == '(' ? ')' : ']';
                } else if (!is_quoted && (*at == ')' || *at == ']')) {
                        if (n == 0 || open[--n] != *at)
                                return NULL;
                        if (n == 0)
                                return at;
                }
        }
        return NULL;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* A list of numbers in brackets, (224,) too, becomes 224:256 in place, and
 * blanks fill up. Returns its length then; 0: it is none. */
static size_t grammar_rewrite_list(char *at, const char *close) {
        bool is_number = false, may_be_number = true; /* was the last one in a number; may the next one be? */
        size_t n = 0;

        for (const char *from = at + 1; from < close; from++) {
                bool is_blank = is_one_of(*from, BLANKS);

                if (*from != ',' && !is_blank && !is_one_of(*from, "0123456789.eE+-"))
                        return 0;
                if (*from == ',' ? !is_number : !is_blank && !may_be_number)
                        return 0;
                if (*from == ',')
                        may_be_number = true;
                else if (is_blank)
                        may_be_number = may_be_number && !is_number; /* no blank within a number */
                if (!is_blank)
                        is_number = *from != ',';
        }
        for (const char *from = at + 1; from < close; from++)
                if (!is_one_of(*from, BLANKS))
                        at[n++] = *from == ',' ? ':' : *from;
        if (n > 0 && at[n - 1] == ':')
                n--;
        if (n > 0) /* else nothing was written */
                memset(at + n, ' ', (size_t)(close + 1 - at) - n);
        return n;
}

/* A value goes to the next blank, comma or parenthesis that is not within its brackets or quotes. Returns its end. */
static char *read_value(char *at, const char *end, struct grammar_word *ret_value) {
        char *begin = at, *close = at < end && is_one_of(*at, "[(") ? closing(at, end) : NULL;
        char *after = close ? skip_blanks(close + 1, end) : NULL;
        size_t n_list = after && (after == end || is_one_of(*after, ",)")) ? grammar_rewrite_list(at, close) : 0;

        if (n_list > 0) {
                *ret_value = (struct grammar_word){ begin, n_list };
                return close + 1;
        }
        while (at < end && !is_one_of(*at, ",)" BLANKS)) {
                close = is_one_of(*at, "[(\"") ? closing(at, end) : NULL;
                at = close ? close + 1 : at + 1;
        }
        *ret_value = (struct grammar_word){ begin, (size_t)(at - begin) };
        return at;
}

static char *grammar_read_argument(char *at, const char *end, struct grammar_argument *ret_argument) {
        char *key = at, *equals;

        while (at < end && !is_one_of(*at, "=,()[\"" BLANKS))
                at++;
        equals = skip_blanks(at, end);
        ret_argument->key = (struct grammar_word){ key, 0 };
        if (at == key || equals == end || *equals != '=')
                return read_value(key, end, &ret_argument->value);
        ret_argument->key.n = (size_t)(at - key);
        return read_value(skip_blanks(equals + 1, end), end, &ret_argument->value);
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

#define NEXT_IN_BRACKETS "\",\" and the next step of the group, or \"]\""

/* Steps while they are read. */
struct reading {
        struct grammar *grammar;
        struct grammar_step *steps;
        uint32_t n, n_room;
        bool is_inside; /* brackets, in which commas are between steps */
};

static char *stop(struct grammar_step *step, char *at, const char *expected) {
        step->stop = at;
        step->expected = expected;
        return at;
}

/* Reads "(...)"; returns where it ends, or where it is not as expected; NULL: no memory. */
static char *grammar_read_arguments(struct grammar *grammar, char *at, const char *end, struct grammar_step *step) {
        struct grammar_argument arguments[GRAMMAR_ARGUMENTS_MAX], *copy;
        char *begin = skip_blanks(at + 1, end);
        size_t n_bytes;

        step->has_parentheses = true;
        for (at = begin; at == end || *at != ')';) {
                if (step->n_arguments == GRAMMAR_ARGUMENTS_MAX) {
                        stop(step, at, "\")\": that are more arguments than any step has");
                        break;
                }
                at = skip_blanks(grammar_read_argument(at, end, &arguments[step->n_arguments++]), end);
                if (at < end && *at == ')')
                        break;
                if (at == end || *at != ',') {
                        stop(step, at, "\",\" or \")\"");
                        break;
                }
                at = skip_blanks(at + 1, end);
                if (at < end && *at == ')')
                        step->comma = at;
        }
        n_bytes = step->n_arguments * sizeof(*copy);
        copy = grammar_allocate(grammar, n_bytes);
        if (!copy)
                return NULL;
        step->arguments = memcpy(copy, arguments, n_bytes);
        step->inside = (struct grammar_word){ grammar->typed + (begin - grammar->text), (size_t)(at - begin) };
        while (step->inside.n > 0 && is_one_of(step->inside.at[step->inside.n - 1], BLANKS))
                step->inside.n--;
        return step->stop ? at : at + 1;
}

/* Returns where it ends; NULL: no memory. */
static char *read_step(struct reading *reading, char *at, const char *end, struct grammar_step *step) {
        char *name = skip_modules(at), *after;

        *step = (struct grammar_step){ .name = { name, grammar_name_length(name, end, "_.-") }, .inside = { name, 0 } };
        if (step->name.n == 0)
                return name;
        at = name + step->name.n;
        after = skip_blanks(at, end);
        if (after < end && *after == '(')
                at = grammar_read_arguments(reading->grammar, after, end, step);
        if (!at || step->stop)
                return at;
        after = skip_blanks(at, end);
        if (after < end && *after == ',' && (reading->is_inside || step->has_parentheses))
                return after + 1;
        if (after < end && after == at)
                return stop(step, at, reading->is_inside ? NEXT_IN_BRACKETS : "a blank and the next step, or the end");
        return after;
}

static int add_room(struct reading *reading) {
        uint32_t n_room = reading->n_room > 0 ? 2 * reading->n_room : 8;
        struct grammar_step *steps = grammar_allocate(reading->grammar, n_room * sizeof(*steps));

        if (!steps)
                return -ENOMEM;
        if (reading->n > 0)
                memcpy(steps, reading->steps, reading->n * sizeof(*steps));
        reading->steps = steps;
        reading->n_room = n_room;
        return 0;
}

static int read_steps(struct reading *reading, char *at, const char *end) {
        for (at = skip_blanks(at, end); at < end; at = skip_blanks(at, end)) {
                struct grammar_step *step;

                if (reading->n == reading->n_room && add_room(reading) < 0)
                        return -ENOMEM;
                step = &reading->steps[reading->n++];
                at = read_step(reading, at, end, step);
                if (!at)
                        return -ENOMEM;
                if (step->stop || step->name.n == 0)
                        return 0;
        }
        return 0;
}

/* The place in the text that may be written, of a word of it. */
static char *place_of(struct grammar *grammar, const char *at) {
        return grammar->text + (at - grammar->text);
}

int grammar_steps(struct grammar *grammar, struct grammar_word part, struct grammar_steps *ret_steps) {
        struct reading reading = { .grammar = grammar };
        int r = read_steps(&reading, place_of(grammar, part.at), part.at + part.n);

        *ret_steps = (struct grammar_steps){ reading.steps, reading.n };
        return r;
}

int grammar_inside(struct grammar *grammar, struct grammar_word value, struct grammar_steps *ret_steps) {
        struct reading reading = { .grammar = grammar, .is_inside = true };
        bool is_closed = value.n > 1 && value.at[value.n - 1] == ']';
        char *at = place_of(grammar, value.at) + 1;
        const char *end = is_closed ? value.at + value.n - 1 : grammar->text + grammar->n;
        int r = read_steps(&reading, at, end);

        if (r == 0 && !is_closed && reading.n == 0) {
                if (add_room(&reading) < 0)
                        return -ENOMEM;
                reading.steps[reading.n++] = (struct grammar_step){ .name = { end, 0 }, .inside = { end, 0 } };
        } else if (r == 0 && !is_closed && !reading.steps[reading.n - 1].stop) {
                reading.steps[reading.n - 1].stop = end;
                reading.steps[reading.n - 1].expected = NEXT_IN_BRACKETS;
        }
        *ret_steps = (struct grammar_steps){ reading.steps, reading.n };
        return r;
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

/* The next `wanted` that is not within parentheses; else `end`. */
static char *find_outside(char *at, char *end, char wanted) {
        for (; at < end && *at != wanted; at++)
                if (*at == '(') {
                        at = closing(at, end);
                        if (!at)
                                return end;
                }
        return at;
}

/* FIELD or KEY=FIELD, of the characters that formats use in names: "image/encoded". Returns its end. */
static char *read_field(char *at, const char *end, struct grammar_argument *ret_field) {
        size_t n = grammar_name_length(at, end, FIELD_CHARACTERS);
        char *equals = skip_blanks(at + n, end);

        ret_field->key = (struct grammar_word){ at, 0 };
        if (n > 0 && equals < end && *equals == '=') {
                ret_field->key.n = n;
                at = skip_blanks(equals + 1, end);
                n = grammar_name_length(at, end, FIELD_CHARACTERS);
        }
        ret_field->value = (struct grammar_word){ at, n };
        return at + n;
}

static void read_fields(char *at, const char *end, struct grammar_argument *fields, struct grammar_part *part) {
        for (;; at++) {
                at = skip_blanks(at, end);
                at = read_field(at, end, &fields[part->n_fields]);
                if (fields[part->n_fields].value.n == 0) {
                        part->stop = at;
                        part->expected = "the name of a field";
                        return;
                }
                part->n_fields++;
                at = skip_blanks(at, end);
                if (at == end || *at != ',')
                        break;
        }
        if (at < end) {
                part->stop = at;
                part->expected = "\",\", \":\", \";\" or the end";
        }
}

int grammar_next_part(struct grammar *grammar, const char **at, struct grammar_part *ret_part) {
        char *begin = place_of(grammar, *at), *text_end = grammar->text + grammar->n, *after;
        char *end = find_outside(begin, text_end, ';'), *colon = find_outside(begin, end, ':');
        struct grammar_part part = { .colon = colon < end ? colon : NULL, .end = end };
        struct grammar_argument *fields;
        size_t n = 1;

        for (const char *comma = begin; comma < colon; comma++)
                n += *comma == ',';
        fields = grammar_allocate(grammar, n * sizeof(*fields));
        if (!fields)
                return -ENOMEM;
        read_fields(begin, colon, fields, &part);
        part.fields = fields;
        if (part.colon &&
            grammar_steps(grammar, (struct grammar_word){ colon + 1, (size_t)(end - colon - 1) }, &part.steps) < 0)
                return -ENOMEM;
        after = skip_blanks(end + 1, text_end);
        *at = end < text_end && after < text_end ? end + 1 : NULL;
        *ret_part = part;
        return 0;
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

size_t grammar_column(const struct grammar *grammar, const char *at) {
        return (size_t)(at - (at >= grammar->typed ? grammar->typed : grammar->text)) + 1;
}

int grammar_refuse(const struct grammar *grammar, const char *at, struct why *why, const char *format, ...) {
        va_list arguments;
        struct why reason;

        va_start(arguments, format);
        why_set_list(&reason, -EINVAL, format, arguments);
        va_end(arguments);
        return why_set(why, -EINVAL, "%s, column %zu: %s", grammar->what, grammar_column(grammar, at), reason.text);
}

int grammar_expect(const struct grammar *grammar, const char *at, const char *expected, struct why *why) {
        if (*at == '\0')
                return grammar_refuse(grammar, at, why, "the text ends; expected %s", expected);
        if (*at < ' ' || *at > '~')
                return grammar_refuse(grammar, at, why, "byte 0x%02x; expected %s", (unsigned char)*at, expected);
        return grammar_refuse(grammar, at, why, "\"%c\"; expected %s", *at, expected);
}
