# hpcmoe._native: ext/native.pyx, translated by Cython to C++ and linked with astra_sim.

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module NumPy)

set(native_pyx ${PROJECT_SOURCE_DIR}/ext/native.pyx)
set(native_cpp ${PROJECT_BINARY_DIR}/native.cpp)
file(GLOB native_inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/ext/*.pxd ${PROJECT_SOURCE_DIR}/ext/*.pxi)
file(GLOB native_helpers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/ext/*.cc)

add_custom_command(
  OUTPUT ${native_cpp}
  COMMAND ${Python_EXECUTABLE} -m cython -3 --cplus --module-name hpcmoe._native
          -o ${native_cpp} ${native_pyx}
  DEPENDS ${native_pyx} ${native_inputs}
  COMMENT "Translating ext/native.pyx"
  VERBATIM)

Python_add_library(_native MODULE WITH_SOABI ${native_cpp} ${native_helpers})
target_include_directories(_native PRIVATE ${PROJECT_SOURCE_DIR}/ext)
target_link_libraries(_native PRIVATE astra_sim Python::NumPy)
target_compile_definitions(_native PRIVATE NPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION)
set_target_properties(_native PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
hpcmoe_optimise(_native)
