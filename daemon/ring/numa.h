/* ring/numa.h: which memory node is near to whom. Through hwloc; on a machine of one node nothing is bound. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Reads the machine's topology, once, before the first ring. Cheap: memory nodes only. A negative errno if it cannot be
 * read: then there is one node. Main thread. */
int numa_start(void);
void numa_stop(void);

/* Memory nodes of this machine; 1 if the topology could not be read. */
uint32_t numa_n_nodes(void);

/* The node that all CPUs of a process lie in, or -1: there is one node only, the process may run on several, or its pid
 * means nothing here. `pid` comes from SO_PEERCRED. */
int numa_node_of_process(pid_t pid);

/* Binds memory that is not touched yet. Returns 0 or negative errno; -EPERM in containers without CAP_SYS_NICE. */
int numa_bind(void *base, uint64_t n_bytes, int node);
