#include "proto/base/shown/shorten.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MARK   "..."
#define N_MARK (sizeof(MARK) - 1)
#define LEAST  8u /* bytes of a string that are always kept: a start, the mark, an end */

/* Where the text goes: counted whole, written as far as there is room. */
struct output {
        char *text;
        size_t size; /* with NUL */
        size_t n;
};

static void shorten_put(struct output *output, const char *bytes, size_t n) {
        size_t room = output->n + 1 < output->size ? output->size - 1 - output->n : 0;

        if (room > 0)
                memcpy(output->text + output->n, bytes, n < room ? n : room);
        output->n += n;
}

static bool is_within_letter(char byte) {
        return ((unsigned char)byte & 0xc0) == 0x80;
}

/* A third of what is left is for the beginning: the end of a path tells files apart. */
static void put_string(struct output *output, const char *string, size_t n, size_t limit) {
        size_t head, tail;

        if (n <= limit) {
                shorten_put(output, string, n);
                return;
        }
        head = (limit - N_MARK) / 3;
        tail = n - (limit - N_MARK - head);
        while (head > 0 && is_within_letter(string[head]))
                head--;
        while (tail < n && is_within_letter(string[tail]))
                tail++;
        shorten_put(output, string, head);
        shorten_put(output, MARK, N_MARK);
        shorten_put(output, string + tail, n - tail);
}

/* One conversion of a format, such as "%-8.3lu". */
struct format_conversion {
        char spec[24];  /* with NUL */
        size_t n;       /* its length in the format */
        bool has_star;  /* its precision is an argument */
        int precision;  /* -1: none */
        char length[3]; /* "", "l", "ll", "z", ... */
        char letter;    /* 'd', 's', ... */
};

/* False for what no sentence needs: a width that is an argument, long double, wide characters. */
static bool conversion_read(const char *format, struct format_conversion *ret_conversion) {
        struct format_conversion read = { .precision = -1 };
        const char *at = format + 1, *length;

        at += strspn(at, "-+ #0");
        at += strspn(at, "0123456789");
        if (at[0] == '.' && at[1] == '*') {
                read.has_star = true;
                at += 2;
        } else if (at[0] == '.') {
                read.precision = 0;
                for (at++; *at >= '0' && *at <= '9' && read.precision < INT_MAX / 10 - 1; at++)
                        read.precision = read.precision * 10 + (*at - '0');
        }
        length = at;
        at += strspn(at, "hlzjt");
        if (at - length >= (ptrdiff_t)sizeof(read.length))
                return false;
        memcpy(read.length, length, (size_t)(at - length));
        read.letter = *at;
        read.n = (size_t)(at - format) + 1;
        if (!*at || !strchr("diouxXcsgfeEGp", *at) || read.n >= sizeof(read.spec))
                return false;
        if (read.letter == 's' ? read.length[0] != '\0' : read.has_star)
                return false;
        memcpy(read.spec, format, read.n);
        *ret_conversion = read;
        return true;
}

/* The specification is one of the caller's format, whose arguments the compiler has checked there. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_number(struct output *output, const struct format_conversion *is, va_list *arguments) {
        char number[512];
        int n;

        if (strchr("gfeEG", is->letter))
                n = snprintf(number, sizeof(number), is->spec, va_arg(*arguments, double));
        else if (is->letter == 'p')
                n = snprintf(number, sizeof(number), is->spec, va_arg(*arguments, void *));
        else if (strcmp(is->length, "ll") == 0 || is->length[0] == 'j')
                n = snprintf(number, sizeof(number), is->spec, va_arg(*arguments, long long));
        else if (is->length[0] == 'l' || is->length[0] == 'z' || is->length[0] == 't')
                n = snprintf(number, sizeof(number), is->spec, va_arg(*arguments, long));
        else
                n = snprintf(number, sizeof(number), is->spec, va_arg(*arguments, int));
        if (n > 0)
                shorten_put(output, number, (size_t)n < sizeof(number) ? (size_t)n : sizeof(number) - 1);
}
#pragma GCC diagnostic pop

/* Writes all of it, each string in at most `limit` bytes. False: the format has something that is not known here. */
static bool write_limited(struct output *output, size_t limit, const char *format, va_list list) {
        struct format_conversion conversion;
        va_list arguments; /* a va_list that is a parameter cannot be passed on by its address */
        bool is_known = true;

        va_copy(arguments, list);
        for (size_t n; *format && is_known; format += n) {
                n = strcspn(format, "%");
                if (n > 0) {
                        shorten_put(output, format, n);
                } else if (format[1] == '%') {
                        shorten_put(output, "%", 1);
                        n = 2;
                } else if (!conversion_read(format, &conversion)) {
                        is_known = false;
                } else if (conversion.letter == 's') {
                        int precision = conversion.has_star ? va_arg(arguments, int) : conversion.precision;
                        const char *string = va_arg(arguments, const char *);

                        string = string ? string : "(null)";
                        put_string(output, string, precision < 0 ? strlen(string) : strnlen(string, (size_t)precision),
                                   limit);
                        n = conversion.n;
                } else {
                        put_number(output, &conversion, &arguments);
                        n = conversion.n;
                }
        }
        va_end(arguments);
        return is_known;
}

/* The most that each string may have so that all fits; 0 if nothing is enough. */
static size_t find_limit(size_t size, const char *format, va_list arguments) {
        size_t fits = 0, too_much = size;

        for (size_t limit = LEAST; too_much - fits > 1; limit = fits + (too_much - fits) / 2) {
                struct output counted = { 0 };

                if (!write_limited(&counted, limit, format, arguments))
                        return 0;
                if (counted.n < size)
                        fits = limit;
                else if (limit == LEAST)
                        return 0;
                else
                        too_much = limit;
        }
        return fits;
}

static size_t cut_end(char *text, size_t size) {
        size_t n = size - 1 - N_MARK;

        while (n > 0 && is_within_letter(text[n]))
                n--;
        memcpy(text + n, MARK, N_MARK + 1);
        return n + N_MARK;
}

size_t shorten_format(char *text, size_t size, const char *format, va_list arguments) {
        struct output output = { .text = text, .size = size };
        va_list once_more;
        size_t limit;
        int n;

        va_copy(once_more, arguments);
        n = vsnprintf(text, size, format, once_more);
        va_end(once_more);
        if (n < 0) {
                text[0] = '\0';
                return 0;
        }
        if ((size_t)n < size)
                return (size_t)n;
        limit = size > 2 * LEAST ? find_limit(size, format, arguments) : 0;
        if (limit == 0)
                return size > N_MARK + 1 ? cut_end(text, size) : strlen(text);
        write_limited(&output, limit, format, arguments);
        if (output.n >= size) /* a string has grown in between, by another thread */
                output.n = size - 1;
        text[output.n] = '\0';
        return output.n;
}

size_t shorten(char *text, size_t size, const char *format, ...) {
        va_list arguments;
        size_t n;

        va_start(arguments, format);
        n = shorten_format(text, size, format, arguments);
        va_end(arguments);
        return n;
}
