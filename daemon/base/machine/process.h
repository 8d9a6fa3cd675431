/* base/machine/process.h: the process at the other end of a connection: when it ends, and whether it is about to.
 *
 * A connection's end is not its process's end: a child that was forked may hold the socket for ever, and a process of
 * many gigabytes takes seconds to be torn down before its sockets are closed. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct process {
        int fd;    /* pidfd: readable once the process has ended; -1 where the kernel has none for it */
        pid_t pid; /* as seen from here; 0: it lives in a pid namespace that we cannot see */
};

#define PROCESS_NONE ((struct process){ .fd = -1 })

/* The process that connected the socket. Never fails: what cannot be had is left out. */
struct process process_of_peer(int socket, pid_t pid);
void process_close(struct process *process);

/* Has it ended, or is it beyond saving: killed, dumping core, giving back its memory? False if nothing is known. A few
 * system calls, for when somebody is to be refused because of it. Where /proc is hidden (the unit's
 * ProtectProc=invisible) it is the pidfd that tells of the end, and the kernel that tells of memory given back; a
 * process that was killed and hangs before that, or dumps core, looks alive then. */
bool process_is_ending(const struct process *process);

/* What /proc/PID/stat and /proc/PID/status say of that. */
bool process_stat_is_ending(const char *stat);
bool process_status_is_ending(const char *status);
