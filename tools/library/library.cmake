# SPDX-License-Identifier: GPL-3.0-or-later
#
# libmemsim, shared and as an archive: what memsim.h declares, and what that
# needs of the rooms.  Both show the names of exports.txt alone.  Included by
# CMakeLists.txt.

set(library ${CMAKE_CURRENT_LIST_DIR})
file(STRINGS ${library}/exports.txt exports REGEX "^memsim_")
list(TRANSFORM exports PREPEND "LINKER:-u," OUTPUT_VARIABLE wanted)

# ---- shared ------------------------------------------------------------------

set(map ${CMAKE_BINARY_DIR}/library/exports.map)
list(JOIN exports " " names)
string(REPLACE " " "$<SEMICOLON> " names "${names}")
file(GENERATE OUTPUT ${map}
    CONTENT "{ global: ${names}$<SEMICOLON> local: *$<SEMICOLON> }$<SEMICOLON>\n")
set(own ${CMAKE_BINARY_DIR}/library/empty.c) # the rest comes from archives
if(igraph_archive_moves)
    set(own ${library}/streams.c)
else()
    file(WRITE ${own} "extern const int memsim_unused;\n")
endif()
add_library(memsim-shared SHARED ${own})
set_target_properties(memsim-shared PROPERTIES OUTPUT_NAME memsim
    VERSION ${PROJECT_VERSION} SOVERSION 1 LINK_DEPENDS ${map})
target_link_libraries(memsim-shared PRIVATE house tools)
target_link_options(memsim-shared PRIVATE ${wanted}
    LINKER:--version-script=${map})
if(igraph_archive_moves)
    target_link_options(memsim-shared PRIVATE ${igraph_streams})
endif()
if(NOT instrument) # sanitizers leave names to the program
    target_link_options(memsim-shared PRIVATE LINKER:-z,defs)
endif()

# ---- archive: one object whose other names are local -------------------------

if(drops_unused AND CMAKE_OBJCOPY AND NOT instrument)
    set(archive ${CMAKE_BINARY_DIR}/libmemsim.a)
    set(object ${CMAKE_BINARY_DIR}/library/memsim.o)
    list(TRANSFORM exports PREPEND "-Wl,-u," OUTPUT_VARIABLE wanted)
    add_custom_command(OUTPUT ${archive}
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -Wl,--gc-sections ${wanted}
                -o ${object} -Wl,--start-group $<TARGET_FILE:tools>
                $<TARGET_FILE:plots> $<TARGET_FILE:policies>
                $<TARGET_FILE:graphs> $<TARGET_FILE:sim> -Wl,--end-group
        COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=${library}/exports.txt
                ${object}
        COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
        COMMAND ${CMAKE_AR} rcs ${archive} ${object}
        DEPENDS tools plots policies graphs sim ${library}/exports.txt
        VERBATIM COMMENT "Linking the archive libmemsim.a")
    add_custom_target(memsim-archive ALL DEPENDS ${archive})
    install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# ---- what is installed -------------------------------------------------------

file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/library/memsim.pc @ONLY CONTENT
"prefix=\${pcfiledir}/@up@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: memsim
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Libs: -L\${libdir} -lmemsim
Libs.private: -ligraph -lz -lm -pthread
Cflags: -I\${includedir}
")
install(TARGETS memsim-shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${library}/memsim.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
install(FILES ${library}/memsim.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_BINARY_DIR}/library/memsim.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
