# SPDX-License-Identifier: MIT
# An overlay port, of the sources that it lies in: vcpkg install motet --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

set(options "")
foreach(part tls http)
  if(part IN_LIST FEATURES)
    list(APPEND options -D${part}=enabled)
  else()
    list(APPEND options -D${part}=disabled)
  endif()
endforeach()

vcpkg_configure_meson(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -Dtests=false -Dexamples=false -Dbackends=auto -Dposix=disabled ${options})
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES motet-doctor motet-trace AUTO_CLEAN)
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/motet)
# The file is now one folder less deep below the prefix.
vcpkg_replace_string("${CURRENT_PACKAGES_DIR}/share/motet/motetConfig.cmake" "/../../.." "/../..")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
