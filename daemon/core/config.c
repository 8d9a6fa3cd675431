#include "daemon/core/config.h"

#include <assert.h>
#include <confuse.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/shown/shorten.h"

#define OPTIONS_MAX 64u
#define FILE_MAX    (1 << 20) /* bytes */
#define END_MARK    "end_of_file"

/* libconfuse reports errors to a plain function, so its text is kept here. Main thread, one file at a time. */
static struct why parse_why;
static struct settings *parse_settings;

/* The key that libconfuse does not know, by its message; else NULL. */
static const char *unknown_key(const char *text, size_t *ret_n) {
        static const char BEGINNING[] = "no such option '";

        if (strncmp(text, BEGINNING, strlen(BEGINNING)) != 0)
                return NULL;
        text += strlen(BEGINNING);
        *ret_n = strcspn(text, "'");
        return text;
}

static const struct setting *settings_row(size_t idx) {
        return idx < N_SETTINGS ? &SETTINGS[idx] : NULL;
}

/* The rows of a dataset's keys: those of every dataset, and those of formats. NULL after the last one. */
static const struct setting *dataset_row(size_t idx) {
        return idx < N_DATASET_SETTINGS ? &DATASET_SETTINGS[idx] : format_option_at(idx - N_DATASET_SETTINGS);
}

static const char *key_hint(const cfg_t *cfg, const char *key, size_t n, struct nearest *nearest) {
        nearest_begin(nearest, key, n);
        for (const cfg_opt_t *option = cfg->opts; option->name; option++)
                if (strcmp(option->name, END_MARK) != 0)
                        nearest_offer(nearest, option->name);
        return nearest_hint(nearest);
}

static void config_on_error(cfg_t *cfg, const char *format, va_list arguments) {
        char text[DLP_TEXT_MAX - 160];
        struct nearest nearest;
        const char *key;
        size_t n = 0;

        if (parse_why.text[0])
                return; /* the first error is the cause */
        shorten_format(text, sizeof(text), format, arguments);
        key = cfg ? unknown_key(text, &n) : NULL;
        why_set(&parse_why, 0, "%s:%d: %s%s", cfg && cfg->filename ? cfg->filename : "configuration",
                cfg ? cfg->line : 0, text, key ? key_hint(cfg, key, n, &nearest) : "");
}

/* libconfuse calls it while it reads the line, so the error has the right line number. A dataset's value is only
 * checked here: which dataset it belongs to is known when its section ends. */
static int on_value(cfg_t *cfg, cfg_opt_t *option) {
        bool is_dataset = strcmp(cfg->name, "dataset") == 0;
        const char *text = cfg_opt_getnstr(option, 0);
        struct dataset_setting dataset = { 0 };
        struct why why;
        int r;

        if (is_dataset)
                r = dataset_setting_take(&dataset, cfg_opt_name(option), text, &why);
        else
                r = setting_parse(setting_find(SETTINGS, N_SETTINGS, cfg_opt_name(option)), parse_settings, text, &why);
        dataset_setting_fini(&dataset);
        if (r < 0 && is_dataset)
                cfg_error(cfg, "dataset \"%s\": %s", cfg_title(cfg), why.text);
        else if (r < 0)
                cfg_error(cfg, "%s", why.text);
        return r < 0 ? -1 : 0;
}

static int config_read_dataset(cfg_t *section, struct dataset_setting *dataset, struct why *why) {
        const char *name = cfg_title(section);
        const struct setting *row;
        int r;

        if (!*name || strlen(name) >= DLP_NAME_MAX || strchr(name, '/') || name[0] == '.')
                return why_set(why, -EINVAL,
                               "is not a valid name; use 1 to %u bytes without '/', not beginning with '.'",
                               DLP_NAME_MAX - 1);
        dataset->name = strdup(name);
        if (!dataset->name)
                return why_errno(why, -ENOMEM, "name");
        for (size_t i = 0; (row = dataset_row(i)); i++) {
                const char *text = cfg_getstr(section, row->name);

                r = text ? dataset_setting_take(dataset, row->name, text, why) : 0;
                if (r < 0)
                        return r;
        }
        return dataset_setting_complete(dataset, why);
}

