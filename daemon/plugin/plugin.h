/* plugin/plugin.h: a plug-in of the configuration, from the inside. Private to this floor. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/plugin/library.h"
#include "daemon/plugin/plugin_process.h"
#include "daemon/plugin/plugins.h"

struct plugins {
        size_t n;
        struct plugin *list;
        _Atomic bool is_stopping;
        char *folders;

        /* Of plug-ins that are only described: what their steps deliver, in the sequence in which they are settled. */
        struct dlplugin_form *outputs;
        uint32_t n_outputs, idx_output;
};

struct plugin {
        char name[DLPLUGIN_NAME_MAX];
        char *path;                 /* of its file, */
        struct stat status;         /* as it was found */
        char digest[65];            /* and its 64 hexadecimal digits */
        char *refusal;              /* NULL: it can be used */
        struct plugin_table *table; /* NULL: it cannot */
        struct plugins *described;  /* it is only described, by these; else NULL */
        struct cells *cells;
        uint32_t timeout_s;        /* that an answer may take */
        _Atomic bool *is_stopping; /* no answer is waited for any more */

        struct cell cell; /* the main thread's, for settling */

        /* Of a plug-in that is DLPLUGIN_SERIAL: the one process in which steps run, for all threads, under the lock, a
         * leaf. The main thread does not wait for it. */
        struct cell shared;
        pthread_mutex_t lock;
};

struct plugin_use {
        struct plugin *plugin;
        struct plugin_request request; /* all but what belongs to a sample */
};

/* A question about it, with these values: all but what belongs to a sample. It is PLUGIN_SETTLE. */
void use_begin(struct plugin_use *use, struct plugin *plugin, uint32_t idx_step, const struct plugin_values *values);

/* These seats share no process with others: what a plug-in keeps from one question to the next stays there. To be
 * called before anything is reserved. */
void plugin_seats_be_alone(struct plugin_seats *seats);

/* Asks, once: the input is where plugin_use_input() says, and the output then lies in plugin_seats_output(). Errors as
 * plugin_use_run(). */
int plugin_seats_ask(struct plugin_seats *seats, const struct plugin_use *use, const struct plugin_request *request,
                     struct plugin_reply *ret_reply, struct why *why);
const uint8_t *plugin_seats_output(struct plugin_seats *seats, const struct plugin_use *use);
