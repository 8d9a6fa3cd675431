#include "daemon/data/formats/listing/text_window.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define READ_BYTES (1u << 20)

void text_window_fini(struct text_window *window) {
        growing_fini(&window->memory);
        window->bytes = NULL;
}

static size_t text_window_read_bytes(const struct text_window *window) {
        return window->n_read > 0 ? window->n_read : READ_BYTES;
}

/* Room for another read. It grows by doubling, so what is copied stays in proportion to what is read. */
static int text_window_make_room(struct text_window *window, struct why *why) {
        size_t capacity = window->bytes ? window->memory.capacity : 2 * text_window_read_bytes(window);

        if (window->bytes && capacity - window->n_bytes >= text_window_read_bytes(window))
                return 0;
        if (window->n_bytes >= (window->n_max > 0 ? window->n_max : TEXT_WINDOW_RECORD_MAX))
                return why_set(why, -E2BIG, "a record that begins at byte %ju has more than %u MiB",
                               (uintmax_t)window->offset, TEXT_WINDOW_RECORD_MAX >> 20);
        while (capacity - window->n_bytes < text_window_read_bytes(window))
                capacity *= 2;
        if (growing_reserve(&window->memory, capacity) < 0)
                return why_set(why, -ENOMEM, "no memory for a record of %zu bytes", window->n_bytes);
        window->bytes = window->memory.bytes;
        return 0;
}

int text_window_read_on(struct text_window *window, struct why *why) {
        uint64_t n_left;
        size_t n;
        int r;

        assert(!window->is_last);
        if (window->at > 0)
                memmove(window->bytes, window->bytes + window->at, window->n_bytes - window->at);
        window->n_bytes -= window->at;
        window->offset += window->at;
        window->at = 0;
        r = text_window_make_room(window, why);
        if (r < 0)
                return r;
        n_left = window->n_file - window->offset - window->n_bytes;
        n = n_left < text_window_read_bytes(window) ? (size_t)n_left : text_window_read_bytes(window);
        r = indexing_read_at(window->fd, window->bytes + window->n_bytes, n, window->offset + window->n_bytes);
        if (r == -ENODATA)
                return why_set(why, r, "became shorter while it was read; try again when it is complete");
        if (r < 0)
                return why_errno(why, r, "cannot be read at byte %ju", (uintmax_t)(window->offset + window->n_bytes));
        window->n_bytes += n;
        window->is_last = n == n_left;
        return 0;
}

/* Of bzip2 the first bytes are letters, which a text may begin with, and then a digit. */
static bool text_window_may_be(const struct text_window *window, const char *bytes) {
        return bytes[0] != 'B' || (window->n_bytes > 3 && window->bytes[3] >= '1' && window->bytes[3] <= '9');
}

static bool text_window_begins_with(const struct text_window *window, const char *bytes, size_t n) {
        return window->n_bytes >= n && memcmp(window->bytes, bytes, n) == 0;
}

int text_window_begin(struct text_window *window, struct why *why) {
        static const struct {
                const char *bytes;
                size_t n;
                const char *what;
        } REFUSED[] = {
                { "\x1f\x8b", 2,
                  "is compressed with gzip: unpack it (gunzip), or, if its name ends in .gz, stage it with prepare = "
                  "\"convert\"" },
                { "\x28\xb5\x2f\xfd", 4, "is compressed with zstd: unpack it (unzstd)" },
                { "BZh", 3, "is compressed with bzip2: unpack it (bunzip2)" },
                { "\xfd"
                  "7zXZ",
                  5, "is compressed with xz: unpack it (unxz)" },
                { "\xff\xfe", 2, "is UTF-16: save it as UTF-8" },
                { "\xfe\xff", 2, "is UTF-16: save it as UTF-8" },
        };
        int r = text_window_read_on(window, why);

        if (r < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(REFUSED); i++)
                if (text_window_begins_with(window, REFUSED[i].bytes, REFUSED[i].n) &&
                    text_window_may_be(window, REFUSED[i].bytes))
                        return why_set(why, -ENOTSUP, "%s", REFUSED[i].what);
        if (text_window_begins_with(window, "\xef\xbb\xbf", 3))
                window->at = 3;
        return 0;
}

int text_window_find_line(struct text_window *window, struct why *why) {
        const uint8_t *end = NULL;

        while (!end && !text_window_is_over(window) && !window->is_last) {
                int r = text_window_read_on(window, why);

                if (r < 0)
                        return r;
                end = memchr(window->bytes, '\n', window->n_bytes);
                window->at = end ? (size_t)(end - window->bytes) + 1 : window->n_bytes;
        }
        return 0;
}

int text_window_line(struct text_window *window, const uint8_t **ret_line, size_t *ret_n_bytes, uint64_t *ret_offset,
                     struct why *why) {
        const uint8_t *line, *end;
        size_t n;
        int r;

        if (text_window_is_over(window))
                return TEXT_WINDOW_END;
        for (;;) {
                size_t from = window->at + window->n_scanned;

                end = window->n_bytes > from ? memchr(window->bytes + from, '\n', window->n_bytes - from) : NULL;
                if (end || window->is_last)
                        break;
                window->n_scanned = window->n_bytes - window->at;
                r = text_window_read_on(window, why);
                if (r < 0)
                        return r;
        }
        line = window->bytes + window->at;
        if (!end && window->at == window->n_bytes)
                return TEXT_WINDOW_END;
        n = end ? (size_t)(end - line) : window->n_bytes - window->at;
        *ret_line = line;
        *ret_offset = window->offset + window->at;
        window->at += n + (end != NULL);
        window->n_scanned = 0;
        window->n_lines++;
        if (n > 0 && line[n - 1] == '\r')
                n--;
        *ret_n_bytes = n;
        return 0;
}
