/* Moved to base/machine/. */
#pragma once

#include "daemon/base/machine/own_file.h"
