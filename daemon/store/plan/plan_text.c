/* A plan as text: JSON Lines. Users write it by hand and with scripts, so each error names its line. */

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/plan/digest.h"
#include "daemon/store/plan/plan_private.h"
#include "daemon/store/record/origin_kind.h"
#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

enum key {
        KEY_PATH,
        KEY_SIZE,
        KEY_SHA256,
        KEY_URLS,
        KEY_ETAG,
        KEY_UNPACK,
        KEY_MODIFIED,
        N_KEYS
};

static const char *const KEYS[N_KEYS] = { "path", "size", "sha256", "urls", "etag", "unpack", "http_last_modified" };

struct parser {
        struct plan *begun;
        struct url base; /* where entries without `urls` lie; scheme NULL: nowhere */
        char *url;       /* room for such an entry's */
        bool unpack_archives;
};

/* The fields of a line. */
struct entry {
        struct plan_file file;
        const char *urls[PLAN_URLS_MAX];
        uint8_t sha256[SHA256_BYTES];
};

/* ---- a line -------------------------------------------------------------------------------------------------- */

static int plan_text_take_sha256(const cJSON *item, struct entry *entry, struct why *why) {
        const char *text = cJSON_GetStringValue(item);

        if (!text || strlen(text) != 2 * SHA256_BYTES)
                return why_set(why, -EINVAL, "\"sha256\" must be 64 hexadecimal digits");
        for (size_t i = 0; i < sizeof(entry->sha256); i++) {
                int high = text_hex_digit(text[2 * i]), low = text_hex_digit(text[2 * i + 1]);

                if (high < 0 || low < 0)
                        return why_set(why, -EINVAL, "\"sha256\" must be 64 hexadecimal digits");
                entry->sha256[i] = (uint8_t)(high << 4 | low);
        }
        entry->file.sha256 = entry->sha256;
        return 0;
}

static int plan_text_take_size(const cJSON *item, struct entry *entry, struct why *why) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || !(item->valuedouble < (double)PLAN_BYTES_MAX) ||
            item->valuedouble != (double)(uint64_t)item->valuedouble)
                return why_set(why, -EINVAL, "\"size\" must be a whole number of bytes, from 0 to below 2^53");
        entry->file.n_bytes = (uint64_t)item->valuedouble;
        return 0;
}

static int take_urls(const cJSON *item, struct entry *entry, struct why *why) {
        const cJSON *url;
        uint32_t n = 0;

        if (!cJSON_IsArray(item))
                return why_set(why, -EINVAL, "\"urls\" must be a list: [\"https://...\"]");
        cJSON_ArrayForEach(url, item) {
                if (!cJSON_IsString(url) || n == PLAN_URLS_MAX)
                        return why_set(why, -EINVAL, "\"urls\" must be a list of 1 to %u texts", PLAN_URLS_MAX);
                entry->urls[n++] = url->valuestring;
        }
        if (n == 0)
                return why_set(why, -EINVAL, "\"urls\" is empty; leave it out, or list 1 to %u", PLAN_URLS_MAX);
        entry->file.urls = entry->urls;
        entry->file.n_urls = n;
        return 0;
}

static void make_url(struct parser *parser, struct entry *entry) {
        url_beside(&parser->base, entry->file.path, parser->url);
        entry->urls[0] = parser->url;
        entry->file.urls = entry->urls;
        entry->file.n_urls = 1;
}

static int take_path(const cJSON *item, struct entry *entry, struct why *why) {
        const char *path = cJSON_GetStringValue(item);

        if (!path)
                return why_set(why, -EINVAL, item ? "\"path\" must be a text" : "there is no \"path\"");
        entry->file.path = path;
        return plan_path_check(path, strlen(path), why);
}

/* null means the same as no key: many writers say it so. */
static int find_keys(const cJSON *object, const cJSON *items[N_KEYS], struct why *why) {
        const cJSON *item;

        cJSON_ArrayForEach(item, object) for (int key = 0; key < N_KEYS; key++) {
                if (strcmp(item->string, KEYS[key]) != 0)
                        continue;
                if (items[key])
                        return why_set(why, -EINVAL, "\"%s\" is there twice", KEYS[key]);
                items[key] = item;
        }
        for (int key = 0; key < N_KEYS; key++)
                if (items[key] && cJSON_IsNull(items[key]))
                        items[key] = NULL;
        return 0;
}

