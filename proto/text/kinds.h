/* proto/text/kinds.h: a kind: one of the steps that a text can have. It says everything about itself, in one place.
 *
 * A kind is one file, in the folder of its family, with one struct that begins with a struct kind and goes on with the
 * functions that the family needs. The build lists the kinds of a family, by the line that begins such a struct
 * (Makefile, KINDS): a new file is all that a new kind needs. A short one: daemon/augment/steps/hflip.c.
 *
 * Its arguments are read (step_values.h) in the same way in all families. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/symbol.h"
#include "proto/base/why.h"
#include "proto/text/grammar.h"

#define KIND_LIST_MAX 64u    /* numbers in one argument */
#define KIND_SIDE_MAX 16384u /* pixels on a side that may be asked for: above any network's input */

struct value;

/* What an argument is, and which members of its struct value (step_values.h) say it. */
enum argument_type {
        ARGUMENT_END,        /* after the last argument */
        ARGUMENT_WHOLE,      /* a whole number: whole */
        ARGUMENT_NUMBER,     /* a number: number */
        ARGUMENT_FLAG,       /* true, false: flag, and choice 1 or 0 */
        ARGUMENT_CHOICE,     /* one of `choices`: choice */
        ARGUMENT_SIZE,       /* 224 = 224:224, or HEIGHT:WIDTH: height, width */
        ARGUMENT_SIZE_SHORT, /* 224 = the short side, and the width is then 0; or HEIGHT:WIDTH: height, width */
        ARGUMENT_RANGE,      /* FROM:TO, TO above 0: range */
        ARGUMENT_SPAN,       /* 6 = 6:6, or LOW:HIGH: range */
        ARGUMENT_AROUND,     /* 0.4 = from center - 0.4, but at least `minimum`, to center + 0.4; or FROM:TO: range */
        ARGUMENT_LIST,       /* numbers with ":" between them: list, n_list */
        ARGUMENT_NUMBERS,    /* all values without names: random_split(0.9, 0.1): list, n_list */
        ARGUMENT_WEIGHTS,    /* all other names with a number each: mix(a=0.7, b=0.3): list, names, n_list */
        ARGUMENT_FORM,       /* dimensions, 3:224:224, a dtype of `choices`, or both, float32[3:224:224]: form */
        ARGUMENT_FORMS,      /* the last one; all other names with a form each: python(my, boxes=float32[100:4]): forms,
                                names, n_list */
        ARGUMENT_NAME,       /* a name or a path, in whatever characters a value may have: text */
        ARGUMENT_COLUMN,     /* the same, of a column: text */
        ARGUMENT_LENGTHS,    /* the same; a field whose samples differ in length stands for its lengths: text */
        ARGUMENT_STEPS,      /* [STEP, STEP]: inside */
        ARGUMENT_ANYTHING,   /* all that is between the parentheses, as it was typed: json(a["b)"]): text */
};

struct argument {
        enum argument_type type;
        const char *name;
        const char *by_default;     /* as text; NULL: must be given, unless it is_optional */
        double minimum, maximum;    /* of all its numbers, both included */
        double center;              /* of ARGUMENT_AROUND */
        const char *const *choices; /* of ARGUMENT_CHOICE: CHOICES() */
        uint32_t n_choices;
        uint32_t counts;  /* of lists and forms: bit n is set where n numbers are allowed; 0: up to KIND_LIST_MAX */
        bool is_whole;    /* of lists and numbers: no fractions, but 400.0 */
        bool is_odd;      /* of lists: odd numbers only */
        bool is_range;    /* of lists: the second number is not below the first */
        bool is_optional; /* may be left out, and then is not set, and the normal text does not show it */
        bool needs_key;   /* KEY= is not left out */
        const char *word; /* may stand in place of numbers: "none". The value is then is_word, and 0 */
        const char *form; /* for messages: what it is, "indices of samples"; of a list "N or R:G:B" */
        const char *other_name; /* that the text may use instead; NULL: none */
        const char *attribute;  /* of an object of the class that the kind is like; NULL: one of the names */
};

#define ARGUMENTS(...)                                                                                                 \
        (const struct argument[]) {                                                                                    \
                __VA_ARGS__, {                                                                                         \
                        ARGUMENT_END                                                                                   \
                }                                                                                                      \
        }
#define CHOICES(...)                                                                                                   \
        .choices = (const char *const[]){ __VA_ARGS__ },                                                               \
        .n_choices = sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *)

struct kind {
        const char *name;
        const char *other_names; /* blanks between them; NULL: none. Case and underscores never count in names */
        const char *doc;         /* its entry of the manual, in paragraphs */
        const char *example;     /* for messages, too */
        const char *like;        /* what does the same elsewhere: "torchvision.transforms.v2.CenterCrop" */
        const char *needs;       /* what it works on; NULL: whatever its family does */
        const char *gives;       /* what it makes of that; NULL: the same */
        const struct argument *arguments; /* ARGUMENTS(), those without names in this sequence; NULL: none */
};

/* How a family writes numbers in its normal text: digests and tokens of resume depend on it. */
enum family_numbers {
        FAMILY_PLAIN,    /* 90, 1e+06: whole ones below a million in full, else the fewest digits that give the same */
        FAMILY_SHORTEST, /* 9e+01: the fewest digits that give the same */
        FAMILY_WHOLE_LISTS, /* 9e+01; but 100:90, where a list is of whole numbers */
        FAMILY_FIFTEEN,     /* 15 digits at most; -0 stays */
};

/* Which keys it writes there. */
enum family_keys {
        FAMILY_ALL_KEYS,
        FAMILY_NOT_THE_FIRST,
        FAMILY_OF_DEFAULTS, /* those of arguments that may be left out */
};

struct kind_word {
        const char *word, *text;
};

/* The kinds that may stand in one place of a text. */
struct kind_family {
        const char *noun;                /* of a kind, for messages: "step" */
        const struct kind *const *kinds; /* NULL after the last one */
        const char *some;                /* for messages: which there are; NULL: all of them are listed */

        enum family_numbers numbers;
        enum family_keys keys;
        bool writes_parentheses; /* also without arguments */
        bool hides_first_choice; /* what is optional is not written if it is the first of its choices */

        bool takes_any_sequence; /* a value without a key may follow one with a key, and a comma the last one */

        /* Arguments that people know from elsewhere and have no use here, up to one without a word: why to leave them
         * out. NULL: there are none. */
        const struct kind_word *left_out;

        /* The rest of a sentence about the value of an argument that was refused: what to write, "; ...", or "".
         * `values` are those read before it. NULL: nothing is known. */
        void (*hint)(const struct kind *kind, uint32_t idx, const struct value *values, struct grammar_word value,
                     char *ret_text, size_t size);
};

#define FAMILY_HINT_MAX 160u /* bytes with NUL */

uint32_t kind_n_arguments(const struct kind *kind) DLP_SYMBOL(kind_n_arguments);

/* The kind with exactly this name; NULL: there is none. */
const struct kind *kind_named(const struct kind_family *family, struct grammar_word name) DLP_SYMBOL(kind_named);

/* The same, also by another name, or by its class: CenterCrop, centercrop. */
const struct kind *kind_find(const struct kind_family *family, struct grammar_word name) DLP_SYMBOL(kind_find);

/* There is no kind with this name; the nearest one, and which there are. -EINVAL. */
int kind_refuse(const struct kind_family *family, const struct grammar *grammar, struct grammar_word name,
                struct why *why) DLP_SYMBOL(kind_refuse);
