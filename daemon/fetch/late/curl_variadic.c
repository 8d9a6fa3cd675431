#include "daemon/fetch/late/curl_functions.h"

#include <stdarg.h>

/* What they take is a long, a pointer or a curl_off_t: all as wide as a pointer, and passed in the same way. */
_Static_assert(sizeof(long) == sizeof(void *) && sizeof(curl_off_t) == sizeof(void *),
               "any of them is passed on as a pointer");

CURLcode curl_late_getinfo(CURL *easy, CURLINFO info, ...);
CURLcode curl_late_setopt(CURL *easy, CURLoption option, ...);
CURLMcode curl_late_multi_setopt(CURLM *multi, CURLMoption option, ...);

CURLcode curl_late_getinfo(CURL *easy, CURLINFO info, ...) {
        va_list arguments;
        void *value;

        va_start(arguments, info);
        value = va_arg(arguments, void *);
        va_end(arguments);
        return (curl_late()->curl_easy_getinfo)(easy, info, value);
}

CURLcode curl_late_setopt(CURL *easy, CURLoption option, ...) {
        va_list arguments;
        void *value;

        va_start(arguments, option);
        value = va_arg(arguments, void *);
        va_end(arguments);
        return (curl_late()->curl_easy_setopt)(easy, option, value);
}

CURLMcode curl_late_multi_setopt(CURLM *multi, CURLMoption option, ...) {
        va_list arguments;
        void *value;

        va_start(arguments, option);
        value = va_arg(arguments, void *);
        va_end(arguments);
        return (curl_late()->curl_multi_setopt)(multi, option, value);
}
