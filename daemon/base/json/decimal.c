#include "daemon/base/json/decimal.h"

#include <string.h>

#define DIGITS_MAX   19u /* from the first that is not 0: they fit 64 bits */
#define FRACTION_MAX 19u /* digits after the point */

static const uint64_t TENS[FRACTION_MAX + 1] = { 1ull,
                                                 10ull,
                                                 100ull,
                                                 1000ull,
                                                 10000ull,
                                                 100000ull,
                                                 1000000ull,
                                                 10000000ull,
                                                 100000000ull,
                                                 1000000000ull,
                                                 10000000000ull,
                                                 100000000000ull,
                                                 1000000000000ull,
                                                 10000000000000ull,
                                                 100000000000000ull,
                                                 1000000000000000ull,
                                                 10000000000000000ull,
                                                 100000000000000000ull,
                                                 1000000000000000000ull,
                                                 10000000000000000000ull };

/* 2 to the power of an exponent that is in the range of normal doubles. */
static double power_of_two(int exponent) {
        uint64_t bits = (uint64_t)(1023 + exponent) << 52;
        double power;

        memcpy(&power, &bits, sizeof(power));
        return power;
}

/* digits / ten, rounded once: 62 bits or more of the quotient, of which the lowest says whether anything follows them,
 * are more than a double has; and making a double of an integer rounds it to the nearest. digits is not 0. */
static double decimal_divide(uint64_t digits, uint64_t ten) {
        int up = __builtin_clzll(digits), up_ten = __builtin_clzll(ten);
        unsigned __int128 dividend = (unsigned __int128)(digits << up) << 62;
        uint64_t divisor = ten << up_ten, quotient = (uint64_t)(dividend / divisor);

        quotient |= dividend != (unsigned __int128)quotient * divisor;
        return (double)quotient * power_of_two(up_ten - up - 62);
}

bool decimal_read(const uint8_t *text, size_t n_bytes, double *ret_number) {
        bool is_negative = n_bytes > 0 && text[0] == '-', has_point = false;
        size_t at = n_bytes > 0 && (text[0] == '-' || text[0] == '+'), n_fraction = 0, n_digits = 0;
        uint64_t digits = 0;
        double number;

        if (at == n_bytes || n_bytes > 2 * DIGITS_MAX)
                return false;
        for (; at < n_bytes; at++) {
                unsigned digit = text[at] - (unsigned)'0';

                if (digit > 9) {
                        if (text[at] != '.' || has_point || n_bytes - at > FRACTION_MAX + 1)
                                return false;
                        has_point = true;
                        continue;
                }
                n_digits += digits > 0;
                if (n_digits == DIGITS_MAX)
                        return false;
                digits = digits * 10 + digit;
                n_fraction += has_point;
        }
        if (n_bytes == has_point + (size_t)(text[0] == '-' || text[0] == '+')) /* a point alone */
                return false;
        if (n_fraction == 0 || digits == 0)
                number = (double)digits;
        else if (digits <= 1ull << 53)
                number = (double)digits / (double)TENS[n_fraction]; /* both are exact, so this is rounded once */
        else
                number = decimal_divide(digits, TENS[n_fraction]);
        *ret_number = is_negative ? -number : number;
        return true;
}
