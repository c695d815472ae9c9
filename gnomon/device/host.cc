// Questions to the operating system and to CPUID, each with an answer even where the machine keeps
// silent.
//
// Caches: sysfs first, then sysconf, as containers often hide one of them; sizes of 0 mean
// "unknown". The signature hashes the CPUID feature words, so that an overlay taken with AMX is not
// used where a hypervisor hides AMX. Not modelled: cores of unlike kinds, caches shared by only
// some of the cores.

#include "gnomon/device/host.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gnomon {
namespace {

constexpr double kKib = 1024, kMib = 1024 * 1024;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "48K" or "2M" as sysfs writes sizes.
double SizeText(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  return value * (unit == "K" ? kKib : unit == "M" ? kMib : 1);
}

Bytes CacheFromSysfs(int wanted_level) {
  constexpr int kMostCaches = 8;
  for (int i = 0; i < kMostCaches; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const std::string type = FirstLine(folder + "type");
    if (type.empty() || type == "Instruction") continue;
    if (FirstLine(folder + "level") == std::to_string(wanted_level))
      return {SizeText(FirstLine(folder + "size"))};
  }
  return {0};
}

Bytes CacheFromSysconf(int name) { return {static_cast<double>(std::max(0L, sysconf(name)))}; }

#if defined(__x86_64__)
constexpr unsigned kExtendedFeatures = 7, kBrandFirst = 0x80000002, kBrandLast = 0x80000004;

std::uint64_t FeatureHash() {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&](unsigned word) {
    for (int i = 0; i < 4; ++i, word >>= 8) hash = (hash ^ (word & 0xff)) * 0x100000001b3;
  };
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) mix(c), mix(d);
  for (unsigned leaf = 0; leaf < 2; ++leaf) {
    if (__get_cpuid_count(kExtendedFeatures, leaf, &a, &b, &c, &d))
      mix(leaf == 1 ? a : 0), mix(b), mix(c), mix(d);
  }
  return hash;
}
#endif

}  // namespace

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  return std::max(1, CPU_COUNT(&set));
}

std::string CpuName() {
#if defined(__x86_64__)
  std::string name;
  for (unsigned leaf = kBrandFirst; leaf <= kBrandLast; ++leaf) {
    unsigned words[4] = {};
    if (!__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3])) return "unknown x86-64";
    char part[sizeof(words) + 1] = {};
    std::memcpy(part, words, sizeof(words));
    name += part;
  }
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name;
#else
  return "unknown";
#endif
}

std::string CpuSignature() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  __get_cpuid(1, &a, &b, &c, &d);
  return fmt::format("{}, signature {:08x}, features {:016x}", CpuName(), a, FeatureHash());
#else
  return CpuName();
#endif
}

HostCaches ReadHostCaches() {
  const auto either = [](Bytes first, Bytes second) { return first.value > 0 ? first : second; };
  HostCaches caches;
  caches.l1 = either(CacheFromSysfs(1), CacheFromSysconf(_SC_LEVEL1_DCACHE_SIZE));
  caches.l2 = either(CacheFromSysfs(2), CacheFromSysconf(_SC_LEVEL2_CACHE_SIZE));
  caches.l3 = either(CacheFromSysfs(3), CacheFromSysconf(_SC_LEVEL3_CACHE_SIZE));
  const Bytes line = CacheFromSysconf(_SC_LEVEL1_DCACHE_LINESIZE);
  if (line.value > 0) caches.line_bytes = static_cast<int>(line.value);
  return caches;
}

Bytes HostMemory() {
  const double physical =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  double limit = physical;
  // Control groups, second and first version; "max" or a huge number means no limit.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const double value = SizeText(FirstLine(path));
    if (value > 0) limit = std::min(limit, value);
  }
  return {limit};
}

}  // namespace gnomon
