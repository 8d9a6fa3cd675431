#include "proto/base/typed.h"

#include <ctype.h>
#include <string.h>

#include "proto/base/cleanup.h"

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
                if (strlen(names[i]) == n && memcmp(value, names[i], n) == 0)
                        return i;
        for (size_t i = 0; i < n_names; i++)
                if (typed_is(value, n, names[i]))
                        return i;
        return n_names;
}
