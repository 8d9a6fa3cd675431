/* cuda/pinned.h: the memory of a loader's batches, registered with the driver, so that the device copies from it itself.
 *
 * The driver pins the pages, for which they must be writable: the client maps its payload so. A daemon that comes back
 * brings other memory, which is registered anew; the old one is let go when no copy runs from it any more. */
#pragma once

#include <stdbool.h>

#include "client/cuda/device.h"
#include "client/include/dlclient.h"

struct pinned {
        void *base;            /* NULL: nothing is held */
        uint64_t bytes;        /* all that is held */
        uint64_t n_registered; /* of these, from the beginning on. 0: the driver refused: copies work, but slowly, and
                                * the caller waits for each */
        struct why refusal;    /* why */
};

/* Holds the loader's memory and registers it. Within device_enter(). Returns a negative errno only if there is no
 * memory, as dlc_hold_memory() does. */
int pinned_open(struct pinned *pinned, const struct device *device, struct dlc_loader *loader, struct why *why);

/* Is this still the memory from which the loader takes batches? */
bool pinned_is_current(const struct pinned *pinned, struct dlc_loader *loader);

/* No copy from it may be under way. Within device_enter(), unless `can_call` is false: the driver is not to be called
 * any more (after a fork, at the process's end), and the memory stays registered until the process ends. */
void pinned_close(struct pinned *pinned, const struct device *device, struct dlc_loader *loader, bool can_call);
