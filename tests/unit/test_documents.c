/* What the documents say is what the program does: settings, counters, options and the public header are compared
 * with the manual pages. A row that is added to a table and forgotten in its page fails here.
 *
 * Pages are read as text, from the project's root, and flattened: no fonts, one logical line a source line, an empty
 * line before each tagged paragraph and section. So "an entry" is the text from a line that begins so to the next empty
 * line. */
#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/augment/recipe.h"
#include "daemon/augment/step.h"
#include "daemon/core/config.h"
#include "daemon/data/format.h"
#include "daemon/decode/decode.h"
#include "daemon/pipeline/counters.h"
#include "proto/order/making/order_text.h"
#include "proto/order/steps/sampler_step.h"

#define TEXT_MAX (1u << 20) /* bytes of one file, or of all sources of one program */

/* ---- files --------------------------------------------------------------------------------------------------- */

static void append_file(char *text, const char *path) {
        size_t used = strlen(text), n;
        FILE *file = fopen(path, "re");

        ck_assert_msg(file != NULL, "%s cannot be opened: run from the project's root", path);
        n = fread(text + used, 1, TEXT_MAX - used - 1, file);
        text[used + n] = '\0';
        ck_assert_msg(used + n < TEXT_MAX - 1, "%s is larger than this test expects", path);
        fclose(file);
}

static char *read_text(const char *path) {
        char *text = calloc(1, TEXT_MAX);

        ck_assert_ptr_nonnull(text);
        append_file(text, path);
        return text;
}

/* All C files of a folder and of those in it, one after the other. */
static void append_sources(char *text, const char *folder) {
        DIR *dir = opendir(folder);
        struct dirent *entry;
        char path[512];

        ck_assert_msg(dir != NULL, "%s cannot be opened: run from the project's root", folder);
        while ((entry = readdir(dir))) {
                size_t n = strlen(entry->d_name);

                snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
                if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
                        append_sources(text, path);
                else if (n > 2 && strcmp(entry->d_name + n - 2, ".c") == 0)
                        append_file(text, path);
        }
        closedir(dir);
}

static char *read_sources(const char *folder) {
        char *text = calloc(1, TEXT_MAX);

        ck_assert_ptr_nonnull(text);
        append_sources(text, folder);
        return text;
}

/* ---- roff to text -------------------------------------------------------------------------------------------- */

/* Copies one character or escape sequence; returns what follows it. */
static const char *flatten_character(const char *at, char **out) {
        if (*at != '\\') {
                *(*out)++ = *at;
                return at + 1;
        }
        switch (at[1]) {
        case 'f': /* \fB, \fP */
                return at + (at[2] ? 3 : 2);
        case '(': /* \(dq */
                if (strncmp(at, "\\(dq", 4) == 0)
                        *(*out)++ = '"';
                return at + (at[2] && at[3] ? 4 : 2);
        case '&':
                return at + 2;
        case '\n': /* the line goes on */
                return at + 2;
        case '\0':
                return at + 1;
        default: /* \-, \e and the like stand for themselves */
                *(*out)++ = at[1];
                return at + 2;
        }
}

/* The arguments of a macro: quotes group, and the macros of two fonts (.BI) put nothing between arguments. */
static const char *flatten_arguments(const char *at, bool joined, char **out) {
        bool quoted = false;

        while (*at && *at != '\n') {
                if (*at == '"') {
                        quoted = !quoted;
                        at++;
                } else if (*at == ' ' && !quoted) {
                        at += strspn(at, " ");
                        if (!joined)
                                *(*out)++ = ' ';
                } else {
                        at = flatten_character(at, out);
                }
        }
        return at;
}

static bool is_one_of(const char *word, const char *words) {
        const char *found = strstr(words, word);

        return found && (found == words || found[-1] == ' ') && strchr(" ", found[strlen(word)]);
}

static const char *flatten_macro(const char *at, char **out) {
        char name[8] = "";
        size_t n = strcspn(at + 1, " \n");

        if (at[1] == '\\') /* a comment */
                return at + strcspn(at, "\n");
        snprintf(name, sizeof(name), "%.*s", (int)n, at + 1);
        at += 1 + n;
        at += strspn(at, " ");
        if (is_one_of(name, "TP PP SH SS TH"))
                *(*out)++ = '\n';
        return flatten_arguments(at, is_one_of(name, "BI BR IB IR RB RI"), out);
}

