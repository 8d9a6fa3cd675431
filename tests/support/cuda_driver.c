#include "tests/support/cuda_driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cuda_driver cuda;

/* Not ck_assert(): fault injection loads it too, outside of any test of Check. */
static void must(bool condition, const char *what, const char *why) {
        if (condition)
                return;
        fprintf(stderr, "the stand-in for CUDA's driver: %s: %s\n", what, why);
        abort();
}

extern char **environ;

/* This program is build/VARIANT/tests/test_NAME, or faults/faults. */
const char *cuda_driver_path(void) {
        static char path[PATH_MAX];
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        must(n > 0, "/proc/self/exe", "cannot be read");
        self[n] = '\0';
        for (int i = 0; i < 2; i++)
                *strrchr(self, '/') = '\0';
        snprintf(path, sizeof(path), "%.*s/cuda/libcuda.so.1", PATH_MAX - 32, self);
        return path;
}

static void *symbol(void *library, const char *name) {
        void *found = dlsym(library, name);

        must(found != NULL, name, "it does not have that");
        return found;
}

static void look_up(const char *name, void *ret_pointer) {
        void *found = NULL;
        int status;

        must(cuda.cuGetProcAddress(name, &found, 12080, CUDA_LOOKUP_DEFAULT, &status) == CUDA_SUCCESS, name,
             "cuGetProcAddress() does not find it");
        memcpy(ret_pointer, &found, sizeof(found));
}

#define LOOK_UP(name, symbol, needs, since) look_up(#name, &cuda.name);

static void load(void) {
        void *library = dlopen(cuda_driver_path(), RTLD_NOW | RTLD_LOCAL);

        must(library != NULL, "dlopen()", library ? "" : dlerror());
        *(void **)&cuda.cuGetProcAddress = symbol(library, "cuGetProcAddress_v2");
        *(void **)&cuda.counts = symbol(library, "dlt_cuda_counts");
        *(void **)&cuda.calls = symbol(library, "dlt_cuda_calls");
        *(void **)&cuda.restart = symbol(library, "dlt_cuda_restart");
        *(void **)&cuda.add_kernels = symbol(library, "dlt_cuda_add_kernels");
        *(void **)&cuda.set_trap = symbol(library, "dlt_cuda_set_trap");
        CUDA_CALLS(LOOK_UP)
}

static void forget_settings(void) {
        for (char **at = environ; *at;) {
                char name[64];

                if (sscanf(*at, "%63[A-Z_]=", name) == 1 && strncmp(name, "DLT_CUDA_", 9) == 0)
                        unsetenv(name); /* and the next one moves here */
                else
                        at++;
        }
}

void cuda_driver_begin(const char *const settings[]) {
        forget_settings();
        if (!cuda.restart)
                load();
        for (uint32_t i = 0; settings && settings[i]; i++) {
                char name[64];

                must(sscanf(settings[i], "%63[A-Z_]=", name) == 1, settings[i], "is not NAME=VALUE");
                setenv(name, strchr(settings[i], '=') + 1, 1);
        }
        cuda.restart();
}

void cuda_driver_begin_current(const char *const settings[]) {
        void *context;

        cuda_driver_begin(settings);
        must(cuda.cuInit(0) == CUDA_SUCCESS, "cuInit()", "failed");
        must(cuda.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS, "cuDevicePrimaryCtxRetain()", "failed");
        must(cuda.cuCtxSetCurrent(context) == CUDA_SUCCESS, "cuCtxSetCurrent()", "failed");
}

struct dlt_cuda_counts cuda_driver_counts(void) {
        struct dlt_cuda_counts counts;

        cuda.counts(&counts);
        return counts;
}

static void wait_at_gate(void *argument) {
        struct cuda_gate *gate = argument;

        while (sem_wait(&gate->open) < 0)
                ;
}

void cuda_gate_shut(struct cuda_gate *gate, void *stream) {
        sem_init(&gate->open, 0, 0);
        must(cuda.cuLaunchHostFunc(stream, wait_at_gate, gate) == CUDA_SUCCESS, "cuLaunchHostFunc()", "failed");
}

void cuda_gate_open(struct cuda_gate *gate) {
        sem_post(&gate->open);
}
