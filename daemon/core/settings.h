/* core/settings.h: every setting, defined once: name, kind, default, range, unit, prose, and whether a reload changes
 * it.
 *
 * The configuration parser, `dlctl status`, and the check that the manual page and the commented configuration name
 * them all are made from the one table in settings.c. Adding a setting is adding a field here and a row there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/why.h"

/* Texts are never NULL: "" is what was not set, unless a default is named. */
struct dataset_setting {
        char *name, *path, *format;

        /* Staging: nothing of it counts without an origin. */
        char *origin;                                                 /* URL; "": the dataset lies at `path` already */
        char *origin_kind;                                            /* stage/origin.h; "auto" */
        char *endpoint, *region, *addressing, *credentials, *ca_file; /* stage/http.h */
        int64_t connections;                                          /* 16 */
        char *unpack;                                                 /* "auto", "yes", "no" */
        uint64_t unpack_limit;                                        /* bytes; 0: a hundred times the archive */
        char *prepare;         /* what is done to each sample, "resize(short=256) jpeg(90)" */
        bool pack;             /* small files into shards; `prepare` implies it */
        uint64_t shard_size;   /* bytes; 256 MiB */
        char *sharing;         /* of `path` between nodes: "auto", "local", "shared" */
        int64_t stall_timeout; /* seconds; 60 */
};

struct settings {
        char *socket;
        char *socket_mode;
        int64_t workers; /* 0: as many as there are CPUs for us */
        int64_t nice;
        char *cpu_ceiling;
        uint64_t memory_limit;
        char *index_dir;
        int64_t slots;
        int64_t read_depth;
        char *reader;
        char *page_cache;
        uint64_t max_pixels;
        int64_t max_scans;
        char *decoder;
        char *huge_pages;
        char *lock_memory;
        char *log_level;
        char *stage_nodes;   /* hosts, blank- or comma-separated; "": this one alone */
        char *stage_network; /* "10.0.0.0/16": where nodes talk; "": MPI chooses */

        struct dataset_setting *datasets;
        size_t n_datasets;
};

enum setting_kind {
        SETTING_TEXT,   /* char *, not empty, at most `max` bytes */
        SETTING_OCTAL,  /* char *, permissions */
        SETTING_CHOICE, /* char *, one of `choices` */
        SETTING_SHARE,  /* char *, a share of the CPUs (base/cpus.h) */
        SETTING_NUMBER, /* int64_t within min..max */
        SETTING_COUNT,  /* uint64_t written as a plain number, within min..max */
        SETTING_SIZE,   /* uint64_t bytes, written with KiB, MiB, GiB */
};

struct setting {
        const char *name;
        enum setting_kind kind;
        size_t offset;       /* in struct settings */
        const char *initial; /* as it would be written; NULL: worked out, see prose */
        uint64_t min, max;
        const char *choices; /* blank-separated */
        const char *unit;
        bool reloads; /* SIGHUP changes it; else it takes a restart, and the reload says so */
        const char *prose;
};

extern const struct setting SETTINGS[];
extern const size_t N_SETTINGS;

/* Fills in what is worked out (index_dir) or not set. */
int settings_complete(struct settings *settings, struct why *why);

/* Writes a value as text. Returns `buffer` or text of the settings. */
const char *setting_value(const struct setting *setting, const struct settings *settings, char buffer[32]);

/* Takes a text for a setting. -EINVAL, saying what is allowed. */
int setting_parse(const struct setting *setting, struct settings *settings, const char *text, struct why *why);

void settings_fini(struct settings *settings);
