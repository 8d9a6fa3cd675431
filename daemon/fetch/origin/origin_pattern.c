#include "daemon/fetch/origin/origin_pattern.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/patterns/braces.h"
#include "daemon/base/patterns/glob_match.h"
#include "proto/base/cleanup.h"

struct expanding {
        struct origin_pattern *pattern;
        size_t n_room;
        size_t n_globs;
};

static int origin_pattern_give(void *userdata, const char *text, size_t n_bytes) {
        struct expanding *expanding = userdata;
        struct origin_pattern *pattern = expanding->pattern;
        char *copy = plan_arena_text(&pattern->arena, text, n_bytes - 1);

        if (!copy)
                return -ENOMEM;
        if (pattern->n_items == expanding->n_room) {
                size_t n_room = expanding->n_room ? 2 * expanding->n_room : 64;
                struct origin_pattern_item *items = reallocarray(pattern->items, n_room, sizeof(*items));

                if (!items)
                        return -ENOMEM;
                pattern->items = items;
                expanding->n_room = n_room;
        }
        pattern->items[pattern->n_items++] = (struct origin_pattern_item){ .text = copy };
        expanding->n_globs += strpbrk(text, GLOB_CHARACTERS) != NULL;
        return 0;
}

/* Names before patterns, so that those can be looked up. */
static int origin_pattern_compare(const void *one, const void *other) {
        const struct origin_pattern_item *a = one, *b = other;
        bool is_glob = strpbrk(a->text, GLOB_CHARACTERS), is_other_glob = strpbrk(b->text, GLOB_CHARACTERS);

        return is_glob != is_other_glob ? is_glob - is_other_glob : strcmp(a->text, b->text);
}

static int origin_pattern_by_name(const void *name, const void *item) {
        return strcmp(name, ((const struct origin_pattern_item *)item)->text);
}

/* What comes twice: "{a,a}". Counts the names. */
static void keep_once(struct origin_pattern *pattern) {
        size_t n = 0;

        for (size_t i = 0; i < pattern->n_items; i++)
                if (n == 0 || strcmp(pattern->items[n - 1].text, pattern->items[i].text) != 0)
                        pattern->items[n++] = pattern->items[i];
        pattern->n_items = n;
        while (pattern->n_names < n && !strpbrk(pattern->items[pattern->n_names].text, GLOB_CHARACTERS))
                pattern->n_names++;
}

static int expand_items(struct origin_pattern *pattern, const char *path, struct why *why) {
        struct expanding expanding = { .pattern = pattern };
        struct braces_sink sink = { .give = origin_pattern_give, .userdata = &expanding };
        int r = braces_expand(path, &sink, why);

        if (r < 0)
                return r;
        if (expanding.n_globs > ORIGIN_GLOBS_MAX)
                return why_set(why, -E2BIG, "%s: its braces make more than %u patterns with * or ?; write fewer", path,
                               ORIGIN_GLOBS_MAX);
        qsort(pattern->items, pattern->n_items, sizeof(*pattern->items), origin_pattern_compare);
        keep_once(pattern);
        return 0;
}

int origin_pattern_init(struct origin_pattern *pattern, const char *path, struct why *why) {
        size_t n_plain = strcspn(path, "{" GLOB_CHARACTERS), n_path = strlen(path);
        bool is_folder = n_plain == n_path;
        int r = 0;

        *pattern = (struct origin_pattern){ 0 };
        pattern->prefix = plan_arena_take(&pattern->arena, n_path + 2);
        if (!pattern->prefix)
                return -ENOMEM;
        memcpy(pattern->prefix, path, n_plain);
        if (is_folder && n_plain > 0 && path[n_plain - 1] != '/')
                pattern->prefix[n_plain++] = '/';
        pattern->prefix[n_plain] = '\0';
        while (n_plain > 0 && pattern->prefix[n_plain - 1] != '/')
                n_plain--;
        pattern->n_base = n_plain;
        if (!is_folder)
                r = expand_items(pattern, path, why);
        if (r < 0)
                origin_pattern_fini(pattern);
        return r;
}

void origin_pattern_fini(struct origin_pattern *pattern) {
        plan_arena_free(&pattern->arena);
        free(pattern->items);
        *pattern = (struct origin_pattern){ 0 };
}

bool origin_pattern_takes(struct origin_pattern *pattern, const char *name) {
        struct origin_pattern_item *item;
        bool is_taken = false;

        if (!pattern->items)
                return strncmp(name, pattern->prefix, pattern->n_base) == 0;
        item = bsearch(name, pattern->items, pattern->n_names, sizeof(*item), origin_pattern_by_name);
        if (item)
                is_taken = item->is_found = true;
        for (size_t i = pattern->n_names; i < pattern->n_items; i++)
                if ((!is_taken || !pattern->items[i].is_found) && glob_match_path(pattern->items[i].text, name))
                        is_taken = pattern->items[i].is_found = true;
        return is_taken;
}

const char *origin_pattern_missing(const struct origin_pattern *pattern) {
        for (size_t i = 0; i < pattern->n_items; i++)
                if (!pattern->items[i].is_found)
                        return pattern->items[i].text;
        return NULL;
}
