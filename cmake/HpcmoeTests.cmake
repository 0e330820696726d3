# C++ unit tests: every tests/cpp/*.cc in one doctest program.

find_package(doctest REQUIRED)

file(GLOB_RECURSE cpp_test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cpp/*.cc)
add_executable(hpcmoe_cpp_tests ${cpp_test_sources})
target_include_directories(hpcmoe_cpp_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests/cpp)
target_link_libraries(hpcmoe_cpp_tests PRIVATE astra_sim doctest::doctest)
target_compile_definitions(hpcmoe_cpp_tests PRIVATE HPCMOE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
hpcmoe_warnings(hpcmoe_cpp_tests)
hpcmoe_optimise(hpcmoe_cpp_tests)

enable_testing()
add_test(NAME hpcmoe_cpp_tests COMMAND hpcmoe_cpp_tests)
