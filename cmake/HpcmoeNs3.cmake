# The optional backend on ns-3. ns-3 is licensed under GPL-2.0-only, so what is linked with it falls under
# that licence too; a build without it contains nothing of ns-3.
#
# ON finds the wheel that `pip install ns3` puts next to this interpreter's packages, or else a system
# library; a path names the folder that holds the include and library folders.

set(HPCMOE_NS3 OFF CACHE STRING "Backend on ns-3: ON, OFF or the folder ns-3 is installed in")

if(NOT HPCMOE_NS3)
  return()
endif()

set(ns3_where)
if(IS_DIRECTORY "${HPCMOE_NS3}")
  set(ns3_where PATHS "${HPCMOE_NS3}" NO_DEFAULT_PATH)
else()
  if(NOT Python_EXECUTABLE)
    find_package(Python 3.11 COMPONENTS Interpreter)
  endif()
  if(Python_EXECUTABLE)
    execute_process(
      COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_path('platlib'))"
      OUTPUT_VARIABLE ns3_packages OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(ns3_where HINTS "${ns3_packages}/ns3")
  endif()
endif()

# Libraries carry the release in their names, apart from those of Linux distributions.
set(ns3_modules internet point-to-point network stats core)
find_path(NS3_INCLUDE_DIR ns3/core-config.h ${ns3_where} PATH_SUFFIXES include)
set(ns3_libraries)
set(ns3_missing)
foreach(module ${ns3_modules})
  set(names)
  foreach(release RANGE 60 37 -1)
    list(APPEND names ns3.${release}-${module})
  endforeach()
  find_library(NS3_${module}_LIBRARY NAMES ${names} ns3-${module} ${ns3_where} PATH_SUFFIXES lib64 lib lib/${CMAKE_LIBRARY_ARCHITECTURE})
  if(NS3_${module}_LIBRARY)
    list(APPEND ns3_libraries "${NS3_${module}_LIBRARY}")
  else()
    list(APPEND ns3_missing ${module})
  endif()
endforeach()
if(NOT NS3_INCLUDE_DIR OR ns3_missing)
  message(FATAL_ERROR
    "HPCMOE_NS3=${HPCMOE_NS3}: ns-3 was not found (headers: ${NS3_INCLUDE_DIR}; libraries missing: "
    "${ns3_missing}). pip install --no-deps ns3, or apt install libns3-dev, or name its folder.")
endif()

list(GET ns3_libraries 0 ns3_library)
get_filename_component(ns3_library_file "${ns3_library}" REALPATH)
get_filename_component(ns3_library_folder "${ns3_library}" DIRECTORY)
if(ns3_library_file MATCHES "ns3[.-]([0-9.]+)")
  set(ns3_found "${CMAKE_MATCH_1}")
endif()
# Headers before release 3.40 are no C++20.
if(ns3_library_file MATCHES "ns3\\.(3[0-9])-" OR ns3_library_file MATCHES "\\.so\\.3[0-9]$")
  set(ns3_standard 17)
else()
  set(ns3_standard 20)
endif()
message(STATUS "ns-3: ${ns3_library_file}, headers in ${NS3_INCLUDE_DIR}, C++${ns3_standard}")

# The folder of headers may hold other libraries' headers as well; only what needs it sees it.
function(hpcmoe_use_ns3 target)
  set_target_properties(${target} PROPERTIES CXX_STANDARD ${ns3_standard})
  target_include_directories(${target} SYSTEM PRIVATE "${NS3_INCLUDE_DIR}")
endfunction()

function(hpcmoe_ns3_library target kind)
  add_library(${target} ${kind} ${ARGN})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/astra-sim)
  hpcmoe_use_ns3(${target})
  hpcmoe_optimise(${target})
  hpcmoe_warnings(${target})
  # Inlined from ns-3's own callbacks, and not ours to change.
  target_compile_options(${target} PRIVATE -Wno-null-dereference)
  hpcmoe_sanitize(${target})
endfunction()

# The model knows nothing of hpcmoe and serves plain ns-3 programs; the bridge drives it.
set(ns3_folder ${PROJECT_SOURCE_DIR}/astra-sim/backends/ns3)
set(ns3_bridge ${ns3_folder}/builder.cc ${ns3_folder}/ns3_network.cc ${ns3_folder}/recorder.cc
  ${ns3_folder}/routes.cc)
file(GLOB ns3_model CONFIGURE_DEPENDS ${ns3_folder}/*.cc)
list(REMOVE_ITEM ns3_model ${ns3_bridge})
# What it shares with the rest of the simulator is C++20 whatever ns-3 wants.
set_source_files_properties(${ns3_folder}/routes.cc PROPERTIES COMPILE_OPTIONS -std=c++20)
hpcmoe_ns3_library(hpcmoe_rdma STATIC ${ns3_model})
target_link_libraries(hpcmoe_rdma PUBLIC ${ns3_libraries})
hpcmoe_ns3_library(astra_sim_ns3 OBJECT ${ns3_bridge})

target_sources(astra_sim PRIVATE $<TARGET_OBJECTS:astra_sim_ns3>)
target_compile_definitions(astra_sim PRIVATE HPCMOE_NS3)
target_link_libraries(astra_sim PUBLIC hpcmoe_rdma)
# Where the loader looks: where ns-3 is now, and next to an installed package.
list(APPEND CMAKE_BUILD_RPATH "${ns3_library_folder}" "$ORIGIN/../ns3/lib64")

add_executable(rdma_incast EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/docs/examples/rdma_incast.cc)
hpcmoe_use_ns3(rdma_incast)
target_link_libraries(rdma_incast PRIVATE hpcmoe_rdma)
