#pragma once

/// Primitives: operators whose time on a CPU follows the number of items rather than bytes or
/// FLOPs: a sort, a loop of small library calls, an index computation. Each is one time per item,
/// measured on the device
/// ([framework] KEY_ns of its file, written by `gnomon device calibrate`) or a default from one
/// CPU.

#include <array>
#include <string_view>

#include "gnomon/device/device.h"

namespace gnomon {

struct Primitive {
  std::string_view name;
  double default_ns;  ///< an item, all cores; see primitives.cc for where it was measured
  bool parallel;      ///< the operator uses all cores; a serial one does not slow down with fewer
  std::string_view item;  ///< what one item is, and how to measure it
};

inline constexpr std::array<Primitive, 14> kPrimitives = {{
    {"embedding_row", 2.8, true, "a row looked up by embedding_bag (sum, dim 16, rows in cache)"},
    {"lookup_grad_row", 5.4, true, "a lookup in the sparse backward of embedding_bag (dim 16)"},
    {"coalesce_key_level", 3.8, false,
     "coalesce() of n rows of a sparse gradient, time / (n·log2 n) (dim 16)"},
    {"update_row", 65, false,
     "a row of a coalesced gradient in a row-wise Adagrad of index operators (dim 16, rows in "
     "cache)"},
    {"bmm_item_fp32", 1250, false, "a matrix of a batched 27 × 27 × 16 product in fp32"},
    {"bmm_item_half", 103, true, "the same in bf16"},
    {"index_element", 1.1, true, "an element read by advanced indexing z[:, i, j]"},
    {"index_put_near", 2.3, false,
     "an element added by its backward, target within a core's own cache"},
    {"index_put_far", 3.2, false, "the same, target beyond it"},
    {"fused_lookup_row", 3.4, true,
     "a row looked up by our table-batched embedding bag (dim 16, rows in cache)"},
    {"fused_update_key", 2.9, true, "a lookup grouped by row in our embedding backward"},
    {"fused_update_row", 2.4, true,
     "a row updated by our embedding backward (dim 16, row in cache)"},
    {"fused_act_backward", 0.19, true, "a value of our ReLU and bias backward (mask, column sums)"},
    {"cold_start", 25000, false, "an op inside a step, beyond its time alone and warm"},
}};

/// The device's own figure, else the default, on `units` of its cores. Only names of kPrimitives.
Seconds PrimitiveTime(const Device& device, std::string_view name, int units);

}  // namespace gnomon
