# Code generation. Times that the simulator reports must not depend on the machine it was built on,
# so no option here may change the result of a floating-point expression.

set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g -D_GLIBCXX_ASSERTIONS")

function(hpcmoe_optimise target)
  # Without this, GCC fuses a*b+c into one rounding wherever -march has the instruction.
  target_compile_options(${target} PUBLIC -ffp-contract=off)
  if(HPCMOE_MARCH)
    target_compile_options(${target} PUBLIC -march=${HPCMOE_MARCH})
  endif()
  if(HPCMOE_LTO)
    set_property(TARGET ${target} PROPERTY INTERPROCEDURAL_OPTIMIZATION ON)
  endif()
endfunction()
