# SPDX-License-Identifier: BSD-3-Clause
# WeftLayers.cmake - one static library per folder of src/, tests linked with lower layers alone.
#
#   weft_layer(NAME)   makes weft_NAME from the .c files of src/NAME and its subfolders, linked with every layer declared before it,
#                      and one test program per test_*.c of test/NAME, linked with NAME and the lower layers.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)

add_library(weft_flags INTERFACE)
target_compile_definitions(weft_flags INTERFACE _GNU_SOURCE WEFT_VERSION="${PROJECT_VERSION}")
target_compile_options(weft_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes
  -Wno-unused-parameter -Wvla -Wwrite-strings -ftls-model=initial-exec
  -fstack-protector-strong -fstack-clash-protection -fno-math-errno -fno-semantic-interposition)
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  # Part of clang's -Wconversion: forbids CHECK(!"why we should not be here").
  target_compile_options(weft_flags INTERFACE -Wno-string-conversion)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Not shadow stacks for what switches stacks: a target says so by WEFT_SWITCHES.
  target_compile_options(weft_flags INTERFACE
    -fcf-protection$<$<BOOL:$<TARGET_PROPERTY:WEFT_SWITCHES>>:=branch>)
endif()
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
target_link_options(weft_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
endif()
# Asserts (base/assert.h): on in Debug and sanitizer builds, in models, and in what weft_link_checked
# links.
add_library(weft_checked INTERFACE)
target_compile_definitions(weft_checked INTERFACE WEFT_CHECKED)
if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR WEFT_SANITIZE)
  set(WEFT_CHECKED_LAYERS "")
  target_link_libraries(weft_flags INTERFACE weft_checked)
else()
  # These are compiled once more, with asserts, for the simulator and the fuzz targets.
  set(WEFT_CHECKED_LAYERS net task comm rma)
endif()
set_property(GLOBAL PROPERTY WEFT_CHECKED_LIBS "")

# weft_link_checked(TARGET): links comm/ and all below it, with asserts.
function(weft_link_checked target)
  get_property(checked GLOBAL PROPERTY WEFT_CHECKED_LIBS)
  target_link_libraries(${target} PRIVATE weft_flags weft_checked ${checked} weft_comm)
endfunction()

target_include_directories(weft_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(weft_flags INTERFACE Threads::Threads)

set_property(GLOBAL PROPERTY WEFT_LAYERS "")

# Libraries from outside that one layer needs; no layer above sees their headers.
# libhwloc is loaded when it is asked (topo/hwloc_lib.h): its header alone is needed, and where it is.
add_library(weft_hwloc_header INTERFACE)
target_include_directories(weft_hwloc_header SYSTEM INTERFACE ${HWLOC_INCLUDE_DIRS})
pkg_get_variable(HWLOC_FOLDER hwloc libdir)
target_compile_definitions(weft_hwloc_header INTERFACE WEFT_HWLOC_FOLDER="${HWLOC_FOLDER}")
set(WEFT_topo_LIBS weft_hwloc_header ${CMAKE_DL_LIBS})
set(WEFT_boot_LIBS PkgConfig::SODIUM ${CMAKE_DL_LIBS})
set(WEFT_net_LIBS PkgConfig::SODIUM ${CMAKE_DL_LIBS})
set(WEFT_ult_LIBS ${CMAKE_DL_LIBS} m)

# Seconds after which a test hangs, on a machine that is busy with others too; no test judges time
# by less.  A sanitizer makes it several times slower.
set(WEFT_TEST_TIMEOUT 240)
if(WEFT_SANITIZE)
  set(WEFT_TEST_TIMEOUT 600)
endif()

# Tests that take longest start first, so that none of them runs on alone at the end.
set(WEFT_LONG_TESTS net/test_ofi net/test_netns net/test_bundle net/test_shm net/test_tcp coll/test_model_feed
  coll/test_schedule sim/schedules sim/one_sided cmd/test_bench cmd/test_mismatch cmd/test_instructions fault/engine mpiexec/test_pmi)
function(weft_start_early test)
  if(test IN_LIST WEFT_LONG_TESTS)
    set_tests_properties(${test} PROPERTIES COST 10)
  endif()
endfunction()

function(weft_layer name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c)
  get_property(lower GLOBAL PROPERTY WEFT_LAYERS)
  # What lies above comes first on the link line.
  list(REVERSE lower)
  if(sources)
    add_library(weft_${name} STATIC ${sources})
    target_link_libraries(weft_${name} PUBLIC weft_flags)
    target_link_libraries(weft_${name} PRIVATE ${WEFT_${name}_LIBS})
    target_link_libraries(weft_${name} PUBLIC ${lower})
    set_property(GLOBAL APPEND PROPERTY WEFT_LAYERS weft_${name})
  endif()
  if(name IN_LIST WEFT_CHECKED_LAYERS)
    get_property(checked GLOBAL PROPERTY WEFT_CHECKED_LIBS)
    add_library(weft_${name}_checked STATIC EXCLUDE_FROM_ALL ${sources})
    target_compile_options(weft_${name}_checked PRIVATE -O1 -g1)
    target_link_libraries(weft_${name}_checked PRIVATE weft_flags weft_checked ${WEFT_${name}_LIBS})
    set_property(GLOBAL PROPERTY WEFT_CHECKED_LIBS weft_${name}_checked ${checked})
  endif()
  set_property(GLOBAL APPEND PROPERTY WEFT_LAYER_NAMES ${name})
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/${name}/test_*.c)
  foreach(src ${tests})
    get_filename_component(prog ${src} NAME_WE)
    # Models run coroutines of their own on one thread: sanitizers cannot follow their stacks.
    if(WEFT_SANITIZE AND prog MATCHES "^test_model_")
      continue()
    endif()
    set(exe ${name}_${prog})
    add_executable(${exe} ${src})
    if(NOT prog MATCHES "^test_model_") # models compute for long, the rest mostly waits
      target_compile_options(${exe} PRIVATE $<$<CONFIG:RelWithDebInfo,Release>:-O1>)
    endif()
    if(name STREQUAL "comm")
      weft_link_checked(${exe}) # its checks are asserts
    endif()
    target_link_libraries(${exe} PRIVATE weft_flags ${lower} ${WEFT_${name}_LIBS})
    target_include_directories(${exe} PRIVATE ${PROJECT_SOURCE_DIR}/test)
    if(prog MATCHES "^test_model_")
      target_link_libraries(${exe} PRIVATE weft_checked)
    endif()
    if(sources)
      target_link_libraries(${exe} PRIVATE weft_${name})
    endif()
    add_test(NAME ${name}/${prog} COMMAND ${exe})
    set_tests_properties(${name}/${prog} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${WEFT_TEST_TIMEOUT} LABELS unit)
    weft_start_early(${name}/${prog})
  endforeach()
endfunction()
