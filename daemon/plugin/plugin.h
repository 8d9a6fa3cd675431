/* plugin/plugin.h: a plug-in of the configuration, from the inside. Private to this floor. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/plugin/library.h"
#include "daemon/plugin/plugins.h"
#include "daemon/plugin/process.h"

struct plugins {
        size_t n;
        struct plugin *list;
        _Atomic bool is_stopping;
        bool in_daemon;
        char *folders;

        /* Of plug-ins that are only described: what their steps deliver, in the sequence in which they are settled. */
        struct dlplugin_form *outputs;
        uint32_t n_outputs, idx_output;
};

struct plugin {
        char name[DLPLUGIN_NAME_MAX];
        char *path;
        char *refusal;              /* NULL: it can be used */
        struct plugin_table *table; /* NULL: it cannot */
        struct process_terms terms; /* in processes */
        struct library *library;    /* in the daemon; else NULL */
        struct plugins *described;  /* it is only described, by these; else NULL */

        /* The main thread's, for settling. */
        struct library_worker *worker;
        struct process *process;

        /* Of a plug-in that is DLPLUGIN_SERIAL: the one process in which steps run, for all threads, under the lock, a
         * leaf. The main thread does not wait for it. */
        struct process *shared;
        pthread_mutex_t lock;
};

struct plugin_use {
        struct plugin *plugin;
        struct plugin_request request; /* all but what belongs to a sample */
};

/* Starts the process if it does not run, and asks. Errors as process_ask(). */
int plugin_ask(struct process *process, const struct plugin_request *request, struct plugin_reply *ret_reply,
               struct why *why);
