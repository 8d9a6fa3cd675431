/* data/intake/intake_private.h: what the files of this folder share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "daemon/data/formats/npy_survey.h"
#include "daemon/data/formats/webdataset/tar.h"
#include "daemon/data/growing.h"
#include "daemon/data/growth.h"
#include "daemon/data/intake/intake.h"
#include "daemon/data/intake/pieces.h"
#include "daemon/data/intake/roll.h"
#include "daemon/data/intake/spool.h"
#include "daemon/data/source_type.h"

#define INTAKE_FIELDS_MAX 128u  /* as an index has */
#define INTAKE_NAME_MAX   1023u /* bytes of the name of a sample */
#define ROW_ABSENT        UINT64_MAX

/* A sample that was taken, with its places in the shard. */
struct taken_sample {
        const char *name;
        const char *broken; /* why it cannot be served; NULL: it can */
        uint32_t idx_shard;
        struct taken_row {
                uint64_t offset; /* ROW_ABSENT: it does not have the field */
                uint64_t n_bytes;
        } rows[];
};

struct taken_shard {
        const char *name; /* relative to the root */
        const char *path; /* of the file that samples are read from: `name`, or absolute in the spool */
};

/* What a walk through a shard has found, before it is published. */
struct haul {
        struct growing samples; /* struct haul_sample */
        struct growing members; /* struct haul_member, of one sample after the other */
        struct growing names;
        uint64_t n_samples;
        struct why damage;   /* what ended the shard before its end; "": nothing did */
        bool is_cut;         /* it was the end of the file */
        uint64_t end;        /* of the last member that was walked over */
        uint64_t last_begin; /* of the first header of the last sample */
        char key[INTAKE_NAME_MAX + 1];
        char passed_over[DLP_TEXT_MAX]; /* tar_passed_over() */
};

struct haul_sample {
        uint64_t name; /* offset in haul.names */
        uint64_t first_member, n_members;
};

struct haul_member {
        uint64_t offset, n_bytes;
        uint64_t idx_field; /* without padding: digest_of() reads all bytes */
};

struct intake_field {
        struct schema_field described;
        uint64_t n_samples;    /* of the first shard that have it */
        uint64_t longest;      /* bytes of it in the first shard */
        uint64_t limit;        /* a longer one is damaged */
        struct npy_survey npy; /* of the first shard */
};

/* Of a stream that is a pipe: where it is. The file is the shard that is being made. */
struct intake_pipe {
        int fd;   /* -1: not open yet */
        int file; /* of the spool; -1: none */
        char path[PATH_MAX];
        uint8_t *window; /* what was read from the pipe last, and how much of it is not in the file yet: */
        size_t n_held;   /* if the disk is full for a while, nothing may be lost, because nobody sends it again */
        uint64_t n_bytes, n_wanted; /* of the file; when it is full */
        uint64_t n_walked;          /* of them, when it was found to have no whole sample */
        uint64_t split_at; /* its samples up to here were taken, the rest is to move to another file; 0: nothing */
        bool is_over;      /* all writers have closed the pipe */
        bool has_end;      /* the archive has ended */
        bool has_more;     /* something came after that */
};

struct intake {
        struct source source; /* the first member: callers have a pointer to it */
        char *root;
        int root_fd;  /* O_PATH, its own */
        char **names; /* of a pattern; NULL: a folder */
        size_t n_names;
        char *split;          /* of the configuration; NULL: the folder has one split */
        char part[PATH_MAX];  /* the folder that has the shards, relative to the root, once there is one */
        char *spool_path;     /* where compressed shards are unpacked, without the number that is added to it */
        uint64_t spool_limit; /* bytes */
        uint64_t field_limit; /* of the configuration; 0: from the first shard */
        char digest[65];
        struct stat first; /* of the first shard */

        uint32_t n_fields;
        struct intake_field fields[INTAKE_FIELDS_MAX];

        struct pieces samples; /* struct taken_sample */
        struct pieces shards;  /* struct taken_shard */
        struct text_pool texts;
        struct budget *budget;
        struct growth *growth;

        /* The thread's own. */
        struct roll roll;
        struct spool spool;
        bool is_pipe;
        struct intake_pipe pipe;
        bool has_waited;       /* for a shard of the list: others may have come meanwhile */
        const char *last;      /* name of the shard that was taken last; NULL: none */
        struct growing listed; /* names of shards that were seen, each with a NUL; */
        const char **sorted;   /* those that come next, by name */
        size_t n_sorted, sorted_at;
        bool is_complete;    /* the list has all that will ever be there */
        struct growing late; /* names of shards that were refused, each with a NUL */
        uint64_t n_late;
        struct stat tried;             /* of a shard that was not whole when it was walked last */
        char unknown[SCHEMA_NAME_MAX]; /* a field of which was said that the first shard does not have it */

        pthread_t thread;
        bool has_thread;
        pthread_mutex_t lock; /* guards what follows */
        pthread_cond_t changed;
        bool is_ended;     /* the thread does not touch the intake any more */
        bool is_abandoned; /* the thread frees the intake */
        atomic_bool stop;
        const atomic_bool *stopped; /* what long work looks at: `stop`, or until it is open the opening's cancel flag */
};

/* ---- intake_walk.c ----------------------------------------------------------------------------------------------- */

/* Positive outcomes of taking a shard in. */
#define INTAKE_TAKEN 1
#define INTAKE_WAITS 2 /* the shard is not there, or not whole, or cannot be read now: the report has the reason */
#define INTAKE_OVER  3 /* there will be no more shards */

/* Walks through a shard. 0, also if it is damaged, which the haul then says; or an errno of reading, with `why`.
 * `is_first`: new fields are added. */
int intake_walk(struct intake *intake, int fd, const char *name, const struct stat *status, bool is_first,
                struct haul *haul, struct why *why);
void haul_fini(struct haul *haul);

/* ---- intake_take.c ----------------------------------------------------------------------------------------------- */

/* Takes the shard in, if it is there and whole. `is_complete`: nobody writes to it any more. Returns INTAKE_TAKEN,
 * INTAKE_WAITS, or, for the first shard only, an errno. */
int intake_take(struct intake *intake, const char *name, bool is_complete, struct why *why);

/* Takes what was walked over, which lies at `path` (NULL: at `name`). Returns as intake_take(). */
int intake_take_walked(struct intake *intake, const char *name, const char *path, const struct stat *status,
                       const struct haul *haul, struct why *why);

/* ---- intake_pipe.c ----------------------------------------------------------------------------------------------- */

/* Reads from the pipe for half a second at most. Returns as intake_next(). */
int intake_pipe_next(struct intake *intake, struct why *why);

/* ---- intake_shards.c --------------------------------------------------------------------------------------------- */

/* Takes the next shard in. Returns as intake_take(), or INTAKE_OVER; -EINVAL if instead of the first one there are data
 * of another format. */
int intake_next(struct intake *intake, struct why *why);

/* What people are shown: what the stream waits for; and what went wrong, which is also logged. */
void intake_trouble(struct intake *intake, const struct why *why);
void intake_wait_for(struct intake *intake, const char *format, ...) __attribute__((format(printf, 2, 3)));
