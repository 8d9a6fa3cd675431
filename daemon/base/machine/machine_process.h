/* base/machine/machine_process.h: the process at the other end of a connection: when it ends, and whether it is about to.
 *
 * A connection's end is not its process's end: a child that was forked may hold the socket for ever, and a process of
 * many gigabytes takes seconds to be torn down before its sockets are closed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
        int fd;    /* pidfd: readable once the process has ended; -1 if the kernel gives none */
        pid_t pid; /* as seen from here; 0: it lives in a pid namespace that we cannot see */
};

#define PROCESS_NONE ((struct process){ .fd = -1 })

/* The process that connected the socket. Never fails: what is not available is left out. */
struct process process_of_peer(int socket, pid_t pid);
void process_close(struct process *process);

/* Has it ended, or is it certain to end: killed, dumping core, giving back its memory? False if nothing is known. A few
 * system calls, for use when a client is about to be refused because of this process. If /proc is hidden
 * (hidepid=), only the pidfd shows the end, and only the kernel shows that memory was given back; a process
 * that was killed and hangs before that, or that dumps core, then looks alive. */
bool process_is_ending(const struct process *process);

/* Has it ended? If not, its number was its own all the time. False if the kernel gave no pidfd. */
bool process_has_ended(const struct process *process);

/* The number of the job, pod or service in which it lives (proto/job_group.h); 0: in none, or it cannot be seen. */
uint64_t process_job_group(const struct process *process);

/* Is it stopped, or held by a debugger? False if /proc is hidden. */
bool process_is_stopped(pid_t pid);

/* Is it ending, or stopped: answered from the text of /proc/PID/stat or /proc/PID/status. */
bool process_stat_is_ending(const char *stat);
bool process_stat_is_stopped(const char *stat);
bool process_status_is_ending(const char *status);
