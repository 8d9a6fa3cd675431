#include "daemon/fetch/origin/hub_listing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json/json_value.h"
#include "daemon/store/plan/digest.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define OID_MAX 128u /* hexadecimal digits: SHA-1 has 40, SHA-256 64 */

struct parsing {
        char path[HUB_PATH_MAX + 1];
        char oid[OID_MAX + 1];
        char etag[OID_MAX + 3];
        uint8_t sha256[SHA256_BYTES];
};

/* A text of an object; false: it has none, or one that does not fit or holds a NUL. */
static bool hub_listing_text(const struct json_token *object, const char *name, char *ret_text, size_t size) {
        struct json_token token;
        size_t n;

        if (json_find(object->bytes, object->n_bytes, name, &token, NULL) != 0 || token.kind != JSON_STRING ||
            json_string_read(token.bytes, token.n_bytes, NULL, &n, NULL) < 0 || n >= size)
                return false;
        json_string_read(token.bytes, token.n_bytes, (uint8_t *)ret_text, &n, NULL);
        ret_text[n] = '\0';
        return strlen(ret_text) == n;
}

static bool hub_listing_number(const struct json_token *object, const char *name, uint64_t *ret_number) {
        struct json_token token;

        return json_find(object->bytes, object->n_bytes, name, &token, NULL) == 0 &&
               json_unsigned_read(token.bytes, token.n_bytes, ret_number, NULL) == 0;
}

static bool read_sha256(const char *digits, uint8_t ret_sha256[SHA256_BYTES]) {
        if (strlen(digits) != 2 * SHA256_BYTES)
                return false;
        for (size_t i = 0; i < SHA256_BYTES; i++) {
                int high = text_hex_digit(digits[2 * i]), low = text_hex_digit(digits[2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                ret_sha256[i] = (uint8_t)(high << 4 | low);
        }
        return true;
}

static bool is_lfs(const struct json_token *object) {
        struct json_token token;

        return json_find(object->bytes, object->n_bytes, "lfs", &token, NULL) == 0 && token.kind == JSON_OBJECT;
}

static int take_file(struct parsing *parsing, const struct json_token *object, struct hub_entry *file,
                     struct why *why) {
        if (is_lfs(object)) {
                if (!hub_listing_text(object, "lfs.oid", parsing->oid, sizeof(parsing->oid)) ||
                    !read_sha256(parsing->oid, parsing->sha256) ||
                    !hub_listing_number(object, "lfs.size", &file->n_bytes))
                        return why_set(why, -EINVAL, "\"%s\" is a file of Git LFS without SHA-256 (lfs.oid) or size",
                                       file->path);
                file->sha256 = parsing->sha256;
                return 0;
        }
        if (!hub_listing_number(object, "size", &file->n_bytes) ||
            !hub_listing_text(object, "oid", parsing->oid, sizeof(parsing->oid)) || !*parsing->oid)
                return why_set(why, -EINVAL, "\"%s\" is a file without size or oid", file->path);
        snprintf(parsing->etag, sizeof(parsing->etag), "\"%s\"", parsing->oid);
        file->etag = parsing->etag;
        return 0;
}

/* Positive: it is neither a file nor a folder (a submodule). */
static int take_entry(struct parsing *parsing, const struct json_token *object, struct hub_entry *ret_entry,
                      struct why *why) {
        struct hub_entry entry = { .path = parsing->path };
        char type[32];

        if (object->kind != JSON_OBJECT || !hub_listing_text(object, "type", type, sizeof(type)) ||
            !hub_listing_text(object, "path", parsing->path, sizeof(parsing->path)) || !*parsing->path)
                return why_set(why, -EINVAL, "an entry without type or path, or whose path is longer than %u bytes",
                               HUB_PATH_MAX);
        entry.is_file = strcmp(type, "file") == 0;
        *ret_entry = entry;
        if (entry.is_file)
                return take_file(parsing, object, ret_entry, why);
        return strcmp(type, "directory") == 0 ? 0 : 1;
}

int hub_listing_parse(const char *json, size_t n_bytes, int (*entry)(void *userdata, const struct hub_entry *entry),
                      void *userdata, struct why *why) {
        _cleanup_(freep) struct parsing *parsing = malloc(sizeof(*parsing));
        struct json_token token;
        struct hub_entry found;
        struct json_scan scan;
        struct why inner = { 0 };
        int r;

        if (!parsing)
                return -ENOMEM;
        json_scan_init(&scan, json, n_bytes);
        r = json_next(&scan, &token, &inner);
        if (r == 0 && token.kind != JSON_ARRAY)
                return why_set(why, -EINVAL, "something else than a list of files (a JSON array) came");
        while (r == 0 && (r = json_value(&scan, &token, &inner)) == 0 && token.kind != JSON_ARRAY_END) {
                r = take_entry(parsing, &token, &found, why);
                if (r < 0)
                        return r;
                r = r == 0 ? entry(userdata, &found) : 0;
                if (r < 0)
                        return r;
        }
        if (r == 0)
                r = json_next(&scan, &token, &inner);
        return r < 0 ? why_set(why, -EINVAL, "the list of files is not valid JSON: %s", inner.text) : 0;
}
