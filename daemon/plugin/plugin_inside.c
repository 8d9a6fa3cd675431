#include "daemon/plugin/plugin_inside.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "daemon/plugin/plugin_messages.h"
#include "proto/base/cleanup.h"

static struct library *library;
static struct library_worker *worker;

/* A sanitizer would print, and hide from the daemon how the process ended. */
static void end_as_ever(void) {
        static const int ENDS[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

        for (size_t i = 0; i < ARRAY_SIZE(ENDS); i++)
                signal(ENDS[i], SIG_DFL);
}

int plugin_prepare(const void *setup, size_t n_bytes, uint64_t *ret_data_bytes, struct why *why) {
        struct plugin_setup plugin;
        char title[16];
        int r;

        if (n_bytes != sizeof(plugin))
                return why_set(why, -EINVAL, "is of another build");
        memcpy(&plugin, setup, sizeof(plugin));
        end_as_ever();
        snprintf(title, sizeof(title), "plugin-%.8s", plugin.name);
        prctl(PR_SET_NAME, title);
        *ret_data_bytes = 0;
        r = library_load(plugin.path, plugin.name, &library, why);
        return r < 0 ? r : library_worker_new(library, &worker, why);
}

/* What goes wrong here goes wrong with each sample: the text says it. */
static void serve_fail(struct plugin_reply *reply, const char *text) {
        reply->result = -EBADMSG;
        snprintf(reply->text, sizeof(reply->text), "%s", text);
}

static void serve_answer(const struct plugin_order *order, struct plugin_reply *reply) {
        const uint8_t *input = cell_inside_bytes(&order->input);
        uint8_t *output = cell_inside_room(&order->output);

        if ((order->input.memory > 0 && !input) || (order->output.memory > 0 && !output))
                serve_fail(reply, "its process cannot map the memory that it shares with the daemon");
        else if (order->request.question == 0)
                memcpy(output, library_table(library), sizeof(struct plugin_table));
        else
                library_ask(worker, &order->request, input, output, reply);
}

size_t plugin_order(const void *order, size_t n_bytes, void *ret_answer, int *ret_result) {
        struct plugin_reply reply = { 0 };

        *ret_result = 0;
        if (n_bytes != sizeof(struct plugin_order))
                return 0;
        serve_answer(order, &reply);
        memcpy(ret_answer, &reply, sizeof(reply));
        return sizeof(reply);
}
