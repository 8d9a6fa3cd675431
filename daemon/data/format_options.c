#include "daemon/data/format_options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/file_stamp.h"
#include "daemon/data/format.h"
#include "daemon/data/scanner.h"
#include "daemon/data/view/split.h"

/* A view of the dataset takes them (data/dataset.h), whatever its format is. */
static const char *const OF_EVERY_DATASET[] = { "fields", "split", FORMAT_ALLOW_MISSING };

static bool format_options_is_among(const char *const *keys, const char *key) {
        for (; *keys; keys++)
                if (strcmp(*keys, key) == 0)
                        return true;
        return false;
}

bool format_option_is_general(const char *key) {
        for (size_t i = 0; i < sizeof(OF_EVERY_DATASET) / sizeof(OF_EVERY_DATASET[0]); i++)
                if (strcmp(OF_EVERY_DATASET[i], key) == 0)
                        return true;
        return false;
}

static int format_options_refuse(const struct format *format, const char *key, struct why *why) {
        char keys[256] = "";

        for (size_t i = 0, n = 0; format->options && format->options[i] && n < sizeof(keys); i++)
                n += (size_t)snprintf(keys + n, sizeof(keys) - n, "%s%s", i ? ", " : "", format->options[i]);
        return why_set(why, -EINVAL, "the format %s does not take %s%s%s", format->name, key,
                       keys[0] ? "; it takes " : "", keys);
}

static void format_options_print_digest(const unsigned char digest[32], char ret_text[65]) {
        for (size_t i = 0; i < 32; i++)
                snprintf(ret_text + 2 * i, 3, "%02x", digest[i]);
}

static int format_options_make_digest(struct format_options *options, const char *revision, struct why *why) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);

        for (uint32_t i = 0; i < options->n && is_fine; i++)
                is_fine = EVP_DigestUpdate(context, options->options[i].key, strlen(options->options[i].key) + 1) &&
                          EVP_DigestUpdate(context, options->options[i].value, strlen(options->options[i].value) + 1);
        if (revision)
                is_fine = is_fine && EVP_DigestUpdate(context, revision, strlen(revision) + 1);
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        if (!is_fine)
                return why_set(why, -ENOMEM, "no memory for the options of a format");
        format_options_print_digest(digest, options->digest);
        return 0;
}

/* A format may have splits with names (a dataset_dict of Arrow files); a rule is for every dataset, and may be one for
 * such a split. Cuts the rule off. Returns whether a name is left. */
static bool take_split(struct format_options *options, char *value) {
        char *rule = split_divide(value);

        if (!rule && !split_is_rule(value))
                return true;
        options->split = rule ? rule : value;
        return rule;
}

/* Takes a key that every dataset has. Returns false if the format is to be told of it, too. */
static bool take_general(struct format_options *options, const struct format *format, const char *key, char *value) {
        bool is_of_format = format->options && format_options_is_among(format->options, key);

        if (strcmp(key, "fields") == 0)
                options->fields = value;
        else if (strcmp(key, "split") == 0 && is_of_format)
                is_of_format = take_split(options, value);
        else if (strcmp(key, "split") == 0)
                options->split = value;
        else if (strcmp(key, FORMAT_ALLOW_MISSING) == 0)
                options->allow_missing = value;
        else
                return false;
        return !is_of_format;
}

