#include "daemon/data/files/named.h"

/* A path, and each list of files to merge, consists of parts. First all parts are found, then the folder that holds the
 * files of all of them, then the names below it. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/patterns/braces.h"
#include "daemon/data/files/globs.h"
#include "daemon/data/index/index_layout.h"
#include "proto/base/cleanup.h"

struct named_part {
        const char *text;
        bool is_exact;  /* it exists as it is written: no pattern */
        bool is_last;   /* of its list */
        size_t n_names; /* that it stands for */
};

struct naming {
        const char *path; /* for messages */
        bool follows_links;
        struct why *why;
        struct growing parts; /* struct named_part */
        size_t n_parts;
        struct growing texts; /* the root, then the names */
        size_t n_names;
        uint32_t n_hidden;
};

static void naming_fini(struct naming *naming) {
        growing_fini(&naming->parts);
        growing_fini(&naming->texts);
}

static struct named_part *part_at(const struct naming *naming, size_t i) {
        return (struct named_part *)(void *)naming->parts.bytes + i;
}

static int named_no_memory(const struct naming *naming) {
        return why_set(naming->why, -ENOMEM, "%s: no memory for the names of its files", naming->path);
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

static bool named_is_regular(const char *path) {
        struct stat status;

        return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static int named_add_part(struct naming *naming, const char *text, bool is_exact) {
        const struct named_part part = { .text = text, .is_exact = is_exact };

        if (growing_append(&naming->parts, &part, sizeof(part)) < 0)
                return named_no_memory(naming);
        naming->n_parts++;
        return 0;
}

/* The parts of a list; divides the text. */
static int named_add_list(struct naming *naming, char *text, bool is_exact) {
        int r = 0;

        for (char *part = text, *end = NULL; part && r == 0; part = end) {
                end = is_exact ? NULL : strstr(part, FILES_JOINT);
                if (end) {
                        *end = '\0';
                        end += strlen(FILES_JOINT);
                }
                r = named_add_part(naming, part,
                                   is_exact || (strpbrk(part, "{" GLOB_CHARACTERS) && named_is_regular(part)));
        }
        if (r == 0)
                part_at(naming, naming->n_parts - 1)->is_last = true;
        return r;
}

/* The end of the first of several lists, "/d/a-{1,2}.tar, /d/b.tar": a comma that is not within braces, before a path.
 */
static char *end_of_list(char *text) {
        unsigned depth = 0;

        for (; *text; text++) {
                depth += *text == '{';
                depth -= *text == '}' && depth > 0;
                if (*text == ',' && depth == 0 && text[1 + strspn(text + 1, " \t")] == '/')
                        break;
        }
        return text;
}

static int add_merged(struct naming *naming, char *text) {
        int r = 0;

        for (char *next = NULL; text && r == 0; text = next) {
                char *end = end_of_list(text);

                next = *end ? end + 1 + strspn(end + 1, " \t") : NULL;
                while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
                        end--;
                *end = '\0';
                r = named_add_list(naming, text, named_is_regular(text));
        }
        return r;
}

static int named_check_part(const struct naming *naming, const char *part) {
        if (part[0] == '\0')
                return why_set(naming->why, -EINVAL,
                               "%s: a part of it, or of what is merged with it, is empty; write " FILES_JOINT
                               " only between two parts",
                               naming->path);
        if (part[0] != '/')
                return why_set(naming->why, -EINVAL,
                               "%s: \"%s\", a part of it or of what is merged with it, does not begin with /",
                               naming->path, part);
        return 0;
}

/* ---- the root -------------------------------------------------------------------------------------------------- */

/* The folder of a part, before its first brace, with its slash: its length. */
static size_t named_folder_length(const struct named_part *part) {
        size_t n = part->is_exact ? strlen(part->text) : strcspn(part->text, "{" GLOB_CHARACTERS);

        while (n > 0 && part->text[n - 1] != '/')
                n--;
        return n;
}

/* The deepest folder that holds all parts, with its slash: its length in each of them. */
static size_t common_length(const struct naming *naming) {
        const char *first = part_at(naming, 0)->text;
        size_t n = named_folder_length(part_at(naming, 0));

        for (size_t i = 1; i < naming->n_parts; i++) {
                const struct named_part *part = part_at(naming, i);
                size_t n_folder = named_folder_length(part), n_same = 0;

                while (n_same < n && n_same < n_folder && part->text[n_same] == first[n_same])
                        n_same++;
                while (n_same > 0 && first[n_same - 1] != '/')
                        n_same--;
                n = n_same;
        }
        return n;
}

/* "/" for "/x", "." for "x". */
static int add_root(struct naming *naming, size_t n_root) {
        const char *first = part_at(naming, 0)->text;
        size_t n = n_root > 1 ? n_root - 1 : n_root;
        int r = n > 0 ? growing_append(&naming->texts, first, n) : growing_append(&naming->texts, ".", 1);

        return r < 0 ? r : growing_append(&naming->texts, "", 1);
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

static int named_give(void *userdata, const char *text, size_t n_bytes) {
        return growing_append(userdata, text, n_bytes);
}

static int named_expand(const struct naming *naming, const char *pattern, struct growing *texts, size_t *n_texts) {
        struct braces_sink sink = {
                .give = named_give, .userdata = texts, .n_texts = *n_texts, .n_bytes = texts->n_bytes
        };
        int r = braces_expand(pattern, &sink, naming->why);

        *n_texts = sink.n_texts;
        return r;
}

/* Of a name with * or ?: each that its braces stand for is looked for below the root. */
static int add_matching(struct naming *naming, const char *name) {
        const char *root = (const char *)naming->texts.bytes;
        _cleanup_(growing_fini) struct growing all = { 0 };
        _cleanup_(freep) char *folder = strdup(root);
        _cleanup_(closep) int root_fd = -1;
        const char *at;
        size_t n = 0;
        int r = folder ? named_expand(naming, name, &all, &n) : named_no_memory(naming);

        if (r == 0)
                r = root_fd = beneath_root(folder, naming->follows_links, naming->why);
        at = (const char *)all.bytes;
        for (size_t i = 0; i < n && r >= 0; i++, at += strlen(at) + 1)
                r = globs_expand(root_fd, folder, at, &naming->texts, &naming->n_names, &naming->n_hidden, naming->why);
        return r < 0 ? r : 0;
}

static int named_add_names(struct naming *naming, struct named_part *part, size_t n_root) {
        const char *name = part->text + n_root;
        size_t n_before = naming->n_names;
        int r;

        if (part->is_exact) {
                if (growing_append(&naming->texts, name, strlen(name) + 1) < 0)
                        return named_no_memory(naming);
                naming->n_names++;
        } else {
                r = strpbrk(name, GLOB_CHARACTERS) ? add_matching(naming, name)
                                                   : named_expand(naming, name, &naming->texts, &naming->n_names);
                if (r < 0)
                        return r;
        }
        part->n_names = naming->n_names - n_before;
        return 0;
}

/* Each list stands for as many files as the first one. */
static int named_check_lists(const struct naming *naming, size_t *ret_n_names, size_t *ret_n_merged) {
        size_t n_of_first = 0, n_of_list = 0, n_lists = 0;

        for (size_t i = 0, begin = 0; i < naming->n_parts; i++) {
                n_of_list += part_at(naming, i)->n_names;
                if (!part_at(naming, i)->is_last)
                        continue;
                if (n_lists++ == 0)
                        n_of_first = n_of_list;
                if (n_of_list != n_of_first)
                        return why_set(naming->why, -EINVAL,
                                       "%s: the path names %zu files, and the list \"%s\" that is merged with "
                                       "it %zu: each file of the path needs one of the list",
                                       naming->path, n_of_first, part_at(naming, begin)->text, n_of_list);
                n_of_list = 0;
                begin = i + 1;
        }
        if (n_lists - 1 > FILES_MERGED_MAX)
                return why_set(naming->why, -E2BIG, "%s: %zu lists are to be merged with it, and %u may be",
                               naming->path, n_lists - 1, FILES_MERGED_MAX);
        *ret_n_names = n_of_first;
        *ret_n_merged = n_lists - 1;
        return 0;
}

/* "a//b" -> "a/b", "/b" -> "b": an alternative that is part of a folder name may be empty. */
static void join_slashes(char *name) {
        char *to = name;

        for (const char *at = name; *at; at++)
                if (*at != '/' || (to > name && to[-1] != '/'))
                        *to++ = *at;
        *to = '\0';
}

static int named_check_name(const char *root, const char *name, struct why *why) {
        if (name[0] == '\0' || !index_is_inner_path(name))
                return why_set(why, -EINVAL,
                               "%s: the pattern stands for \"%s\"; after its first brace it names files, "
                               "without \".\" and \"..\"; parts do so after the folder that they share",
                               root, name);
        if (strlen(root) + 1 + strlen(name) >= PATH_MAX)
                return why_set(why, -ENAMETOOLONG, "%s/%s: a path of more than %d bytes", root, name, PATH_MAX - 1);
        return 0;
}

static int named_by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static int named_check_twice(const struct naming *naming, const char *const *names) {
        _cleanup_(freep) const char **sorted = calloc(naming->n_names, sizeof(*sorted));

        if (!sorted)
                return named_no_memory(naming);
        memcpy(sorted, names, naming->n_names * sizeof(*sorted));
        qsort(sorted, naming->n_names, sizeof(*sorted), named_by_name);
        for (size_t i = 1; i < naming->n_names; i++)
                if (strcmp(sorted[i - 1], sorted[i]) == 0)
                        return why_set(naming->why, -EINVAL, "%s: the path names %s twice", naming->path, sorted[i]);
        return 0;
}

/* Takes over the texts. */
static int take_texts(struct naming *naming, struct files *ret_files) {
        const char **names = calloc(naming->n_names, sizeof(*names)), *root = (const char *)naming->texts.bytes;
        char *at = (char *)naming->texts.bytes;
        int r = names ? 0 : named_no_memory(naming);

        for (size_t i = 0; i < naming->n_names && r == 0; i++)
                names[i] = at += strlen(at) + 1;
        for (size_t i = 0; i < naming->n_names && r == 0; i++) {
                join_slashes((char *)(uintptr_t)names[i]);
                r = named_check_name(root, names[i], naming->why);
        }
        if (r == 0)
                r = named_check_twice(naming, names);
        if (r < 0) {
                free(names);
                return r;
        }
        ret_files->root = root;
        ret_files->n_hidden = naming->n_hidden;
        ret_files->names = names;
        ret_files->memory[0] = naming->texts.bytes;
        ret_files->memory[1] = (void *)names;
        naming->texts = (struct growing){ 0 };
        return 0;
}

static int named_find_names(struct naming *naming, struct files *ret_files) {
        struct files files = { 0 };
        size_t n_root;
        int r = 0;

        for (size_t i = 0; i < naming->n_parts && naming->n_parts > 1 && r == 0; i++)
                r = named_check_part(naming, part_at(naming, i)->text);
        if (r < 0)
                return r;
        n_root = common_length(naming);
        if (add_root(naming, n_root) < 0)
                return named_no_memory(naming);
        for (size_t i = 0; i < naming->n_parts && r == 0; i++)
                r = named_add_names(naming, part_at(naming, i), n_root);
        if (r == 0)
                r = named_check_lists(naming, &files.n_names, &files.n_merged);
        if (r == 0)
                r = take_texts(naming, &files);
        if (r == 0)
                *ret_files = files;
        return r;
}

int named_find(const char *path, bool is_exact, const char *merge, bool follows_links, struct files *ret_files,
               struct why *why) {
        _cleanup_(freep) char *text = strdup(path), *merged = strdup(merge ? merge : "");
        _cleanup_(naming_fini) struct naming naming = { .path = path, .follows_links = follows_links, .why = why };
        int r = text && merged ? named_add_list(&naming, text, is_exact) : named_no_memory(&naming);

        if (r == 0 && merge)
                r = add_merged(&naming, merged);
        return r < 0 ? r : named_find_names(&naming, ret_files);
}