/* Called when a section ends. */
static int on_dataset(cfg_t *cfg, cfg_opt_t *option) {
        cfg_t *section = cfg_opt_getnsec(option, cfg_opt_size(option) - 1);
        struct dataset_setting dataset = { 0 };
        struct why why;
        int r = config_read_dataset(section, &dataset, &why);

        dataset_setting_fini(&dataset);
        if (r < 0)
                cfg_error(section, "dataset \"%s\": %s", cfg_title(section), why.text);
        return r < 0 ? -1 : 0;
}

static int config_take_datasets(cfg_t *cfg, struct config *config, struct why *why) {
        size_t n = cfg_size(cfg, "dataset");
        int r = 0;

        config->datasets = calloc(n ? n : 1, sizeof(*config->datasets));
        if (!config->datasets)
                return why_errno(why, -ENOMEM, "datasets");
        for (size_t i = 0; i < n && r == 0; i++)
                r = config_read_dataset(cfg_getnsec(cfg, "dataset", (unsigned)i),
                                        &config->datasets[config->n_datasets++], why);
        return r;
}

/* Length in bytes of the comment that begins here, or 0. A comment without an end is left for the parser to refuse. */
static size_t comment_length(const char *at, char before) {
        const char *end;

        if (!strchr(" \t\r\n{}", before))
                return 0; /* within a word */
        if (at[0] == '#' || (at[0] == '/' && at[1] == '/'))
                return strcspn(at, "\n");
        if (at[0] != '/' || at[1] != '*')
                return 0;
        end = strstr(at + 2, "*/");
        return end ? (size_t)(end + 2 - at) : 0;
}

/* libconfuse counts the line of a comment three times, so its errors would name wrong lines. So comments are replaced
 * by blanks before it sees them; their line breaks stay. */
static void blank_comments(char *text) {
        char quote = '\0', before = '\n';

        for (char *at = text; *at; before = *at++) {
                size_t n = quote ? 0 : comment_length(at, before);

                for (size_t i = 0; i < n; i++)
                        if (at[i] != '\n')
                                at[i] = ' ';
                if (n > 0)
                        at += n - 1;
                else if (quote && *at == '\\' && at[1])
                        at++;
                else if (*at == quote)
                        quote = '\0';
                else if (!quote && (*at == '"' || *at == '\''))
                        quote = *at;
        }
}

/* Reads the file and adds a line of our own at the end. libconfuse accepts the end of the file as the end of a section;
 * our line is valid only outside of sections, so an open section becomes an error. (A folder opens like a file, but
 * would make the scanner end the process, so it is refused here.) */
static int read_marked(const char *path, char **ret_text, struct why *why) {
        static const char MARK[] = "\n" END_MARK " = \"\"\n";
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        _cleanup_(freep) char *text = NULL;
        struct stat status;
        ssize_t n;

        if (fd < 0 || fstat(fd, &status) < 0)
                return why_errno(why, -errno, "%s", path);
        if (!S_ISREG(status.st_mode) || status.st_size > FILE_MAX)
                return why_set(why, -EINVAL, "%s: is not a configuration file (a regular file of 1 MiB at most)", path);
        text = calloc(1, (size_t)status.st_size + sizeof(MARK));
        if (!text)
                return why_errno(why, -ENOMEM, "%s", path);
        n = pread(fd, text, (size_t)status.st_size, 0);
        if (n < 0)
                return why_errno(why, -errno, "%s", path);
        if (strlen(text) < (size_t)n)
                return why_set(why, -EINVAL, "%s: is not a configuration file: it has a NUL byte", path);
        blank_comments(text);
        strcpy(text + n, MARK);
        *ret_text = TAKE_PTR(text);
        return 0;
}

/* Makes an option of libconfuse for each row. All are texts, for setting_parse() to read. */
static void make_options(const struct setting *(*row_at)(size_t idx), cfg_opt_t *options) {
        const struct setting *row;
        size_t n = 0;

        for (; (row = row_at(n)); n++) {
                assert(n < OPTIONS_MAX);
                options[n] = (cfg_opt_t)CFG_STR(row->name, NULL, CFGF_NONE);
                options[n].validcb = on_value;
        }
        options[n] = (cfg_opt_t)CFG_END();
}

