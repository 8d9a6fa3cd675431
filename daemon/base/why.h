/* Moved to proto/base/, where the client finds it, too. */
#pragma once

#include "proto/base/why.h"
