// Nearly every file of this target uses the helpers that it shares with `DiskURLCacheTests`. `Integrations` has some of
// the files of both without the module.
@_exported import TestSupport
