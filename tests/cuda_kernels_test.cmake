# Compiles one kernel of each kind for sm_90a with nvcc 13 or newer; says that it skips where there is none.
find_program(nvcc nvcc PATHS /usr/local/cuda/bin $ENV{CUDA_HOME}/bin)
if(nvcc)
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE version)
  string(REGEX MATCH "release ([0-9]+)" release "${version}")
endif()
if(NOT nvcc OR CMAKE_MATCH_1 LESS 13)
  message("skipped: no nvcc 13 or newer here")
  return()
endif()
execute_process(COMMAND ${nvcc} -gencode=arch=compute_90a,code=sm_90a -std=c++20 -O3 -I${ROOT} -c
                        ${ROOT}/tests/cuda_kernels/one_of_each_kind.cu -o ${BINARY_DIR}/one_of_each_kind.o
                RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${out}")
endif()