/* The page as text, to be freed. It begins with an empty line, so that each line has a newline in front. */
static char *read_page(const char *path) {
        char *roff = read_text(path), *text = malloc(2 * TEXT_MAX), *out = text;
        const char *at = roff;

        ck_assert_ptr_nonnull(text);
        *out++ = '\n';
        while (*at) {
                if (*at == '.')
                        at = flatten_macro(at, &out);
                while (*at && *at != '\n')
                        at = flatten_character(at, &out);
                if (*at)
                        *out++ = *at++;
        }
        *out = '\0';
        free(roff);
        return text;
}

/* The entry that begins with a line of just these words (`whole`) or with a line that begins so; to be freed. NULL if
 * there is none. */
static char *find_entry(const char *page, const char *words, bool whole) {
        const char *found = page, *end;
        size_t n = strlen(words);

        while ((found = strstr(found, words))) {
                if (found > page && found[-1] == '\n' && (!whole || found[n] == '\n')) {
                        end = strstr(found, "\n\n");
                        return end ? strndup(found, (size_t)(end - found)) : strdup(found);
                }
                found += n;
        }
        return NULL;
}

/* Does a text hold the word, and not merely as a part of a longer one? "--rank" is not in "--ranks". */
static bool has_word(const char *text, const char *word) {
        size_t n = strlen(word);

        for (const char *found = strstr(text, word); found; found = strstr(found + 1, word)) {
                char before = found > text ? found[-1] : ' ', after = found[n];

                if (!isalnum((unsigned char)before) && !strchr("_-", before) && !isalnum((unsigned char)after) &&
                    (after == '\0' || !strchr("_-", after)))
                        return true;
        }
        return false;
}

static void expect_word(const char *page, const char *text, const char *word, const char *where) {
        ck_assert_msg(has_word(text, word), "%s does not say \"%s\" %s", page, word, where);
}

/* ---- settings ------------------------------------------------------------------------------------------------ */

#define CONFIG_PAGE "client/man/dataloaderd.conf.5"
#define CONFIG_FILE "config/dataloaderd.conf"

static bool is_number(const struct setting *setting) {
        return setting->kind == SETTING_NUMBER;
}

/* Is it written without quotes? */
static bool is_bare(const struct setting *setting) {
        return is_number(setting) || setting->kind == SETTING_FLAG;
}

/* "workers = 0" */
static void assignment(const struct setting *setting, char *text, size_t size) {
        const char *value = setting->initial ? setting->initial : setting->example ? setting->example : "";
        const char *quote = setting->initial && is_bare(setting) ? "" : "\"";

        snprintf(text, size, "%s = %s%s%s", setting->name, quote, value, quote);
}

/* The rows of settings, of a dataset's keys and of formats' keys; NULL after the last one. */
static const struct setting *row_of(size_t idx) {
        if (idx < N_SETTINGS)
                return &SETTINGS[idx];
        idx -= N_SETTINGS;
        return idx < N_DATASET_SETTINGS ? &DATASET_SETTINGS[idx] : format_option_at(idx - N_DATASET_SETTINGS);
}

START_TEST(each_setting_has_an_entry_with_its_default_its_range_and_what_a_reload_does) {
        const struct setting *setting = row_of((size_t)_i);
        bool of_dataset = (size_t)_i >= N_SETTINGS;
        char *page = read_page(CONFIG_PAGE), words[256], range[64], choices[128], *entry;

        assignment(setting, words, sizeof(words));
        entry = find_entry(page, words, true);
        ck_assert_msg(entry != NULL, CONFIG_PAGE " has no entry \"%s\"", words);

        if (is_number(setting)) {
                snprintf(range, sizeof(range), "%" PRIu64 " to %" PRIu64, setting->min, setting->max);
                expect_word(CONFIG_PAGE, entry, range, setting->name);
        }
        snprintf(choices, sizeof(choices), "%s", setting->choices ? setting->choices : "");
        for (char *rest = NULL, *choice = strtok_r(choices, " ", &rest); choice; choice = strtok_r(NULL, " ", &rest))
                expect_word(CONFIG_PAGE, entry, choice, setting->name);
        if (!of_dataset)
                expect_word(CONFIG_PAGE, entry, setting->reloads ? "A reload changes it." : "A change takes a restart.",
                            setting->name);
        free(entry);
        free(page);
}
END_TEST

START_TEST(the_shipped_configuration_is_what_the_daemon_prints) {
        char *file = read_text(CONFIG_FILE), *printed = NULL;
        size_t size;
        FILE *out = open_memstream(&printed, &size);

        ck_assert_ptr_nonnull(out);
        config_print(out);
        fclose(out);
        ck_assert_msg(strcmp(file, printed) == 0, CONFIG_FILE " is not what --print-config prints: make settings-page");
        free(printed);
        free(file);
}
END_TEST