static int config_parse(FILE *file, const char *path, struct config *config, struct why *why) {
        cfg_opt_t options[N_SETTINGS + 3], dataset_options[OPTIONS_MAX + 1];
        size_t n = N_SETTINGS;
        cfg_t *cfg;
        int r;

        make_options(settings_row, options);
        make_options(dataset_row, dataset_options);
        options[n] = (cfg_opt_t)CFG_SEC("dataset", dataset_options, CFGF_TITLE | CFGF_MULTI | CFGF_NO_TITLE_DUPES);
        options[n++].validcb = on_dataset;
        options[n++] = (cfg_opt_t)CFG_STR(END_MARK, NULL, CFGF_NONE);
        options[n] = (cfg_opt_t)CFG_END();

        cfg = cfg_init(options, CFGF_NONE);
        if (!cfg)
                return why_errno(why, -ENOMEM, "%s", path);
        cfg_set_error_function(cfg, config_on_error);

        parse_why.text[0] = '\0';
        parse_settings = &config->settings;
        cfg->filename = strdup(path); /* for messages; freed with it */
        r = cfg_parse_fp(cfg, file);
        if (r == CFG_SUCCESS && !cfg_getstr(cfg, END_MARK))
                r = why_set(why, -EINVAL, "%s: ends within a comment; a '*/' is missing", path);
        else if (r == CFG_SUCCESS)
                r = config_take_datasets(cfg, config, why);
        else if (strstr(parse_why.text, END_MARK))
                r = why_set(why, -EINVAL, "%s: ends within a dataset section; a '}' is missing", path);
        else
                r = why_set(why, -EINVAL, "%s%s", parse_why.text[0] ? parse_why.text : path,
                            parse_why.text[0] ? "" : ": is not a configuration file");
        cfg_free(cfg);
        return r;
}

int config_read(const char *path, struct config *ret_config, struct why *why) {
        _cleanup_(freep) char *text = NULL;
        struct config config = { 0 };
        FILE *file;
        int r;

        r = read_marked(path, &text, why);
        if (r < 0)
                return r;
        file = fmemopen(text, strlen(text), "r");
        if (!file)
                return why_errno(why, -errno, "%s", path);
        r = config_parse(file, path, &config, why);
        fclose(file);
        if (r == 0)
                r = settings_complete(&config.settings, why);
        if (r < 0) {
                config_fini(&config);
                return r;
        }
        *ret_config = config;
        return 0;
}

void config_fini(struct config *config) {
        settings_fini(&config->settings);
        for (size_t i = 0; i < config->n_datasets; i++)
                dataset_setting_fini(&config->datasets[i]);
        free(config->datasets);
        *config = (struct config){ 0 };
}

/* ---- the commented configuration --------------------------------------------------------------------------------- */

#define LINE_MAX_COLUMNS 100u

/* Words as lines of a comment. */
static void config_print_comment(FILE *out, const char *margin, const char *text) {
        size_t column = 0;

        for (size_t n; *text; text += n) {
                text += strspn(text, " ");
                n = strcspn(text, " ");
                if (n == 0)
                        break;
                if (column > 0 && column + 1 + n > LINE_MAX_COLUMNS) {
                        fputc('\n', out);
                        column = 0;
                }
                column += (size_t)fprintf(out, "%s%.*s", column == 0 ? margin : " ", (int)n, text);
        }
        fputc('\n', out);
}

/* As it would be written: 1MiB. */
static const char *config_write_size(char text[32], uint64_t n_bytes) {
        static const char *const UNITS[] = { "", "KiB", "MiB", "GiB", "TiB" };
        size_t i = 0;

        for (; i + 1 < ARRAY_SIZE(UNITS) && n_bytes > 0 && n_bytes % 1024 == 0; i++)
                n_bytes /= 1024;
        snprintf(text, 32, "%" PRIu64 "%s", n_bytes, UNITS[i]);
        return text;
}

