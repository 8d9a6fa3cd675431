/* The process of a plug-in: loads it, and answers what the daemon asks until the daemon hangs up. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/plugin/process.h"
#include "daemon/plugin/wire.h"
#include "proto/base/cleanup.h"

struct serving {
        struct area area;
        struct library *library;
        struct library_worker *worker;
};

/* What goes wrong here goes wrong with each sample: the text says it. */
static void fail(struct plugin_reply *reply, int result, const char *text) {
        reply->result = result;
        snprintf(reply->text, sizeof(reply->text), "%.*s", (int)sizeof(reply->text) - 1, text);
}

static void describe(struct serving *serving, const char *path, const char *name, struct plugin_reply *reply) {
        struct why why = { .text = "" };
        int r = serving->library ? 0 : library_load(path, name, &serving->library, &why);

        if (r == 0 && !serving->worker)
                r = library_worker_new(serving->library, &serving->worker, &why);
        if (r < 0)
                fail(reply, r, why.text);
        else
                memcpy(serving->area.bytes + serving->area.output_offset, library_table(serving->library),
                       sizeof(struct plugin_table));
}

static void answer(struct serving *serving, const struct wire_question *question, const char *path, const char *name,
                   struct plugin_reply *reply) {
        int r = question->n_bytes > 0 ? area_map(&serving->area, question->n_bytes, question->output_offset) : 0;

        if (r < 0)
                fail(reply, r, "its process cannot map the memory that it shares with the daemon");
        else if (question->request.question == 0)
                describe(serving, path, name, reply);
        else
                library_ask(serving->worker, &question->request, serving->area.bytes,
                            serving->area.bytes + serving->area.output_offset, reply);
}

/* If memory is short, and a plug-in leaks, it shall be this process that is ended, not the daemon or a trainer. */
static void offer_to_be_killed(void) {
        static const char FIRST[] = "1000";
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                return;
        (void)!write(fd, FIRST, sizeof(FIRST) - 1);
        close(fd);
}

/* It ends with the thread that started it, even if the plug-in never comes back. No core file is written of
 * what may be somebody's samples. */
static void settle_in(const char *name) {
        static const int ENDS[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
        char title[16];

        for (size_t i = 0; i < ARRAY_SIZE(ENDS); i++)
                signal(ENDS[i], SIG_DFL); /* a sanitizer would print, and hide from the daemon how it ended */

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        snprintf(title, sizeof(title), "plugin-%.8s", name);
        prctl(PR_SET_NAME, title);
        offer_to_be_killed();
}

int process_serve(const char *path, const char *name) {
        struct serving serving = { .area.fd = -1 };
        struct wire_question question;
        struct plugin_reply reply;
        ssize_t n;

        settle_in(name);
        area_take(&serving.area, WIRE_AREA);
        for (;;) {
                n = recv(WIRE_SOCKET, &question, sizeof(question), 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n != (ssize_t)sizeof(question)) /* the daemon has gone, or wants it to */
                        return n == 0 ? 0 : EX_PROTOCOL;
                reply = (struct plugin_reply){ 0 };
                answer(&serving, &question, path, name, &reply);
                if (send(WIRE_SOCKET, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
                        return 0;
        }
}
