#include "client/dlctl/once/once_key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES 65536

/* Each text with its NUL: "a" "bc" must differ from "ab" "c". */
static bool update_text(EVP_MD_CTX *hash, const char *text) {
        return EVP_DigestUpdate(hash, text, strlen(text) + 1) == 1;
}

/* Its name, content and length. */
static int update_file(EVP_MD_CTX *hash, const char *path) {
        static char piece[PIECE_BYTES];
        uint64_t n_bytes = 0;
        struct stat stat;
        ssize_t n = -1;
        int fd;

        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &stat) < 0)
                return fail(EXIT_REFUSED, "once: --input: %s: %s", path, strerror(errno));
        if (!S_ISREG(stat.st_mode)) {
                close(fd);
                return fail(EXIT_REFUSED, "once: --input: %s is not a regular file", path);
        }
        if (update_text(hash, path))
                while ((n = read(fd, piece, sizeof(piece))) > 0 && EVP_DigestUpdate(hash, piece, (size_t)n) == 1)
                        n_bytes += (uint64_t)n;
        if (n != 0)
                fail(EXIT_REFUSED, "once: --input: %s: %s", path, strerror(n < 0 ? errno : ENOMEM));
        close(fd);
        return n == 0 && EVP_DigestUpdate(hash, &n_bytes, sizeof(n_bytes)) == 1 ? 0 : EXIT_REFUSED;
}

static int once_key_update(EVP_MD_CTX *hash, char *const *arguments, const char *key,
                           const struct option_list *inputs) {
        bool ok = true;
        int r = 0;

        for (; ok && *arguments; arguments++)
                ok = update_text(hash, *arguments);
        ok = ok && EVP_DigestUpdate(hash, "", 1) == 1 && update_text(hash, key ? key : "");
        for (size_t i = 0; ok && r == 0 && i < inputs->n; i++)
                r = update_file(hash, inputs->values[i]);
        return ok ? r : fail(EXIT_REFUSED, "once: SHA-256 is not available");
}

int once_key(char *const *arguments, const char *key, const struct option_list *inputs, char ret_key[ONCE_KEY_SIZE]) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        EVP_MD_CTX *hash = EVP_MD_CTX_new();
        int r;

        if (!hash || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1)
                r = fail(EXIT_REFUSED, "once: SHA-256 is not available");
        else
                r = once_key_update(hash, arguments, key, inputs);
        if (r == 0 && EVP_DigestFinal_ex(hash, digest, NULL) != 1)
                r = fail(EXIT_REFUSED, "once: SHA-256 is not available");
        EVP_MD_CTX_free(hash);
        for (size_t i = 0; r == 0 && i < ONCE_KEY_SIZE / 2; i++)
                snprintf(ret_key + 2 * i, 3, "%02x", digest[i]);
        return r;
}
