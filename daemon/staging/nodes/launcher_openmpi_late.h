/* staging/nodes/launcher_openmpi_late.h: which nodes did not come up, from mpirun's children.
 *
 * mpirun starts an agent (ssh) a host, and the agent ends once Open MPI's orted is up there and has gone to the
 * background. An agent that is still there after a minute names a host that let itself be called and then said nothing;
 * mpirun itself would wait for it for ever, in spite of its orte_startup_timeout. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Writes their names into `names`, "node2, node7", cut where they do not fit. `hosts`: comma-separated. Returns how
 * many they are. */
uint32_t late_hosts(pid_t mpirun, const char *hosts, char *names, size_t size);

/* Does one of the arguments (as in /proc/PID/cmdline: each ended by NUL, n_bytes in all) say that this is an agent, and
 * which of the hosts is it for? Its length in *ret_length; NULL if it is none. */
const char *late_host_of(const char *arguments, size_t n_bytes, const char *hosts, size_t *ret_length);
