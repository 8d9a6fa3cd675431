#include "proto/base/typed.h"

#include <ctype.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/step_text.h"

#define BLANKS " \t\r\n"

/* ---- words ----------------------------------------------------------------------------------------------------- */

/* Other names of values. The short ones are torch's, and those of its users. */
static const struct {
        const char *typed, *name;
} OTHER_NAMES[] = {
        { "half", "float16" },        { "fp16", "float16" }, { "f16", "float16" }, { "bf16", "bfloat16" },
        { "float", "float32" },       { "fp32", "float32" }, { "f32", "float32" }, { "double", "float64" },
        { "fp64", "float64" },        { "f64", "float64" },  { "byte", "uint8" },  { "u8", "uint8" },
        { "char", "int8" },           { "short", "int16" },  { "int", "int32" },   { "long", "int64" },
        { "channels_first", "nchw" }, { "chw", "nchw" },     { "hwc", "nhwc" },
};

static char lower(char character) {
        return character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
}

static bool typed_is_same(const char *word, size_t n, const char *name) {
        if (strlen(name) != n)
                return false;
        for (size_t i = 0; i < n; i++)
                if (lower(word[i]) != lower(name[i]))
                        return false;
        return true;
}

bool typed_is(const char *value, size_t n, const char *name) {
        if (n >= 2 && (*value == '"' || *value == '\'') && value[n - 1] == *value) {
                value++;
                n -= 2;
        }
        for (size_t i = n; i > 0; i--) /* after the last dot; a module's name begins with a letter */
                if (value[i - 1] == '.' && isalpha((unsigned char)value[0])) {
                        value += i;
                        n -= i;
                        break;
                }
        if (typed_is_same(value, n, name))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(OTHER_NAMES); i++)
                if (typed_is_same(value, n, OTHER_NAMES[i].typed) && strcmp(OTHER_NAMES[i].name, name) == 0)
                        return true;
        return false;
}

bool typed_is_class(const char *word, size_t n, const char *name) {
        for (size_t i = 0;; i++) {
                while (*name == '_')
                        name++;
                while (i < n && word[i] == '_')
                        i++;
                if (i == n || !*name)
                        return i == n && !*name;
                if (lower(word[i]) != lower(*name++))
                        return false;
        }
}

size_t typed_find(const char *value, size_t n, const char *const *names, size_t n_names) {
        for (size_t i = 0; i < n_names; i++)
                if (word_is(value, n, names[i]))
                        return i;
        for (size_t i = 0; i < n_names; i++)
                if (typed_is(value, n, names[i]))
                        return i;
        return n_names;
}

/* ---- lists ----------------------------------------------------------------------------------------------------- */

/* Is there a list of numbers, up to the bracket that closes it, and is it the whole value? Returns its length with the
 * brackets; 0: no. */
static size_t list_length(const char *text) {
        char closing = *text == '[' ? ']' : ')';
        const char *at = text + 1, *after;
        bool is_number = false, may_be_number = true; /* was the last one in a number; may the next one be? */
        size_t n_numbers = 0;

        for (; *at && *at != closing; at++) {
                bool is_blank = strchr(BLANKS, *at) != NULL;

                if (*at != ',' && !is_blank && !strchr("0123456789.eE+-", *at))
                        return 0;
                if (*at == ',' ? !is_number : !is_blank && !may_be_number)
                        return 0;
                if (*at == ',') {
                        is_number = false;
                        may_be_number = true;
                } else if (is_blank) {
                        may_be_number = !is_number; /* no blank within a number */
                } else {
                        n_numbers += !is_number;
                        is_number = true;
                }
        }
        if (!*at || n_numbers == 0)
                return 0;
        after = at + 1 + strspn(at + 1, BLANKS);
        return *after == ',' || *after == ')' ? (size_t)(at + 1 - text) : 0;
}

static void rewrite_list(char *text, size_t n) {
        size_t n_written = 0;

        for (size_t i = 1; i + 1 < n; i++)
                if (!strchr(BLANKS, text[i]))
                        text[n_written++] = text[i] == ',' ? ':' : text[i];
        if (n_written > 0 && text[n_written - 1] == ':') /* (224,) */
                n_written--;
        memset(text + n_written, ' ', n - n_written);
}

static bool begins_value(const char *text, const char *at) {
        while (at > text && strchr(BLANKS, at[-1]))
                at--;
        return at > text && strchr("(,=", at[-1]);
}

/* Is "json" the word before this parenthesis? */
static bool is_path(const char *text, const char *at) {
        return at - text >= 4 && memcmp(at - 4, "json", 4) == 0 && (at - text == 4 || word_length(at - 5) == 0);
}

/* After the parenthesis that ends a path in JSON; quotes may hold anything. */
static char *skip_path(char *at) {
        for (bool is_quoted = false; *at && (is_quoted || *at != ')'); at++) {
                if (*at == '"')
                        is_quoted = !is_quoted;
                else if (is_quoted && *at == '\\' && at[1])
                        at++;
        }
        return at;
}

void typed_lists(char *text) {
        unsigned depth = 0;

        for (char *at = text; *at; at++) {
                bool is_open = *at == '[' || *at == '(';
                size_t n = depth > 0 && is_open && begins_value(text, at) ? list_length(at) : 0;

                if (n > 0) {
                        rewrite_list(at, n);
                        at += n - 1;
                } else if (*at == '(') {
                        if (depth++ == 0 && is_path(text, at))
                                at = skip_path(at + 1) - 1;
                } else if (*at == ')' && depth > 0) {
                        n = strspn(at + 1, BLANKS);
                        if (--depth == 0 && at[1 + n] == ',')
                                at[1 + n] = ' ';
                }
        }
}
