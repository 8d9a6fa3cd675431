/* Built without MPI: one node alone is staged all the same. */
#include "daemon/staging/nodes/cluster_private.h"

#include <errno.h>

int cluster_mpi_join(const struct cluster_options *options, struct cluster **ret_cluster, struct why *why) {
        return why_set(
                why, -ENOSYS,
                "started as one of several processes (mpirun, srun), but built without MPI: install libopenmpi-dev "
                "and build again, or stage each node by itself");
}
