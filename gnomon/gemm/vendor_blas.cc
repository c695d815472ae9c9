// Loads OpenBLAS and BLIS, each with its symbols to itself: both export sgemm_.
//
// BLAS is column-major, and a row-major matrix is the column-major matrix transposed:
//
//   C = A·B (row-major)  ⇔  Cᵀ = Bᵀ·Aᵀ (column-major): sgemm with B first, sides n, m, k, leading
//   dimensions unchanged, and 'T' for an operand that is stored transposed.
//
// Debian installs several builds of each; the OpenMP ones are taken first, so that both libraries
// and our kernels share threads of the same runtime. An index above 2^31 − 1 does not fit their
// interface.

#include "gnomon/gemm/vendor_blas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <limits>

namespace gnomon {
namespace {

using SgemmFunction = void (*)(const char*, const char*, const int*, const int*, const int*,
                               const float*, const float*, const int*, const float*, const int*,
                               const float*, float*, const int*);

#if defined(__aarch64__)
constexpr std::string_view kMultiarch = "/usr/lib/aarch64-linux-gnu/";
#else
constexpr std::string_view kMultiarch = "/usr/lib/x86_64-linux-gnu/";
#endif

class LoadedBlas : public VendorBlas {
 public:
  LoadedBlas(std::string name, void* library, SgemmFunction sgemm)
      : name_(std::move(name)), library_(library), sgemm_(sgemm) {}
  std::string name() const override { return name_; }

  void SetThreads(int threads) const override {
    // openblas_set_num_threads(int); bli_thread_set_num_threads(dim_t), dim_t being 64 bits wide.
    if (void* symbol = dlsym(library_, "openblas_set_num_threads"))
      reinterpret_cast<void (*)(int)>(symbol)(threads);
    else if (void* blis = dlsym(library_, "bli_thread_set_num_threads"))
      reinterpret_cast<void (*)(std::int64_t)>(blis)(threads);
  }

  Status Sgemm(const Problem& p, const float* a, const float* b, float* c) const override {
    constexpr std::int64_t kMax = std::numeric_limits<int>::max();
    for (const std::int64_t side : {p.m, p.n, p.k, p.LeadingA(), p.LeadingB(), p.LeadingC()})
      if (side > kMax) return BadInput(fmt::format("{} exceeds what {} can index", side, name_));
    const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    const int lda = static_cast<int>(p.LeadingA()), ldb = static_cast<int>(p.LeadingB()),
              ldc = static_cast<int>(p.LeadingC());
    const char ta = p.a_transposed() ? 'T' : 'N', tb = p.b_transposed() ? 'T' : 'N';
    const float one = 1, zero = 0;
    const std::int64_t step_a = (p.a_transposed() ? p.k : p.m) * p.LeadingA();
    const std::int64_t step_b = (p.b_transposed() ? p.n : p.k) * p.LeadingB();
    for (std::int64_t batch = 0; batch < p.batch; ++batch)
      sgemm_(&tb, &ta, &n, &m, &k, &one, b + batch * step_b, &ldb, a + batch * step_a, &lda, &zero,
             c + batch * p.m * p.LeadingC(), &ldc);
    return Done{};
  }

 private:
  std::string name_;
  void* library_;  // stays loaded: thread pools of a BLAS do not survive an unload
  SgemmFunction sgemm_;
};

struct Source {
  std::string_view name, file;
  std::array<std::string_view, 3> folders;  // of Debian's builds, best first
};

std::unique_ptr<VendorBlas> Load(const Source& source) {
  std::vector<std::string> paths;
  for (const std::string_view folder : source.folders)
    paths.push_back(fmt::format("{}{}/{}", kMultiarch, folder, source.file));
  paths.emplace_back(source.file);
  for (const std::string& path : paths) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) continue;
    if (void* symbol = dlsym(library, "sgemm_"))
      return std::make_unique<LoadedBlas>(std::string(source.name), library,
                                          reinterpret_cast<SgemmFunction>(symbol));
    dlclose(library);
  }
  return nullptr;
}

}  // namespace

Result<std::vector<std::unique_ptr<VendorBlas>>> LoadVendorBlas() {
  constexpr std::array<Source, 2> kSources = {
      {{"openblas", "libopenblas.so.0", {"openblas-openmp", "openblas-pthread", "openblas-serial"}},
       {"blis", "libblis.so.4", {"blis-openmp", "blis-pthread", "blis-serial"}}}};
  std::vector<std::unique_ptr<VendorBlas>> found;
  for (const Source& source : kSources)
    if (std::unique_ptr<VendorBlas> blas = Load(source)) found.push_back(std::move(blas));
  if (found.empty())
    return BadInput(
        "no vendor BLAS on this machine: neither libopenblas.so.0 nor libblis.so.4 can be "
        "loaded. On Debian: apt-get install libopenblas0-openmp libblis4-openmp");
  return found;
}

}  // namespace gnomon
