// The list of kernel families. A new one is added here, once.

#include "apps/families.h"

#include <array>

#include "gnomon/base/nearest.h"
#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/families/cuda/cublaslt.h"
#include "gnomon/families/cuda/cuda_family.h"
#include "gnomon/families/cuda/cuda_gemm.h"
#include "gnomon/families/hip/cdna_family.h"
#include "gnomon/families/triton/triton_gemm.h"

namespace gnomon::app {
namespace {

struct Listed {
  const Family* family = nullptr;
  bool groups = false;
  bool (*made_for)(const Device&) = nullptr;
};

std::array<Listed, 7> All() {
  return {
      {{&cpu::GemmFamily(), false, [](const Device& d) { return d.kind == Device::Kind::kCpu; }},
       {&triton::GemmFamily(), true, [](const Device& d) { return d.kind == Device::Kind::kGpu; }},
       {&hip::CdnaFamily(), false, [](const Device& d) { return d.arch.starts_with("gfx"); }},
       {&cuda::CudaFamily(), true, [](const Device& d) { return d.arch.starts_with("sm_90"); }},
       // What TMA kernels could do in general. Hopper has our own, which a pick can run: one beside
       // them that only the model knows would be no answer. By name it says what a tile that our
       // table lacks would bring.
       {&cuda::Sm90Family(), true, [](const Device&) { return false; }},
       {&cuda::Sm100Family(), true, [](const Device& d) { return d.arch.starts_with("sm_10"); }},
       // The vendor's own kernels, asked of the GPU itself: only where they are named.
       {&cuda::CublasLtFamily(), false, [](const Device&) { return false; }}}};
}

}  // namespace

Result<std::vector<const Family*>> Families(const std::string& name, const Device* device) {
  std::vector<const Family*> chosen;
  std::vector<std::string_view> names;
  for (const Listed& listed : All()) {
    names.push_back(listed.family->name());
    const bool wanted =
        name.empty() ? !device || listed.made_for(*device) : listed.family->name() == name;
    if (wanted) chosen.push_back(listed.family);
  }
  if (!chosen.empty()) return chosen;
  if (name.empty())
    return BadInput(fmt::format("no family has kernels for {}", device->id), "--device");
  return BadInput(UnknownName("family", name, names), "--family");
}

bool TakesGroups(const Family& family) {
  for (const Listed& listed : All())
    if (listed.family == &family) return listed.groups;
  return false;
}

}  // namespace gnomon::app
