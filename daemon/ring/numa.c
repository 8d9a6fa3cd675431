#include "daemon/ring/numa.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/machine/cpus.h"
#include "proto/base/cleanup.h"

#define NODES_MAX 1024 /* Linux's own limit */

static hwloc_topology_t topology;
static int started;

int numa_start(void) {
        if (!cpus_are_told()) /* a sandbox forbids it, and hwloc would ask again and again */
                return -ENOSYS;
        if (hwloc_topology_init(&topology) < 0)
                return -ENOMEM;
        /* Caches, packages and devices do not matter here, and would cost a walk through sysfs. */
        hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
        if (hwloc_topology_load(topology) < 0) {
                hwloc_topology_destroy(topology);
                return -EIO;
        }
        started = 1;
        return 0;
}

void numa_stop(void) {
        if (started)
                hwloc_topology_destroy(topology);
        started = 0;
}

uint32_t numa_n_nodes(void) {
        int n = started ? hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) : 1;

        return n > 0 ? (uint32_t)n : 1;
}

int numa_node_of_process(pid_t pid) {
        hwloc_bitmap_t cpus;
        int node = -1;

        if (numa_n_nodes() < 2 || pid <= 0) /* nothing to choose */
                return -1;
        cpus = hwloc_bitmap_alloc();
        if (!cpus)
                return -1;
        /* A process that may run on several nodes has none: no memory would be nearer to it than other memory. */
        if (hwloc_get_proc_cpubind(topology, pid, cpus, 0) == 0) {
                for (hwloc_obj_t object = NULL;
                     (object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object));)
                        if (hwloc_bitmap_isincluded(cpus, object->cpuset))
                                node = (int)object->os_index;
        }
        hwloc_bitmap_free(cpus);
        return node;
}

int numa_node_of_device(const char *sysfs, const char *bus_id) {
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX], text[16], *end;
        ssize_t n;
        long node;

        snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", sysfs, bus_id);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return -1;
        text[n] = '\0';
        node = strtol(text, &end, 10);
        return end != text && node >= 0 && node < NODES_MAX ? (int)node : -1;
}

int numa_bind(void *base, uint64_t n_bytes, int node) {
        hwloc_bitmap_t nodes;
        int r;

        if (!started)
                return -ENOSYS;
        nodes = hwloc_bitmap_alloc();
        if (!nodes)
                return -ENOMEM;
        hwloc_bitmap_only(nodes, (unsigned)node);
        r = hwloc_set_area_membind(topology, base, n_bytes, nodes, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET);
        hwloc_bitmap_free(nodes);
        return r < 0 ? -errno : 0;
}
