#include "daemon/plugin/plugin_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "daemon/plugin/plugin_wire.h"
#include "proto/base/cleanup.h"

#define SETTLE_TIMEOUT_S 5u /* for what the main thread waits for */
#define PAGE             4096u

/* Memory that the process has mapped, too. */
struct area {
        struct cell_memory memory; /* number 0: none */
        uint8_t *bytes;
};

struct process {
        struct process_terms terms;
        struct area input, output;
        struct cell *cell; /* NULL: it does not run */
        uint64_t cpu_ns;   /* of that, when it was last asked */
        struct plugin_table table;
        _Alignas(8) uint8_t packet[CELL_MESSAGE_MAX]; /* the last answer */
};

int process_new(const struct process_terms *terms, struct process **ret_process, struct why *why) {
        struct process *process = calloc(1, sizeof(*process));

        if (!process)
                return why_errno(why, -ENOMEM, "cannot be started");
        process->terms = *terms;
        *ret_process = process;
        return 0;
}

void process_free(struct process *process) {
        if (!process)
                return;
        cell_end(process->cell, 0, NULL);
        process_trim(process);
        free(process);
}

/* ---- memory --------------------------------------------------------------------------------------------------------
 */

static void area_drop(const struct process *process, struct area *area) {
        if (area->bytes)
                munmap(area->bytes, area->memory.n_bytes);
        cells_unshare(process->terms.cells, &area->memory);
        *area = (struct area){ 0 };
}

/* The pages are made now: where there are none, a store into the mapping would end the daemon. */
static int area_make(const struct process *process, struct area *area, uint64_t n_bytes) {
        struct area made = { 0 };
        int r = cells_share(process->terms.cells, "dataloaderd-plugin", NULL, n_bytes, &made.memory);
        void *bytes;

        if (r < 0)
                return r;
        if (fallocate(made.memory.fd, 0, 0, (off_t)n_bytes) < 0 ||
            (bytes = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.memory.fd, 0)) == MAP_FAILED) {
                area_drop(process, &made);
                return -ENOMEM;
        }
        made.bytes = bytes;
        area_drop(process, area);
        *area = made;
        return 0;
}

static int area_widen(const struct process *process, struct area *area, uint64_t n_bytes, struct why *why) {
        uint64_t n = (n_bytes / PAGE + 1) * PAGE; /* there is always a place */

        if (n <= area->memory.n_bytes || area_make(process, area, n) == 0)
                return 0;
        return why_errno(why, -ENOMEM, "%llu bytes for a plug-in", (unsigned long long)n);
}

/* There is always room for the table, so that starting a process moves nothing. */
int process_reserve(struct process *process, uint64_t n_input_bytes, uint64_t n_output_bytes, struct why *why) {
        uint64_t n_least = sizeof(process->table);
        int r = area_widen(process, &process->input, n_input_bytes, why);

        process->input.memory.is_writable = false; /* against accidents: a sample is tried again as it is */
        return r < 0 ? r
                     : area_widen(process, &process->output, n_output_bytes > n_least ? n_output_bytes : n_least, why);
}

uint8_t *process_input(struct process *process) {
        return process->input.bytes;
}

const uint8_t *process_output(struct process *process) {
        return process->output.bytes;
}

uint64_t process_bytes(const struct process *process) {
        return process->input.memory.n_bytes + process->output.memory.n_bytes;
}

void process_trim(struct process *process) {
        area_drop(process, &process->input);
        area_drop(process, &process->output);
}

/* ---- the end -------------------------------------------------------------------------------------------------------
 */

static int plugin_process_tell_end(int r, const struct cell_ending *ending, uint32_t timeout_s, struct why *why) {
        static const char ENDED[] = "has ended its process, which";
        int number = WTERMSIG(ending->status);

        if (r == -ECANCELED)
                return why_set(why, r, "was not waited for: the daemon ends");
        if (r == -ETIMEDOUT)
                return why_set(why, r, "did not come back within %u seconds, and its process was killed", timeout_s);
        if (r == -EPROTO)
                return why_set(why, -EPIPE, "%s answered nonsense, and was killed", ENDED);
        if (ending->has_hung_up)
                return why_set(why, -EPIPE, "%s hung up, and was killed", ENDED);
        if (WIFSIGNALED(ending->status))
                return why_set(why, -EPIPE, "%s was ended by signal %d (%s)", ENDED, number, strsignal(number));
        return why_set(why, -EPIPE, "%s exited with status %d", ENDED, WEXITSTATUS(ending->status));
}

/* There was no answer, or none that makes sense: says what became of the process. */
static int plugin_process_lost(struct process *process, int r, uint32_t timeout_s, struct why *why) {
        struct cell_ending ending;

        cell_end(process->cell, r, &ending);
        process->cell = NULL;
        process->cpu_ns = 0;
        return plugin_process_tell_end(r, &ending, timeout_s, why);
}