static int take_lines(struct format_options *options, const struct format *format, struct why *why) {
        char *rest = NULL;

        for (char *line = strtok_r(options->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                char *equals = strchr(line, '=');

                if (!equals)
                        return why_set(why, -EINVAL, "\"%.100s\" is not KEY=VALUE", line);
                *equals = '\0';
                if (take_general(options, format, line, equals + 1))
                        continue;
                if (format->options && format_options_is_among(format->options, line)) {
                        if (options->n == FORMAT_OPTIONS_MAX)
                                return why_set(why, -E2BIG, "more than %u options", FORMAT_OPTIONS_MAX);
                        options->options[options->n].key = line;
                        options->options[options->n++].value = equals + 1;
                } else {
                        return format_options_refuse(format, line, why);
                }
        }
        return options->n > 0 ? format_options_make_digest(options, format->revision, why) : 0;
}

int format_options_parse(const char *text, const struct format *format, struct format_options *ret_options,
                         struct why *why) {
        struct format_options options = { .text = strdup(text ? text : "") };
        int r;

        if (!options.text)
                return why_set(why, -ENOMEM, "no memory for the options of a format");
        r = take_lines(&options, format, why);
        if (r < 0)
                format_options_fini(&options);
        else
                *ret_options = options;
        return r;
}

int format_options_value(const char *text, const char *key, char **ret_value) {
        size_t n_key = strlen(key);
        char *value = NULL;

        for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
                if (!value && strncmp(line, key, n_key) == 0 && line[n_key] == '=') {
                        value = strndup(line + n_key + 1, strcspn(line + n_key + 1, "\n"));
                        if (!value)
                                return -ENOMEM;
                }
        *ret_value = value;
        return 0;
}

static const char *const OF_STREAMS[] = { "field_limit", "spool", "spool_limit" };

int format_options_stream(const struct format_options *options, bool *ret_is_stream, struct why *why) {
        const char *value = format_option(options, FORMAT_STREAM);
        uint64_t n_bytes;
        int r;

        if (value && strcmp(value, "yes") != 0 && strcmp(value, "true") != 0 && strcmp(value, "no") != 0 &&
            strcmp(value, "false") != 0)
                return why_set(why, -EINVAL, FORMAT_STREAM ": \"%s\" is not allowed; write yes or no", value);
        *ret_is_stream = value && (value[0] == 'y' || value[0] == 't');
        for (size_t i = 0; i < sizeof(OF_STREAMS) / sizeof(OF_STREAMS[0]) && !*ret_is_stream; i++)
                if (format_option(options, OF_STREAMS[i]))
                        return why_set(why, -EINVAL, "%s: is for a stream; write stream = yes, too", OF_STREAMS[i]);
        if (*ret_is_stream && format_option(options, FORMAT_MERGE))
                return why_set(why, -EINVAL,
                               FORMAT_MERGE ": nothing can be merged with a stream; leave out one of them");
        r = format_option_bytes(options, "field_limit", 0, &n_bytes, why);
        return r < 0 ? r : format_option_bytes(options, "spool_limit", 0, &n_bytes, why);
}

/* The next file of "a.txt(id, x), b.csv", without the blanks around it. Returns false after the last one. */
static bool format_options_next_file(const char **at, char name[PATH_MAX]) {
        size_t n, n_name;

        *at += strspn(*at, " \t,");
        n = n_name = strcspn(*at, ",(");
        while (n_name > 0 && ((*at)[n_name - 1] == ' ' || (*at)[n_name - 1] == '\t'))
                n_name--;
        if (n_name == 0 || n_name >= PATH_MAX)
                return false;
        memcpy(name, *at, n_name);
        name[n_name] = '\0';
        *at += n;
        if (**at == '(')
                *at += strcspn(*at, ")");
        *at += **at == ')';
        return true;
}

static int format_options_add_file(EVP_MD_CTX *context, const char *path, int root_fd, const char *root) {
        struct stat status;
        struct file_stamp stamp;

        if (beneath_stat_named(root_fd, root, path, &status) < 0)
                return 1; /* nothing is known of it */
        stamp = file_stamp_of(&status);
        return EVP_DigestUpdate(context, &stamp, sizeof(stamp));
}

int format_options_stamp(const struct format_options *options, const char *key, int root_fd, const char *root,
                         char ret_digest[65]) {
        const char *value = options && key ? format_option(options, key) : NULL;
        unsigned char digest[EVP_MAX_MD_SIZE];
        EVP_MD_CTX *context;
        char name[PATH_MAX];
        struct stat status;
        int is_fine;

        snprintf(ret_digest, 65, "%s", options ? options->digest : "");
        if (!value)
                return 0;
        context = EVP_MD_CTX_new();
        is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) &&
                  EVP_DigestUpdate(context, options->digest, strlen(options->digest));
        if (is_fine && beneath_stat_named(root_fd, root, value, &status) == 0)
                is_fine = format_options_add_file(context, value, root_fd, root);
        else
                while (is_fine && format_options_next_file(&value, name))
                        is_fine = format_options_add_file(context, name, root_fd, root);
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        if (!is_fine)
                return -ENOMEM;
        format_options_print_digest(digest, ret_digest);
        return 0;
}

int format_options_take_scanner(struct format_options *options, struct scanner *scanner) {
        const char *const parts[] = { options->digest, scanner->text, scanner->version };
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        unsigned char digest[EVP_MAX_MD_SIZE];
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);

        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                is_fine = is_fine && EVP_DigestUpdate(context, parts[i], strlen(parts[i]) + 1);
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        if (!is_fine)
                return -ENOMEM;
        options->scanner = scanner;
        format_options_print_digest(digest, options->digest);
        return 0;
}

void format_options_fini(struct format_options *options) {
        free(options->text);
        *options = (struct format_options){ 0 };
}

const char *format_option(const struct format_options *options, const char *key) {
        for (uint32_t i = 0; options && i < options->n; i++)
                if (strcmp(options->options[i].key, key) == 0)
                        return options->options[i].value;
        return NULL;
}

/* A whole number without a sign, and what stands after it. Returns false for anything else, or if it is too large. */
static bool format_options_read_number(const char *text, uint64_t *ret_value, const char **ret_rest) {
        char *end;

        errno = 0;
        *ret_value = strtoull(text, &end, 10);
        *ret_rest = end;
        return text[0] >= '0' && text[0] <= '9' && errno == 0;
}

struct refusals *format_refusals(const struct format_options *options) {
        return options ? options->refusals : NULL;
}

int format_option_u64(const struct format_options *options, const char *key, uint64_t otherwise, uint64_t min,
                      uint64_t max, uint64_t *ret_value, struct why *why) {
        const char *text = format_option(options, key), *rest;
        uint64_t value;

        if (!text) {
                *ret_value = otherwise;
                return 0;
        }
        if (!format_options_read_number(text, &value, &rest) || *rest || value < min || value > max)
                return why_set(why, -EINVAL,
                               "%s: \"%s\" is not allowed; write a whole number from %" PRIu64 " to %" PRIu64, key,
                               text, min, max);
        *ret_value = value;
        return 0;
}

int format_option_bytes(const struct format_options *options, const char *key, uint64_t otherwise, uint64_t *ret_value,
                        struct why *why) {
        static const char *const UNITS[] = { "", "KiB", "MiB", "GiB", "TiB" };
        const char *text = format_option(options, key), *rest;
        uint64_t value;

        if (!text) {
                *ret_value = otherwise;
                return 0;
        }
        if (format_options_read_number(text, &value, &rest) && value > 0)
                for (unsigned i = 0; i < sizeof(UNITS) / sizeof(UNITS[0]); i++)
                        if (strcmp(rest, UNITS[i]) == 0 && value <= (1ull << 60) >> 10 * i) {
                                *ret_value = value << 10 * i;
                                return 0;
                        }
        return why_set(why, -EINVAL, "%s: \"%s\" is not allowed; write a number of bytes such as 65536, 64KiB or 4GiB",
                       key, text);
}
