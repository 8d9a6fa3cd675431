#include "proto/base/plain_locale.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain;

static void plain_locale_make(void) {
        plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* is part of the C library: nothing is opened or allocated */
}

locale_t plain_locale_begin(void) {
        pthread_once(&once, plain_locale_make);
        return uselocale(plain);
}

void plain_locale_end(locale_t before) {
        uselocale(before);
}
