/* Functions that are called in the wheel's programs and answer that the thing is not there.
 *
 * The libraries around them are prepared for that answer, as on a machine without it: hwloc finds no udev, libcurl no
 * Kerberos for a proxy. What is never called is in never.c. */
#include <stddef.h>
#include <stdint.h>

/* Modules of OpenSSL and plugins of hwloc that lie on the machine belong to the machine's own libraries. */
void *dlopen(const char *path, int flags);
void *dlopen(const char *path, int flags) {
        return NULL;
}

/* hwloc: what is written on a disk's or a network card's label. Without udev it looks for no device. */
void *udev_new(void);
void *udev_unref(void *udev);
void *udev_device_new_from_subsystem_sysname(void *udev, const char *subsystem, const char *name);
void *udev_device_unref(void *device);
const char *udev_device_get_property_value(void *device, const char *key);

void *udev_new(void) {
        return NULL;
}

void *udev_unref(void *udev) {
        return NULL;
}

void *udev_device_new_from_subsystem_sysname(void *udev, const char *subsystem, const char *name) {
        return NULL;
}

void *udev_device_unref(void *device) {
        return NULL;
}

const char *udev_device_get_property_value(void *device, const char *key) {
        return NULL;
}

/* libcurl begins and ends SSH with itself, whatever is allowed later. */
int libssh2_init(int flags);
void libssh2_exit(void);
const char *libssh2_version(int required);

int libssh2_init(int flags) {
        return 0;
}

void libssh2_exit(void) {
}

const char *libssh2_version(int required) {
        return "absent";
}

/* libcurl: names of hosts that are not ASCII stay as they are. */
const char *idn2_check_version(const char *required);
int idn2_lookup_ul(const char *name, char **ret_name, int flags);
void idn2_free(void *name);

const char *idn2_check_version(const char *required) {
        return NULL;
}

int idn2_lookup_ul(const char *name, char **ret_name, int flags) {
        return -100; /* IDN2_MALLOC: any error does */
}

void idn2_free(void *name) {
}

/* libcurl: a SOCKS proxy may ask for Kerberos. RFC 2744 has the two results and the text that belongs to them. */
#define GSS_COMPLETE 0u
#define GSS_FAILURE  (13u << 16)

struct gss_text {
        size_t length;
        void *value;
};

void *const GSS_C_NT_HOSTBASED_SERVICE = NULL;

#define FAILS(name)                                                                                                    \
        uint32_t name(uint32_t *minor);                                                                                \
        uint32_t name(uint32_t *minor) {                                                                               \
                *minor = 0;                                                                                            \
                return GSS_FAILURE;                                                                                    \
        }

FAILS(gss_delete_sec_context)
FAILS(gss_display_name)
FAILS(gss_import_name)
FAILS(gss_init_sec_context)
FAILS(gss_inquire_context)
FAILS(gss_release_name)
FAILS(gss_unwrap)
FAILS(gss_wrap)

uint32_t gss_display_status(uint32_t *minor, uint32_t status, int kind, const void *mechanism, uint32_t *context,
                            struct gss_text *ret_text);
uint32_t gss_release_buffer(uint32_t *minor, struct gss_text *text);

uint32_t gss_display_status(uint32_t *minor, uint32_t status, int kind, const void *mechanism, uint32_t *context,
                            struct gss_text *ret_text) {
        static char text[] = "Kerberos is not in this build of dataloaderd";

        *minor = 0;
        *context = 0;
        *ret_text = (struct gss_text){ .length = sizeof(text) - 1, .value = text };
        return GSS_COMPLETE;
}

uint32_t gss_release_buffer(uint32_t *minor, struct gss_text *text) {
        *minor = 0;
        *text = (struct gss_text){ 0 };
        return GSS_COMPLETE;
}
