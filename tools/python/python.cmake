# SPDX-License-Identifier: GPL-3.0-or-later
#
# The package memsim of Python in build/PRESET/python: its files, the exporter,
# the library and the program beside them; and the target wheel, which packs
# that.  Included by CMakeLists.txt.

set(package ${CMAKE_BINARY_DIR}/python/memsim)
file(MAKE_DIRECTORY ${package})
file(GLOB modules CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/memsim/*.py)
foreach(module IN LISTS modules)
    get_filename_component(name ${module} NAME)
    file(CREATE_LINK ${module} ${package}/${name} SYMBOLIC)
endforeach()
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/tools/export_torch.py
     ${package}/export_torch.py SYMBOLIC)
file(CREATE_LINK ${CMAKE_BINARY_DIR}/libmemsim.so.1 ${package}/libmemsim.so.1
     SYMBOLIC)
file(CREATE_LINK ${CMAKE_BINARY_DIR}/memsim ${package}/memsim SYMBOLIC)

install(FILES ${modules} ${CMAKE_SOURCE_DIR}/tools/export_torch.py
        DESTINATION lib/python3/dist-packages/memsim)

add_custom_target(wheel
    COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/wheel.py ${package}
            ${CMAKE_BINARY_DIR}
    DEPENDS memsim memsim-shared VERBATIM)
