#include "proto/base/bus_id.h"

#include <stddef.h>
#include <stdio.h>

#include "proto/base/text.h"

/* Reads `min` to `max` digits, then `end`. Returns what follows, or NULL. */
static const char *bus_id_read_number(const char *text, int min, int max, char end, unsigned *ret_number) {
        unsigned number = 0;
        int n = 0;

        while (text && n < max && text_hex_digit(text[n]) >= 0)
                number = number * 16 + (unsigned)text_hex_digit(text[n++]);
        if (n < min || text[n] != end)
                return NULL;
        *ret_number = number;
        return text + n + 1;
}

bool bus_id_read(const char *text, char ret_id[BUS_ID_MAX]) {
        unsigned domain, bus, device, function;

        text = bus_id_read_number(text, 4, 8, ':', &domain);
        text = bus_id_read_number(text, 2, 2, ':', &bus);
        text = bus_id_read_number(text, 2, 2, '.', &device);
        text = bus_id_read_number(text, 1, 1, '\0', &function);
        if (!text || device > 0x1f || function > 7)
                return false;
        snprintf(ret_id, BUS_ID_MAX, "%04x:%02x:%02x.%x", domain, bus, device, function);
        return true;
}
