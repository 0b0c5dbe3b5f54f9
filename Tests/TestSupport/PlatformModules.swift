// The module that only some systems have, for every file that imports TestSupport.
#if canImport(FoundationNetworking)
@_exported public import FoundationNetworking
#endif
