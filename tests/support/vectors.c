#include "tests/support/vectors.h"

#include <check.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void vectors_open(struct vectors *vectors, const char *name) {
        memset(vectors, 0, sizeof(*vectors));
        snprintf(vectors->path, sizeof(vectors->path), "tests/vectors/%s", name);
        vectors->file = fopen(vectors->path, "re");
        if (!vectors->file)
                ck_abort_msg("%s: %s (tests are started in the project's root)", vectors->path, strerror(errno));
}

void vectors_close(struct vectors *vectors) {
        cJSON_Delete(vectors->line);
        free(vectors->text);
        if (vectors->file)
                fclose(vectors->file);
        vectors->line = NULL;
        vectors->text = NULL;
        vectors->file = NULL;
}

bool vectors_next(struct vectors *vectors) {
        ssize_t n;

        cJSON_Delete(vectors->line);
        vectors->line = NULL;

        n = vectors->file ? getline(&vectors->text, &vectors->text_size, vectors->file) : -1;
        if (n < 0) {
                vectors_close(vectors);
                return false;
        }

        vectors->number++;
        vectors->line = cJSON_Parse(vectors->text);
        if (!cJSON_IsObject(vectors->line))
                ck_abort_msg("%s:%u: no JSON object", vectors->path, vectors->number);
        return true;
}

bool vectors_kind(const struct vectors *vectors, const char *kind) {
        return strcmp(vector_string(vectors->line, "kind"), kind) == 0;
}

/* Where the value of a key begins in a line's text. */
static const char *find_value(const char *text, const char *key) {
        char quoted[128];
        const char *found;

        snprintf(quoted, sizeof(quoted), "\"%s\"", key);
        for (found = strstr(text, quoted); found; found = strstr(found + 1, quoted)) {
                const char *value = found + strlen(quoted);

                while (isspace((unsigned char)*value))
                        value++;
                if (*value != ':')
                        continue; /* the word as a value */
                value++;
                while (isspace((unsigned char)*value))
                        value++;
                return value;
        }
        ck_abort_msg("no \"%s\" in %.80s", key, text);
}

static void check_end(const char *end, const char *begin, const char *key) {
        if (end == begin || errno != 0 || (*end != ',' && *end != '}' && *end != ']' && !isspace((unsigned char)*end)))
                ck_abort_msg("\"%s\" is not a 64-bit integer: %.40s", key, begin);
}

uint64_t vector_u64(const char *text, const char *key) {
        const char *value = find_value(text, key);
        uint64_t number;
        char *end;

        errno = 0;
        number = strtoull(value, &end, 10); /* -1 gives 2^64-1: what is wanted */
        check_end(end, value, key);
        return number;
}

int64_t vector_i64(const char *text, const char *key) {
        const char *value = find_value(text, key);
        int64_t number;
        char *end;

        errno = 0;
        number = strtoll(value, &end, 10);
        check_end(end, value, key);
        return number;
}

bool vector_has(const cJSON *line, const char *key) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);

        return item && !cJSON_IsNull(item);
}

static const cJSON *get(const cJSON *line, const char *key, cJSON_bool (*is)(const cJSON *), const char *what) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);

        if (!item || !is(item))
                ck_abort_msg("\"%s\" is absent or no %s", key, what);
        return item;
}

double vector_number(const cJSON *line, const char *key) {
        return get(line, key, cJSON_IsNumber, "number")->valuedouble;
}

static int64_t exact(double value, const char *key) {
        if (value != (double)(int64_t)value || value > 0x1p53 || value < -0x1p53)
                ck_abort_msg("\"%s\": %.17g is not an integer that a double keeps; use vector_u64()", key, value);
        return (int64_t)value;
}

int vector_int(const cJSON *line, const char *key) {
        int64_t value = exact(vector_number(line, key), key);

        if (value != (int)value)
                ck_abort_msg("\"%s\": %" PRId64 " does not fit an int", key, value);
        return (int)value;
}

bool vector_bool(const cJSON *line, const char *key) {
        return cJSON_IsTrue(get(line, key, cJSON_IsBool, "bool"));
}

const char *vector_string(const cJSON *line, const char *key) {
        return get(line, key, cJSON_IsString, "string")->valuestring;
}

const cJSON *vector_array(const cJSON *line, const char *key, size_t *ret_n) {
        const cJSON *array = get(line, key, cJSON_IsArray, "array");

        if (ret_n)
                *ret_n = (size_t)cJSON_GetArraySize(array);
        return array;
}

int64_t vector_item(const cJSON *array, size_t idx) {
        const cJSON *item = cJSON_GetArrayItem(array, (int)idx);

        if (!cJSON_IsNumber(item))
                ck_abort_msg("element %zu is absent or no number", idx);
        return exact(item->valuedouble, "element");
}

uint64_t vector_hex(const char *digits) {
        uint64_t number;
        char *end;

        errno = 0;
        number = strtoull(digits, &end, 16);
        if (end == digits || *end || errno)
                ck_abort_msg("no hexadecimal number: %.40s", digits);
        return number;
}

static int base64_digit(char c) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *found = c ? strchr(digits, c) : NULL;

        return found ? (int)(found - digits) : -1;
}

uint8_t *vector_base64(const char *text, size_t *ret_n_bytes) {
        size_t n_text = strlen(text), n = 0;
        uint8_t *bytes = malloc(n_text / 4 * 3 + 4);
        uint32_t bits = 0;
        unsigned n_bits = 0;

        ck_assert_ptr_nonnull(bytes);
        for (size_t i = 0; i < n_text && text[i] != '='; i++) {
                int digit = base64_digit(text[i]);

                if (digit < 0)
                        ck_abort_msg("no base64: %.40s", text + i);
                bits = bits << 6 | (uint32_t)digit;
                n_bits += 6;
                if (n_bits >= 8) {
                        n_bits -= 8;
                        bytes[n++] = (uint8_t)(bits >> n_bits);
                }
        }
        *ret_n_bytes = n;
        return bytes;
}

uint64_t fnv1a_more(uint64_t hash, const void *bytes, size_t n_bytes) {
        const uint8_t *byte = bytes;

        for (size_t i = 0; i < n_bytes; i++)
                hash = (hash ^ byte[i]) * 0x100000001b3ull;
        return hash;
}

uint64_t fnv1a(const void *bytes, size_t n_bytes) {
        return fnv1a_more(FNV1A_BEGIN, bytes, n_bytes);
}

uint8_t *read_whole_file(const char *path, size_t *ret_n_bytes) {
        FILE *file = fopen(path, "re");
        uint8_t *bytes = NULL;
        size_t n = 0, size = 0;

        if (!file)
                ck_abort_msg("%s: %s", path, strerror(errno));
        for (;;) {
                if (n + 1 >= size) {
                        size = size ? size * 2 : 65536;
                        bytes = realloc(bytes, size);
                        ck_assert_ptr_nonnull(bytes);
                }
                size_t got = fread(bytes + n, 1, size - n - 1, file);
                if (got == 0)
                        break;
                n += got;
        }
        if (ferror(file))
                ck_abort_msg("%s: cannot be read", path);
        fclose(file);
        bytes[n] = '\0';
        *ret_n_bytes = n;
        return bytes;
}
