# Installs the build into a folder of its own, then configures, builds and runs tests/find_package against it.
set(prefix ${BINARY_DIR}/find_package_test/prefix)
set(build ${BINARY_DIR}/find_package_test/build)
file(REMOVE_RECURSE ${BINARY_DIR}/find_package_test)

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${out}")
  endif()
endfunction()

step(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${prefix})
set(flags "")
if(SANITIZE)
  set(flags "-DCMAKE_CXX_FLAGS=-fsanitize=address,undefined")
endif()
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE_DIR} -B ${build} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=Release ${flags})
step(${CMAKE_COMMAND} --build ${build})
# Away from the source tree, so that only installed data files can be found.
execute_process(COMMAND ${CMAKE_COMMAND} -E env GNOMON_DEVICES=${prefix}/share/gnomon/devices ${build}/consumer
                WORKING_DIRECTORY ${BINARY_DIR}/find_package_test RESULT_VARIABLE code
                OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT code EQUAL 0 OR NOT out MATCHES "predicted")
  message(FATAL_ERROR "consumer: ${code}\n${out}")
endif()
