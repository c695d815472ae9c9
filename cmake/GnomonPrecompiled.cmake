# Precompiled headers: which, and why.
#
# Reading the standard library, fmt and GoogleTest took a third to two thirds of the compiler's time in most files. Each set of
# headers below is read once, by a carrier target without code of its own, and gnomon_precompile(TARGET SET) gives it to
# a target. Nothing depends on it: with -DGNOMON_PCH=OFF every file compiles by its own includes (the preset `lint` does
# that), and an installed Gnomon knows nothing of it. A set holds headers of other projects only: a change of ours
# must not compile everything anew.
#
# A set belongs to one kind of code (position independent as a library's or as a program's) and to one set of macros,
# to which flags count too (-Wpedantic takes one away, -fopenmp adds one): GCC refuses it elsewhere and says so (-Winvalid-pch).

# ccache does not keep what was compiled with a precompiled header unless its sloppiness allows it.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  set(pch_default OFF)
else()
  set(pch_default ON)
endif()
option(GNOMON_PCH "Read heavy headers once (precompiled headers)" ${pch_default})

set(standard_headers <algorithm> <array> <charconv> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory>
                     <numeric> <optional> <set> <span> <string> <string_view> <utility> <variant> <vector>)
if(GNOMON_PCH)
  # Everywhere, though only some modules have parallel regions: the sets are read with it.
  target_compile_options(gnomon_flags INTERFACE ${OpenMP_CXX_FLAGS})
  # GCC 12 forgets, across a precompiled header, that std::string comes from a system header, and then reports what it
  # inlines of it (a memcpy beyond the short string's buffer that no path reaches). The preset `lint` has these on.
  target_compile_options(gnomon_flags INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                         -Wno-stringop-overread)
endif()

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/no_code.cc CONTENT "// The carrier of a precompiled header.\n")

# gnomon_precompiled_set(SET program|library LINKS HEADERS...): the carrier gnomon_precompiled_SET.
function(gnomon_precompiled_set set kind)
  if(NOT GNOMON_PCH)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LINKS;HEADERS" ${ARGN})
  set(carrier gnomon_precompiled_${set})
  add_library(${carrier} OBJECT ${PROJECT_BINARY_DIR}/precompiled/no_code.cc)
  target_link_libraries(${carrier} PRIVATE gnomon_flags ${arg_LINKS})
  if(kind STREQUAL "program")
    set_target_properties(${carrier} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${carrier} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  endif()
  target_precompile_headers(${carrier} PRIVATE ${standard_headers} ${arg_HEADERS})
endfunction()

function(gnomon_precompile target set)
  if(GNOMON_PCH)
    target_precompile_headers(${target} REUSE_FROM gnomon_precompiled_${set})
  endif()
endfunction()

gnomon_precompiled_set(library library LINKS fmt::fmt HEADERS <fmt/format.h>)
gnomon_precompiled_set(report library LINKS fmt::fmt nlohmann_json::nlohmann_json HEADERS <fmt/format.h> <nlohmann/json.hpp>)
gnomon_precompiled_set(app program LINKS fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11
                       HEADERS <fmt/format.h> <nlohmann/json.hpp> <CLI/CLI.hpp>)
if(BUILD_TESTING)
  gnomon_precompiled_set(test program LINKS fmt::fmt GTest::gtest GTest::gmock
                         HEADERS <fmt/format.h> <gtest/gtest.h> <gmock/gmock.h>)
endif()
if(GNOMON_TRAIN)
  gnomon_precompiled_set(torch library LINKS fmt::fmt torch HEADERS <fmt/format.h> <ATen/ATen.h> <ATen/Parallel.h>)
endif()
