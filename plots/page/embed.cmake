# SPDX-License-Identifier: GPL-3.0-or-later
#
# Turns the style and the scripts of a page into pageparts.c: both as texts,
# with what a content security policy calls them: "sha256-" and the hash in
# base 64.  Included by CMakeLists.txt; the target is "plots".

set(PAGE_FOLDER ${CMAKE_CURRENT_LIST_DIR})
# In this order:
set(PAGE_SCRIPTS pagedata.js pagefigure.js pagechart.js pageoverlay.js page.js)

function(page_hash text result)
    set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
    string(SHA256 hash "${text}")
    set(encoded "")
    foreach(at RANGE 0 63 6) # three bytes are four digits
        string(SUBSTRING "${hash}0000" ${at} 6 bytes)
        math(EXPR bits "0x${bytes}")
        foreach(shift IN ITEMS 18 12 6 0)
            math(EXPR digit "(${bits} >> ${shift}) & 63")
            string(SUBSTRING ${digits} ${digit} 1 digit)
            string(APPEND encoded ${digit})
        endforeach()
    endforeach()
    string(SUBSTRING ${encoded} 0 43 encoded) # of 32 bytes
    set(${result} "sha256-${encoded}=" PARENT_SCOPE)
endfunction()

function(page_literal text result)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
    set(${result} "\"${text}\"" PARENT_SCOPE)
endfunction()

function(page_embed output)
    file(READ ${PAGE_FOLDER}/page.css style)
    set(script "")
    foreach(name IN LISTS PAGE_SCRIPTS)
        file(READ ${PAGE_FOLDER}/${name} text)
        string(APPEND script "${text}")
    endforeach()
    page_hash("${style}" style_hash)
    page_hash("${script}" script_hash)
    page_literal("${style}" style)
    page_literal("${script}" script)
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "\
/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Made by plots/page/embed.cmake. */
#include \"plots/page/pageparts.h\"

const ms_pagepart ms_pageparts_style = {
    \"${style_hash}\",
    ${style}};
const ms_pagepart ms_pageparts_script = {
    \"${script_hash}\",
    ${script}};
")
endfunction()

set(PAGE_OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/embedded/pageparts.c)
page_embed(${PAGE_OUTPUT})
foreach(name IN ITEMS page.css ${PAGE_SCRIPTS})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                 ${PAGE_FOLDER}/${name})
endforeach()
# A script is longer than the 4095 characters that C11 promises.
set_source_files_properties(${PAGE_OUTPUT} PROPERTIES
                            COMPILE_OPTIONS -Wno-overlength-strings)
target_sources(plots PRIVATE ${PAGE_OUTPUT})
