#include "daemon/base/machine/read_error.h"

#include <errno.h>

enum read_error read_error_kind(int error) {
        switch (-error) {
        case EINVAL: /* not a regular file */
        case EISDIR:
        case EFBIG:
        case EBADMSG: /* the length differs from the one in the index */
        case EOVERFLOW:
        case ELOOP:
        case EXDEV: /* a link that leads out of the folder */
        case ENAMETOOLONG:
                return READ_ERROR_OWN;
        case ENOENT:
        case ENOTDIR:
        case EACCES:
        case EPERM:
                return READ_ERROR_CLEAR;
        case ENOTCONN:
        case ECONNABORTED:
        case ECONNREFUSED:
        case ECONNRESET:
        case EHOSTDOWN:
        case EHOSTUNREACH:
        case ENETDOWN:
        case ENETRESET:
        case ENETUNREACH:
        case ENODEV:
        case ENOMEDIUM:
        case ENXIO:
        case ENOLINK:
        case ESHUTDOWN:
        case ETIMEDOUT:
                return READ_ERROR_OUTAGE;
        default:
                return READ_ERROR_VAGUE;
        }
}
