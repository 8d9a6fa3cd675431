#include "client/cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define VERSION_MIN 11000 /* the first for which PTX of our kernels can be compiled */

static const char *const SYMBOLS[] = {
#define CU_SYMBOL(name, symbol, arguments) symbol,
        CU_FUNCTIONS(CU_SYMBOL)
};

#define N_FUNCTIONS (sizeof(SYMBOLS) / sizeof(SYMBOLS[0]))

_Static_assert(offsetof(struct driver, version) == N_FUNCTIONS * sizeof(void *), "the table is an array of pointers");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct driver found;
static pid_t found_by; /* 0: not found yet */

static int driver_look_up(void *library, struct driver *driver, struct why *why) {
        for (size_t i = 0; i < N_FUNCTIONS; i++) {
                void *function = dlsym(library, SYMBOLS[i]);

                if (!function)
                        return why_set(
                                why, -ENODEV,
                                "no GPU: the driver (libcuda.so.1) is too old: it lacks %s; CUDA %d.%d or newer is "
                                "needed",
                                SYMBOLS[i], VERSION_MIN / 1000, VERSION_MIN % 1000 / 10);
                memcpy((uint8_t *)driver + i * sizeof(function), &function, sizeof(function));
        }
        return 0;
}

static int driver_begin(struct driver *driver, struct why *why) {
        const char *name = NULL;
        cu_result result = driver->init(0);
        int n = 0;

        if (result == CU_SUCCESS)
                result = driver->device_count(&n);
        if (result == CU_NO_DEVICE || (result == CU_SUCCESS && n == 0))
                return why_set(why, -ENODEV,
                               "no GPU: the driver is there but shows this process no device; look at nvidia-smi, "
                               "CUDA_VISIBLE_DEVICES, and the container's --gpus");
        if (result != CU_SUCCESS) {
                if (driver->error_name(result, &name) != CU_SUCCESS || !name)
                        name = "an error without a name";
                return why_set(why, -ENODEV,
                               "no GPU: the driver cannot be initialised: %s (%d); nvidia-smi may say more", name,
                               result);
        }
        if (driver->driver_version(&driver->version) == CU_SUCCESS && driver->version < VERSION_MIN)
                return why_set(why, -ENODEV,
                               "no GPU: the driver is too old: it has CUDA %d.%d, and %d.%d or newer is needed",
                               driver->version / 1000, driver->version % 1000 / 10, VERSION_MIN / 1000,
                               VERSION_MIN % 1000 / 10);
        return 0;
}

static int driver_load(struct why *why) {
        struct driver driver = { 0 };
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        int r;

        if (!library)
                return why_set(
                        why, -ENODEV,
                        "no GPU: no driver is installed here (%s); in a container, start it with --gpus all. Without "
                        "a device the loader works on the CPU",
                        dlerror());
        r = driver_look_up(library, &driver, why);
        if (r == 0)
                r = driver_begin(&driver, why);
        if (r < 0) /* the library stays: nobody knows what it has begun */
                return r;
        found = driver;
        found_by = getpid();
        return 0;
}

int driver_find(const struct driver **ret_driver, struct why *why) {
        int r = 0;

        pthread_mutex_lock(&lock);
        if (found_by == 0)
                r = driver_load(why);
        else if (found_by != getpid())
                r = why_set(
                        why, -ECHILD,
                        "CUDA was initialised before a fork(), and cannot be used in the child: start processes with "
                        "spawn, or open the first loader with a device after the fork");
        pthread_mutex_unlock(&lock);
        if (r == 0)
                *ret_driver = &found;
        return r;
}

int driver_refuse(const struct driver *driver, cu_result result, const char *doing, struct why *why) {
        const char *name = NULL, *text = NULL;

        if (result == CU_SUCCESS)
                return 0;
        if (driver->error_name(result, &name) != CU_SUCCESS || !name)
                name = "unknown";
        if (driver->error_string(result, &text) != CU_SUCCESS || !text)
                text = "an error that the driver does not describe";
        return why_set(why, result == CU_OUT_OF_MEMORY ? -ENOMEM : -EIO, "CUDA: %s: %s (%s)", doing, text, name);
}
