#include "daemon/data/format_options.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/file_stamp.h"
#include "daemon/data/format.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/scanner.h"
#include "daemon/data/view/split.h"
#include "proto/base/cleanup.h"

/* A view of the dataset takes them (data/dataset.h), whatever its format is. */
static const struct setting OF_EVERY_DATASET[] = {
        OPTION_FIELDS,
        OPTION_SPLIT,
        { .name = "allow_missing",
          .kind = SETTING_OPTIONAL,
          .max = 15,
          .check = format_option_check_yes_no,
          .prose = "Whether files that are numbered, as in x-00000-of-00003, may be missing; empty: the dataset is "
                   "refused then." },
};

static const char *const OF_STREAMS[] = { "field_limit", "spool", "spool_limit" };

bool format_option_is_general(const char *key) {
        return setting_find(OF_EVERY_DATASET, ARRAY_SIZE(OF_EVERY_DATASET), key) != NULL;
}

bool format_option_is_yes(const char *value) {
        return value && (value[0] == 'y' || value[0] == 't');
}

int format_option_check_yes_no(const char *value, struct why *why) {
        static const char *const ALLOWED[] = { "yes", "no", "true", "false" };

        for (size_t i = 0; i < ARRAY_SIZE(ALLOWED); i++)
                if (strcmp(value, ALLOWED[i]) == 0)
                        return 0;
        return why_set(why, -EINVAL, "\"%s\" is not allowed; write yes or no", value);
}

/* The place of a key among the format's rows; FORMAT_OPTIONS_MAX: it does not take it. */
static uint32_t format_options_find_place(const struct format *format, const char *key) {
        for (uint32_t i = 0; format->options && format->options[i].name; i++)
                if (strcmp(format->options[i].name, key) == 0)
                        return i;
        return FORMAT_OPTIONS_MAX;
}

/* ---- as a text ------------------------------------------------------------------------------------------------- */

const struct setting *format_option_at(size_t idx) {
        const struct format *format;

        for (size_t k = 0; (format = format_at(k)); k++)
                for (const struct setting *row = format->options; row && row->name; row++) {
                        bool is_known = format_option_is_general(row->name);

                        for (size_t before = 0; before < k && !is_known; before++)
                                is_known = format_options_find_place(format_at(before), row->name) < FORMAT_OPTIONS_MAX;
                        if (!is_known && idx-- == 0)
                                return row;
                }
        return idx < ARRAY_SIZE(OF_EVERY_DATASET) ? &OF_EVERY_DATASET[idx] : NULL;
}

const struct setting *format_option_find(const char *key) {
        const struct setting *row = NULL;

        for (size_t i = 0; (row = format_option_at(i)) && strcmp(row->name, key) != 0; i++)
                ;
        return row;
}

int format_options_value(const char *text, const char *key, char **ret_value) {
        size_t n_key = strlen(key);

        *ret_value = NULL;
        for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
                if (strncmp(line, key, n_key) == 0 && line[n_key] == '=') {
                        *ret_value = strndup(line + n_key + 1, strcspn(line + n_key + 1, "\n"));
                        return *ret_value ? 0 : -ENOMEM;
                }
        return 0;
}

int format_options_add(char **text, const struct setting *row, const char *value, struct why *why) {
        _cleanup_(freep) char *before = *text;
        const struct setting *other;
        size_t size;
        FILE *stream;
        int r = *value ? setting_parse(row, NULL, value, why) : 0;

        *text = NULL;
        if (r == 0 && strchr(value, '\n'))
                r = why_set(why, -EINVAL, "%s: the value has a line break", row->name);
        stream = r == 0 ? open_memstream(text, &size) : NULL;
        if (!stream)
                return r < 0 ? r : why_errno(why, -ENOMEM, "%s", row->name);
        for (size_t i = 0; r == 0 && (other = format_option_at(i)); i++) {
                _cleanup_(freep) char *said = NULL;
                bool is_it = strcmp(other->name, row->name) == 0;

                r = format_options_value(before, other->name, &said);
                if (r == 0 && said && is_it)
                        r = why_set(why, -EINVAL, "%s: is given twice", row->name);
                else if (r == 0 && (said || (is_it && *value)))
                        fprintf(stream, "%s=%s\n", other->name, said ? said : value);
                else if (r < 0)
                        why_errno(why, r, "%s", row->name);
        }
        return fclose(stream) == 0 || r < 0 ? r : why_errno(why, -ENOMEM, "%s", row->name);
}

