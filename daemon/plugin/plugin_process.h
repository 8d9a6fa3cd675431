/* plugin/plugin_process.h: a process with a plug-in in it, beside the daemon. Private to this floor.
 *
 * It is a cell (base/cell/cell.h) that keeps the daemon's rights, since the plug-in may need files and threads. The
 * arrays lie in memory that both have mapped, of which the process may only write what it delivers. It works on one
 * question at a time, while the thread that asked waits, so that together they take one CPU. If it crashes, hangs or
 * exits, the thread learns how, and the next question starts another process. It ends with the thread that started it.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/base/cell/cell.h"
#include "daemon/plugin/library.h"

struct process_terms {
        struct cells *cells;
        const char *path, *name;
        struct stat status;              /* of the file */
        uint32_t timeout_s;              /* that an answer may take */
        const _Atomic bool *is_stopping; /* no answer is waited for any more */
};

struct process;

/* -ENOMEM. The terms' texts outlive it. Nothing is started yet. */
int process_new(const struct process_terms *terms, struct process **ret_process, struct why *why);

/* Ends the process. Takes NULL. */
void process_free(struct process *process);

/* Room for arrays of these sizes; places that were given before are no longer valid. -ENOMEM. */
int process_reserve(struct process *process, uint64_t n_input_bytes, uint64_t n_output_bytes, struct why *why);

/* Where they lie. The process can write into the second at any time. */
uint8_t *process_input(struct process *process);
const uint8_t *process_output(struct process *process);

/* The memory that it has reserved; gives it back. */
uint64_t process_bytes(const struct process *process);
void process_trim(struct process *process);

/* CPU time that it has taken since this was asked; a system call. */
uint64_t process_cpu_ns(struct process *process);

/* Starts it, if it does not run, and waits for what the plug-in says of itself. Errors as process_ask(), and -ENOEXEC:
 * it cannot be loaded; `why` continues "the plug-in ". */
int process_describe(struct process *process, struct plugin_table *ret_table, struct why *why);

/* Asks, after process_describe() if it does not run. 0: there is an answer, which may be an error. -EPIPE: the process
 * has ended; -ETIMEDOUT: it did not answer, and was killed; -ECANCELED: the daemon ends; or starting it failed. `why`
 * continues "the plug-in ". */
int process_ask(struct process *process, const struct plugin_request *request, struct plugin_reply *ret_reply,
                struct why *why);
