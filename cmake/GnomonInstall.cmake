# cmake --install: the command, libraries, headers, data files, and find_package(gnomon).
get_property(modules GLOBAL PROPERTY GNOMON_MODULES)
install(TARGETS ${modules} gnomon_train_interface gnomon_train_loader EXPORT gnomon-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS gnomon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET gnomon_train)
  install(TARGETS gnomon_train LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gnomon)
endif()
install(DIRECTORY gnomon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY devices models DESTINATION ${CMAKE_INSTALL_DATADIR}/gnomon FILES_MATCHING PATTERN "*.toml")
install(EXPORT gnomon-targets NAMESPACE gnomon:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gnomon)
configure_package_config_file(cmake/gnomon-config.cmake.in ${PROJECT_BINARY_DIR}/gnomon-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gnomon)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gnomon-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gnomon-config.cmake ${PROJECT_BINARY_DIR}/gnomon-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gnomon)