/* ---- as values ------------------------------------------------------------------------------------------------- */

static int format_options_refuse_key(const struct format *format, const char *key, struct why *why) {
        char keys[256] = "";

        for (size_t i = 0, n = 0; format->options && format->options[i].name && n < sizeof(keys); i++)
                n += (size_t)snprintf(keys + n, sizeof(keys) - n, "%s%s", i ? ", " : "", format->options[i].name);
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

        for (const struct setting *row = options->format->options; row && row->name && is_fine; row++) {
                const char *value = options->values[row - options->format->options].text;

                if (value)
                        is_fine = EVP_DigestUpdate(context, row->name, strlen(row->name) + 1) &&
                                  EVP_DigestUpdate(context, value, strlen(value) + 1);
        }
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
static bool take_general(struct format_options *options, const char *key, char *value) {
        bool is_of_format = format_options_find_place(options->format, key) < FORMAT_OPTIONS_MAX;

        if (strcmp(key, "fields") == 0)
                options->fields = value;
        else if (strcmp(key, "split") == 0 && is_of_format)
                is_of_format = take_split(options, value);
        else if (strcmp(key, "split") == 0)
                options->split = value;
        else if (strcmp(key, "allow_missing") == 0)
                options->allows_missing = format_option_is_yes(value);
        else
                return false;
        return !is_of_format;
}

static int take_lines(struct format_options *options, struct why *why) {
        char *rest = NULL;

        for (char *line = strtok_r(options->text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                char *value = strchr(line, '=');
                const struct setting *row;
                uint32_t place;
                int r;

                if (!value)
                        return why_set(why, -EINVAL, "\"%.100s\" is not KEY=VALUE", line);
                *value++ = '\0';
                row = setting_find(OF_EVERY_DATASET, ARRAY_SIZE(OF_EVERY_DATASET), line);
                place = format_options_find_place(options->format, line);
                if (!row && place == FORMAT_OPTIONS_MAX)
                        return format_options_refuse_key(options->format, line, why);
                row = row ? row : &options->format->options[place];
                r = setting_parse(row, NULL, value, why);
                if (r < 0)
                        return r;
                if (take_general(options, line, value))
                        continue;
                options->values[place].text = value;
                if (row->kind == SETTING_NUMBER || row->kind == SETTING_SIZE)
                        setting_parse_number(row, value, &options->values[place].number, NULL);
                options->n++;
        }
        return options->n > 0 ? format_options_make_digest(options, options->format->revision, why) : 0;
}

static int check_stream(struct format_options *options, struct why *why) {
        options->is_stream = format_option_is_yes(format_option(options, FORMAT_STREAM));
        for (size_t i = 0; i < ARRAY_SIZE(OF_STREAMS) && !options->is_stream; i++)
                if (format_option(options, OF_STREAMS[i]))
                        return why_set(why, -EINVAL, "%s: is for a stream; write stream = yes, too", OF_STREAMS[i]);
        if (options->is_stream && format_option(options, FORMAT_MERGE))
                return why_set(why, -EINVAL,
                               FORMAT_MERGE ": nothing can be merged with a stream; leave out one of them");
        return 0;
}

int format_options_parse(const char *text, const struct format *format, struct format_options *ret_options,
                         struct why *why) {
        struct format_options options = { .text = strdup(text ? text : ""), .format = format };
        int r;

        if (!options.text)
                return why_set(why, -ENOMEM, "no memory for the options of a format");
        r = take_lines(&options, why);
        if (r == 0)
                r = check_stream(&options, why);
        if (r < 0)
                format_options_fini(&options);
        else
                *ret_options = options;
        return r;
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

        if ((path[0] != '/' && indexing_origin()) || beneath_stat_named(root_fd, root, path, &status) < 0)
                return 1; /* the listing tells of it, or nothing is known */
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

struct refusals *format_refusals(const struct format_options *options) {
        return options ? options->refusals : NULL;
}

const char *format_option(const struct format_options *options, const char *key) {
        uint32_t place = options && options->format ? format_options_find_place(options->format, key)
                                                    : FORMAT_OPTIONS_MAX;

        return place < FORMAT_OPTIONS_MAX ? options->values[place].text : NULL;
}

uint64_t format_option_number(const struct format_options *options, const char *key, uint64_t otherwise) {
        return format_option(options, key) ? options->values[format_options_find_place(options->format, key)].number
                                           : otherwise;
}
