# SPDX-License-Identifier: GPL-3.0-or-later
#
# Installs the program and what it prints about itself, and packs the Debian
# package and the tarball.  Included by CMakeLists.txt; CMake itself runs it
# again twice:
#
#   cmake -DPROGRAM=memsim -DMANUAL=memsim-manual -DOUTPUT=DIR \
#         -P tools/install.cmake
#       writes completions and schemas, as the program prints them, and the man
#       page, from its template and the program's tables
#   cpack, before it packs
#       puts things where Debian wants them, and the licences into a tarball

if(PROGRAM) # ---- after the program is built ---------------------------------

    function(print file)
        execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${OUTPUT}/${file}
                        COMMAND_ERROR_IS_FATAL ANY)
    endfunction()

    # The first words of the lines that complete words.
    function(offered result)
        execute_process(COMMAND ${PROGRAM} completion words -- ${ARGN} ""
                        OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
        string(REGEX REPLACE "\t[^\n]*" "" lines "${lines}")
        string(STRIP "${lines}" lines)
        string(REPLACE "\n" ";" lines "${lines}")
        set(${result} "${lines}" PARENT_SCOPE)
    endfunction()

    file(REMOVE_RECURSE ${OUTPUT})
    file(MAKE_DIRECTORY ${OUTPUT}/schemas)
    print(memsim.bash completion bash)
    print(_memsim completion zsh)
    print(memsim.fish completion fish)
    offered(documents schema)
    foreach(name IN LISTS documents)
        print(schemas/${name}.schema.json schema ${name})
    endforeach()
    execute_process(COMMAND ${MANUAL}
                        ${CMAKE_CURRENT_LIST_DIR}/cli/help/memsim.1.in
                    OUTPUT_FILE ${OUTPUT}/memsim.1 COMMAND_ERROR_IS_FATAL ANY)

elseif(CPACK_TEMPORARY_INSTALL_DIRECTORY) # ---- before packing ----------------

    set(top ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
    if(EXISTS ${top}/usr)
        # zsh looks into site-functions below /usr/local only.
        set(share ${top}/usr/share)
        file(MAKE_DIRECTORY ${share}/zsh/vendor-completions)
        file(RENAME ${share}/zsh/site-functions/_memsim
                    ${share}/zsh/vendor-completions/_memsim)
        file(REMOVE_RECURSE ${share}/zsh/site-functions)
        file(MAKE_DIRECTORY ${share}/doc/memsim/examples)
        foreach(example IN ITEMS stripe compress partition)
            file(RENAME ${share}/doc/memsim/${example}.c
                        ${share}/doc/memsim/examples/${example}.c)
        endforeach()
        file(COPY ${CMAKE_CURRENT_LIST_DIR}/debian/copyright
                  ${CMAKE_CURRENT_LIST_DIR}/debian/changelog
             DESTINATION ${share}/doc/memsim FILE_PERMISSIONS
             OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
        execute_process(COMMAND gzip -9n ${share}/doc/memsim/changelog
                                         ${share}/man/man1/memsim.1
                                         ${share}/man/man3/memsim.3
                        COMMAND_ERROR_IS_FATAL ANY)
    else() # a tarball
        file(COPY ${CMAKE_CURRENT_LIST_DIR}/debian/copyright
                  ${CMAKE_CURRENT_LIST_DIR}/../COPYING
             DESTINATION ${top})
    endif()

else() # ---- in CMakeLists.txt ------------------------------------------------

    install(TARGETS memsim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(FILES policies/plugin.h
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/memsim/policies)
    install(FILES tests/plugin/stripe.c tests/plugin/compress.c
            tests/plugin/partition.c tests/plugin/lifo.c
            tests/plugin/largest.c DESTINATION ${CMAKE_INSTALL_DOCDIR})

    set(printed ${CMAKE_BINARY_DIR}/printed)
    set(page tools/cli/help/memsim.1.in) # a template
    add_custom_command(OUTPUT ${printed}/_memsim
        COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:memsim>
                -DMANUAL=$<TARGET_FILE:memsim-manual> -DOUTPUT=${printed}
                -P ${CMAKE_CURRENT_LIST_FILE}
        DEPENDS memsim memsim-manual ${page} ${CMAKE_CURRENT_LIST_FILE}
        VERBATIM COMMENT "Printing completions, schemas and the man page")
    add_custom_target(printed ALL DEPENDS ${printed}/_memsim)
    set(share ${CMAKE_INSTALL_DATADIR})
    install(FILES ${printed}/memsim.1
            DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${printed}/memsim.bash RENAME memsim
            DESTINATION ${share}/bash-completion/completions)
    install(FILES ${printed}/_memsim DESTINATION ${share}/zsh/site-functions)
    install(FILES ${printed}/memsim.fish
            DESTINATION ${share}/fish/vendor_completions.d)
    install(DIRECTORY ${printed}/schemas/ DESTINATION ${share}/memsim)

    set(CPACK_GENERATOR DEB)
    set(CPACK_PACKAGE_NAME memsim)
    set(CPACK_PACKAGE_FILE_NAME
        memsim-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
    set(CPACK_PACKAGE_DESCRIPTION "\
memsim answers, before a GPU hour is spent: does this training step fit, what
is alive at its peak, what does each memory-saving policy buy, and what does it
cost in time?  It compiles a model into a layer DAG, derives its backward pass
and optimizer step, and replays the life of every tensor under checkpointing,
sharding, offload and swap.")
    set(CPACK_PACKAGE_CONTACT "memsim maintainers \
<maintainers@users.noreply.a-seed-fc342512.example>")
    set(CPACK_STRIP_FILES ON)
    set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
        OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
        WORLD_READ WORLD_EXECUTE)
    set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_FILE})
    set(CPACK_DEBIAN_PACKAGE_SECTION science)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3")
    set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox, fonts-liberation")
    set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
    set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
    include(CPack)
endif()