/* ---- pipelines ----------------------------------------------------------------------------------------------- */

START_TEST(the_example_of_a_step_is_a_text) {
        const struct kind *kind = picture_steps.kinds[_i];
        struct recipe *recipe = NULL;
        struct why why = {};

        ck_assert_msg(recipe_parse(kind->example, &recipe, &why) == 0, "%s: %s", kind->example, why.text);
        recipe_free(recipe);
}
END_TEST

START_TEST(the_example_of_a_sampler_is_a_text) {
        struct dlp_order_text *parsed = malloc(sizeof(*parsed));

        ck_assert_ptr_nonnull(parsed);
        for (const struct kind *const *kind = dlp_samplers.kinds; *kind; kind++) {
                struct why why = {};

                ck_assert_msg(dlp_order_text_parse((*kind)->example, parsed, &why) == 0, "%s: %s", (*kind)->example,
                              why.text);
        }
        free(parsed);
}
END_TEST

/* But not the one for an object of the trainer's, and not what staging packs. */
START_TEST(the_page_of_what_is_supported_has_each_format) {
        char *page = read_text("docs/support.md"), row[64];
        const struct format *format;

        for (size_t i = 0; (format = format_at(i)); i++) {
                snprintf(row, sizeof(row), "`%s`", format->name);
                ck_assert_msg(format->is_object || format->is_prepared || strstr(page, row),
                              "docs/support.md has no %s", row);
        }
        free(page);
}
END_TEST

/* ---- pictures ------------------------------------------------------------------------------------------------ */

#define DATASETS_PAGE "client/man/dataloaderd-datasets.7"

/* The decoder lists its formats when it refuses a file. */
START_TEST(the_manual_names_each_picture_format) {
        char *page = read_page(DATASETS_PAGE), *list;
        struct decoder *decoder = NULL;
        struct image_info info;
        struct why why;
        size_t n = 0;

        ck_assert_int_eq(decoder_new(&DECODE_LIMITS_DEFAULT, DECODE_JPEG_AUTO, &decoder, NULL), 0);
        ck_assert_int_eq(decoder_open(decoder, (const uint8_t *)"no picture", 10, &info, &why), -ENOTSUP);
        list = strstr(why.text, "handled are ");
        ck_assert_msg(list != NULL, "%s", why.text);
        for (char *rest = NULL, *name = strtok_r(list + strlen("handled are "), ", ", &rest); name;
             name = strtok_r(NULL, ", ", &rest), n++)
                expect_word(DATASETS_PAGE, page, name, "which the decoder handles");
        ck_assert_uint_ge(n, 7);
        decoder_free(decoder);
        free(page);
}
END_TEST

/* ---- counters ------------------------------------------------------------------------------------------------ */

#define DLCTL_PAGE "client/man/dlctl.1"

static const char *const COUNTERS[] = {
#define ROW(name, ...) #name,
        NODE_COUNTERS(ROW)
#undef ROW
};

START_TEST(each_counter_is_explained) {
        char *page = read_page(DLCTL_PAGE), *entry = find_entry(page, COUNTERS[_i], true);

        ck_assert_msg(entry != NULL, DLCTL_PAGE " has no entry for the counter %s", COUNTERS[_i]);
        ck_assert_msg(strlen(entry) > strlen(COUNTERS[_i]) + 10, DLCTL_PAGE " does not explain %s", COUNTERS[_i]);
        free(entry);
        free(page);
}
END_TEST

/* ---- options ------------------------------------------------------------------------------------------------- */

/* Behind a comment or a character literal, or where `at` is. */
static const char *skip_no_text(const char *at) {
        const char *end;

        if (strncmp(at, "/*", 2) == 0) {
                end = strstr(at + 2, "*/");
                return end ? end + 2 : at + strlen(at);
        }
        if (*at == '\'' && at[1]) {
                end = strchr(at + (at[1] == '\\' && at[2] ? 3 : 2), '\'');
                return end ? end + 1 : at + strlen(at);
        }
        return at;
}

/* What a C source says to people: its texts in quotes, a line each; to be freed. */
static char *literals_of(const char *source) {
        char *text = malloc(2 * TEXT_MAX), *out = text;

        ck_assert_ptr_nonnull(text);
        *out++ = '\n';
        while (*source) {
                const char *next = skip_no_text(source);

                if (next > source) {
                        source = next;
                        continue;
                }
                if (*source++ != '"')
                        continue;
                while (*source && *source != '"') {
                        *out++ = *source;
                        source += *source == '\\' && source[1] ? 2 : 1;
                }
                *out++ = '\n';
                source += *source == '"';
        }
        *out = '\0';
        return text;
}

