#include "daemon/base/machine/own_io.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

bool own_storage_bytes_parse(const char *text, uint64_t *ret_bytes) {
        static const char KEY[] = "\nread_bytes: ";
        const char *at = strstr(text, KEY);
        char *end;
        unsigned long long bytes;

        if (!at)
                return false;
        at += strlen(KEY);
        if (*at < '0' || *at > '9')
                return false;
        bytes = strtoull(at, &end, 10);
        if (*end != '\n' && *end != '\0')
                return false;
        *ret_bytes = bytes;
        return true;
}

bool own_storage_bytes(uint64_t *ret_bytes) {
        _cleanup_(closep) int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
        char text[512];
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        if (n <= 0)
                return false;
        text[n] = '\0';
        return own_storage_bytes_parse(text, ret_bytes);
}
