// The smallest program on Gnomon: the best kernel of this host for one matrix product, and its
// time.
#include <cstdio>

#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/gemm/select.h"

int main() {
  const auto device = gnomon::FindDevice("host");
  if (!device) return std::fprintf(stderr, "%s\n", device.error().Text().c_str()), 1;
  const gnomon::Problem problem{.m = 2048, .n = 512, .k = 13};
  const gnomon::Family* families[] = {&gnomon::cpu::GemmFamily()};
  const auto picks = gnomon::Select(*device, problem, families);
  if (!picks) return std::fprintf(stderr, "%s\n", picks.error().Text().c_str()), 1;
  std::printf("%s: %s, predicted %.1f us\n", problem.Text().c_str(),
              families[0]->Print(picks->front().config).c_str(),
              gnomon::InMicroseconds(picks->front().predicted));
}