/* The next long option of a text, with its dashes; false when there is none. */
static bool next_option(const char **at, char *option, size_t size) {
        const char *found = *at;

        while ((found = strstr(found, "--"))) {
                size_t n = strspn(found + 2, "abcdefghijklmnopqrstuvwxyz-") + 2;

                *at = found + n;
                if (n > 3 && found[2] != '-' && found[n - 1] != '-') {
                        snprintf(option, size, "%.*s", (int)n, found);
                        return true;
                }
                found += n;
        }
        return false;
}

/* Options that a program prints, in its help or in a message. */
static size_t expect_printed_options(const char *literals, const char *path) {
        char *page = read_page(path), option[64];
        size_t n = 0;

        while (next_option(&literals, option, sizeof(option))) {
                expect_word(path, page, option, "though the program does");
                n++;
        }
        free(page);
        return n;
}

/* Options that stand in a table: { "rank", required_argument, ... or { "rank", OPTION_COUNT, ... */
static size_t expect_table_options(const char *source, const char *path) {
        char *page = read_page(path), option[64];
        size_t n = 0;

        for (const char *row = strstr(source, "{ \""); row; row = strstr(row + 1, "{ \"")) {
                size_t n_name = strcspn(row + 3, "\"");
                const char *kind = row + 3 + n_name + strspn(row + 3 + n_name, "\", ");

                if (strncmp(kind, "required_argument", 17) != 0 && strncmp(kind, "no_argument", 11) != 0 &&
                    strncmp(kind, "OPTION_", 7) != 0)
                        continue;
                snprintf(option, sizeof(option), "--%.*s", (int)n_name, row + 3);
                expect_word(path, page, option, "though the program takes it");
                n++;
        }
        free(page);
        return n;
}

/* And the other way round: an option of the page is printed by the program or is a name in its table. */
static void expect_no_other_option(const char *literals, const char *path) {
        char *page = read_page(path), option[64], name[64];
        const char *at = page;

        while (next_option(&at, option, sizeof(option))) {
                snprintf(name, sizeof(name), "\n%s\n", option + 2);
                ck_assert_msg(has_word(literals, option) || strstr(literals, name),
                              "%s has %s, which the program does not know", path, option);
        }
        free(page);
}

START_TEST(the_manual_has_each_option_of_dlctl_and_no_other) {
        char *source = read_sources("client/dlctl"), *literals = literals_of(source);

        ck_assert_uint_gt(expect_printed_options(literals, DLCTL_PAGE), 0);
        ck_assert_uint_gt(expect_table_options(source, DLCTL_PAGE), 15);
        expect_no_other_option(literals, DLCTL_PAGE);
        free(literals);
        free(source);
}
END_TEST

/* Rows of the table of commands: { "status", "", ... */
START_TEST(the_manual_has_a_section_for_each_command_and_no_other) {
        char *source = read_text("client/dlctl/dlctl_main.c"), *manual = read_text(DLCTL_PAGE), section[64];
        char *at = strstr(source, "COMMANDS[] = {"), *end;
        size_t n = 0, n_sections = 0;

        ck_assert_ptr_nonnull(at);
        end = strstr(at, "\n};");
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        while ((at = strstr(at, "\n        { \""))) {
                at += strlen("\n        { \"");
                snprintf(section, sizeof(section), "\n.SS %.*s\n", (int)strcspn(at, "\""), at);
                ck_assert_msg(strstr(manual, section) != NULL, DLCTL_PAGE " has no section%s", section);
                n++;
        }
        for (char *next = strstr(manual, "\n.SS "); next; next = strstr(next + 1, "\n.SS "))
                n_sections++;
        ck_assert_uint_eq(n, n_sections);
        ck_assert_uint_gt(n, 5);
        free(manual);
        free(source);
}
END_TEST

#define DAEMON_PAGE "client/man/dataloaderd.8"

START_TEST(the_manual_has_each_option_of_dataloaderd) {
        char *source = read_text("daemon/main.c"), *literals = literals_of(source);

        ck_assert_uint_gt(expect_printed_options(literals, DAEMON_PAGE), 0);
        ck_assert_uint_gt(expect_table_options(source, DAEMON_PAGE), 0);
        free(literals);
        free(source);
}
END_TEST

#define STAGE_PAGE "client/man/dataloaderd-stage.8"
#define STAGE_MAIN "daemon/staging/run/stage_options.c"

