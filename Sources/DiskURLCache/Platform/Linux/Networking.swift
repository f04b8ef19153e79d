#if canImport(FoundationNetworking)
    // Foundation has URLSession in a module of its own on Linux. This library's whole interface is made of its types;
    // so whoever imports the library has them, as on Apple platforms.
    @_exported import FoundationNetworking
#endif
