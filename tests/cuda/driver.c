/* cuda/driver.c: what is asked before there is a context: symbols, errors, devices. */
#include <stdio.h>
#include <string.h>

#include "tests/cuda/inside.h"

/* A symbol is found by its name without a suffix, if the version that the caller was written for has its present form,
 * and the driver too. No entry has a variant for per-thread streams here. */
int cuGetProcAddress_v2(const char *name, void **ret_function, int version, uint64_t flags, int *ret_status) {
        ENTER(cuGetProcAddress);
        int status = CUDA_LOOKUP_NO_SYMBOL;

        if (!name || !ret_function || flags > CUDA_LOOKUP_PER_THREAD_STREAM)
                return CUDA_ERROR_INVALID_VALUE;
        *ret_function = NULL;
        for (uint32_t i = 0; i < N_CALLS && flags != CUDA_LOOKUP_PER_THREAD_STREAM; i++) {
                const struct call_type *type = &CALL_TYPES[i];

                if (strcmp(type->name, name) != 0 || type->since > the.settings.version)
                        continue;
                status = version < type->since ? CUDA_LOOKUP_VERSION_TOO_OLD : CUDA_LOOKUP_FOUND;
                if (status == CUDA_LOOKUP_FOUND)
                        memcpy(ret_function, &type->function, sizeof(type->function));
        }
        if (ret_status)
                *ret_status = status;
        return status == CUDA_LOOKUP_FOUND ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#define ERROR(name, text)                                                                                              \
        { name, #name, text }

static const struct {
        int error;
        const char *name, *text;
} ERRORS[] = {
        ERROR(CUDA_SUCCESS, "no error"),
        ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
        ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
        ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
        ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
        ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
        ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
        ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
        ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
        ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
        ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed"),
        ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
        ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
        ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
        ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
        ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
        ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the memory is already registered"),
        ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the memory is not registered"),
        ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
        ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
        ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
        ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

/* An error that it does not know has neither name nor text, and the pointer becomes NULL. */
int cuGetErrorName(int error, const char **ret_name) {
        ENTER(cuGetErrorName);

        *ret_name = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(ERRORS); i++)
                if (ERRORS[i].error == error)
                        *ret_name = ERRORS[i].name;
        return *ret_name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuGetErrorString(int error, const char **ret_text) {
        ENTER(cuGetErrorString);

        *ret_text = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(ERRORS); i++)
                if (ERRORS[i].error == error)
                        *ret_text = ERRORS[i].text;
        return *ret_text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuDriverGetVersion(int *ret_version) {
        ENTER(cuDriverGetVersion);

        if (!ret_version)
                return CUDA_ERROR_INVALID_VALUE;
        *ret_version = the.settings.version;
        return CUDA_SUCCESS;
}

int cuInit(unsigned flags) {
        ENTER(cuInit);

        if (flags != 0)
                return CUDA_ERROR_INVALID_VALUE;
        if (the.settings.n_devices == 0)
                return CUDA_ERROR_NO_DEVICE;
        the.started = true;
        return CUDA_SUCCESS;
}

int cuDeviceGetCount(int *ret_n) {
        ENTER(cuDeviceGetCount);

        if (!ret_n)
                return CUDA_ERROR_INVALID_VALUE;
        *ret_n = the.settings.n_devices;
        return CUDA_SUCCESS;
}

int cuDeviceGet(int *ret_device, int ordinal) {
        ENTER(cuDeviceGet);

        if (!ret_device || !device_exists(ordinal))
                return ret_device ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
        *ret_device = ordinal;
        return CUDA_SUCCESS;
}

/* Texts are cut to the room that there is, and end with a NUL. */
static int say(char *to, int n_bytes, const char *text) {
        if (!to || n_bytes <= 0)
                return CUDA_ERROR_INVALID_VALUE;
        snprintf(to, (size_t)n_bytes, "%s", text);
        return CUDA_SUCCESS;
}

int cuDeviceGetName(char *name, int n_bytes, int device) {
        ENTER(cuDeviceGetName);

        return device_exists(device) ? say(name, n_bytes, "Stand-in for a GPU") : CUDA_ERROR_INVALID_DEVICE;
}

int cuDeviceGetPCIBusId(char *id, int n_bytes, int device) {
        ENTER(cuDeviceGetPCIBusId);
        char text[32];

        snprintf(text, sizeof(text), "0000:%02X:00.0", 0xC0 + device);
        return device_exists(device) ? say(id, n_bytes, text) : CUDA_ERROR_INVALID_DEVICE;
}

int cuDeviceGetUuid_v2(struct cuda_uuid *ret_uuid, int device) {
        ENTER(cuDeviceGetUuid);

        if (!ret_uuid || !device_exists(device))
                return ret_uuid ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
        memset(ret_uuid, 0x5d, sizeof(*ret_uuid));
        ret_uuid->bytes[15] = (char)device;
        return CUDA_SUCCESS;
}

int cuDeviceGetAttribute(int *ret_value, int attribute, int device) {
        ENTER(cuDeviceGetAttribute);
        const int VALUES[][2] = {
                { CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4 },
                { CUDA_ATTRIBUTE_INTEGRATED, 0 },
                { CUDA_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
                { CUDA_ATTRIBUTE_PCI_BUS_ID, 0xC0 + device },
                { CUDA_ATTRIBUTE_PCI_DEVICE_ID, 0 },
                { CUDA_ATTRIBUTE_PCI_DOMAIN_ID, 0 },
                { CUDA_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3 },
                { CUDA_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
                { CUDA_ATTRIBUTE_CAPABILITY_MAJOR, the.settings.major },
                { CUDA_ATTRIBUTE_CAPABILITY_MINOR, the.settings.minor },
                { CUDA_ATTRIBUTE_CAN_USE_HOST_POINTER, 1 },
                { CUDA_ATTRIBUTE_HOST_REGISTER, 1 },
                { CUDA_ATTRIBUTE_READ_ONLY_HOST_REGISTER, the.settings.read_only },
                { CUDA_ATTRIBUTE_MEMORY_POOLS, 1 },
                { CUDA_ATTRIBUTE_HOST_NUMA_ID, 0 },
        };

        if (!ret_value)
                return CUDA_ERROR_INVALID_VALUE;
        if (!device_exists(device))
                return CUDA_ERROR_INVALID_DEVICE;
        for (size_t i = 0; i < ARRAY_SIZE(VALUES); i++) {
                if (VALUES[i][0] == attribute) {
                        *ret_value = VALUES[i][1];
                        return CUDA_SUCCESS;
                }
        }
        return CUDA_ERROR_INVALID_VALUE; /* the real one knows more: add what is asked for */
}
