#pragma once

/// `gnomon gemm rank` as text and JSON.

#include <string>

#include "gnomon/gemm/rank.h"
#include "gnomon/report/json.h"

namespace gnomon {

/// Verdict, the ranked kernels, those that cannot do the problem with the reason, next step.
std::string RankingText(const Device& device, const Problem& problem, const Ranking& ranking);

/// {device, problem{m, n, k, batch, layout, dtype}, kernels[{rank, name, line, understood, family,
/// tile{m, n, k}, split_k, stream_k, predicted_us, relative_error, bound, note}],
/// unable[{name, line, family, why}], close}. A tile that the name does not state is null.
Json RankingJson(const Device& device, const Problem& problem, const Ranking& ranking);

}  // namespace gnomon
