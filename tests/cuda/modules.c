/* cuda/modules.c: modules, their kernels, and launches. Whatever image is loaded, kernels are those of the CPU's table. */
#include <string.h>

#include "tests/cuda/inside.h"

#define MAX_TABLES        8
#define MAX_BLOCK_THREADS 1024

struct function {
        struct object object;
        const struct object *module;
        const struct dlk_cpu_kernel *kernel;
};

static struct {
        const struct dlk_cpu_kernel *kernels;
        uint32_t n;
} tables[MAX_TABLES];
static uint32_t n_tables;

void dlt_cuda_add_kernels(const struct dlk_cpu_kernel *kernels, uint32_t n_kernels) {
        pthread_mutex_lock(&the_lock);
        for (uint32_t i = 0; i < n_tables; i++)
                if (tables[i].kernels == kernels)
                        n_kernels = 0; /* again */
        if (n_kernels > 0 && n_tables < MAX_TABLES) {
                tables[n_tables].kernels = kernels;
                tables[n_tables++].n = n_kernels;
        }
        pthread_mutex_unlock(&the_lock);
}

static const struct dlk_cpu_kernel *look_up(const struct dlk_cpu_kernel *kernels, uint32_t n, const char *name) {
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(kernels[i].name, name) == 0)
                        return &kernels[i];
        return NULL;
}

static const struct dlk_cpu_kernel *find_kernel(const char *name) {
        const struct dlk_cpu_kernel *kernel = look_up(dlk_cpu_kernels, dlk_n_cpu_kernels, name);

        for (uint32_t i = 0; i < n_tables && !kernel; i++)
                kernel = look_up(tables[i].kernels, tables[i].n, name);
        return kernel;
}

/* An image's first byte is that of an ELF file, of a fat binary or of PTX, never zero. */
static int load(struct context *context, void **ret_module, const void *image) {
        struct object *module;

        if (!ret_module || !image)
                return CUDA_ERROR_INVALID_VALUE;
        if (*(const char *)image == '\0')
                return CUDA_ERROR_INVALID_IMAGE;
        module = object_new(MODULE, sizeof(*module), context);
        the.counts.n_images++;
        *ret_module = module->handle;
        return CUDA_SUCCESS;
}

int cuModuleLoadData(void **ret_module, const void *image) {
        ENTER(cuModuleLoadData);

        return load(entered.context, ret_module, image);
}

int cuModuleLoadDataEx(void **ret_module, const void *image, unsigned n_options, int *options, void **values) {
        ENTER(cuModuleLoadDataEx);

        return n_options > 0 && (!options || !values) ? CUDA_ERROR_INVALID_VALUE
                                                      : load(entered.context, ret_module, image);
}

int cuModuleUnload(void *module) {
        ENTER(cuModuleUnload);
        struct object *found = object_find(entered.name, module, MODULE);

        if (!found)
                return CUDA_ERROR_INVALID_HANDLE;
        context_drain(found->context); /* its kernels may be queued */
        object_destroy(found);
        return call_settled();
}

int cuModuleGetFunction(void **ret_function, void *module, const char *name) {
        ENTER(cuModuleGetFunction);
        struct object *found = object_find(entered.name, module, MODULE);
        const struct dlk_cpu_kernel *kernel;
        struct function *function;

        if (!found)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!ret_function || !name)
                return CUDA_ERROR_INVALID_VALUE;
        kernel = find_kernel(name);
        if (!kernel)
                return CUDA_ERROR_NOT_FOUND;
        function = object_new(FUNCTION, sizeof(*function), entered.context);
        function->module = found;
        function->kernel = kernel;
        *ret_function = function->object.handle;
        return CUDA_SUCCESS;
}

/* ---- launches ------------------------------------------------------------------------------------------------------
 */

struct launch {
        const struct dlk_cpu_kernel *kernel;
        uint32_t grid[3], block[3];
        _Alignas(16) uint8_t params[];
};

static void run_launch(struct stream *stream, void *argument, bool executes) {
        const struct launch *launch = argument;

        if (executes)
                launch->kernel->run(launch->params, launch->grid, launch->block);
}

static bool size_ok(const uint32_t grid[3], const uint32_t block[3]) {
        uint64_t n_threads = (uint64_t)block[0] * block[1] * block[2];

        return n_threads > 0 && n_threads <= MAX_BLOCK_THREADS && block[2] <= 64 && grid[0] > 0 && grid[1] > 0 &&
               grid[2] > 0 && grid[0] <= INT32_MAX && grid[1] <= UINT16_MAX && grid[2] <= UINT16_MAX;
}

/* The parameters are copied before the call returns, so they may lie on the caller's stack. */
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **params,
                   void **extra) {
        ENTER(cuLaunchKernel);
        struct function *found = object_find(entered.name, function, FUNCTION);
        struct stream *in = stream_find(&entered, stream);
        const uint32_t grid[3] = { grid_x, grid_y, grid_z }, block[3] = { block_x, block_y, block_z };
        struct launch *launch;

        if (!found || !in || found->object.context != in->object.context)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!found->module->alive) {
                violation("cuLaunchKernel: the module of %s was unloaded before", found->kernel->name);
                return CUDA_ERROR_INVALID_HANDLE;
        }
        if (!size_ok(grid, block) || extra || !params || !params[0])
                return CUDA_ERROR_INVALID_VALUE;
        launch = must_alloc(sizeof(*launch) + found->kernel->params_bytes);
        launch->kernel = found->kernel;
        memcpy(launch->grid, grid, sizeof(grid));
        memcpy(launch->block, block, sizeof(block));
        memcpy(launch->params, params[0], found->kernel->params_bytes);
        stream_push(in, run_launch, launch, (struct moment){});
        the.counts.n_launches++;
        return CUDA_SUCCESS;
}
