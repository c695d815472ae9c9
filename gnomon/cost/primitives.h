#pragma once

/// Primitives: operators whose time on a CPU follows the number of items rather than bytes or FLOPs: a sort,
/// a loop of small library calls, an index computation. Each is one time per item, measured on the device
/// ([framework] KEY_ns of its file, written by `gnomon device calibrate`) or a default from one CPU.

#include <array>
#include <string_view>

#include "gnomon/device/device.h"

namespace gnomon {

struct Primitive {
  std::string_view name;
  double default_ns;      ///< an item, all cores; see primitives.cc for where it was measured
  bool parallel;          ///< the operator uses all cores; a serial one does not slow down with fewer
  std::string_view item;  ///< what one item is, and how to measure it
};

inline constexpr std::array<Primitive, 12> kPrimitives = {{
    {"embedding_row", 4.0, true, "a row looked up by embedding_bag (sum, dim 16, rows in cache)"},
    {"lookup_grad_row", 6.5, true, "a lookup in the sparse backward of embedding_bag (dim 16)"},
    {"coalesce_key_level", 4.3, false, "coalesce() of n rows of a sparse gradient, time / (n·log2 n) (dim 16)"},
    {"update_row", 78, false, "a row of a coalesced gradient in a row-wise Adagrad of index operators (dim 16, rows in cache)"},
    {"bmm_item_fp32", 1200, false, "a matrix of a batched 27 × 27 × 16 product in fp32"},
    {"bmm_item_half", 122, true, "the same in bf16"},
    {"index_element", 1.1, true, "an element read by advanced indexing z[:, i, j]"},
    {"index_put_near", 2.1, false, "an element added by its backward, target within a core's own cache"},
    {"index_put_far", 15.8, false, "the same, target beyond it"},
    {"fused_lookup_row", 2.0, true, "a row looked up by our table-batched embedding bag (dim 16, rows in cache)"},
    {"fused_update_key", 2.0, true, "a lookup grouped by row in our embedding backward"},
    {"fused_update_row", 2.0, true, "a row updated by our embedding backward (dim 16, row in cache)"},
}};

/// The device's own figure, else the default, on `units` of its cores. Only names of kPrimitives.
Seconds PrimitiveTime(const Device& device, std::string_view name, int units);

}  // namespace gnomon
