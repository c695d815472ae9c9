// Where the pick changes as M grows.
//
//   from M on with pick p: the next break point is the first M' with time of p > (1 + tolerance) ·
//   best
//
// A time grows with M, and so does the best time. A stretch [a, b] is therefore settled at once
// when p at b is within the tolerance of the best at a; else it is halved, down to a single M,
// where p fails or does not. Stretches double while they succeed. The number of stretches grows
// with the logarithm of the time over the range and with the waves that make steps larger than the
// tolerance, not with the range: 2^31 values of M take family triton less than 0.1 s.
//
// Where a family's time falls as M grows (an operand's rows become aligned), stretches are cut by
// that alignment: lists() says how. A model that falls for another reason could hide a pick that is
// better by more than the tolerance inside a stretch; breakpoints_test and the families' tests look
// for one.

#include "gnomon/gemm/breakpoints.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace gnomon {
namespace {

// Where A lies along M, M's alignment decides how wide its loads are (to 16 elements), how many
// lines a row piece touches (to 128 bytes) and, on AMD GPUs, over how many L2 channels the rows
// spread (to 4096 bytes): powers of two up to 4096 elements.
constexpr int kAlignments = 13;

size_t ListOf(size_t lists, std::int64_t m) {
  return lists == 1 ? 0
                    : static_cast<size_t>(std::min(std::countr_zero(static_cast<std::uint64_t>(m)),
                                                   kAlignments - 1));
}

// The values of M that one list is for.
struct Series {
  std::int64_t first = 1, stride = 1, count = 0;
  std::int64_t At(std::int64_t i) const { return first + i * stride; }
};

Series SeriesOf(size_t list, size_t lists, std::int64_t low, std::int64_t high) {
  Series series;
  std::int64_t offset = 0;
  if (lists > 1) {
    const bool last = list + 1 == lists;
    series.stride = std::int64_t{1} << (last ? list : list + 1);
    offset = last ? 0 : std::int64_t{1} << list;
  }
  series.first = low + ((offset - low) % series.stride + series.stride) % series.stride;
  series.count = series.first > high ? 0 : (high - series.first) / series.stride + 1;
  return series;
}

class Finder {
 public:
  Finder(const Selector& selector, const Problem& problem, const Series& series, double tolerance)
      : selector_(selector), problem_(problem), series_(series), allowed_(1 + tolerance) {}

  Result<std::vector<BreakPoint>> Run() {
    std::vector<BreakPoint> points;
    std::int64_t at = 0, length = 1;
    while (at < series_.count) {
      GNOMON_ASSIGN(Pick fastest, BestAt(at));
      if (points.empty() || TimeAt(at, points.back().pick) > allowed_ * fastest.predicted.value)
        points.push_back({series_.At(at), fastest});
      const std::int64_t last = std::min(at + length, series_.count) - 1;
      GNOMON_ASSIGN(const std::optional<std::int64_t> failed,
                    FirstFailure(points.back().pick, at, last, fastest.predicted.value));
      if (failed == at)
        return Fault(
            fmt::format("{} times one config in two ways", points.back().pick.family->name()));
      at = failed ? *failed : last + 1;
      length = failed ? std::max<std::int64_t>(1, length / 2) : 2 * length;
    }
    return points;
  }

 private:
  Result<Pick> BestAt(std::int64_t i) {
    problem_.m = series_.At(i);
    return selector_.SelectCold(problem_);
  }
  double TimeAt(std::int64_t i, const Pick& pick) {
    problem_.m = series_.At(i);
    return selector_.TimeOf(problem_, pick).value;
  }

  // The first of [first, last] where `pick` is too slow; `best` is the best time at `first`.
  Result<std::optional<std::int64_t>> FirstFailure(const Pick& pick, std::int64_t first,
                                                   std::int64_t last, double best) {
    if (TimeAt(last, pick) <= allowed_ * best) return std::optional<std::int64_t>();
    if (first == last) return std::optional<std::int64_t>(first);
    const std::int64_t middle = first + (last - first) / 2;
    GNOMON_ASSIGN(const std::optional<std::int64_t> left, FirstFailure(pick, first, middle, best));
    if (left) return left;
    GNOMON_ASSIGN(const Pick fastest, BestAt(middle + 1));
    return FirstFailure(pick, middle + 1, last, fastest.predicted.value);
  }

  const Selector& selector_;
  Problem problem_;
  const Series series_;
  const double allowed_;
};

}  // namespace

const Pick& BreakPoints::Lookup(std::int64_t m) const {
  GNOMON_CHECK(m >= low_ && m <= high_, "m is {}, outside {} to {}", m, low_, high_);
  const std::vector<BreakPoint>& list = lists_[ListOf(lists_.size(), m)];
  const auto after =
      std::upper_bound(list.begin(), list.end(), m,
                       [](std::int64_t value, const BreakPoint& point) { return value < point.m; });
  return std::prev(after)->pick;
}

size_t BreakPoints::size() const {
  size_t size = 0;
  for (const auto& list : lists_) size += list.size();
  return size;
}

Result<BreakPoints> SelectRange(const Selector& selector, const Problem& problem,
                                std::int64_t m_low, std::int64_t m_high, double tolerance) {
  if (m_low < 1 || m_high < m_low)
    return BadInput(
        fmt::format("M from {} to {} is no range; it needs 1 <= low <= high", m_low, m_high),
        "m_low");
  if (!(tolerance >= 0))
    return BadInput(fmt::format("tolerance is {}; it must be 0 or more", tolerance), "tolerance");
  if (problem.grouped())
    return BadInput("M of a grouped problem is a list; its range has no order", "problem.group_m");
  BreakPoints out;
  out.low_ = m_low;
  out.high_ = m_high;
  const size_t lists = problem.a_transposed() ? kAlignments : 1;
  for (size_t i = 0; i < lists; ++i) {
    Finder finder(selector, problem, SeriesOf(i, lists, m_low, m_high), tolerance);
    GNOMON_ASSIGN(std::vector<BreakPoint> points, finder.Run());
    out.lists_.push_back(std::move(points));
  }
  return out;
}

Result<BreakPoints> SelectRange(const Device& device, const Problem& problem,
                                std::span<const Family* const> families, std::int64_t m_low,
                                std::int64_t m_high, double tolerance) {
  return SelectRange(Selector(device, families), problem, m_low, m_high, tolerance);
}

}  // namespace gnomon
