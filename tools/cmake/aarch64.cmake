# SPDX-License-Identifier: BSD-3-Clause
# aarch64.cmake - cross-compiles for AArch64 against the root that tools/check-aarch64 makes, and runs what it built under
# qemu-user.  -DWEFT_ROOT=DIR names the root.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WEFT_ROOT)
set(CMAKE_SYSROOT ${WEFT_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${WEFT_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${WEFT_ROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${WEFT_ROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;${WEFT_ROOT}")
