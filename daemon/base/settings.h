/* base/settings.h: the settings of the configuration. Each is defined once, by its row in settings_rows.h: name, kind,
 * default, bounds, whether a reload changes it, and a sentence.
 *
 * The members of struct settings are made of the rows, and whoever needs a value reads it where core/ keeps the
 * settings in force: `settings->outage_timeout`. Nobody copies it. The parser, the reload, `dlctl status`, the
 * commented configuration and the manual page are made of the rows, too. So adding a setting is adding its row, and
 * its use.
 *
 * Threads: the settings in force stay where they are for the life of the daemon, and any thread may read them. What
 * takes a restart is never written after the start. A reload, which the main thread makes, stores numbers and flags,
 * which are atomic: the next read has the new value. Texts that a reload changes (and `admin_list`) are read by the
 * main thread alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/machine/admins.h"
#include "proto/base/why.h"

#define WORKERS_MAX 4096u

enum setting_kind {
        SETTING_TEXT,     /* not empty, at most `max` bytes */
        SETTING_OPTIONAL, /* the same, but "" is allowed: not set */
        SETTING_OCTAL,    /* permissions */
        SETTING_CHOICE,   /* one of `choices` */
        SETTING_SHARE,    /* a share of the CPUs (base/machine/cpus.h) */
        SETTING_FLAG,     /* "yes" or "no" */
        SETTING_NUMBER,   /* within min..max */
        SETTING_SIZE,     /* bytes within min..max, written with KiB, MiB, GiB */
};

struct setting {
        const char *name;
        enum setting_kind kind;
        size_t offset;       /* of the member in struct settings, or in another one that is made of rows */
        const char *initial; /* the default, as it would be written; NULL: computed, or there is none */
        const char *example; /* what the commented configuration shows if there is no default */
        uint64_t min, max;
        const char *choices; /* blank-separated */
        const char *unit;    /* NULL: none */
        const char *prose;
        bool reloads; /* SIGHUP changes it; else it takes a restart, and the reload says so */
        int (*check)(const char *text, struct why *why); /* further check of a text that is not empty; or NULL */
};

/* The types of members, by kind. Texts are never NULL once the defaults are filled in. */
#define SETTING_IS_TEXT     char *
#define SETTING_IS_OPTIONAL char *
#define SETTING_IS_OCTAL    char *
#define SETTING_IS_CHOICE   char *
#define SETTING_IS_SHARE    char *
#define SETTING_IS_FLAG     _Atomic bool
#define SETTING_IS_NUMBER   _Atomic uint64_t
#define SETTING_IS_SIZE     _Atomic uint64_t

struct settings {
#define SETTING(key, type, ...) SETTING_IS_##type key;
#include "daemon/base/settings_rows.h"
        struct admins admin_list; /* of `admins`, looked up */
};

enum {
        N_SETTINGS = 0
#define SETTING(key, type, ...) +1
#include "daemon/base/settings_rows.h"
};

extern const struct setting SETTINGS[N_SETTINGS];

/* Fills in the defaults of what is not set, and what is computed (index_dir, admin_list). Blocks while names of users
 * are looked up. */
int settings_complete(struct settings *settings, struct why *why);

/* Makes `settings`, which are in force, what a reload may make of them; both are complete. `stays` is called for each
 * value that differs and takes a restart. `next` is left with what is not in force. Main thread. */
void settings_reload(struct settings *settings, struct settings *next,
                     void (*stays)(void *userdata, const struct setting *setting, const char *now, const char *next),
                     void *userdata);

/* Creates missing folders above index_dir, if it is the default (~/.cache is missing in a new home). A folder that
 * cannot be created is reported when an index cannot be saved. */
void settings_make_cache(const struct settings *settings);

void settings_fini(struct settings *settings);

/* ---- rows, also of other structs ------------------------------------------------------------------------------ */

/* A row by its name, or NULL. */
const struct setting *setting_find(const struct setting *rows, size_t n_rows, const char *name);

/* Takes a text for a setting; without `fields` (a struct settings, or what else the row's offset counts in) it is
 * only checked. -EINVAL, saying what is allowed; -ENOMEM. */
int setting_parse(const struct setting *setting, void *fields, const char *text, struct why *why);

/* For rows: an absolute path. */
int setting_check_path(const char *text, struct why *why);

/* A number or a size that setting_parse() allows. */
int setting_parse_number(const struct setting *setting, const char *text, uint64_t *ret_value, struct why *why);

/* Writes a value as text. Returns `buffer` or text of the settings. */
const char *setting_value(const struct setting *setting, const void *fields, char buffer[32]);

/* Fills in the defaults of rows that `fields` has not set. */
int settings_fill(const struct setting *rows, size_t n_rows, void *fields, struct why *why);

/* Frees the texts of rows. */
void settings_free_texts(const struct setting *rows, size_t n_rows, void *fields);
