#include "daemon/staging/nodes/launch_said.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/staging/nodes/cluster_guard.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define RULE_LOOKED_AT 60u /* bytes of what comes on a line that has begun: is it a rule? */

/* Copies the word that follows `key` in the text; of "a*b" that after b after a. */
static size_t launch_said_take_word(const char *text, const char *key, size_t n_key, char *into, size_t size) {
        char first[64];
        const char *star = memchr(key, '*', n_key), *found;
        size_t n = star ? (size_t)(star - key) : n_key;

        snprintf(first, sizeof(first), "%.*s", (int)n, key);
        found = strstr(text, first);
        if (found && star)
                return launch_said_take_word(found, star + 1, n_key - n - 1, into, size);
        if (!found)
                return (size_t)snprintf(into, size, "?");
        found += n;
        found += strspn(found, " ");
        n = strcspn(found, " \n");
        return (size_t)snprintf(into, size, "%.*s", (int)n, found);
}

/* What ssh or another agent said. If it names none of the hosts the list of them has to do. */
static size_t take_before(const struct said *said, char *into, size_t size) {
        _cleanup_(freep) char *hosts = strdup(said->hosts);
        char *rest = NULL;

        for (char *host = hosts ? strtok_r(hosts, ", \t", &rest) : NULL; host; host = strtok_r(NULL, ", \t", &rest))
                if (strstr(said->before, host))
                        return (size_t)snprintf(into, size, "%s", said->before);
        return (size_t)snprintf(into, size, "%s%sone of %.150s", said->before, said->before[0] ? ": " : "",
                                said->hosts);
}

static void write_sentence(struct said *said, const char *form) {
        size_t n = 0;

        for (const char *place = form; *place && n < sizeof(said->sentence) - 1;) {
                const char *end = *place == '{' ? strchr(place, '}') : NULL;
                size_t left = sizeof(said->sentence) - n, written;

                if (!end) {
                        said->sentence[n++] = *place++;
                        continue;
                }
                if (end == place + 1)
                        written = take_before(said, said->sentence + n, left);
                else
                        written = launch_said_take_word(said->text, place + 1, (size_t)(end - place - 1),
                                                        said->sentence + n, left);
                n += written < left ? written : left - 1;
                place = end + 1;
        }
        said->sentence[n] = '\0';
        text_make_printable(said->sentence);
}

static void log_paragraph(const struct said *said, char *text) {
        char *rest = NULL;

        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                if (!said->launcher->is_rule(line, strlen(line)))
                        log_debug("launch", "%s: %s", said->launcher->name, line);
}

static void end_paragraph(struct said *said, bool is_whole) {
        const struct launcher *launcher = said->launcher;

        said->in_paragraph = false;
        said->text[said->n_text] = '\0';
        for (size_t i = 0; is_whole && i < launcher->n_paragraphs; i++) {
                const struct said_paragraph *paragraph = &launcher->paragraphs[i];

                if (!strstr(said->text, paragraph->has))
                        continue;
                said->meaning |= paragraph->meaning;
                /* The first is the cause, the rest follows from it. */
                if (paragraph->sentence && !said->sentence[0] && said->last_word == 0)
                        write_sentence(said, paragraph->sentence);
                log_paragraph(said, said->text);
                return;
        }
        said->pass_on(said->userdata, said->text, said->n_text);
}

static bool is_noise(const struct launcher *launcher, const char *line, size_t n) {
        if (!launcher->may_be_own(line, n))
                return false;
        for (size_t i = 0; i < launcher->n_noisy_lines; i++)
                if (strstr(line, launcher->noisy_lines[i]))
                        return true;
        return false;
}

/* The last that was said before the launcher said anything, on one line. */
static void remember_before(struct said *said, const char *line, size_t n) {
        size_t used = strlen(said->before);

        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) /* ssh ends its lines with both */
                n--;
        if (said->meaning != 0 || n == 0)
                return;
        if (used + n + 3 > sizeof(said->before))
                used = 0;
        snprintf(said->before + used, sizeof(said->before) - used, "%s%.*s", used > 0 ? "; " : "", (int)n, line);
}

