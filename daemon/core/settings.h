/* core/settings.h: every setting, defined once: name, kind, default, range, unit, prose, and whether a reload changes
 * it.
 *
 * The configuration parser, `dlctl status`, and the check that the manual page and the commented configuration name
 * them all are made from two tables: SETTINGS in settings.c, DATASET_SETTINGS in dataset_settings.c. Adding a setting
 * is adding a field here and a row there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/machine/admins.h"
#include "daemon/base/machine/groups.h"
#include "proto/base/why.h"

/* Texts are never NULL: "" means not set, unless a default is named. */
struct dataset_setting {
        char *name, *path, *format;
        char *fields, *split; /* data/view/view.h */
        char *allow_missing;  /* data/files/complete.h */
        char *options; /* of the format: lines "KEY=VALUE", of the rows below that are set (data/format_options.h) */

        /* Of formats: "" is not set. */
        char *annotations, *files, *raw, *pattern, *label, *join, *delimiter, *columns, *skip_lines, *sample,
                *block_size;

        /* Staging: without an origin these have no effect. */
        char *origin;                                                 /* URL; "": the dataset is already at `path` */
        char *origin_kind;                                            /* staging/record/origin_kind.h; "auto" */
        char *endpoint, *region, *addressing, *credentials, *ca_file; /* staging/fetch/fetch_http.h */
        int64_t connections;                                          /* 16 */
        char *unpack;                                                 /* "auto", "yes", "no" */
        uint64_t unpack_limit;                                        /* bytes; 0: a hundred times the archive */
        char *prepare;         /* steps applied to each sample, "resize(short=256) jpeg(90)" */
        bool pack;             /* small files into shards; `prepare` implies it */
        uint64_t shard_size;   /* bytes; 256 MiB */
        char *sharing;         /* of `path` between nodes: "auto", "local", "shared" */
        int64_t stall_timeout; /* seconds; 60 */

        char *dtype, *shape, *offset;                                       /* npy without a header */
        char *sequence_length, *splits, *part, *num_samples, *seed, *blend; /* megatron */
        char *count, *title;                                                /* numbers */
        char *merge, *stream, *field_limit, *spool, *spool_limit;           /* webdataset */
        char *allow;          /* groups whose members may use it; "": everybody who may connect */
        struct groups groups; /* of `allow`, looked up */
        char *links;          /* "inside"; "follow": those in its folder may lead out of it */
        int64_t weight;       /* 1; share of workers and reads of each of its jobs */
};

struct settings {
        char *socket;
        char *socket_mode;
        char *metrics_socket;
        char *metrics_mode;
        int64_t workers; /* 0: as many as there are CPUs for us */
        int64_t nice;
        char *cpu_ceiling;
        uint64_t memory_limit;
        char *index_dir;
        char *tokenizers;       /* the folder */
        char *plugin_dirs;      /* with ":" between them */
        char *plugins;          /* names; "": none */
        char *plugins_in;       /* "process", "daemon" */
        int64_t plugin_timeout; /* seconds */
        char *admins;
        struct admins admin_list; /* of `admins`, looked up */
        int64_t user_connections; /* percent */
        int64_t user_jobs;
        int64_t user_memory; /* percent */
        int64_t slots;
        int64_t read_depth;
        char *reader;
        char *page_cache;
        int64_t outage_timeout; /* seconds */
        uint64_t max_pixels, max_step_pixels;
        int64_t max_scans;
        char *decoder;
        char *isolation;
        int64_t isolation_timeout; /* seconds */
        char *huge_pages;
        char *lock_memory;
        char *log_level;
        char *stage_nodes;    /* hosts, blank- or comma-separated; "": this one alone */
        char *stage_network;  /* "10.0.0.0/16": where nodes talk; "": MPI chooses */
        bool paths;           /* its own user may name datasets by their paths */
        int64_t idle_timeout; /* seconds without a connection after which it ends; 0: never */

        struct dataset_setting *datasets;
        size_t n_datasets;
};

enum setting_kind {
        SETTING_TEXT,     /* char *, not empty, at most `max` bytes */
        SETTING_OPTIONAL, /* the same, but "" is allowed: not set */
        SETTING_OCTAL,    /* char *, permissions */
        SETTING_CHOICE,   /* char *, one of `choices` */
        SETTING_SHARE,    /* char *, a share of the CPUs (base/machine/cpus.h) */
        SETTING_FLAG,     /* bool, "yes" or "no" */
        SETTING_NUMBER,   /* int64_t within min..max */
        SETTING_COUNT,    /* uint64_t written as a plain number, within min..max */
        SETTING_SIZE,     /* uint64_t bytes within min..max, written with KiB, MiB, GiB */
};

struct setting {
        const char *name;
        enum setting_kind kind;
        size_t offset;       /* in struct settings, or struct dataset_setting */
        const char *initial; /* as it would be written; NULL: computed, see prose */
        uint64_t min, max;
        const char *choices; /* blank-separated */
        const char *unit;
        bool reloads; /* SIGHUP changes it; else it takes a restart, and the reload says so */
        const char *prose;
        int (*check)(const char *text, struct why *why); /* further check of a text that is not empty; or NULL */
};

extern const struct setting SETTINGS[];
extern const size_t N_SETTINGS;
extern const struct setting DATASET_SETTINGS[]; /* all of them change with a reload */
extern const size_t N_DATASET_SETTINGS;

/* Fills in what is computed (index_dir) or not set. */
int settings_complete(struct settings *settings, struct why *why);

/* Creates missing folders above index_dir, if it is the default (~/.cache is missing in a new home). A folder that
 * cannot be created is reported when an index cannot be saved. */
void settings_make_cache(const struct settings *settings);

/* The same for a dataset, whose name and path are set. It also checks that its settings are consistent: -EINVAL naming
 * the key. */
int dataset_setting_complete(struct dataset_setting *dataset, struct why *why);

/* Fills in the defaults of a table's rows that `fields` (a struct settings or dataset_setting) has not set. */
int settings_fill(const struct setting *rows, size_t n_rows, void *fields, struct why *why);

/* Frees a table's texts. */
void settings_free_texts(const struct setting *rows, size_t n_rows, void *fields);

/* A row by its name, or NULL. */
const struct setting *setting_find(const struct setting *rows, size_t n_rows, const char *name);

/* Writes a value as text. Returns `buffer` or text of the settings. `fields` is what the row's offset counts in. */
const char *setting_value(const struct setting *setting, const void *fields, char buffer[32]);

/* Takes a text for a setting. -EINVAL, saying what is allowed. */
int setting_parse(const struct setting *setting, void *fields, const char *text, struct why *why);

void settings_fini(struct settings *settings);
void dataset_setting_fini(struct dataset_setting *dataset);
