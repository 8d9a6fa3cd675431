#include "proto/text/kinds.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/nearest.h"
#include "proto/base/typed.h"

uint32_t kind_n_arguments(const struct kind *kind) {
        uint32_t n = 0;

        while (kind->arguments && kind->arguments[n].type != ARGUMENT_END)
                n++;
        return n;
}

const struct kind *kind_named(const struct kind_family *family, struct grammar_word name) {
        for (const struct kind *const *kind = family->kinds; *kind; kind++)
                if (grammar_is(name, (*kind)->name))
                        return *kind;
        return NULL;
}

static bool has_other_name(const struct kind *kind, struct grammar_word name) {
        for (const char *at = kind->other_names; at && *at; at += strspn(at, " ")) {
                char other[64];
                size_t n = strcspn(at, " ");

                if (n < sizeof(other)) {
                        memcpy(other, at, n);
                        other[n] = '\0';
                        if (typed_is_class(name.at, name.n, other))
                                return true;
                }
                at += n;
        }
        return false;
}

const struct kind *kind_find(const struct kind_family *family, struct grammar_word name) {
        const struct kind *found = kind_named(family, name);

        if (name.n == 0)
                return NULL;
        for (const struct kind *const *kind = family->kinds; *kind && !found; kind++)
                if (has_other_name(*kind, name))
                        found = *kind;
        for (const struct kind *const *kind = family->kinds; *kind && !found; kind++)
                if (typed_is_class(name.at, name.n, (*kind)->name))
                        found = *kind;
        return found;
}

int kind_refuse(const struct kind_family *family, const struct grammar *grammar, struct grammar_word name,
                struct why *why) {
        char names[DLP_TEXT_MAX] = "", expected[DLP_TEXT_MAX + 64];
        struct nearest nearest;
        size_t n = 0;

        nearest_begin(&nearest, name.at, name.n);
        for (const struct kind *const *kind = family->kinds; *kind; kind++) {
                nearest_offer(&nearest, (*kind)->name);
                if (n < sizeof(names))
                        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n > 0 ? ", " : "", (*kind)->name);
        }
        if (name.n == 0) {
                snprintf(expected, sizeof(expected), "the name of a %s: %s", family->noun,
                         family->some ? family->some : names);
                return grammar_expect(grammar, name.at, expected, why);
        }
        return grammar_refuse(grammar, name.at, why, "unknown %s \"%.*s\"%s; the %ss are %s", family->noun,
                              grammar_shown(name), name.at, nearest_hint(&nearest), family->noun,
                              family->some ? family->some : names);
}
