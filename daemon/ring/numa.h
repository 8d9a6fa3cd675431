/* ring/numa.h: which memory node is near to whom. Through hwloc; a device's is in sysfs. */
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

/* The node that the device `bus_id` is attached to, or -1: there is no such device, or nobody knows, as on most
 * machines of one node. `bus_id` is of bus_id_read(). `sysfs` is "/sys", or a test's folder. */
int numa_node_of_device(const char *sysfs, const char *bus_id);

/* Binds memory that is not touched yet: it comes from other nodes only when this one is full. Returns 0 or negative
 * errno; -EPERM in containers without CAP_SYS_NICE, -EINVAL: no such node, -ENOSYS: numa_start() has failed. */
int numa_bind(void *base, uint64_t n_bytes, int node);
