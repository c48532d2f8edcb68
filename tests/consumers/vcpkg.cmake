# SPDX-License-Identifier: MIT
# What vcpkg does with the port, as far as the port asks for it, without the half for debugging; vcpkg
# itself is in no package.
#
# usage: cmake -DPORT=DIRECTORY -DPLACE=DIRECTORY -DBUILD=DIRECTORY -DFEATURES=LIST -P vcpkg.cmake
cmake_minimum_required(VERSION 3.20)
set(CURRENT_PACKAGES_DIR "${PLACE}/packages")
set(CURRENT_BUILD_DIR "${BUILD}")

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_configure_meson)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "what is ${arg_UNPARSED_ARGUMENTS}")
  endif()
  run(meson setup "${CURRENT_BUILD_DIR}" "${arg_SOURCE_PATH}" --prefix "${CURRENT_PACKAGES_DIR}" --libdir lib
    --buildtype release -Ddefault_library=static ${arg_OPTIONS})
endfunction()

function(vcpkg_install_meson)
  run(meson compile -C "${CURRENT_BUILD_DIR}")
  run(meson install -C "${CURRENT_BUILD_DIR}")
endfunction()

function(vcpkg_fixup_pkgconfig)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/motet.pc")
    message(FATAL_ERROR "no motet.pc")
  endif()
endfunction()

function(vcpkg_copy_tools)
  cmake_parse_arguments(PARSE_ARGV 0 arg "AUTO_CLEAN" "" "TOOL_NAMES")
  foreach(tool ${arg_TOOL_NAMES})
    file(COPY "${CURRENT_PACKAGES_DIR}/bin/${tool}" DESTINATION "${CURRENT_PACKAGES_DIR}/tools/motet")
    file(REMOVE "${CURRENT_PACKAGES_DIR}/bin/${tool}")
  endforeach()
endfunction()

# Moves what is there to where vcpkg's users look. Of a port of its own, which must be asked for.
file(READ "${PORT}/vcpkg.json" port_needs)
if(NOT port_needs MATCHES "\"vcpkg-cmake-config\"")
  message(FATAL_ERROR "vcpkg_cmake_config_fixup is unknown")
endif()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  file(COPY "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/" DESTINATION "${CURRENT_PACKAGES_DIR}/share/motet")
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}")
endfunction()

function(vcpkg_replace_string file old new)
  file(READ "${file}" text)
  string(FIND "${text}" "${old}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "no ${old} in ${file}")
  endif()
  string(REPLACE "${old}" "${new}" text "${text}")
  file(WRITE "${file}" "${text}")
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/motet")
endfunction()

include("${PORT}/portfile.cmake")

file(GLOB left "${CURRENT_PACKAGES_DIR}/bin/*")
if(left)
  message(FATAL_ERROR "a static package with ${left}")
endif()
