# Warnings for our own code; code that Cython generates is left out.

function(hpcmoe_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align
    -Wnull-dereference)
  if(HPCMOE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
