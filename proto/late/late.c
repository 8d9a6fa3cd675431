#include "proto/late/late.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static int late_find(const struct late_library *library, void *handle, struct why *why) {
        char *place = library->functions;

        for (const char *const *name = library->names; *name; name++, place += sizeof(void *)) {
                void *function = dlsym(handle, *name);

                if (!function)
                        return why_set(why, -ELIBACC, "%s is too old, it has no %s(); Debian: %s", library->file, *name,
                                       library->package);
                memcpy(place, &function, sizeof(function));
        }
        return 0;
}

static int late_open(struct late_library *library, struct why *why) {
        void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
        int r;

        if (!handle) {
                const char *text = dlerror();

                return why_set(why, -ELIBACC, "cannot load %s: %s; install it (Debian: %s)", library->file,
                               text ? text : "no memory", library->package);
        }
        r = late_find(library, handle, why);
        if (r < 0)
                dlclose(handle);
        else
                atomic_store_explicit(&library->is_loaded, true, memory_order_release);
        return r;
}

int late_load(struct late_library *library, struct why *why) {
        int r = 0;

        if (atomic_load_explicit(&library->is_loaded, memory_order_acquire))
                return 0;
        pthread_mutex_lock(&library->lock);
        if (!library->is_loaded)
                r = late_open(library, why);
        pthread_mutex_unlock(&library->lock);
        return r;
}
