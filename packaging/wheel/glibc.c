/* What Debian's static libraries take from a glibc that is newer than 2.34, which the wheel promises to run on. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* getrandom() gives up to 256 bytes at once, or waits until the machine has some; other errors it has only for bad
 * arguments. */
#define AT_ONCE 256u

void arc4random_buf(void *bytes, size_t n) {
        uint8_t *at = bytes;

        while (n) {
                ssize_t r = getrandom(at, n < AT_ONCE ? n : AT_ONCE, 0);

                if (r < 0 && errno != EINTR)
                        abort();
                if (r > 0) {
                        at += r;
                        n -= (size_t)r;
                }
        }
}

uint32_t arc4random(void) {
        uint32_t word;

        arc4random_buf(&word, sizeof(word));
        return word;
}
