// Finds and opens libgnomon_train.so.
//
// Linking LibTorch would cost every command its 0.4 s of start; so the trainer is a module that is
// opened on demand, and a machine without LibTorch still runs everything else. $GNOMON_TRAIN_ENGINE
// names another build of it and is then the only place looked at.
//
// LibTorch's BLAS is settled here too. Debian has alternatives of their own for libblas.so.3 and
// for the libopenblas.so.0 that it needs; where both OpenBLAS builds are installed the second one
// stays at the build with its own threads, which then contend with LibTorch's OpenMP team for the
// cores (a factor of 2 to 5 in every operator around a GEMM). The OpenMP build, if it is there, is
// therefore loaded first.

#include "gnomon/train/load_engine.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace gnomon::train {
namespace {

constexpr const char* kLibrary = "libgnomon_train.so";
constexpr const char* kAdvice =
    "it needs LibTorch: apt-get install libtorch-dev libopenblas0-openmp, then build with "
    "GNOMON_TRAIN=ON";

std::vector<std::string> Candidates() {
  if (const char* named = std::getenv("GNOMON_TRAIN_ENGINE"); named && *named) return {named};
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {kLibrary};
  const auto folder = executable.parent_path();
  return {folder / kLibrary, (folder.parent_path() / "lib" / "gnomon" / kLibrary).string(),
          (folder.parent_path() / GNOMON_LIBRARY_FOLDER / "gnomon" / kLibrary).string()};
}

void PreferOpenMpBlas() {
  const std::filesystem::path folder = GNOMON_SYSTEM_LIBRARIES;
  std::error_code error;
  const auto chosen = std::filesystem::canonical(folder / "libopenblas.so.0", error);
  if (error || chosen.string().find("pthread") == std::string::npos) return;
  // By its soname it now stands for every libopenblas.so.0 that follows; other libraries see none
  // of it.
  dlopen((folder / "openblas-openmp" / "libopenblas.so.0").c_str(), RTLD_NOW | RTLD_LOCAL);
}

Result<const Engine*> Open() {
  PreferOpenMpBlas();
  const std::vector<std::string> candidates = Candidates();
  for (const std::string& path : candidates) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* why = dlerror();
      return BadInput(
          fmt::format("the trainer cannot be loaded ({}); {}", why ? why : "unknown", kAdvice),
          path);
    }
    const auto engine =
        reinterpret_cast<const Engine* (*)()>(dlsym(library, "gnomon_train_engine"));
    if (!engine)
      return BadInput("this library is no trainer: gnomon_train_engine is missing", path);
    return engine();
  }
  return BadInput(fmt::format("the trainer {} is not installed (looked for {}); {}", kLibrary,
                              fmt::join(candidates, ", "), kAdvice));
}

}  // namespace

Result<const Engine*> LoadEngine() {
  static const Result<const Engine*> engine = Open();
  return engine;
}

}  // namespace gnomon::train
