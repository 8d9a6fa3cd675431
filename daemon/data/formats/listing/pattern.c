#include "daemon/data/formats/listing/pattern.h"

#include <errno.h>
#include <string.h>

#define STEPS_MAX 100000u /* for one path */

/* ---- parsing --------------------------------------------------------------------------------------------------- */

static int pattern_refuse(const char *text, const char *what, struct why *why) {
        return why_set(why, -EINVAL,
                       "pattern = \"%s\": %s; a pattern is a path below the folder, such as \"{class}/{name}.jpg\", "
                       "\"{class:**}/*.jpg\"",
                       text, what);
}

static bool pattern_has_name(const struct pattern *pattern, const char *name) {
        for (size_t i = 0; i < pattern->n; i++)
                if (!pattern->parts[i].literal && strcmp(pattern->parts[i].name, name) == 0)
                        return true;
        return false;
}

/* Takes "{NAME}" or "{NAME:**}" at *at. Returns what is wrong with it, or NULL. */
static const char *take_braces(const struct pattern *pattern, const char **at, struct pattern_part *part) {
        const char *begin = *at + 1, *end = strchr(begin, '}'), *colon;
        size_t n;

        if (!end)
                return "a brace is not closed";
        colon = memchr(begin, ':', (size_t)(end - begin));
        if (colon && (end - colon != 3 || strncmp(colon, ":**", 3) != 0))
                return "only :** may follow a name";
        part->has_slashes = colon != NULL;
        n = (size_t)((colon ? colon : end) - begin);
        if (n == 0 || n >= SCHEMA_NAME_MAX || memchr(begin, '{', n))
                return "a name in braces has 1 to 31 bytes";
        memcpy(part->name, begin, n);
        if (pattern_has_name(pattern, part->name))
                return "a name comes twice";
        *at = end + 1;
        return NULL;
}

static const char *pattern_take_part(const struct pattern *pattern, const char **at, struct pattern_part *part) {
        if (**at == '{')
                return take_braces(pattern, at, part);
        if (**at == '}')
                return "a brace is closed that was not opened";
        if (**at == '*') {
                part->has_slashes = (*at)[1] == '*';
                *at += part->has_slashes ? 2 : 1;
                return NULL;
        }
        part->literal = *at;
        part->n_literal = strcspn(*at, "{}*");
        *at += part->n_literal;
        return NULL;
}

int pattern_parse(const char *text, struct pattern *ret_pattern, struct why *why) {
        struct pattern pattern = { .n = 0 };

        if (text[0] == '/')
                return pattern_refuse(text, "it begins with a slash", why);
        for (const char *at = text; *at;) {
                struct pattern_part part = { .literal = NULL };
                const char *wrong = pattern.n == PATTERN_PARTS_MAX ? "it has too many parts"
                                                                   : pattern_take_part(&pattern, &at, &part);

                if (!wrong && !part.literal && pattern.n > 0 && !pattern.parts[pattern.n - 1].literal)
                        wrong = "a text is needed between two names";
                if (wrong)
                        return pattern_refuse(text, wrong, why);
                for (size_t i = 0; i < part.n_literal; i++)
                        pattern.n_slashes += part.literal[i] == '/';
                pattern.has_slashes |= part.has_slashes;
                pattern.parts[pattern.n++] = part;
        }
        if (pattern.n == 0)
                return pattern_refuse(text, "it is empty", why);
        *ret_pattern = pattern;
        return 0;
}

/* ---- matching -------------------------------------------------------------------------------------------------- */

struct matching {
        const struct pattern *pattern;
        struct pattern_found *found;
        uint32_t n_steps;
};

/* Do the parts from `idx` on fit the rest of a path? */
static int pattern_match_from(struct matching *matching, size_t idx, const char *at) {
        const struct pattern_part *part = &matching->pattern->parts[idx];

        if (++matching->n_steps > STEPS_MAX)
                return -ELOOP;
        if (idx == matching->pattern->n)
                return *at == '\0';
        matching->found[idx].at = at;
        if (part->literal) {
                matching->found[idx].n = part->n_literal;
                return strncmp(at, part->literal, part->n_literal) == 0
                               ? pattern_match_from(matching, idx + 1, at + part->n_literal)
                               : 0;
        }
        for (size_t n = 1; at[n - 1] && (part->has_slashes || at[n - 1] != '/'); n++) {
                int r;

                r = pattern_match_from(matching, idx + 1, at + n);
                if (r != 0) {
                        matching->found[idx].n = n;
                        return r;
                }
        }
        return 0;
}

int pattern_match(const struct pattern *pattern, const char *path, struct pattern_found found[PATTERN_PARTS_MAX]) {
        struct matching matching = { .pattern = pattern, .found = found };

        return pattern_match_from(&matching, 0, path);
}