/* ---- questions -----------------------------------------------------------------------------------------------------
 */

static bool plugin_process_is_over(void *userdata) {
        const struct process *process = userdata;

        return atomic_load_explicit(process->terms.is_stopping, memory_order_relaxed);
}

static struct cell_patience patience(struct process *process, uint32_t timeout_s) {
        return (struct cell_patience){ timeout_s * UINT64_C(1000000000), plugin_process_is_over, process };
}

static int plugin_process_ask(struct process *process, const struct plugin_request *request, uint32_t timeout_s,
                              struct plugin_reply *ret_reply, struct why *why) {
        const struct plugin_answer *answer = (const struct plugin_answer *)(const void *)process->packet;
        const struct cell_patience how_long = patience(process, timeout_s);
        struct plugin_order order = { .request = *request,
                                      .input = { process->input.memory.number, 0, process->input.memory.n_bytes },
                                      .output = { process->output.memory.number, 0, process->output.memory.n_bytes } };
        ssize_t n = cell_lend(process->cell, &process->input.memory);

        if (n == 0)
                n = cell_lend(process->cell, &process->output.memory);
        if (n == 0)
                n = cell_ask(process->cell, &order, sizeof(order), process->packet, &how_long);
        if (n >= 0 && (n != (ssize_t)sizeof(*answer) || answer->reply.result > 0))
                n = -EPROTO;
        if (n < 0)
                return plugin_process_lost(process, (int)n, timeout_s, why);
        *ret_reply = answer->reply;
        ret_reply->text[sizeof(ret_reply->text) - 1] = '\0';
        return 0;
}

int process_ask(struct process *process, const struct plugin_request *request, struct plugin_reply *ret_reply,
                struct why *why) {
        uint32_t timeout_s = process->terms.timeout_s;

        if (request->question == PLUGIN_SETTLE && timeout_s > SETTLE_TIMEOUT_S)
                timeout_s = SETTLE_TIMEOUT_S;
        return plugin_process_ask(process, request, timeout_s, ret_reply, why);
}

uint64_t process_cpu_ns(struct process *process) {
        uint64_t now_ns = process->cell ? cell_cpu_ns(process->cell) : 0, before_ns = process->cpu_ns;

        process->cpu_ns = now_ns;
        return now_ns > before_ns ? now_ns - before_ns : 0;
}

/* ---- the beginning -------------------------------------------------------------------------------------------------
 */

static int start_cell(struct process *process, struct why *why) {
        struct plugin_setup setup = { 0 };
        struct cell_terms terms = { .kind = PLUGIN_KIND,
                                    .trust = CELL_INSTALLED,
                                    .setup = &setup,
                                    .n_setup = sizeof(setup),
                                    .hello = patience(process, SETTLE_TIMEOUT_S) };
        struct cell_ending ending;
        struct why how;
        int r;

        if (strlen(process->terms.path) >= sizeof(setup.path))
                return why_set(why, -ENAMETOOLONG, "lies too deep: %s", process->terms.path);
        snprintf(setup.name, sizeof(setup.name), "%s", process->terms.name);
        strcpy(setup.path, process->terms.path);
        r = cell_start(process->terms.cells, &terms, &process->cell, &ending, &how);
        if (r == CELL_REFUSES)
                return why_set(why, -ENOEXEC, "%s", how.text);
        if (r == -EPIPE || r == -ETIMEDOUT || r == -EPROTO || r == -ECANCELED)
                return plugin_process_tell_end(r, &ending, SETTLE_TIMEOUT_S, why);
        return r < 0 ? why_set(why, r, "cannot be started in a process: %s", how.text) : 0;
}

/* It is ready when the plug-in is loaded; then it writes the table into the shared memory. */
static int plugin_process_start(struct process *process, struct why *why) {
        static const struct plugin_request DESCRIBE = { .question = 0 };
        struct plugin_reply reply;
        int r = process_reserve(process, 0, 0, why);

        if (r == 0)
                r = library_is_still(process->terms.path, &process->terms.status, why);
        if (r == 0)
                r = start_cell(process, why);
        if (r == 0)
                r = plugin_process_ask(process, &DESCRIBE, SETTLE_TIMEOUT_S, &reply, why);
        if (r < 0)
                return r;
        memcpy(&process->table, process->output.bytes, sizeof(process->table));
        if (reply.result != 0 || !table_is_valid(&process->table))
                r = why_set(why, -ENOEXEC, "says nonsense of itself");
        else
                r = library_is_still(process->terms.path, &process->terms.status, why);
        if (r == 0)
                return 0;
        cell_end(process->cell, 0, NULL);
        process->cell = NULL;
        return r;
}

int process_describe(struct process *process, struct plugin_table *ret_table, struct why *why) {
        int r = process->cell ? 0 : plugin_process_start(process, why);

        if (r == 0)
                *ret_table = process->table;
        return r;
}
