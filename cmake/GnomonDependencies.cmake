# Finds what DESIGN.md names; a missing one is named with its Debian package.


macro(gnomon_find package debian)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} is missing. On Debian: apt-get install ${debian} (or ./dev setup)")
  endif()
endmacro()

gnomon_find(fmt libfmt-dev)
gnomon_find(tomlplusplus libtomlplusplus-dev)
gnomon_find(nlohmann_json nlohmann-json3-dev)
gnomon_find(CLI11 libcli11-dev)
gnomon_find(ZLIB zlib1g-dev)
gnomon_find(OpenMP g++ COMPONENTS CXX)
gnomon_find(Threads libc6-dev)
gnomon_find(hwy libhwy-dev)
if(BUILD_TESTING)
  gnomon_find(GTest libgtest-dev)
  gnomon_find(benchmark libbenchmark-dev)
endif()
if(GNOMON_TRAIN)
  # A newer LibTorch than Debian's is taken where CMAKE_PREFIX_PATH or Torch_DIR names one.
  gnomon_find(Torch libtorch-dev)
endif()