static int plan_text_take_entry(struct parser *parser, const cJSON *object, struct why *why) {
        const cJSON *items[N_KEYS] = { 0 };
        struct entry entry = { 0 };
        int r = find_keys(object, items, why);

        if (r == 0)
                r = take_path(items[KEY_PATH], &entry, why);
        if (r == 0)
                r = plan_text_take_size(items[KEY_SIZE], &entry, why);
        if (r == 0 && items[KEY_SHA256])
                r = plan_text_take_sha256(items[KEY_SHA256], &entry, why);
        if (r == 0 && items[KEY_URLS])
                r = take_urls(items[KEY_URLS], &entry, why);
        if (r < 0)
                return r;
        if (!items[KEY_URLS]) {
                if (!parser->base.text)
                        return why_set(why, -EINVAL, "\"urls\" is missing, and nothing else says where the file is");
                make_url(parser, &entry);
        }
        if (items[KEY_ETAG]) {
                entry.file.etag = cJSON_GetStringValue(items[KEY_ETAG]);
                if (!entry.file.etag)
                        return why_set(why, -EINVAL, "\"etag\" must be a text");
        }
        if (items[KEY_MODIFIED] && !(entry.file.modified = cJSON_GetStringValue(items[KEY_MODIFIED])))
                return why_set(why, -EINVAL, "\"http_last_modified\" must be a text");
        if (items[KEY_UNPACK] && !cJSON_IsBool(items[KEY_UNPACK]))
                return why_set(why, -EINVAL, "\"unpack\" must be true or false");
        entry.file.unpack = items[KEY_UNPACK] ? cJSON_IsTrue(items[KEY_UNPACK])
                                              : parser->unpack_archives && origin_is_archive(entry.file.path);
        return plan_add(&parser->begun, &entry.file, why);
}

/* cJSON would silently end a text at a NUL. */
static bool has_nul(const char *line, size_t n_bytes) {
        if (memchr(line, '\0', n_bytes))
                return true;
        for (size_t i = 0; i + 5 < n_bytes; i++)
                if (line[i] == '\\') {
                        if (memcmp(line + i + 1, "u0000", 5) == 0)
                                return true;
                        i++;
                }
        return false;
}

static bool plan_text_is_blank(const char *text, const char *end) {
        while (text < end && (*text == ' ' || *text == '\t' || *text == '\r'))
                text++;
        return text == end;
}

static int plan_text_parse_line(struct parser *parser, const char *line, size_t n_bytes, struct why *why) {
        const char *end = NULL;
        cJSON *object;
        int r;

        if (n_bytes > PLAN_LINE_MAX)
                return why_set(why, -EINVAL, "the line is longer than %u bytes", PLAN_LINE_MAX);
        if (plan_text_is_blank(line, line + n_bytes))
                return 0;
        if (has_nul(line, n_bytes))
                return why_set(why, -EINVAL, "there is a NUL in it");
        object = cJSON_ParseWithLengthOpts(line, n_bytes, &end, 0);
        if (!object || !cJSON_IsObject(object) || !plan_text_is_blank(end, line + n_bytes))
                r = why_set(why, -EINVAL,
                            "\"%.*s\" is not a JSON object; each line must be one: {\"path\": \"...\", "
                            "\"size\": ...}",
                            (int)(n_bytes < 60 ? n_bytes : 60), line);
        else
                r = plan_text_take_entry(parser, object, why);
        cJSON_Delete(object);
        return r;
}

/* ---- the text ------------------------------------------------------------------------------------------------ */

static int parser_init(struct parser *parser, const char *base_url, struct why *why) {
        int r = base_url ? url_parse(base_url, &parser->base, why) : 0;

        if (r < 0)
                return r;
        parser->url = malloc((base_url ? strlen(base_url) : 0) + 3 * PATH_MAX + 5);
        return parser->url ? 0 : -ENOMEM;
}

static int plan_text_parse_lines(struct parser *parser, const char *text, size_t n_bytes, const char *source,
                                 struct why *why) {
        const char *end = text + n_bytes;
        struct why inner = { 0 };
        uint64_t n_lines = 0;

        if (n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark, as some editors leave */
                text += 3;
        while (text < end) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));
                size_t n = (size_t)((newline ? newline : end) - text);
                int r = plan_text_parse_line(parser, text, n, &inner);

                n_lines++;
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        return why_set(why, r, "%s:%" PRIu64 ": %s", source, n_lines, inner.text);
                text += n + (newline != NULL);
        }
        return 0;
}