/* What is allowed, as a sentence; nothing for texts. */
static void config_print_bounds(FILE *out, const struct setting *row) {
        const char *at = row->kind == SETTING_CHOICE ? row->choices : row->kind == SETTING_FLAG ? "yes no" : "";
        char min[32], max[32];

        if (row->kind == SETTING_NUMBER)
                fprintf(out, "%" PRIu64 " to %" PRIu64 "%s%s. ", row->min, row->max, row->unit ? " " : "",
                        row->unit ? row->unit : "");
        if (row->kind == SETTING_SIZE && row->min > 0 && row->max < UINT64_MAX)
                fprintf(out, "%s to %s. ", config_write_size(min, row->min), config_write_size(max, row->max));
        else if (row->kind == SETTING_SIZE && row->min > 0)
                fprintf(out, "At least %s. ", config_write_size(min, row->min));
        if (*at)
                fputs("One of ", out);
        for (size_t n; *at; at += n + (at[n] == ' ')) {
                n = strcspn(at, " ");
                fprintf(out, "%.*s%s", (int)n, at, at[n] ? ", " : ". ");
        }
}

/* `indent` is that of its section; `first` and `last` are of its comment. */
static void config_print_row(FILE *out, const char *indent, const struct setting *row, const char *first,
                             const char *last) {
        bool is_bare = row->kind == SETTING_NUMBER || row->kind == SETTING_FLAG;
        const char *value = row->initial ? row->initial : row->example ? row->example : "";
        const char *quote = is_bare && row->initial ? "" : "\"";
        char comment[16], text[256] = "", prose[1024];
        FILE *words = fmemopen(text, sizeof(text), "w");

        if (words) {
                config_print_bounds(words, row);
                fputs(last, words);
                fclose(words);
        }
        snprintf(comment, sizeof(comment), "#%s%s", indent, *indent ? "# " : " ");
        snprintf(prose, sizeof(prose), "%s%s", first, row->prose);
        config_print_comment(out, comment, prose);
        if (text[0])
                config_print_comment(out, comment, text);
        fprintf(out, "#%s%s = %s%s%s\n", indent, row->name, quote, value, quote);
}

/* What a key is for: "Formats csv, jsonl: ". Nothing if it is for all. */
static void write_formats(const char *key, char *text, size_t size) {
        const struct format *format;
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; (format = format_at(i)) && !format_option_is_general(key); i++)
                for (const struct setting *row = format->options; row && row->name; row++)
                        if (strcmp(row->name, key) == 0)
                                n += (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? ", " : "Format ",
                                                      format->name);
        if (n > 0)
                snprintf(text + n, size - n, ": ");
}

void config_print(FILE *out) {
        const struct setting *row;
        const struct format *format;
        char formats[256];
        size_t n = 0;

        config_print_comment(
                out, "# ",
                "dataloaderd.conf: the configuration of dataloaderd, see dataloaderd.conf(5). Every key is listed "
                "here with its default, as \"dataloaderd --print-config\" prints it. \"dataloaderd "
                "--check-config -c FILE\" checks a file. \"systemctl reload dataloaderd\" (SIGHUP) reads it "
                "again: datasets and the keys that say so change at once, the others at the next restart.");
        for (size_t i = 0; i < N_SETTINGS; i++) {
                fputc('\n', out);
                config_print_row(out, "", &SETTINGS[i], "",
                                 SETTINGS[i].reloads ? "A reload changes it." : "A change takes a restart.");
        }
        fputc('\n', out);
        config_print_comment(
                out, "# ",
                "A dataset. A client asks for it by its name. With an origin it is first brought to its path, once "
                "for all nodes, by \"dlctl stage NAME\" or \"systemctl start dataloaderd-stage@NAME\", see "
                "dataloaderd-stage(8), and it is not served before it is complete. Most need no more than this:");
        fputs("#\n#dataset \"photos\" {\n#    path = \"/data/photos/train\"\n#}\n#\n", out);
        for (size_t i = 0; (format = format_at(i)); i++)
                n += (size_t)snprintf(formats + n, sizeof(formats) - n, "%s%s",
                                      i ? ", " : "All keys. Formats: ", format->name);
        config_print_comment(out, "# ", formats);
        fputs("#\n#dataset \"NAME\" {\n", out);
        for (size_t i = 0; (row = dataset_row(i)); i++) {
                write_formats(row->name, formats, sizeof(formats));
                config_print_row(out, "    ", row, formats, "");
        }
        fputs("#}\n", out);
}
