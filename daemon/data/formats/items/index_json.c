#include "daemon/data/formats/items/index_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/files/listed.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define BYTES_MAX (1ll << 30)
#define TEXT_MAX  4096u /* bytes of a text in it */

int index_json_read(struct index_json *json, int root_fd, const char *root, int64_t *settled_ns, struct why *why) {
        return index_json_read_as(json, root_fd, root, "index.json", settled_ns, why);
}

int index_json_read_as(struct index_json *json, int root_fd, const char *root, const char *name, int64_t *settled_ns,
                       struct why *why) {
        _cleanup_(closep) int fd = listed_open(root_fd, root, name, settled_ns, &json->status, why);
        int r;

        if (fd < 0)
                return fd;
        if (json->status.st_size > BYTES_MAX)
                return why_set(why, -EFBIG, "%s/%s: has more than 1 GiB", root, name);
        json->n_bytes = (size_t)json->status.st_size;
        r = growing_reserve(&json->memory, json->n_bytes + 1);
        json->bytes = json->memory.bytes;
        if (r == 0)
                r = indexing_read_at(fd, json->bytes, json->n_bytes, 0);
        return r < 0 ? why_errno(why, r, "%s/%s", root, name) : 0;
}

void index_json_fini(struct index_json *json) {
        growing_fini(&json->memory);
        *json = (struct index_json){ 0 };
}

int index_json_member(const struct json_token *object, const char *path, struct json_token *ret_value,
                      struct why *why) {
        struct json_token value;
        int r = json_find(object->bytes, object->n_bytes, path, &value, why);

        if (r < 0)
                return -EBADMSG;
        if (r == JSON_ABSENT || value.kind == JSON_NULL)
                return JSON_ABSENT;
        *ret_value = value;
        return 0;
}

int index_json_text(const struct json_token *object, const char *path, char *text, size_t size, struct why *why) {
        struct json_token value;
        uint8_t bytes[TEXT_MAX];
        size_t n = 0;
        int r = index_json_member(object, path, &value, why);

        if (r < 0)
                return r;
        if (r == 0 && value.kind == JSON_STRING && value.n_bytes < sizeof(bytes) &&
            json_string_read(value.bytes, value.n_bytes, bytes, &n, NULL) == 0 && n < size && !memchr(bytes, '\0', n)) {
                memcpy(text, bytes, n);
                text[n] = '\0';
                return 0;
        }
        return why_set(why, -EBADMSG, "\"%s\" is not a text of at most %zu bytes", path, size - 1);
}

int index_json_number(const struct json_token *object, const char *path, int64_t *ret_number, struct why *why) {
        struct json_token value;
        int r = index_json_member(object, path, &value, why);

        if (r < 0)
                return r;
        if (r == 0 && json_integer_read(value.bytes, value.n_bytes, ret_number, NULL) == 0)
                return 0;
        return why_set(why, -EBADMSG, "\"%s\" is not a whole number", path);
}

int index_json_each(const struct json_token *object, const char *path,
                    int (*take)(void *userdata, const struct json_token *element, struct why *why), void *userdata,
                    struct why *why) {
        struct json_token array, element;
        struct json_scan scan;
        int r = index_json_member(object, path, &array, why);

        if (r < 0)
                return r;
        if (r == JSON_ABSENT || array.kind != JSON_ARRAY)
                return why_set(why, -EBADMSG, "\"%s\" is not a list", path);
        json_scan_init(&scan, array.bytes, array.n_bytes);
        r = json_next(&scan, &element, why);
        while (r == 0 && (r = json_value(&scan, &element, why)) == 0 && element.kind != JSON_ARRAY_END)
                r = take(userdata, &element, why);
        return r > 0 ? -EBADMSG : r;
}
