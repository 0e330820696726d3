# Writes _build.py, from which the results file learns the commit and the compiler flags.

set(HPCMOE_GIT_SHA "unknown" CACHE STRING "Commit of the source, as the builder names it")
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(JOIN " " HPCMOE_BUILD_FLAGS
  "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE}"
  "${CMAKE_CXX_FLAGS_${build_type}} -ffp-contract=off"
  "march=${HPCMOE_MARCH} lto=${HPCMOE_LTO} sanitize=${HPCMOE_SANITIZE}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/build_info.py.in ${PROJECT_BINARY_DIR}/_build.py @ONLY)
