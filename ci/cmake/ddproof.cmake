# The three kinds of target: ddproof_library, ddproof_test, ddproof_benchmark.
#
# Every target links ddproof_options, which holds the language level, the warnings, the sanitizers
# and the numeric contract (-ffp-contract=off: the compiler adds no fused multiply-add of its own).

option(DDPROOF_WERROR "Treat warnings as errors" ON)
set(DDPROOF_SANITIZE "" CACHE STRING "Sanitizers for every target, for example address,undefined")
option(DDPROOF_WITH_GLOO "Build the gloo and sim backends" ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(ddproof_options INTERFACE)
add_library(ddproof::options ALIAS ddproof_options)
target_compile_features(ddproof_options INTERFACE cxx_std_20)
target_compile_options(ddproof_options INTERFACE -ffp-contract=off
  $<BUILD_INTERFACE:-Wall;-Wextra;-Wno-missing-field-initializers;-Wnon-virtual-dtor;-Woverloaded-virtual>
  # False alarms on string concatenation in GCC 12 (its bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:$<BUILD_INTERFACE:-Wno-restrict>>
  $<$<BOOL:${DDPROOF_WERROR}>:$<BUILD_INTERFACE:-Werror>>)
if(DDPROOF_SANITIZE)
  target_compile_options(ddproof_options INTERFACE
    $<BUILD_INTERFACE:-fsanitize=${DDPROOF_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
  target_link_options(ddproof_options INTERFACE $<BUILD_INTERFACE:-fsanitize=${DDPROOF_SANITIZE}>)
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)

# ddproof_library(NAME x SRCS a.cc ... HDRS a.h ... DEPS ddproof::y ...)
# Makes ddproof_x with the alias ddproof::x. Without SRCS it is header-only.
# Headers are included from the repository root.
function(ddproof_library)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;HDRS;DEPS" ${ARGN})
  set(target ddproof_${ARG_NAME})
  if(ARG_SRCS)
    add_library(${target} STATIC ${ARG_SRCS} ${ARG_HDRS})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(ddproof::${ARG_NAME} ALIAS ${target})
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${target} ${scope} ddproof::options ${ARG_DEPS})
endfunction()

# ddproof_test(NAME x_test LABEL unit SRCS x_test.cc DEPS ddproof::y [TIMEOUT seconds])
# Every GoogleTest case becomes the ctest case "<label>/<Suite>.<Fact>" with that label.
include(GoogleTest)
function(ddproof_test)
  cmake_parse_arguments(ARG "" "NAME;LABEL;TIMEOUT" "SRCS;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(DDPROOF_SANITIZE)
    math(EXPR ARG_TIMEOUT "10 * ${ARG_TIMEOUT}")  # a thread sanitizer costs that much
  endif()
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} ddproof::options GTest::gtest_main)
  # The libraries under test keep their level; the tests themselves need to compile quickly.
  target_compile_options(${ARG_NAME} PRIVATE -O1)
  target_compile_definitions(${ARG_NAME} PRIVATE
    DDPROOF_SOURCE_DIR="${PROJECT_SOURCE_DIR}" DDPROOF_BINARY_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(${ARG_NAME} TEST_PREFIX "${ARG_LABEL}/" DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

# ddproof_benchmark(NAME x_benchmark SRCS x_benchmark.cc DEPS ...): a program of its own, run by
# `ci/bench`, never by ctest.
function(ddproof_benchmark)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} ddproof::options)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
endfunction()
