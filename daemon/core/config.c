#include "daemon/core/config.h"

#include <assert.h>
#include <confuse.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/shorten.h"

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

/* In a section or outside of it. */
static const char *key_hint(const cfg_t *cfg, const char *key, size_t n, struct nearest *nearest) {
        bool is_dataset = strcmp(cfg->name, "dataset") == 0;
        const struct setting *rows = is_dataset ? DATASET_SETTINGS : SETTINGS;
        size_t n_rows = is_dataset ? N_DATASET_SETTINGS : N_SETTINGS;

        nearest_begin(nearest, key, n);
        for (size_t i = 0; i < n_rows; i++)
                nearest_offer(nearest, rows[i].name);
        if (!is_dataset)
                nearest_offer(nearest, "dataset");
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

/* libconfuse calls it while it reads the line, so the error has the right line number. */
static int on_value(cfg_t *cfg, cfg_opt_t *option) {
        const struct setting *setting = setting_find(SETTINGS, N_SETTINGS, cfg_opt_name(option));
        struct why why;

        if (setting && setting_parse(setting, parse_settings, cfg_opt_getnstr(option, 0), &why) < 0) {
                cfg_error(cfg, "%s", why.text);
                return -1;
        }
        return 0;
}

/* The same within a section: the value is only checked here. */
static int on_dataset_value(cfg_t *section, cfg_opt_t *option) {
        const struct setting *setting = setting_find(DATASET_SETTINGS, N_DATASET_SETTINGS, cfg_opt_name(option));
        struct dataset_setting dataset = { 0 };
        struct why why;
        int r = 0;

        if (setting)
                r = setting_parse(setting, &dataset, cfg_opt_getnstr(option, 0), &why);
        dataset_setting_fini(&dataset);
        if (r < 0)
                cfg_error(section, "dataset \"%s\": %s", cfg_title(section), why.text);
        return r < 0 ? -1 : 0;
}

static int config_read_dataset(cfg_t *section, struct dataset_setting *dataset, struct why *why) {
        const char *name = cfg_title(section);
        int r;

        if (!*name || strlen(name) >= DLP_NAME_MAX || strchr(name, '/') || name[0] == '.')
                return why_set(why, -EINVAL,
                               "is not a valid name; use 1 to %u bytes without '/', not beginning with '.'",
                               DLP_NAME_MAX - 1);
        dataset->name = strdup(name);
        if (!dataset->name)
                return why_errno(why, -ENOMEM, "name");
        for (size_t i = 0; i < N_DATASET_SETTINGS; i++) {
                const char *text = cfg_getstr(section, DATASET_SETTINGS[i].name);

                r = text ? setting_parse(&DATASET_SETTINGS[i], dataset, text, why) : 0;
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

static int config_take_datasets(cfg_t *cfg, struct settings *settings, struct why *why) {
        size_t n = cfg_size(cfg, "dataset");
        int r = 0;

        settings->datasets = calloc(n ? n : 1, sizeof(*settings->datasets));
        if (!settings->datasets)
                return why_errno(why, -ENOMEM, "datasets");
        for (size_t i = 0; i < n && r == 0; i++)
                r = config_read_dataset(cfg_getnsec(cfg, "dataset", (unsigned)i),
                                        &settings->datasets[settings->n_datasets++], why);
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

/* Makes an option of libconfuse for each row. All are texts, for setting_parse() to read. Returns how many. */
static size_t make_options(const struct setting *rows, size_t n_rows, cfg_opt_t *options) {
        assert(n_rows <= OPTIONS_MAX);
        for (size_t i = 0; i < n_rows; i++)
                options[i] = (cfg_opt_t)CFG_STR(rows[i].name, NULL, CFGF_NONE);
        options[n_rows] = (cfg_opt_t)CFG_END();
        return n_rows;
}

static void watch_values(cfg_t *cfg) {
        char name[64];

        for (size_t i = 0; i < N_SETTINGS; i++)
                cfg_set_validate_func(cfg, SETTINGS[i].name, on_value);
        for (size_t i = 0; i < N_DATASET_SETTINGS; i++) {
                snprintf(name, sizeof(name), "dataset|%s", DATASET_SETTINGS[i].name);
                cfg_set_validate_func(cfg, name, on_dataset_value);
        }
        cfg_set_validate_func(cfg, "dataset", on_dataset);
}

static int config_parse(FILE *file, const char *path, struct settings *settings, struct why *why) {
        cfg_opt_t options[OPTIONS_MAX + 3], dataset_options[OPTIONS_MAX + 1];
        size_t n = make_options(SETTINGS, N_SETTINGS, options);
        cfg_t *cfg;
        int r;

        make_options(DATASET_SETTINGS, N_DATASET_SETTINGS, dataset_options);
        options[n++] = (cfg_opt_t)CFG_SEC("dataset", dataset_options, CFGF_TITLE | CFGF_MULTI | CFGF_NO_TITLE_DUPES);
        options[n++] = (cfg_opt_t)CFG_STR(END_MARK, NULL, CFGF_NONE);
        options[n] = (cfg_opt_t)CFG_END();

        cfg = cfg_init(options, CFGF_NONE);
        if (!cfg)
                return why_errno(why, -ENOMEM, "%s", path);
        cfg_set_error_function(cfg, config_on_error);
        watch_values(cfg);

        parse_why.text[0] = '\0';
        parse_settings = settings;
        cfg->filename = strdup(path); /* for messages; freed with it */
        r = cfg_parse_fp(cfg, file);
        if (r == CFG_SUCCESS && !cfg_getstr(cfg, END_MARK))
                r = why_set(why, -EINVAL, "%s: ends within a comment; a '*/' is missing", path);
        else if (r == CFG_SUCCESS)
                r = config_take_datasets(cfg, settings, why);
        else if (strstr(parse_why.text, END_MARK))
                r = why_set(why, -EINVAL, "%s: ends within a dataset section; a '}' is missing", path);
        else
                r = why_set(why, -EINVAL, "%s%s", parse_why.text[0] ? parse_why.text : path,
                            parse_why.text[0] ? "" : ": is not a configuration file");
        cfg_free(cfg);
        return r;
}

int config_read(const char *path, struct settings *ret_settings, struct why *why) {
        _cleanup_(freep) char *text = NULL;
        struct settings settings = { 0 };
        FILE *file;
        int r;

        r = read_marked(path, &text, why);
        if (r < 0)
                return r;
        file = fmemopen(text, strlen(text), "r");
        if (!file)
                return why_errno(why, -errno, "%s", path);
        r = config_parse(file, path, &settings, why);
        fclose(file);
        if (r == 0)
                r = settings_complete(&settings, why);
        if (r < 0) {
                settings_fini(&settings);
                return r;
        }
        *ret_settings = settings;
        return 0;
}
