#pragma once

/// Opens the trainer when a plan is really run: the command line does not pay LibTorch's start
/// otherwise.

#include "gnomon/base/result.h"
#include "gnomon/train/engine.h"

namespace gnomon::train {

/// The engine of libgnomon_train.so, loaded once: from $GNOMON_TRAIN_ENGINE (a file), beside the
/// executable, or from ../lib/gnomon. Error: where it was looked for, and the Debian package it
/// needs.
Result<const Engine*> LoadEngine();

}  // namespace gnomon::train
