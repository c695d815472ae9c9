#pragma once

/// A family for tests: configs are the numbers 1..count, and number i takes `times[i−1]` seconds.

#include <charconv>

#include "gnomon/gemm/family.h"

namespace gnomon {

class ToyFamily : public Family {
 public:
  explicit ToyFamily(std::vector<double> times, std::string name = "toy")
      : times_(std::move(times)), name_(std::move(name)) {}

  std::string_view name() const override { return name_; }
  Status Enumerate(const Device&, const Problem& problem, int,
                   std::vector<Config>& configs) const override {
    if (problem.dtype != DType::kFp32) return BadInput("only fp32");
    for (size_t i = 0; i < times_.size(); ++i) {
      Config config;
      config.value[0] = static_cast<std::int32_t>(i + 1);
      configs.push_back(config);
    }
    return Done{};
  }
  Seconds PredictTime(const Device&, const Problem&, const Config& config) const override {
    return {times_[static_cast<size_t>(config.value[0] - 1)]};
  }
  Prediction Predict(const Device& device, const Problem& problem,
                     const Config& config) const override {
    Prediction out;
    out.time = PredictTime(device, problem, config);
    out.terms = {{"all", out.time, "toy"}};
    return out;
  }
  std::string Print(const Config& config) const override {
    return fmt::format("c{}", config.value[0]);
  }
  Result<Config> Parse(std::string_view text) const override {
    Config config;
    if (text.size() < 2 || text[0] != 'c') return BadInput("not a toy config");
    const auto [end, error] =
        std::from_chars(text.data() + 1, text.data() + text.size(), config.value[0]);
    if (error != std::errc() || end != text.data() + text.size() || config.value[0] < 1 ||
        config.value[0] > static_cast<std::int32_t>(times_.size()))
      return BadInput("not a toy config");
    return config;
  }

 private:
  std::vector<double> times_;
  std::string name_;
};

}  // namespace gnomon
