#include "daemon/fetch/origin/url_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fetch/origin/origin_private.h"
#include "proto/base/cleanup.h"

static int url_list_make_room(struct url_list *list, uint64_t *n_room) {
        struct url_list_item *items;

        if (list->n_items < *n_room)
                return 0;
        *n_room = *n_room ? *n_room + *n_room / 2 : 64;
        items = reallocarray(list->items, *n_room, sizeof(*items));
        if (!items)
                return -ENOMEM;
        list->items = items;
        return 0;
}

static int add_url(struct url_list *list, const char *url, size_t n_bytes, struct why *why) {
        struct url_list_item item;
        struct url address;
        char *path;
        int r;

        if (n_bytes > URL_BYTES_MAX)
                return why_set(why, -EINVAL, "the line is longer than %u bytes", URL_BYTES_MAX);
        if (memchr(url, '\0', n_bytes))
                return why_set(why, -EINVAL, "there is a NUL in it");
        item.url = plan_arena_text(&list->arena, url, n_bytes);
        if (!item.url)
                return -ENOMEM;
        r = url_parse(item.url, &address, why);
        if (r < 0)
                return r;
        path = plan_arena_take(&list->arena, address.n_path + 1);
        if (!path)
                return -ENOMEM;
        r = url_plain_path(&address, path, why);
        if (r < 0)
                return r;
        if (!path[0] || path[strlen(path) - 1] == '/')
                return why_set(why, -EINVAL, "the URL ends in no file's name");
        item.path = path;
        list->items[list->n_items++] = item;
        return 0;
}

static void url_list_trim(const char **text, size_t *n_bytes) {
        while (*n_bytes > 0 && strchr(" \t\r", (*text)[*n_bytes - 1]) && (*text)[*n_bytes - 1])
                (*n_bytes)--;
        while (*n_bytes > 0 && (**text == ' ' || **text == '\t')) {
                (*text)++;
                (*n_bytes)--;
        }
}

static int url_list_parse_lines(struct url_list *list, const char *text, size_t n_bytes, const char *source,
                                struct why *why) {
        uint64_t n_lines = 0, n_room = 0;
        const char *end = text + n_bytes;
        struct why inner = { 0 };

        if (n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                text += 3;
        while (text < end) {
                const char *newline = memchr(text, '\n', (size_t)(end - text)), *url = text;
                size_t n = (size_t)((newline ? newline : end) - text);
                int r = 0;

                text += n + (newline != NULL);
                n_lines++;
                url_list_trim(&url, &n);
                if (n == 0 || *url == '#')
                        continue;
                r = url_list_make_room(list, &n_room);
                if (r < 0)
                        return r;
                if (*url == '<' && list->n_items == 0)
                        return why_set(why, -EINVAL, "%s: this is an HTML or XML page, not a list of URLs", source);
                r = add_url(list, url, n, &inner);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        return why_set(why, r, "%s:%" PRIu64 ": %s", source, n_lines, inner.text);
        }
        if (list->n_items == 0)
                return why_set(why, -EINVAL, "%s: the list is empty: it needs one URL a line", source);
        return 0;
}

/* Removes the folder that all paths begin with. */
static void url_list_shorten(struct url_list *list) {
        const char *first = list->items[0].path;
        const char *slash = strrchr(first, '/');
        size_t n_common = slash ? (size_t)(slash + 1 - first) : 0;

        for (uint64_t i = 1; i < list->n_items && n_common > 0; i++) {
                size_t n = 0;

                while (n < n_common && list->items[i].path[n] == first[n])
                        n++;
                while (n > 0 && first[n - 1] != '/')
                        n--;
                n_common = n;
        }
        for (uint64_t i = 0; i < list->n_items; i++)
                list->items[i].path += n_common;
}

int url_list_parse(const char *text, size_t n_bytes, const char *source, struct url_list *ret_list, struct why *why) {
        struct url_list list = { 0 };
        int r = url_list_parse_lines(&list, text, n_bytes, source, why);

        if (r < 0) {
                url_list_fini(&list);
                return r;
        }
        url_list_shorten(&list);
        *ret_list = list;
        return 0;
}

void url_list_fini(struct url_list *list) {
        plan_arena_free(&list->arena);
        free(list->items);
        *list = (struct url_list){ 0 };
}
