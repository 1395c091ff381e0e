# SPDX-License-Identifier: BSD-3-Clause
# WeftPlatform.cmake - what weft is not written for ends here, not in a test or at a user's.
#
# Words of 64 bits carry handles and counts, the standard ABI is defined for them alone here, and rings, files and
# wire hold numbers as little-endian machines write them.
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  math(EXPR weft_bits "${CMAKE_SIZEOF_VOID_P} * 8")
  message(FATAL_ERROR "weft: ${weft_bits}-bit builds are unsupported; 64-bit Linux on x86-64 and AArch64 is supported")
endif()
if(NOT CMAKE_C_BYTE_ORDER STREQUAL "LITTLE_ENDIAN")
  message(FATAL_ERROR "weft: big-endian machines are unsupported; 64-bit Linux on x86-64 and AArch64 is supported")
endif()
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "weft: ${CMAKE_SYSTEM_NAME} is unsupported; 64-bit Linux on x86-64 and AArch64 is supported")
endif()
