# SPDX-License-Identifier: BSD-3-Clause
# WeftPackages.cmake - .deb packages by CPack: libweft (the libraries), weft-tools (commands), libweft-dev (headers,
# wrappers), weft-doc.  `cpack -G DEB` in a build that was configured with -DCMAKE_INSTALL_PREFIX=/usr/lib/weft.
#
# All files lie below that prefix; Debian's alternatives offer mpicc, mpiexec and mpirun beside other MPIs.
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_VENDOR weft)
set(CPACK_PACKAGE_CONTACT "weft <weft@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr/lib/weft)
set(CPACK_COMPONENTS_ALL lib tools dev doc)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_LIB_PACKAGE_NAME libweft)
set(CPACK_DEBIAN_LIB_DESCRIPTION "MPI 5.0 standard ABI library with background progress")
set(CPACK_DEBIAN_LIB_PACKAGE_SHLIBDEPS ON)
# Loaded at run time (topo/hwloc_lib.h), so that no scan of the libraries finds it.
set(CPACK_DEBIAN_LIB_PACKAGE_DEPENDS "libhwloc15")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME weft-tools)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "mpiexec and weft: start, inspect and measure programs of libweft")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libweft (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "openssh-client, python3")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libweft-dev)
set(CPACK_DEBIAN_DEV_DESCRIPTION "mpi.h, mpicc and the headers of libweft")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libweft (= ${PROJECT_VERSION}), gcc | c-compiler")

set(CPACK_DEBIAN_DOC_PACKAGE_NAME weft-doc)
set(CPACK_DEBIAN_DOC_DESCRIPTION "documents and manual pages of weft")
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)

# The scripts that register alternatives, with this version's places.
foreach(script postinst prerm)
  foreach(part tools dev)
    configure_file(${PROJECT_SOURCE_DIR}/packaging/debian/${part}.${script}.in
      ${PROJECT_BINARY_DIR}/packaging/${part}/${script} @ONLY
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
endforeach()
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONTROL_EXTRA
  "${PROJECT_BINARY_DIR}/packaging/tools/postinst;${PROJECT_BINARY_DIR}/packaging/tools/prerm")
set(CPACK_DEBIAN_DEV_PACKAGE_CONTROL_EXTRA
  "${PROJECT_BINARY_DIR}/packaging/dev/postinst;${PROJECT_BINARY_DIR}/packaging/dev/prerm")
include(CPack)