static bool is_markup(const char *text, size_t n_bytes) {
        size_t n = 0;

        if (n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                n = 3;
        while (n < n_bytes && strchr(" \t\r\n", text[n]) && text[n])
                n++;
        return n < n_bytes && text[n] == '<';
}

int plan_may_begin(const char *text, size_t n_bytes) {
        size_t n_mark = n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        const char *begin = text + n_mark, *end = memchr(begin, '\n', n_bytes - n_mark);
        cJSON *object;
        bool may_begin;

        if (!end)
                return n_bytes > PLAN_LINE_MAX ? *begin != '{' : -EAGAIN;
        object = cJSON_ParseWithLength(begin, (size_t)(end - begin));
        may_begin = !cJSON_IsObject(object);
        for (int key = 0; key < N_KEYS && !may_begin; key++)
                may_begin = key != KEY_PATH && cJSON_GetObjectItemCaseSensitive(object, KEYS[KEY_PATH]) &&
                            cJSON_GetObjectItemCaseSensitive(object, KEYS[key]);
        cJSON_Delete(object);
        return may_begin;
}

int plan_parse(const char *text, size_t n_bytes, const char *source, const char *base_url, bool unpack_archives,
               struct plan **ret_plan, struct why *why) {
        struct parser parser = { .unpack_archives = unpack_archives };
        struct plan *plan = NULL;
        struct why inner = { 0 };
        int r;

        if (is_markup(text, n_bytes))
                return why_set(why, -EINVAL,
                               "%s: this is an HTML or XML page, not a manifest of JSON lines; does the URL ask for a "
                               "login?",
                               source);
        r = parser_init(&parser, base_url, why);
        if (r == 0)
                r = plan_text_parse_lines(&parser, text, n_bytes, source, why);
        if (r == 0) {
                r = plan_finish(&parser.begun, &plan, &inner);
                if (r < 0)
                        why_set(why, r, "%s: %s", source, inner.text);
        }
        plan_free(parser.begun);
        free(parser.url);
        if (r == 0)
                *ret_plan = plan;
        return r;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* What is in a plan is printable UTF-8: only quotes and backslashes need care. */
static void write_quoted(FILE *out, const char *text) {
        putc_unlocked('"', out);
        for (; *text; text++) {
                if (*text == '"' || *text == '\\')
                        putc_unlocked('\\', out);
                putc_unlocked(*text, out);
        }
        putc_unlocked('"', out);
}

static void plan_text_write_file(FILE *out, const struct plan_file *file) {
        char digits[SHA256_TEXT_SIZE];

        fputs_unlocked("{\"path\":", out);
        write_quoted(out, file->path);
        fprintf(out, ",\"size\":%" PRIu64, file->n_bytes);
        if (file->sha256) {
                sha256_text(file->sha256, digits);
                fprintf(out, ",\"sha256\":\"%s\"", digits);
        }
        fputs_unlocked(",\"urls\":[", out);
        for (uint32_t i = 0; i < file->n_urls; i++) {
                if (i > 0)
                        putc_unlocked(',', out);
                write_quoted(out, file->urls[i]);
        }
        putc_unlocked(']', out);
        if (file->etag) {
                fputs_unlocked(",\"etag\":", out);
                write_quoted(out, file->etag);
        }
        if (file->modified) {
                fputs_unlocked(",\"http_last_modified\":", out);
                write_quoted(out, file->modified);
        }
        /* An archive that is not unpacked says so, since the reader may unpack what looks like one. */
        if (file->unpack || origin_is_archive(file->path))
                fputs_unlocked(file->unpack ? ",\"unpack\":true" : ",\"unpack\":false", out);
        fputs_unlocked("}\n", out);
}

int plan_write(const struct plan *plan, char **ret_text, size_t *ret_n_bytes) {
        char *text = NULL;
        size_t n_bytes = 0;
        FILE *out = open_memstream(&text, &n_bytes);
        bool failed;

        if (!out)
                return -ENOMEM;
        for (uint64_t i = 0; i < plan->n_files; i++)
                plan_text_write_file(out, &plan->files[i]);
        failed = ferror(out) != 0;
        if (fclose(out) != 0 || failed) {
                free(text);
                return -ENOMEM;
        }
        *ret_text = text;
        *ret_n_bytes = n_bytes;
        return 0;
}
