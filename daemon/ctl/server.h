/* ctl/server.h: the state that all of this floor works on, and the options that core gives. ctl_server.h starts and
 * stops it. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/mailbox.h"
#include "daemon/base/threads/queue.h"
#include "daemon/base/work/background.h"
#include "daemon/pipeline/jobs/user.h"
#include "daemon/pipeline/pipeline.h"

#define SESSIONS_MAX         1024u /* connections of users at a time: many more than a node has ranks */
#define SESSIONS_RESERVED    16u   /* more for admins */
#define DESCRIPTORS_RESERVED 64u   /* for the reserved sessions and for the daemon's own files */

struct event;
struct server;
struct event_base;

/* A dataset that a client names by its path. */
struct path_wish {
        const char *path;
        const char *const *options; /* "KEY=VALUE" */
        size_t n_options;
        bool in_blocks; /* for the order of blocks */
};

struct server_options {
        struct event_base *base;
        int listen_fd; /* owned by the server */
        struct pipeline *pipeline;
        struct catalog *catalog;
        struct background *background;
        struct budget *budget;
        struct tokenizers *tokenizers;   /* that pipelines can name, */
        struct plugins *plugins;         /* and these */
        const struct settings *settings; /* in force; a reload changes them between two events */
        const char *version;

        bool is_private; /* its user's own processes started it */

        /* Makes an entry of the catalog for a path, or finds it. -EINVAL and others, with a sentence. */
        int (*add_path)(void *userdata, const struct path_wish *wish, char ret_name[DLP_DATASET_MAX], struct why *why);
        void (*stop)(void *userdata); /* completes what is begun and ends, as SIGTERM does */
        void *userdata;
};

#define PAGED_TEXTS_MAX 4u /* texts of metrics that are being told, a packet at a time (metrics/metrics_pages.h) */

struct session;
struct user_names;

struct paged_text {
        const struct session *session; /* whose it is */
        uint64_t number;               /* 0: there is none */
        char *text;
        size_t n;
};

/* What code above sessions (socket/requests.c) does when something happens to one. */
struct session_hooks {
        void (*process_ended)(struct session *session);              /* session_process_ended() */
        void (*hung_up)(struct session *session);                    /* its client, while nobody listens */
        void (*closed)(struct session *session, const char *reason); /* it is not connected any more */
        void (*leaves)(struct session *session);                     /* it is about to give back what it holds */
        void (*rank_left)(struct server *server);                    /* its feed has been removed */
        void (*left)(struct server *server);                         /* it is among those that are closed */
};

struct server {
        struct server_options options;
        const struct session_hooks *hooks;
        struct event *listen_event; /* NULL once draining */
        struct event *pause_event;  /* continues to accept after a pause */
        bool is_paused;
        int spare_fd;               /* closed to answer a connection when no other descriptor is free */
        uint32_t n_sessions_max;    /* limit for users: SESSIONS_MAX, or fewer if descriptors are short */
        uint32_t n_descriptors_max; /* RLIMIT_NOFILE */
        struct event *news_event;
        struct mailbox news; /* feeds whose clients wrote invalid values, or whose desks have something to deal */
        TAILQ_HEAD(session_list, session) sessions; /* open, or still attaching */
        TAILQ_HEAD(, session) closed;               /* closed; only their memory is left to free */
        struct event *sweep_event;
        struct event *turns_event;
        struct user_names *names;
        uint32_t n_sessions;
        struct jobs jobs;
        struct tracing *tracing; /* ctl/ctl_trace.c; NULL: nobody traces */
        struct users users;      /* all users that ever attached */
        uint32_t n_jobs;
        uint64_t started_ns;
        int64_t started_unix;
        bool draining;
        struct paged_text paged[PAGED_TEXTS_MAX];
        uint64_t n_paged; /* texts so far: the number of the last one */
};
