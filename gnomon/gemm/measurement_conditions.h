#pragma once

/// How the rows of public measurement files were taken, as far as their source and config columns
/// tell: warm or cold caches, graphs or events, power limits.

#include "gnomon/gemm/library.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon {

/// The default where nothing is known of the row's source.
LibraryConditions ConditionsOf(const Measurement& row);

}  // namespace gnomon
