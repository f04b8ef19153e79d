// Nearly every file of this target uses the helpers that it shares with `DiskURLCachePublicTests`.
@_exported import TestSupport
