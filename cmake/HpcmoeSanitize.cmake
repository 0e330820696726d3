# Address and undefined-behaviour sanitizers; the first finding ends the program.

function(hpcmoe_sanitize target)
  if(HPCMOE_SANITIZE)
    set(flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(${target} PUBLIC ${flags})
    target_link_options(${target} PUBLIC ${flags})
  endif()
endfunction()