static void take_our_word(struct said *said, const char *line) {
        int status = 0;

        if (strcmp(line, FIRST_WORD "\n") == 0)
                said->has_begun = true;
        if (sscanf(line, LAST_WORD "%d", &status) != 1 || status <= 0 || status > 255)
                return;
        if (said->last_word == 0)
                said->last_word = status;
        said->meaning |= SAID_PROGRAM;
}

static void take_noise(struct said *said, const char *line, size_t n) {
        while (n > 0 && line[n - 1] == '\n')
                n--;
        log_debug("launch", "%s: %.*s", said->launcher->name, (int)n, line);
        if (said->error[0] || !strstr(line, said->launcher->error_line))
                return;
        snprintf(said->error, sizeof(said->error), "%.*s", (int)n, line);
        text_make_printable(said->error);
}

static void take_line(struct said *said) {
        char *line = said->line;
        size_t n = said->n_line;

        said->n_line = 0;
        line[n] = '\0';
        if (line[0] == LAST_WORD[0]) {
                take_our_word(said, line);
        } else if (said->in_paragraph) {
                if (n > sizeof(said->text) - 1 - said->n_text) {
                        end_paragraph(said, false);
                        said->pass_on(said->userdata, line, n);
                        return;
                }
                memcpy(said->text + said->n_text, line, n);
                said->n_text += n;
                if (said->launcher->is_rule(line, n))
                        end_paragraph(said, true);
        } else if (said->launcher->is_rule(line, n)) {
                said->in_paragraph = true;
                memcpy(said->text, line, n);
                said->n_text = n;
        } else if (is_noise(said->launcher, line, n)) {
                take_noise(said, line, n);
        } else {
                remember_before(said, line, n);
                said->pass_on(said->userdata, line, n);
        }
}

/* Could what is held be the beginning of a line of the launcher's, or of a word of ours? */
static bool launch_said_may_be_own(const struct said *said) {
        return said->in_paragraph || said->line[0] == LAST_WORD[0] ||
               said->launcher->may_be_own(said->line, said->n_line);
}

/* The rest of a line that passes; up to a last word that cuts in. Returns how many bytes that were. */
static size_t pass_until_end(struct said *said, const char *bytes, size_t n_bytes) {
        size_t n = 0;

        while (n < n_bytes && said->is_passing && bytes[n] != LAST_WORD[0])
                said->is_passing = bytes[n++] != '\n';
        if (n > 0)
                said->pass_on(said->userdata, bytes, n);
        if (n < n_bytes)
                said->is_passing = false;
        return n;
}

void said_feed(struct said *said, const char *bytes, size_t n_bytes) {
        if (said->is_passing && said->launcher->is_rule(bytes, n_bytes < RULE_LOOKED_AT ? n_bytes : RULE_LOOKED_AT))
                said->is_passing = false; /* the launcher cuts in on a line without an end */
        for (size_t i = 0; i < n_bytes; i++) {
                if (said->is_passing) {
                        size_t n = pass_until_end(said, bytes + i, n_bytes - i);

                        if (n > 0) {
                                i += n - 1;
                                continue;
                        }
                }
                if (bytes[i] == LAST_WORD[0] && said->n_line > 0)
                        take_line(said); /* it cuts in */
                said->line[said->n_line++] = bytes[i];
                if (bytes[i] == '\n') {
                        take_line(said);
                } else if (said->n_line == sizeof(said->line) - 1) {
                        said->is_passing = !said->in_paragraph;
                        take_line(said);
                }
        }
        said->line[said->n_line] = '\0';
        if (said->n_line > 0 && !launch_said_may_be_own(said)) {
                said->is_passing = true;
                said->pass_on(said->userdata, said->line, said->n_line);
                said->n_line = 0;
        }
}

void said_end(struct said *said) {
        if (said->n_line > 0)
                take_line(said);
        if (said->in_paragraph)
                end_paragraph(said, false);
}