START_TEST(the_manual_has_each_option_of_dataloaderd_stage) {
        char *source, *literals;

        if (access(STAGE_MAIN, F_OK) < 0)
                return;
        source = read_text(STAGE_MAIN);
        literals = literals_of(source);
        ck_assert_uint_gt(expect_printed_options(literals, STAGE_PAGE), 0);
        ck_assert_uint_gt(expect_table_options(source, STAGE_PAGE), 0);
        free(literals);
        free(source);
}
END_TEST

/* ---- the public headers -------------------------------------------------------------------------------------- */

static const struct library {
        const char *header, *page, *options; /* the struct of its options */
        size_t n_functions, n_options;       /* it has more */
} LIBRARIES[] = {
        { "client/include/dlclient.h", "client/man/libdlclient.3", "struct dlc_options {", 10, 15 },
        { "client/include/dlclient-cuda.h", "client/man/libdlclient-cuda.3", "struct dlc_cuda_options {", 5, 3 },
};

START_TEST(the_manual_has_each_function_of_the_header) {
        const struct library *library = &LIBRARIES[_i];
        char *header = read_text(library->header), *page = read_page(library->page), name[64], why[128];
        size_t n = 0;

        snprintf(why, sizeof(why), "which %s declares", library->header);
        for (char *at = strstr(header, "\nDLC_API "); at; at = strstr(at + 1, "\nDLC_API ")) {
                char *end = at + strcspn(at, "("), *begin = end;

                while (begin > at && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
                        begin--;
                snprintf(name, sizeof(name), "%.*s", (int)(end - begin), begin);
                expect_word(library->page, page, name, why);
                n++;
        }
        ck_assert_uint_gt(n, library->n_functions);
        free(page);
        free(header);
}
END_TEST

/* Field names: the word before each ';' of the struct, "(*x)" aside, which these structs do not have. */
START_TEST(the_manual_has_each_option_of_the_header) {
        const struct library *library = &LIBRARIES[_i];
        char *header = read_text(library->header), *page = read_page(library->page), name[64], *at, *end;
        size_t n = 0;

        at = strstr(header, library->options);
        ck_assert_ptr_nonnull(at);
        end = strstr(at, "\n};");
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        for (char *rest = NULL, *line = strtok_r(at, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                char *stop = strchr(line, ';'), *begin = stop;

                line += strspn(line, " ");
                if (!stop || *line == '*' || *line == '/') /* inside a comment */
                        continue;
                while (begin > line && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
                        begin--;
                snprintf(name, sizeof(name), "%.*s", (int)(stop - begin), begin);
                if (strcmp(name, "size") == 0) /* DLC_OPTIONS_INIT's */
                        continue;
                expect_word(library->page, page, name, "which is an option");
                n++;
        }
        ck_assert_uint_gt(n, library->n_options);
        free(page);
        free(header);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("documents");
        TCase *tcase = tcase_create("documents");
        SRunner *runner;
        int n_failed, n_rows = 0, n_steps = 0;

        while (row_of((size_t)n_rows))
                n_rows++;
        tcase_add_loop_test(tcase, each_setting_has_an_entry_with_its_default_its_range_and_what_a_reload_does, 0,
                            n_rows);
        tcase_add_test(tcase, the_shipped_configuration_is_what_the_daemon_prints);
        while (picture_steps.kinds[n_steps])
                n_steps++;
        tcase_add_loop_test(tcase, the_example_of_a_step_is_a_text, 0, n_steps);
        tcase_add_test(tcase, the_example_of_a_sampler_is_a_text);
        tcase_add_loop_test(tcase, each_counter_is_explained, 0, (int)(sizeof(COUNTERS) / sizeof(COUNTERS[0])));
        tcase_add_test(tcase, the_page_of_what_is_supported_has_each_format);
        tcase_add_test(tcase, the_manual_names_each_picture_format);
        tcase_add_test(tcase, the_manual_has_a_section_for_each_command_and_no_other);
        tcase_add_test(tcase, the_manual_has_each_option_of_dlctl_and_no_other);
        tcase_add_test(tcase, the_manual_has_each_option_of_dataloaderd);
        tcase_add_test(tcase, the_manual_has_each_option_of_dataloaderd_stage);
        tcase_add_loop_test(tcase, the_manual_has_each_function_of_the_header, 0,
                            (int)(sizeof(LIBRARIES) / sizeof(LIBRARIES[0])));
        tcase_add_loop_test(tcase, the_manual_has_each_option_of_the_header, 0,
                            (int)(sizeof(LIBRARIES) / sizeof(LIBRARIES[0])));
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
